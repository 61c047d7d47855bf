"""The command `ledger`: its groups, its exit codes, and the check that its packages are its own.

Exit codes: 0 done; 1 refused by a contract; 2 usage; 3 storage or internal; 4 not verified; 5 the
entries cannot answer, or a gate was not passed; 130 interrupted; 143 terminated.
"""

from __future__ import annotations

import codecs
import errno
import json
import os
import signal
import sys
from contextlib import suppress
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, NoReturn, TextIO

import typer

from cli import render, state
from cli.commands import Root
from contracts.errors import LedgerError, StorageError, UsageError

PACKAGES = ("ledger", "contracts", "audits", "migrations")
EPILOG = (
    "Exit codes: 0 done, 1 refused, 2 usage, 3 storage, 4 not verified, 5 cannot answer, "
    "130 interrupted, 143 terminated."
)
INTERRUPTED, TERMINATED = 130, 143  # as shells count the signals SIGINT and SIGTERM
COMPLETING = "_LEDGER_COMPLETE"
# What a stream says that cannot take more output; errors of files are reported where they are opened.
UNWRITABLE = frozenset({errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG, errno.EDQUOT})

app = typer.Typer(
    name="ledger",
    cls=Root,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
    epilog=EPILOG,
)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        render.say(f"ledger {version('evaluator-ledger')}")
        raise typer.Exit


@app.callback()
def options(
    home: Annotated[
        str | None,
        typer.Option(
            help="The folder that plays .ledger (default: $LEDGER_HOME, else the nearest .ledger upwards)."
        ),
    ] = None,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an unexpected error.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """A ledger for evaluator scores: contracts, provenance and audits that a stranger can check.

    Start: ledger init; ledger channel add CHANNEL.toml; ledger ingest SCORES.parquet;
    ledger audit transport --ref A --alt B; ledger verify. Or look first: ledger demo.
    """
    del version
    state.CURRENT.home = home
    state.CURRENT.debug = debug
    state.CURRENT.mark = None


def refuse_intruders() -> None:
    """Stop when another distribution's package stands where one of ours should; the names are generic."""
    ours = Path(__file__).resolve().parent.parent
    for name in PACKAGES:
        spec = find_spec(name)
        origin = spec.origin if spec else None
        if origin is None or Path(origin).resolve().parent.parent != ours:
            found = origin or (next(iter(spec.submodule_search_locations or []), None) if spec else None)
            raise UsageError(
                f"another package named {name!r} shadows the one of evaluator-ledger",
                code="shadowed-package",
                expected=ours / name,
                got=found or "nothing",
                next_step="install evaluator-ledger in an environment of its own, or unset PYTHONPATH",
            )


def hoist(arguments: list[str]) -> list[str]:
    """Let --home and --debug stand anywhere before a bare `--`, as people write them."""
    front: list[str] = []
    rest: list[str] = []
    words = iter(arguments)
    for word in words:
        if word == "--":
            rest += [word, *words]
        elif word == "--home":
            front += [word, *([value] if (value := next(words, None)) is not None else [])]
        elif word == "--debug" or word.startswith("--home="):
            front.append(word)
        else:
            rest.append(word)
    return front + rest


def require_text(arguments: list[str]) -> None:
    """UsageError for a word that is not UTF-8: names and ids are recorded, and told in JSON, as text."""
    for number, word in enumerate(arguments, 1):
        try:
            word.encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"word {number} of the command is not UTF-8", code="not-utf-8",
                got=render.printable(os.fsencode(word).decode("utf-8", "backslashreplace")),
                next_step="write it in UTF-8; rename a file that is called so, or link to it",
            ) from None  # fmt: skip


def report(error: LedgerError, *, as_json: bool) -> None:
    """One error: an object on standard output for programs, one line on standard error for people."""
    if as_json:
        try:
            render.emit_json({"error": error.as_dict()})
        except OSError:
            _drop(sys.stdout)  # nobody can read it there, so it is said where people look
        else:
            return
    line = f"ledger: {error}"
    # One line for whoever searches standard error; on a terminal it fits the screen.
    render.say(*(render.wrapped(line, "") if sys.stderr.isatty() else [line]), stderr=True)


def dispatch(arguments: list[str]) -> int:
    """One command, parsed and run; every failure is reported here and becomes its exit code."""
    try:
        require_text(arguments)
        returned = app(args=hoist(arguments), prog_name="ledger", standalone_mode=False)
    except (Exception, KeyboardInterrupt, SystemExit) as error:
        return _ended(error, as_json="--json" in arguments)
    if returned == INTERRUPTED:  # the parser takes Ctrl-C for a way to exit, and says nothing
        return _interrupted()
    return returned if isinstance(returned, int) else 0


