"""What all tests share: property tests without a deadline (machines differ), a quiet environment."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("ledger", deadline=None)
settings.load_profile("ledger")


@pytest.fixture(autouse=True)
def _own_config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and pins of a test go to a folder of its own, and the caller's settings do not reach it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    for name in ("LEDGER_HOME", "LEDGER_KEY", "LEDGER_KEY_PASSWORD", "SOURCE_DATE_EPOCH"):
        monkeypatch.delenv(name, raising=False)
