"""The bar of long work: how far, how fast, how much longer; nothing where nobody watches."""

from __future__ import annotations

import io
import sys
import time

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
    monkeypatch.setattr(render, "RATE_AFTER", 0.0001)
    with render.progress() as advance:
        for done in range(0, 2001, 500):
            time.sleep(0.001)
            advance("entries", done, 2000)
        advance("resampling", 1, None)
    told = screen.getvalue()
    assert "entries" in told
    assert "resampling" in told
    assert "2,000 of 2,000" in told
    assert "/s" in told
    assert "left" in told


@pytest.mark.parametrize(
    ("steps", "rates"),
    [
        ([(0, 0), (0, 438_943), (0.5, 438_944)], []),
        ([(40, 0), (40, 10**9), (40.9, 2 * 10**9)], []),
        ([(0, 0), (0.5, 400), (2, 800), (4, 800)], ["400/s", "200/s"]),
        ([(0, 5_000), (10, 6_000)], ["100/s"]),
    ],
    ids=["at-once", "late", "steady", "resumed"],
)
def test_a_rate_is_told_of_a_second_of_work_and_not_of_what_comes_at_once(
    monkeypatch: pytest.MonkeyPatch, steps: list[tuple[float, int]], rates: list[str]
) -> None:
    screen, clock = Screen(), [100.0]
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(render, "SHOW_PROGRESS_AFTER", -1.0)
    monkeypatch.setattr(render.time, "monotonic", lambda: clock[0])
    told: list[str] = []
    amount = render.amount
    monkeypatch.setattr(render, "amount", lambda *given: told.append(amount(*given)) or "")
    with render.progress() as advance:
        for at, done in steps:
            clock[0] = 100.0 + at
            advance("read", done, None)
    assert [line.rpartition(", ")[2] for line in told if line.endswith("/s")] == rates


def test_a_pipe_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(render, "SHOW_PROGRESS_AFTER", 0.0)
    with render.progress() as advance:
        advance("entries", 1, 2)
    assert pipe.getvalue() == ""
