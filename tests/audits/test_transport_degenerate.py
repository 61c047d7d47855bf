"""The transport audit where little or nothing is left: a result with reasons, and the error to end with."""

from __future__ import annotations

from typing import Any

import pytest

from audits.transport import transport
from contracts.errors import TamperError, UsageError
from ledger.snapshot import Level
from tests.audits.cohorts import Face, Ledger, gains, noisy, rows
from tests.audits.transport_runs import ledger, result, run

__all__ = ["ledger"]  # fixtures


def test_one_trajectory_keeps_its_point(ledger: Ledger) -> None:
    ledger.ingest(rows(noisy(1, 3)))
    found = result(ledger)
    interaction = found["estimates"]["interaction"]
    assert interaction["value"] is not None
    assert interaction["ci95"] is None
    assert interaction["reason"] == "one_cluster"
    assert found["tables"]["leave_one_trajectory_out"]["reasons"]["min"] == "one_cluster"
    assert found["tables"]["diagnostics"]["se_cr1"] is None


def test_a_channel_without_scores_is_not_identified(ledger: Ledger) -> None:
    ledger.ingest([row for row in rows(noisy(2, 1)) if row["channel"] == "direct"])
    found = run(ledger)
    assert found.audit.shortfall is not None
    assert found.audit.shortfall.code == "not_identified"
    assert "(generated, before) and (generated, after)" in str(found.audit.shortfall)
    assert found.audit.result["verdicts"]["identification"] == {
        "status": "not_identified", "missing": [["alt", "before"], ["alt", "after"]]
    }  # fmt: skip
    assert all(e["value"] is None and e["ci95"] is None for e in found.audit.result["estimates"].values())
    assert found.audit.result["flow"]["transitions"] == 2


CORNERS = [(role, endpoint) for role in ("ref", "alt") for endpoint in ("before", "after")]


@pytest.mark.parametrize("corner", CORNERS, ids="-".join)
def test_a_missing_corner_has_a_name_and_with_a_range_an_interval(
    ledger: Ledger, corner: tuple[str, str]
) -> None:
    """Margins ref 1.0, 1.5 and alt 2.0, 2.75; the missing one is declared to lie in [0, 3]."""
    role, endpoint = corner
    channel = {"ref": "direct", "alt": "generated"}[role]
    made = rows({("t1", 0): Face((1.0, 1.5), (2.0, 2.75)), ("t2", 0): Face((1.0, 1.5), (2.0, 2.75))})
    ledger.ingest([r for r in made if (r["channel"], r["endpoint"]) != (channel, endpoint)])
    plain = run(ledger)
    assert plain.audit.result["verdicts"]["identification"]["missing"] == [[role, endpoint]]
    assert "interval" not in plain.audit.result["verdicts"]["identification"]
    found = run(ledger, missing_corner_range=(0.0, 3.0))
    identified = found.audit.result["verdicts"]["identification"]
    known = {"ref before": 1.0, "ref after": -1.5, "alt before": -2.0, "alt after": 2.75}
    part = sum(known.values()) - known[f"{role} {endpoint}"]
    sign = 1 if known[f"{role} {endpoint}"] > 0 else -1
    assert identified["interval"] == sorted((part, part + 3 * sign))
    assert (identified["transitions"], identified["trajectories"]) == (2, 2)
    assert found.audit.result["estimates"]["interaction"]["value"] is None
    assert found.audit.shortfall is not None
    provenance = found.audit.result["provenance"]
    assert provenance["entries_in"] == 16, "readings of refused sides are no entries"


def test_the_interval_of_a_missing_corner_checks_the_readings_it_rests_on(ledger: Ledger) -> None:
    made = rows({("t1", 0): Face((1.0, 1.5), (2.0, 2.75))})
    cut = [r for r in made if (r["channel"], r["endpoint"]) != ("generated", "after")]
    turned = [r | {"request_hash": cut[0]["request_hash"]} for r in cut if r["channel"] == "generated"]
    ledger.ingest([r for r in cut if r["channel"] == "direct"] + turned)
    found = run(ledger, missing_corner_range=(0.0, 3.0)).audit.result["verdicts"]["identification"]
    assert (found["interval"], found["reason"]) == (None, "empty_cohort")
    (refused,) = (ledger.home.path / "objects" / "refusals").glob("*.parquet")
    refused.write_bytes(refused.read_bytes()[:-1] + b"?")
    with pytest.raises(TamperError):
        run(ledger, missing_corner_range=(0.0, 3.0))


def test_an_empty_ledger_answers_with_reasons(ledger: Ledger) -> None:
    found = run(ledger)
    assert found.audit.shortfall is not None
    assert found.audit.result["flow"]["transitions"] == 0
    assert found.audit.result["estimates"]["interaction"]["reason"] == "empty_cohort"


def test_entries_below_the_level_do_not_enter(ledger: Ledger) -> None:
    ledger.ingest(rows(noisy(2, 1), bound=False))
    found = run(ledger)
    assert found.audit.shortfall is not None
    assert found.audit.shortfall.code == "level-not-reached"
    assert "--require declared" in str(found.audit.shortfall)
    assert found.audit.result["provenance"]["entries_by_level"]["declared"] == 32
    assert found.audit.result["provenance"]["entries_out"]["level"] == 32
    taken = run(ledger, require=Level.DECLARED)
    assert taken.audit.shortfall is None
    assert taken.audit.result["provenance"]["level"] == "declared"


def test_one_acquisition_that_empties_the_cohort_is_named(ledger: Ledger) -> None:
    faces = noisy(3, 1)
    made = rows(faces, acquisitions={"generated": ("a", "b")})
    ledger.ingest([r for r in made if r["acquisition_id"] != "b"])
    ledger.ingest(
        rows({("t900", 0): gains(1.0, 1.0)}, acquisitions={"direct": (), "generated": ("b",)}), "b.parquet"
    )
    found = run(ledger).audit.shortfall
    assert found is not None
    assert found.code == "acquisition-empties"
    assert "--acquisition generated@a" in str(found)
    fingerprint = ledger.snapshot().book.resolve("generated").fingerprint
    assert run(ledger, acquisitions=[(fingerprint, "a")]).audit.result["flow"]["complete"] == 3


IMPOSSIBLE: tuple[dict[str, Any], ...] = (
    {"resamples": 1},
    {"seed": -1},
    {"seed": 2**53},
    {"target_types": ["A", "A"]},
    {"missing_corner_range": (1.0, 0.0)},
    {"missing_corner_range": (float("nan"), 0.0)},
    {"missing_corner_range": (0.0, 1.0)},
    {"where": {"energy": ["1"]}},
    {"acquisitions": [(None, "nobody")]},
    {"weights": "mine"},
)


def test_impossible_options_are_refused(ledger: Ledger) -> None:
    ledger.ingest(rows(noisy(2, 1)))
    for options in IMPOSSIBLE:
        with pytest.raises(UsageError):
            run(ledger, **options)
    with pytest.raises(UsageError, match="compared with itself"):
        transport(ledger.snapshot(), "direct", "direct")
