"""The cube: cells found by specification, contrasts with the signs of the levels, frozen inputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from audits.cube import cube
from audits.cube_cells import Factors, find_cells
from audits.recompute import recompute
from audits.record import AuditResult, statement
from audits.results import Audited
from contracts.errors import CannotAnswerError, UsageError
from tests.audits.cohorts import Ledger, digest
from tests.audits.family import LEVELS, cube_rows, cube_specs, family, shuffled, side

PATHS = ("view.kind", "presentation.authority")
FACTORS = Factors.of(PATHS, LEVELS)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    folder = tmp_path_factory.mktemp("cube")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        made = family(folder, cube_specs())
        made.ingest(cube_rows())
    return made


@pytest.fixture
def ledger(shared: Ledger, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(shared.folder / "config"))
    return shared


def run(ledger: Ledger, factors: Factors = FACTORS, **more: object) -> Audited:
    return cube(ledger.snapshot(), "cube/*", factors=factors, resamples=200, **more)  # type: ignore[arg-type]


def values(audit: AuditResult) -> dict[str, float]:
    return {name: fields["value"] for name, fields in audit.result["estimates"].items()}


def test_contrasts_and_changes_are_differences_of_the_gains(ledger: Ledger) -> None:
    found = values(run(ledger).audit)
    gain = {name.removeprefix("gain."): value for name, value in found.items() if name.startswith("gain.")}
    assert len(gain) == 6
    for later, earlier in (("quote", "empty"), ("generated", "quote"), ("generated", "empty")):
        for level in LEVELS[1]:
            contrast = found[f"contrast.{later}-{earlier}/{level}"]
            assert contrast == pytest.approx(gain[f"{later}/{level}"] - gain[f"{earlier}/{level}"], abs=1e-12)
        change = found[f"contrast.{later}-{earlier}/evidence"] - found[f"contrast.{later}-{earlier}/neutral"]
        assert found[f"change.{later}-{earlier}"] == pytest.approx(change, abs=1e-12)
    for level in LEVELS[1]:
        apart = found[f"contrast.generated-quote/{level}"] - found[f"contrast.quote-empty/{level}"]
        name = f"contrast_difference.generated-quote.minus.quote-empty/{level}"
        assert found[name] == pytest.approx(apart, abs=1e-12)


def test_reversed_levels_of_the_first_factor_mirror_every_contrast_exactly(ledger: Ledger) -> None:
    forward = run(ledger).result["estimates"]
    back = run(ledger, Factors.of(PATHS, (LEVELS[0][::-1], LEVELS[1]))).result["estimates"]
    for later, earlier in (("quote", "empty"), ("generated", "quote"), ("generated", "empty")):
        for level in LEVELS[1]:
            assert_mirrored(
                forward[f"contrast.{later}-{earlier}/{level}"], back[f"contrast.{earlier}-{later}/{level}"]
            )
        assert_mirrored(forward[f"change.{later}-{earlier}"], back[f"change.{earlier}-{later}"])


def test_reversed_levels_of_the_second_factor_mirror_the_changes_only(ledger: Ledger) -> None:
    forward = run(ledger).result["estimates"]
    back = run(ledger, Factors.of(PATHS, (LEVELS[0], LEVELS[1][::-1]))).result["estimates"]
    assert_mirrored(forward["change.generated-quote"], back["change.generated-quote"])
    name = "contrast.generated-quote/neutral"
    assert forward[name] == back[name]


def assert_mirrored(one: dict, other: dict) -> None:
    """Value and t interval negate exactly; percentile ends swap, interpolated from the other side."""
    opposite = {"positive": "negative", "negative": "positive", "unresolved": "unresolved"}
    assert other["value"] == -one["value"]
    assert other["ci95_t"] == [-end for end in reversed(one["ci95_t"])]
    assert other["ci95"] == pytest.approx([-end for end in reversed(one["ci95"])], abs=1e-15)
    assert other["verdict"] == opposite[one["verdict"]]


def test_an_extra_difference_is_found_and_named_and_nothing_is_computed(tmp_path: Path) -> None:
    specs = cube_specs()
    specs["cube/3"]["order"] = "view-first"
    ledger = family(tmp_path, specs)
    with pytest.raises(CannotAnswerError) as refused:
        run(ledger)
    assert refused.value.code == "channels-differ"
    assert 'presentation.order ("view-first" in cube/3, "state-first" in the others)' in str(refused.value)


def test_two_channels_for_one_cell_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    specs = cube_specs() | {"cube/hot": {"view": "quote", "extra": "temperature = 0.5\n"}}
    ledger = family(tmp_path, specs)
    with pytest.raises(
        CannotAnswerError, match=r"presentation.temperature \(0.5 in cube/hot, absent in the others"
    ):
        run(ledger)
    cells = find_cells(ledger.snapshot().book, ["cube/?"], FACTORS)
    assert cells["quote", "neutral"].name == "cube/2"


def test_channels_are_found_by_specification_whatever_they_are_called(tmp_path: Path) -> None:
    specs = {f"x{place}": given for place, given in enumerate(cube_specs().values())}
    book = family(tmp_path, specs | {"other": {"view": "summary"}}).snapshot().book
    cells = find_cells(book, ["*"], FACTORS)
    assert {cell: channel.name for cell, channel in cells.items()} == {
        cell: f"x{place}" for place, cell in enumerate(FACTORS.cells)
    }


def test_a_cell_without_a_channel_is_named(ledger: Ledger) -> None:
    with pytest.raises(UsageError) as refused:
        run(ledger, Factors.of(PATHS, (("empty", "summary"), LEVELS[1])))
    assert "no channel for 2 of 4 cells: summary/neutral, summary/evidence" in str(refused.value)


@pytest.mark.parametrize(
    ("paths", "levels", "option"),
    [
        (("view.kind",), LEVELS, "--factors"),
        (("view.kind", "view.kind"), LEVELS, "--factors"),
        (PATHS, LEVELS[:1], "--levels"),
        (PATHS, (("empty",), LEVELS[1]), "--levels"),
        (PATHS, (("empty", "empty"), LEVELS[1]), "--levels"),
        (PATHS, (("a/b", "a"), ("c", "b/c")), "--levels"),
    ],
)
def test_factors_are_two_of_at_least_two_levels(paths: tuple, levels: tuple, option: str) -> None:
    with pytest.raises(UsageError) as refused:
        Factors.of(paths, levels)
    assert refused.value.where == option


def test_a_transition_is_in_only_when_every_cell_is_complete(tmp_path: Path) -> None:
    ledger = family(tmp_path, cube_specs())
    lacking = ("t004", "cube/3", "after", 1)
    ledger.ingest(
        [r for r in cube_rows() if (r["trajectory_id"], r["channel"], r["endpoint"], r["layout"]) != lacking]
    )
    flow = run(ledger).result["flow"]
    assert (flow["complete"], flow["excluded"][0]["examples"]) == (
        11,
        ["t004/step00: after, quote/evidence, layout 1, candidate A absent"],
    )


@pytest.mark.parametrize(
    ("column", "reason"),
    [("state_hash", "provenance:state-frozen"), ("candidates_hash", "provenance:candidates-frozen")],
)
def test_another_state_or_candidate_contract_in_one_cell_excludes_the_transition(
    tmp_path: Path, column: str, reason: str
) -> None:
    ledger = family(tmp_path, cube_specs())
    made = cube_rows()
    for row in made:
        if (row["trajectory_id"], row["channel"]) == ("t002", "cube/4"):
            row[column] = digest("other", row["endpoint"] if column == "state_hash" else "")
    # two ingest calls: within one, the contract refuses such a transition itself
    ledger.ingest([r for r in made if r["channel"] != "cube/4"], "one.parquet")
    ledger.ingest([r for r in made if r["channel"] == "cube/4"], "two.parquet")
    flow = run(ledger).result["flow"]
    assert flow["complete"] == 11
    assert [e["reason"] for e in flow["excluded"]] == [reason]


def test_cells_of_the_same_view_must_have_been_shown_the_same_view(tmp_path: Path) -> None:
    ledger = family(tmp_path, cube_specs())
    made = cube_rows()
    for row in made:
        if (row["trajectory_id"], row["channel"]) == ("t002", "cube/3"):
            row["view_hash"] = digest("another view", row["endpoint"])
    ledger.ingest(made)
    flow = run(ledger).result["flow"]
    assert flow["complete"] == 11
    assert [e["reason"] for e in flow["excluded"]] == ["face:view-not-frozen"]


def test_a_band_is_judged_by_both_ninety_percent_intervals(ledger: Ledger) -> None:
    wide, narrow = (run(ledger, band=band).result for band in (50.0, 0.001))
    assert wide["verdicts"]["equivalence"]["established"] is True
    stated = narrow["verdicts"]["equivalence"]
    assert stated["established"] is False
    fields = narrow["estimates"]["change.generated-quote"]
    assert stated["smallest_band"] == max(abs(end) for ci in ("ci90", "ci90_t") for end in fields[ci])
    assert stated["prespecified"] is False


def test_the_result_is_the_same_bytes_for_permuted_rows_and_when_computed_again(
    ledger: Ledger, tmp_path: Path
) -> None:
    snapshot = ledger.snapshot()
    found = cube(snapshot, "cube/*", factors=FACTORS, resamples=200, band=0.25).audit
    stated = statement(found, versions={}, time="2026-02-03T04:05:06Z")
    assert recompute(snapshot, stated) == found.result_bytes
    other = family(tmp_path, cube_specs())
    other.ingest(shuffled(cube_rows()))
    again = cube(other.snapshot(), "cube/*", factors=FACTORS, resamples=200, band=0.25).audit
    assert again.result_bytes == found.result_bytes


def test_no_complete_transition_leaves_every_estimate_undefined(tmp_path: Path) -> None:
    ledger = family(tmp_path, cube_specs())
    ledger.ingest(list(side("cube/0", "t000", (0.0, 1.0), shown=False)))
    found = run(ledger).audit
    assert found.shortfall is not None
    assert found.shortfall.code == "no-scores"
    assert {fields["reason"] for fields in found.result["estimates"].values()} == {"empty_cohort"}
