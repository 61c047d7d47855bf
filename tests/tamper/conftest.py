"""One home for all tamper tests, made once, and a copy of it for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ledger.studies import Study, make
from tests.tamper.victims import Victim, copy


@pytest.fixture(scope="session")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    folder = tmp_path_factory.mktemp("tamper")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        yield make(folder)


@pytest.fixture
def victim(study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Victim:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return copy(study, tmp_path)
