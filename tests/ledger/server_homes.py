"""A home whose catalog is on a server, calls that append to it, and whether its log is sound."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ledger import durable, heads, log, publish
from ledger.event_types import AcquisitionEvent
from ledger.index import Index
from ledger.verify import verify
from tests.ledger.homes import SERVER, Place, chosen, new_place, one_of_each


@pytest.fixture(params=[SERVER])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = new_place(tmp_path, chosen(request))
    log.commit(made.home, made.key, lambda t: one_of_each(t.objects))
    return made


@pytest.fixture(autouse=True)
def no_hook() -> Iterator[None]:
    yield
    durable.hook = None


def acquisition(name: str) -> AcquisitionEvent:
    return AcquisitionEvent(name, "transport")


def append(place: Place, name: str, wait: float = 5.0) -> log.Commit:
    return log.commit(place.home, place.key, lambda _: [acquisition(name)], wait=wait)


def assert_sound(place: Place, size: int) -> None:
    place.use()
    with Index.open(place.home) as index:
        checked = heads.check(place.home, index)
        assert checked.head.size == size == index.event_count()
        assert publish.check(place.home.objects, checked) == checked.head
    report = verify(place.home)
    assert [p for p in report.findings if p.kind != "record"] == []  # the homes hold no real records
