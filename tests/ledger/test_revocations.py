"""A revocation names a known acquisition and a reason, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import UsageError
from ledger import log
from ledger.events import AcquisitionEvent
from ledger.index import Index
from ledger.revocations import revoke_acquisition
from tests.ledger.homes import Place, files, new_place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = new_place(tmp_path)
    log.commit(made.home, made.key, lambda _: [AcquisitionEvent(f"run-{i}", "transport") for i in range(3)])
    return made


def test_an_acquisition_is_revoked_once(place: Place) -> None:
    first = revoke_acquisition(place.home, place.key, "run-1", "the server was swapped")
    assert (first.event, first.new, first.commit.size) == (4, True, 5)
    again = revoke_acquisition(place.home, place.key, "run-1", "another reason")
    assert (again.event, again.new, again.reason, again.commit.size) == (
        4,
        False,
        "the server was swapped",
        5,
    )
    with Index.open(place.home) as index:
        (row,) = index.revocations()
        assert (row.target_kind, row.target_id, row.reason) == (
            "acquisition",
            "run-1",
            "the server was swapped",
        )
        assert index.revocations(4) == ()


def test_an_unknown_acquisition_is_named_with_its_like(place: Place) -> None:
    before = files(place.home.path)
    with pytest.raises(UsageError, match="run-2") as caught:
        revoke_acquisition(place.home, place.key, "run2", "x")
    assert (caught.value.code, caught.value.exit_code) == ("unknown-acquisition", 2)
    assert files(place.home.path) == before


@pytest.mark.parametrize("reason", ["", "  ", "x" * 2001])
def test_a_reason_is_needed(place: Place, reason: str) -> None:
    with pytest.raises(UsageError) as caught:
        revoke_acquisition(place.home, place.key, "run-1", reason)
    assert caught.value.code == "reason"
