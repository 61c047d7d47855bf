"""Verification: a sound home passes, while others write too; a report tells enough, and changes nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from contracts.canonical import canonical
from contracts.errors import StorageError
from ledger import log
from ledger.event_types import AcquisitionEvent
from ledger.problems import LISTED, Problems
from ledger.verify import verify
from tests.ledger.homes import Place, files
from tests.ledger.verified_homes import RESULT, made, place, stored, unsealed

__all__ = ["made", "place"]  # fixtures


# Sound


def test_a_sound_home_passes_quick_and_full(place: Place) -> None:
    phases: list[tuple[str, int, int | None]] = []
    for full in (False, True):
        report = verify(
            place.home,
            full=full,
            recompute=lambda payload: canonical(RESULT),
            progress=lambda *at: phases.append(at),
        )
        assert report.findings == ()
        assert report.notices == ()
        assert report.ok
        assert report.error() is None
        assert report.pin == "kept"
        assert report.head is not None
        assert report.head.size == report.counts["events"] == 8
    assert report.counts["segments"] == 1
    assert report.counts["entries"] == 4 * 2 * 2 * 12 - 24
    assert report.counts["records"] == report.counts["recomputed"] == 1
    assert {phase for phase, *_ in phases} == {"events", "published log", "objects", "rows", "audits"}
    assert all(done <= (total or 0) for _, done, total in phases)


def test_the_quick_form_imports_nothing_heavy(place: Place) -> None:
    heavy = ("sqlmodel", "sqlalchemy", "pandera", "polars", "pyarrow", "numpy", "alembic", "typer", "rich")
    code = (
        "import sys; from pathlib import Path;"
        "from ledger.home import read; from ledger.verify import verify;"
        f"assert verify(read(Path({str(place.home.path)!r}))).ok;"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# While others write, and how much is told


def test_a_commit_in_between_is_looked_at_again(place: Place) -> None:
    commits = iter(range(2))

    def write_meanwhile(phase: str, done: int, total: int | None) -> None:
        if phase == "events" and (number := next(commits, None)) is not None:
            log.commit(place.home, place.key, lambda _: [AcquisitionEvent(f"more-{number}", "transport")])

    report = verify(unsealed(place).home, progress=write_meanwhile)
    assert report.findings == ()
    assert report.head is not None
    assert report.head.size == 10


def test_problems_past_a_bound_are_counted_only() -> None:
    found = Problems()
    for number in range(LISTED + 5):
        found.add("data", "a", "b", str(number))
    assert (len(found.listed), found.total) == (LISTED, LISTED + 5)


def test_the_error_says_the_first_problem_and_how_many_more(place: Place) -> None:
    for path in stored(place.home, "objects/segments/*"):
        path.write_bytes(b"x")
    report = verify(place.home)
    error = report.error()
    assert error is not None
    assert (error.exit_code, error.code) == (4, "data")
    assert str(error).endswith("(and 2 more)")
    assert str(report.findings[0]).startswith("objects/segments/")


def test_a_failing_disk_is_raised_and_not_called_forgery(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("reading an object failed: input/output error", code="io-error")

    monkeypatch.setattr("ledger.objects_folder.Folder.open", fail)
    with pytest.raises(StorageError, match="input/output"):
        verify(place.home)


def test_verification_changes_nothing_in_the_home(place: Place) -> None:
    before = files(place.home.path)
    verify(place.home, full=True)
    assert files(place.home.path) == before
