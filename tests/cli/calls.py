"""Calling the program in this process, as a person would from a shell."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass
from functools import cache

from cli import commands, main


@dataclass(frozen=True)
class Called:
    """What a call printed and how it ended."""

    code: int
    out: str
    err: str


@cache
def _register() -> None:
    if not main.app.registered_commands:
        commands.register(main.app)


def called(*words: str) -> Called:
    """One command line and what came of it."""
    _register()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main.dispatch(list(words))
    return Called(code, out.getvalue(), err.getvalue())
