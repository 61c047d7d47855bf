"""Calling the program in this process, as a person would from a shell."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass

from cli import main


@dataclass(frozen=True)
class Called:
    """What a call printed and how it ended."""

    code: int
    out: str
    err: str


def called(*words: str) -> Called:
    """One command line and what came of it."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main.dispatch(list(words))
    return Called(code, out.getvalue(), err.getvalue())