def _ended(error: BaseException, *, as_json: bool) -> int:
    """The exit code of a command that ended by an exception, which is reported."""
    if isinstance(error, SystemExit) and not isinstance(error.__context__, BrokenPipeError):
        raise error
    if isinstance(error, (BrokenPipeError, SystemExit)):
        # The parser itself ends the process when a reader left in the middle of a line.
        code = _reader_left()
    elif isinstance(error, LedgerError):
        report(error, as_json=as_json)
        code = error.exit_code
    elif isinstance(error, (KeyboardInterrupt, typer.Abort)):
        code = _interrupted()
    elif isinstance(error, OSError) and error.errno in UNWRITABLE and error.filename is None:
        code = _unwritable(error)
    else:
        assert isinstance(error, Exception), "nothing else is caught"
        code = _unexpected(error, as_json=as_json)
    return code


def _interrupted() -> int:
    """Somebody wants no more of this: say what is kept, and let nothing else be said meanwhile."""
    with suppress(ValueError):  # in a thread nobody can press Ctrl-C
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    mark, terminated = state.CURRENT.mark, state.CURRENT.terminated
    kept = "nothing was changed" if mark is None else mark.told()
    how = "terminated" if terminated else "interrupted"
    render.tell(f"ledger: {how}; {kept}", stderr=True)
    return TERMINATED if terminated else INTERRUPTED


def _terminate(number: int, _frame: object) -> None:
    """SIGTERM ends a command as Ctrl-C does, once: who sends it to a group may send it here twice."""
    signal.signal(number, signal.SIG_IGN)
    state.CURRENT.terminated = True
    raise KeyboardInterrupt


def run() -> None:
    """The console script."""
    import gc

    # One command is one short process: looking for cycles among a million rows' worth of imports and
    # arrays costs a tenth of its time and frees nothing that the end of the process does not.
    gc.disable()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)
    _stand_in_for_closed_streams()
    _escape_what_cannot_be_encoded()

    try:
        refuse_intruders()
    except LedgerError as error:
        report(error, as_json="--json" in sys.argv)
        sys.exit(error.exit_code)
    code = dispatch(sys.argv[1:])
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        code = _reader_left()
    except OSError as error:
        code = max(code, _unwritable(error))
    gc.freeze()
    if code in (INTERRUPTED, TERMINATED):
        _leave(code)
    sys.exit(code)


def _leave(code: int) -> NoReturn:
    """End at once: a thread that was given up while it decodes may not meet an interpreter that is half gone.

    What has to be done at the end of a process is done; its threads are not waited for.
    """
    import atexit

    with suppress(OSError, ValueError):
        sys.stderr.flush()
    atexit._run_exitfuncs()
    os._exit(code)


def _stand_in_for_closed_streams() -> None:
    """A stream that the caller closed takes what is written and drops it; the exit code still tells."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 (it lives as long as we)


def _escape_what_cannot_be_encoded() -> None:
    """A stream in ASCII gets other letters as JSON escapes them, which keeps what is JSON exact."""
    codecs.register_error("ledger-escape", _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="ledger-escape")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError), "streams are written"
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


def _drop(stream: TextIO) -> None:
    """Send what is left in a stream's buffer nowhere, so that no later flush fails on it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _reader_left() -> int:
    """`ledger log | head` is no failure: drop what could not be written and end quietly."""
    _drop(sys.stdout)
    return 0


def _unwritable(error: OSError) -> int:
    """The answer has nowhere to go, which says nothing about what the command did."""
    _drop(sys.stdout)
    fault = StorageError(
        f"the output cannot be written ({error.strerror or error})",
        code="output",
        next_step="what was recorded stays recorded: ledger log",
    )
    report(fault, as_json=False)
    return fault.exit_code


def _unexpected(error: Exception, *, as_json: bool) -> int:
    """Usage errors of the parser exit 2 in its own words; anything else is a fault of ours and exits 3."""
    if COMPLETING in os.environ:  # a shell asks while somebody types: no answer is an answer
        return 1
    show = getattr(error, "show", None)
    if callable(show) and hasattr(error, "exit_code"):
        if as_json:
            report(UsageError(error.format_message()), as_json=True)  # type: ignore[attr-defined]
        else:
            show()
        return int(error.exit_code)
    if state.CURRENT.debug:
        import traceback

        traceback.print_exc()
    fault = LedgerError(
        f"unexpected {type(error).__name__}: {str(error)[:200]}",
        next_step="run again with --debug for the traceback, and check the ledger with: ledger verify",
    )
    report(fault, as_json=as_json)
    return fault.exit_code
