"""The bridge: one contrast per vertex, joined by verdicts and never by magnitudes."""

from __future__ import annotations

from pathlib import Path

import pytest

from audits.bridge import bridge, refuse_magnitude
from audits.bridge_vertices import parse_vertices
from audits.recompute import recompute
from audits.record import statement
from audits.results import Audited
from audits.sentence import sentence
from contracts.errors import UsageError
from tests.audits.cohorts import Ledger, Row, digest
from tests.audits.family import family, shuffled, side

SPECS = {
    f"{vertex}-{view}": {"view": view, "model": vertex}
    for vertex in ("a", "b", "c")
    for view in ("quote", "generated")
}
A, B, C = (f"{v.upper()}={v}-quote:{v}-generated" for v in ("a", "b", "c"))


def rows(vertices: str = "abc", trajectories: int = 24) -> list[Row]:
    """At every vertex the quote gains and the generated view loses, more at each later vertex."""
    made: list[Row] = []
    for place, vertex in enumerate(vertices, start=1):
        for t in range(trajectories):
            noise, success = (t * (place + 4) % 7 - 3) / 16, t % 2 == 0
            for view, gain in (("quote", place * (1 + success / 2)), ("generated", -place)):
                made += side(
                    f"{vertex}-{view}", f"t{t:03d}", (0.25, 0.25 + gain + noise),
                    view=lambda endpoint, kind=view: (kind, endpoint), success=success,
                )  # fmt: skip
    return made


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return family(tmp_path, SPECS)


def run(ledger: Ledger, *vertices: str, **more: object) -> Audited:
    return bridge(ledger.snapshot(), vertices, resamples=200, **more)  # type: ignore[arg-type]


def test_each_vertex_has_its_contrast_and_its_paired_auc(ledger: Ledger) -> None:
    ledger.ingest(rows())
    found = run(ledger, A, B, C).result
    for place, vertex in enumerate("ABC", start=1):
        each = {
            part: found["estimates"][f"{vertex}.{part}"] for part in ("gain.ref", "gain.alt", "interaction")
        }
        assert each["gain.ref"]["value"] > 0 > each["gain.alt"]["value"]
        assert each["interaction"]["value"] == -place * 2.25
        assert found["estimates"][f"{vertex}.auc_gap"]["n"] == 24
    assert found["verdicts"]["bridge"] == {
        "all_interactions_negative": True,
        "strict_reversal_everywhere": True,
        "all_auc_gaps_positive": True,
        "comparability": "direction_only",
        "observed": ["A", "B", "C"],
        "unobserved": [],
        "compound_endpoint": {"status": "not_decomposed", "reason": "direction_only"},
    }
    assert {fields["role"] for fields in found["estimates"].values()} == {"secondary"}
    assert not [name for name in found["estimates"] if name.partition(".")[0] not in {"A", "B", "C"}]


def test_a_conjunction_fails_where_one_vertex_says_otherwise(ledger: Ledger) -> None:
    made = rows()
    for row in made:
        if row["channel"] == "b-generated" and row["endpoint"] == "after" and row["candidate"] == "A":
            row["energy"] += 20
    ledger.ingest(made)
    found = run(ledger, A, B, C).audit
    assert found.result["verdicts"]["bridge"]["all_interactions_negative"] is False
    said = sentence(found.result, **found.names)
    assert "not everywhere is it shown that the interaction is negative: positive at B" in said


def test_few_trajectories_leave_the_conjunctions_undefined_and_not_false(ledger: Ledger) -> None:
    ledger.ingest(rows(trajectories=6))
    found = run(ledger, A, B).result["verdicts"]["bridge"]
    names = ("all_interactions_negative", "strict_reversal_everywhere", "all_auc_gaps_positive")
    assert [found[name] for name in names] == [None, None, None]


def test_an_unobserved_vertex_is_listed_and_the_compound_endpoint_is_not_decomposed(ledger: Ledger) -> None:
    ledger.ingest(rows("ab"))
    found = run(ledger, A, B, C, "D=")
    stated = found.result["verdicts"]["bridge"]
    assert stated["observed"] == ["A", "B"]
    assert stated["unobserved"] == [
        {"vertex": "C", "reason": "no scores of ref and alt in scope"},
        {"vertex": "D", "reason": "no channels named"},
    ]
    assert stated["compound_endpoint"] == {"status": "not_decomposed", "reason": "unobserved_vertex"}
    assert found.result["flow"]["complete"] == 24
    assert not [name for name in found.estimates if name.startswith(("C", "D"))]
    assert "C and D were not observed, so the compound endpoint is not decomposed" in found.sentence


