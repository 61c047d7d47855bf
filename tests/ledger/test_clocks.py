"""Clocks that go back: the log keeps its order, nothing is judged by a time, and verification says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from ledger import log, plans
from ledger.event_types import AcquisitionEvent
from ledger.index import Index
from ledger.verify import verify
from tests.audits.cohorts import new_ledger, noisy, rows
from tests.cli.calls import called
from tests.ledger.homes import Place, new_place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return new_place(tmp_path)


def at(place: Place, *times: str) -> None:
    for number, time in enumerate(times):
        event = AcquisitionEvent(f"run-{number}", "transport", time=time)
        log.commit(place.home, place.key, lambda _, event=event: [event])  # type: ignore[misc]


def test_times_that_grow_or_stand_still_are_nothing_to_tell(place: Place) -> None:
    at(place, *["2099-01-01T00:00:00Z"] * 2, "2099-01-01T00:00:01Z")
    assert verify(place.home).notices == ()


def test_a_clock_that_went_back_is_a_note_and_no_problem(place: Place) -> None:
    at(place, "2099-06-01T00:00:00Z", "2099-01-01T00:00:00Z", "2099-03-01T00:00:00Z", "2099-07-01T00:00:00Z")
    report = verify(place.home)
    assert report.ok
    (notice,) = report.notices
    assert notice.startswith("2 events say an earlier time than one before, the first is event 2: a clock")
    with Index.open(place.home) as index:
        assert [row.id for row in index.acquisitions()] == ["run-0", "run-1", "run-2", "run-3"]


def test_a_plan_is_early_or_late_by_its_place_whatever_the_clock_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backdating a plan does not make it come first."""
    from audits import plan

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "4102444800")
    ledger = new_ledger(tmp_path)
    ledger.ingest(rows(noisy(6, 1)))
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    document = {
        "name": "late", "audit": "transport", "ref": "direct", "alt": "generated", "estimands": ["gain.ref"],
        "resamples": 100,
    }  # fmt: skip
    made = plan.read(document, ledger.snapshot())
    plans.add(ledger.home, ledger.key, made.name, made.as_json())
    monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
    done = called("audit", "--plan", "late", "--json")
    assert done.code == 0, done.err
    assert '"prespecified": false' in done.out
    assert "event 5" in verify(ledger.home).notices[0]
