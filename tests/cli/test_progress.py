"""The bar of long work: how far, how fast, how much longer; nothing where nobody watches."""

from __future__ import annotations

import io
import sys

import pytest

from cli import render


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_amounts() -> None:
    assert render.amount(0, 10, None) == "0 of 10"
    assert render.amount(1_310_720, 9_999_360, 640_000.4) == "1,310,720 of 9,999,360, 640,000/s"
    assert render.amount(3, None, 1.25) == "3, 1.2/s"


def test_a_bar_tells_phase_amount_and_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(render, "SHOW_PROGRESS_AFTER", 0.0)
    with render.progress() as advance:
        for done in range(0, 2001, 500):
            advance("entries", done, 2000)
        advance("resampling", 1, None)
    told = screen.getvalue()
    assert "entries" in told
    assert "resampling" in told
    assert "2,000 of 2,000" in told
    assert "/s" in told
    assert "left" in told


def test_a_pipe_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(render, "SHOW_PROGRESS_AFTER", 0.0)
    with render.progress() as advance:
        advance("entries", 1, 2)
    assert pipe.getvalue() == ""
