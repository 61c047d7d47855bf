"""Words of a command line that are no text, wherever they stand."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from cli import main
from tests.cli.calls import called
from tests.cli.test_ingest import scores

__all__ = ["scores"]
BAD = os.fsdecode(b"a\xff")


def commands(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command with the words that call it, groups included."""
    yield words, command
    if hasattr(command, "list_commands"):
        context = typer.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*words, name))


def calls() -> Iterator[tuple[str, ...]]:
    """Every option and argument of every command with a value that is not UTF-8."""
    for words, command in commands(typer.main.get_command(main.app)):
        for param in command.get_params(typer.Context(command)):
            if param.param_type_name == "argument":
                yield (*words, BAD)
            elif not param.is_flag:
                yield (*words, param.opts[0], BAD)
                yield (*words, f"{param.opts[0]}={BAD}")
        yield (*words, f"--{BAD}")


def test_every_word_that_is_not_utf8_is_a_usage_error(scores: Path) -> None:
    seen = list(calls())
    assert len(seen) > 300
    assert {
        ("ingest", "--acquisition", BAD),
        ("scores", "--trajectory", BAD),
        ("demo", "--files", BAD),
    } <= set(seen)
    for words in seen:
        done = called(*words)
        assert (done.code, done.out) == (2, ""), words
        assert "is not UTF-8; got" in done.err
        assert "a\\xff" in done.err
        done.err.encode()
        told = called(*words, "--json")
        assert told.code == 2
        assert json.loads(told.out)["error"]["code"] == "not-utf-8"


def test_a_file_whose_name_is_not_utf8_is_not_taken_in(scores: Path) -> None:
    bad = Path(os.fsdecode(b"a\xff.csv"))
    bad.write_bytes(scores.read_bytes())
    done = called("ingest", str(bad))
    assert (done.code, done.out) == (2, "")
    bad.rename("é.csv")
    assert called("ingest", "é.csv").code == 0
