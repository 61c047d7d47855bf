"""What the shell is offered: channel names of the ledger at hand, and nothing where anything is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.completion import channels
from tests.audits.cohorts import new_ledger


def test_channels_complete_by_their_first_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
    assert channels("g") == ["generated"]
    assert set(channels("")) >= {"direct", "generated"}
    assert channels("nobody") == []
    ledger.home.catalog.chmod(0o644)
    ledger.home.catalog.write_bytes(b"no catalog")
    assert channels("") == []
    monkeypatch.setenv("LEDGER_HOME", str(tmp_path / "nowhere"))
    assert channels("") == []
