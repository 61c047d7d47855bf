"""What people see of a ledger without opening any file of entries."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.digest import sha256_digest
from contracts.errors import TamperError
from ledger import durable, log, pin, status
from ledger.events import AcquisitionEvent, PlanEvent
from tests.ledger.homes import Place, by_hand, channel_event, new_place, one_of_each, segment_event


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return new_place(tmp_path)


def append_all(place: Place) -> None:
    log.commit(place.home, place.key, lambda t: one_of_each(t.objects))


def test_a_new_ledger(place: Place) -> None:
    seen = status.status(place.home)
    assert (seen.origin, seen.size, seen.pinned, seen.published) == ("test-log", 1, 1, 1)
    assert (seen.entries, seen.channels, seen.audits, seen.last_audit) == (0, 0, 0, None)
    assert seen.fault is None
    assert seen.warnings == ()


def test_a_ledger_in_use(place: Place) -> None:
    append_all(place)
    seen = status.status(place.home)
    assert (seen.entries, seen.segments, seen.channels, seen.acquisitions, seen.revoked) == (8, 1, 1, 1, 1)
    assert (seen.refused_sides, seen.refused_rows, seen.audits) == (3, 21, 1)
    assert seen.last_audit is not None
    assert seen.last_audit[0].event == 5
    assert seen.time == seen.last_audit[1]


def test_what_does_not_verify_is_told(place: Place) -> None:
    append_all(place)
    by_hand(place, "DELETE FROM head WHERE size = 7")
    seen = status.status(place.home)
    assert isinstance(seen.fault, TamperError)
    assert seen.fault.kind == "unsigned-tail"


def test_what_is_unusual_is_a_warning(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    class StopError(Exception):
        pass

    def stop(name: str) -> None:
        if name == "committed":
            raise StopError

    durable.hook = stop
    with pytest.raises(StopError):
        append_all(place)
    durable.hook = None
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    pin.config_file("test-log", ".pin").unlink()
    seen = status.status(place.home)
    assert (seen.pinned, seen.published) == (None, 1)
    for word, warning in zip(("future", "ledger repair", "no pin"), seen.warnings, strict=True):
        assert word in warning


def test_acquisitions(place: Place) -> None:
    append_all(place)
    direct = channel_event().fingerprint
    log.commit(
        place.home, place.key,
        lambda t: [
            AcquisitionEvent("run-2", "transport"), AcquisitionEvent("file:0", "jev"),
            segment_event(t.objects, "b", ((direct, "run-1", 2), (direct, "run-2", 3), (None, "file:0", 4))),
        ],
    )  # fmt: skip
    first, second, third = status.acquisitions(place.home)
    assert (first.id, first.kind, first.event) == ("run-1", "transport", 2)
    assert (first.entries, first.refused_sides) == (10, 3)
    assert first.channels == ("direct@1",)
    assert first.revocation is not None
    assert (second.id, second.entries, second.refused_sides, second.revocation) == ("run-2", 3, 0, None)
    assert (third.kind, third.channels) == ("jev", ())
    (then,) = status.acquisitions(place.home, at=7)
    assert then.entries == 8


def test_the_log_in_lines_and_objects(place: Place) -> None:
    append_all(place)
    log.commit(place.home, place.key, lambda _: [PlanEvent("main", sha256_digest(b"{}"), {})])
    lines = list(status.log_lines(place.home))
    assert [line.index for line in lines] == list(range(8))
    assert [line.summary for line in lines][1:4] == [
        f"{channel_event().fingerprint[:19]} direct@1", "acquisition run-1 (transport)",
        f"root {segment_event(place.home.objects).root[:19]}, 8 transport entries of a.parquet",
    ]  # fmt: skip
    assert "the server was swapped" in lines[6].summary
    assert "3 sides (21 rows)" in lines[4].summary
    assert [line.index for line in status.log_lines(place.home, 6)] == [6, 7]
    assert [line.index for line in status.log_lines(place.home, 2, 4)] == [2, 3]
    assert list(status.log_lines(place.home, 50)) == []
    (item,) = status.log_objects(place.home, 2, 3)
    assert item == {
        "index": 2,
        "type": "acquisition",
        "v": 1,
        "id": "run-1",
        "kind": "transport",
        "time": item["time"],
    }