def test_no_observed_vertex_cannot_answer(ledger: Ledger) -> None:
    ledger.ingest(list(side("a-quote", "t000", (0.0, 1.0))))
    found = run(ledger, A, B).audit
    assert found.shortfall is not None
    assert found.shortfall.exit_code == 5
    assert found.result["verdicts"]["bridge"]["observed"] == []
    assert {row["vertex"] for row in found.result["verdicts"]["bridge"]["unobserved"]} == {"A", "B"}


def test_another_view_at_one_vertex_is_refused(ledger: Ledger) -> None:
    made = rows()
    for row in made:
        if (row["trajectory_id"], row["channel"]) == ("t003", "c-generated"):
            row["view_hash"] = digest("another view", row["endpoint"])
    ledger.ingest(made)
    flow = run(ledger, A, B, C).result["flow"]
    assert (flow["complete"], [e["reason"] for e in flow["excluded"]]) == (23, ["face:view-not-frozen"])


def test_another_state_at_one_vertex_is_refused(ledger: Ledger) -> None:
    made = rows()
    for row in made:
        if row["channel"].startswith("c-"):
            row["state_hash"] = digest("another state", row["trajectory_id"], row["endpoint"])
    ledger.ingest([r for r in made if not r["channel"].startswith("c-")], "ab.parquet")
    ledger.ingest([r for r in made if r["channel"].startswith("c-")], "c.parquet")
    found = run(ledger, A, B, C).audit
    assert found.result["flow"]["complete"] == 0
    assert [e["reason"] for e in found.result["flow"]["excluded"]] == ["provenance:state-frozen"]
    assert found.shortfall is not None
    assert found.shortfall.exit_code == 5


def test_transitions_are_complete_at_every_observed_vertex_and_acquisition(ledger: Ledger) -> None:
    made = rows()
    again = [
        r | {"acquisition_id": "again", "request_hash": digest("again", r["request_hash"])} for r in made
    ]
    lacking = [r for r in again if (r["trajectory_id"], r["channel"]) != ("t007", "b-quote")]
    ledger.ingest(made + lacking)
    flow = run(ledger, A, B, C).result["flow"]
    assert flow["complete"] == 23
    assert flow["excluded"][0]["examples"] == [
        "t007/step00: before, B.ref, acquisition again, layout 0, candidate A absent"
    ]


def test_a_magnitude_across_vertices_is_refused_with_the_reason() -> None:
    refused = refuse_magnitude()
    assert refused.exit_code == 5
    assert refused.code == "direction-only"
    assert "not comparable" in str(refused)


@pytest.mark.parametrize("text", ["A", "=a-quote:a-generated", "A=a-quote", "A b=a-quote:a-generated"])
def test_a_vertex_is_a_name_and_two_channels(ledger: Ledger, text: str) -> None:
    with pytest.raises(UsageError) as refused:
        parse_vertices([text], ledger.snapshot())
    assert refused.value.where == "--vertex"


@pytest.mark.parametrize("texts", [[A, A], ["D="]])
def test_vertices_have_names_of_their_own_and_one_has_channels(ledger: Ledger, texts: list[str]) -> None:
    with pytest.raises(UsageError):
        parse_vertices(texts, ledger.snapshot())


def test_a_vertex_names_channels_by_fingerprint_too(ledger: Ledger) -> None:
    book = ledger.snapshot().book
    ref, alt = (book.resolve(name) for name in ("a-quote", "a-generated"))
    (found,) = parse_vertices([f"A={ref.fingerprint}:{alt.short}"], ledger.snapshot())
    assert (found.ref, found.alt) == (ref, alt)


def test_the_result_is_the_same_bytes_for_permuted_rows_and_when_computed_again(tmp_path: Path) -> None:
    results = []
    for place, given in enumerate((rows("ab"), shuffled(rows("ab")))):
        folder = tmp_path / str(place)
        folder.mkdir()
        ledger = family(folder, SPECS)
        ledger.ingest(given)
        found = run(ledger, A, B, C).audit
        stated = statement(found, versions={}, time="2026-02-03T04:05:06Z")
        assert recompute(ledger.snapshot(), stated) == found.result_bytes
        results.append(found.result_bytes)
    assert results[0] == results[1]
