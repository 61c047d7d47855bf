"""Lists of very many things: a person sees the newest, a program all."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from cli import render
from ledger import log
from ledger.event_types import AcquisitionEvent
from ledger.home import find, signing_key
from tests.cli.calls import called


@pytest.fixture
def many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.chdir(tmp_path)
    assert called("init").code == 0
    home = find(None)
    log.commit(
        home, signing_key(home), lambda _: [AcquisitionEvent(f"run-{n}", "transport") for n in range(5000)]
    )
    return 5000


def test_a_long_list_ends_with_how_many_there_are(many: int) -> None:
    started = time.process_time()
    done = called("acquisition", "list")
    assert time.process_time() - started < 5
    lines = done.out.splitlines()
    assert lines[0].split()[0] == "acquisition"
    assert [line.split()[0] for line in lines[1:-1]] == [
        f"run-{n}" for n in range(many - render.LISTED, many)
    ]
    assert lines[-1] == f"the newest {render.LISTED} of 5,000 acquisitions; all of them: --json"
    told = json.loads(called("acquisition", "list", "--json").out)
    assert len(told["acquisitions"]) == many


def test_a_short_list_is_told_whole(capsys: pytest.CaptureFixture[str]) -> None:
    render.listed(["channel"], [[f"c{n}"] for n in range(render.LISTED)], "channel")
    assert capsys.readouterr().out.split() == ["channel", *(f"c{n}" for n in range(render.LISTED))]
