"""Which module holds which command, and the first help page.

A command's module is imported when the command is run or asked about, so that a shell that completes a
word, or a quick look at the log, does not wait for twenty modules it has no use for.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module
from itertools import zip_longest
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup
from typer.main import get_group
from typer.models import CommandInfo

from cli.plain_values import spare, spared

NARROWEST = 40  # columns of the help page, however narrow the terminal


class Command(NamedTuple):
    """The module of a command, a line about it, and for a group of commands the module's name for it."""

    module: str
    line: str
    group: str = ""


# The panels of the help page, and what stands in each.
PANELS: Mapping[str, Mapping[str, Command]] = {
    "The main job": {
        "init": Command("home", "Make a ledger here, and a signing key outside it."),
        "channel": Command("channels", "Register, list and compare evaluation channels.", "app"),
        "ingest": Command("ingest", "Judge score files; record what is whole, name what is not."),
        "audit": Command("audit", "Compute statistics from verified entries, signed and logged.", "app"),
        "lineage": Command("entries", "Trace a thing up to its sources and down to its audits."),
        "verify": Command("verify", "Check signatures, the log and every byte; name what is wrong."),
        "demo": Command("demo", "Run the main job on a synthetic cohort, in a folder thrown away."),
    },
    "Look": {
        "status": Command("home", "The home at a glance: head, entries, channels, last audit."),
        "log": Command("home", "The events of the log, newest last."),
        "show": Command("entries", "One thing of the ledger, checked against the signed head."),
        "scores": Command("entries", "Entries by filter, each with its id and channel."),
        "acquisition": Command("channels", "The declared runs of collectors.", "acquisitions"),
        "report": Command("report", "An audit as one page: figures, tables, limits, how to check it."),
    },
    "Before the data, and after": {
        "plan": Command("plans", "Declare what an audit will be asked, before the scores.", "app"),
        "gate": Command("gate", "Exit 0 when an audit passes, 5 with the reasons when not."),
        "export": Command("export", "Hand on entries behind a gate, or a record in another form.", "app"),
        "bundle": Command("bundles", "An audit with its entries and log in one file, to check elsewhere."),
        "revoke": Command("revoke", "Take something out of later audits; nothing is deleted.", "app"),
        "jev": Command("jev", "Build a request-independence study and pair its answers.", "app"),
        "digest": Command("ingest", "Print digests as a collector writes them into score files."),
    },
    "Trust and care": {
        "key": Command("keys", "The keys this ledger trusts, by role; every change is signed.", "app"),
        "attest": Command("attest", "Sign what was run, and by which model.", "app"),
        "witness": Command("witness", "Cosign heads that grew from the last one.", "app"),
        "repair": Command("home", "Finish what a crash left undone; the log is never touched."),
        "rebuild": Command("home", "Make the catalog again from the published log and the objects."),
    },
}
COMMANDS: Mapping[str, Command] = {name: told for panel in PANELS.values() for name, told in panel.items()}


class _Loaded(MutableMapping[str, Any]):
    """All commands by name, each made when it is asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name in COMMANDS and name not in self._made:
            self._load(COMMANDS[name], name)
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def _load(self, wanted: Command, name: str) -> None:
        module = import_module(f"cli.{wanted.module}")
        if wanted.group:
            group = get_group(getattr(module, wanted.group))
            group.name = name
            self._keep({name: group})
            return
        here = typer.Typer()
        module.register(here)
        here.registered_commands = [info for info in here.registered_commands if _name(info) == name]
        self._keep(get_group(here).commands)

    def _keep(self, made: Mapping[str, Any]) -> None:
        for command in made.values():
            spare(command)
        self._made |= made


def _name(info: CommandInfo) -> str:
    """What a person types; a command without a name is called after its function."""
    assert info.callback is not None, "a command has a function"
    return info.name or info.callback.__name__


class Root(TyperGroup):
    """The application: its commands are loaded by need, its help page is written without loading any."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Loaded()

    def get_params(self, ctx: Any) -> list[Any]:
        """The options before a command."""
        return spared(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        """The names in the order of the help page."""
        return list(COMMANDS)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The first help page; those of the commands are typer's."""
        records = (param.get_help_record(ctx) for param in self.get_params(ctx))
        panels = {"Options": dict(record for record in records if record is not None)}
        panels |= {title: {n: c.line for n, c in panel.items()} for title, panel in PANELS.items()}
        width = max(min(shutil.get_terminal_size().columns, 80), NARROWEST)
        formatter.write(_page(ctx.command_path, self.help or "", panels, self.epilog or "", width))


def _page(command: str, help_: str, panels: Mapping[str, Mapping[str, str]], epilog: str, width: int) -> str:
    lines = ["", *_wrapped(f"Usage: {command} [OPTIONS] COMMAND [ARGS]...", width), ""]
    for paragraph in help_.split("\n\n"):
        lines += [
            *textwrap.wrap(" ".join(paragraph.split()), width - 2, initial_indent=" ", subsequent_indent=" "),
            "",
        ]
    for title, rows in panels.items():
        lines += _box(title, rows, width)
    return "\n".join([*lines, "", *_wrapped(epilog, width), ""])


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(text, width - 1, initial_indent=" ", subsequent_indent=" ")


def _box(title: str, rows: Mapping[str, str], width: int) -> Iterator[str]:
    """Two columns in a frame, as typer draws them for the commands."""
    corner, bar = ("╭╮╰╯", "─│") if _unicode() else ("++++", "-|")
    named = min(max(len(name) for name in (*rows, *COMMANDS)), width - 26)
    yield f"{corner[0]}{bar[0]} {title} {bar[0] * (width - len(title) - 5)}{corner[1]}"
    for name, text in rows.items():
        told = textwrap.wrap(text, width - named - 6)
        over = len(name) > named  # then the name has lines of its own
        left = [*textwrap.wrap(name, width - 4), *("" for _ in told)] if over else [name]
        right = ["" for _ in left[: len(left) - len(told)]] + told if over else told
        for word, line in zip_longest(left, right, fillvalue=""):
            yield f"{bar[1]} {word:<{named}}  {line}".ljust(width - 2)[: width - 2] + f" {bar[1]}"
    yield f"{corner[2]}{bar[0] * (width - 2)}{corner[3]}"


def _unicode() -> bool:
    """Whether standard output takes frames that are drawn; the page may go elsewhere, which is rare."""
    try:
        "╭─".encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
