"""Refused sides stay open until a later call brings them whole."""

from __future__ import annotations

from pathlib import Path

from ledger import status
from tests.audits.cohorts import new_ledger, noisy, rows


def test_a_side_that_came_whole_later_is_no_longer_open(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    made = rows(noisy(4, 2))
    assert status.status(ledger.home).open_sides == 0

    def short(row: dict[str, object]) -> bool:
        return row["channel"] == "direct" and row["step"] == 1 and row["layout"] == 1

    ledger.ingest([r for r in made if not (short(r) and r["trajectory_id"] in ("t001", "t002"))])
    seen = status.status(ledger.home)
    assert (seen.refused_sides, seen.open_sides) == (2, 2)
    ledger.ingest([r for r in made if r["trajectory_id"] == "t001"], "later.parquet")
    seen = status.status(ledger.home)
    assert (seen.refused_sides, seen.open_sides) == (2, 1)

    for segment in (ledger.home.path / "objects/segments").iterdir():
        segment.chmod(0o644)
        segment.write_bytes(b"damaged")
    assert status.status(ledger.home).open_sides is None
