"""`ledger demo`: the main job on a synthetic cohort, in a folder that is thrown away."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli import render, state
from contracts.errors import LedgerError

NOT_VERIFIED = 4


@dataclass(frozen=True)
class Step:
    """One command of the demo, what to see in its output, and the exit code it must have."""

    meaning: str
    words: tuple[str, ...]
    code: int = 0
    before: Callable[[Path], None] | None = None


def _flip_a_byte(folder: Path) -> None:
    """What a storage administrator could do: change one byte in the middle of a segment."""
    segment = next((folder / ".ledger" / "objects" / "segments").glob("*.parquet"))
    segment.chmod(0o644)
    with segment.open("r+b") as file:
        file.seek(segment.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def steps(entry: str) -> tuple[Step, ...]:
    """The walk of one file through the product; `entry` is an id to trace."""
    transport = ("audit", "transport", "--ref", "direct", "--alt", "generated")
    return (
        Step("A ledger: an empty signed log here, its private key outside this folder.", ("init",)),
        Step(
            "Two evaluators, each registered as the digest of its whole configuration.",
            ("channel", "add", "channels/direct.toml", "channels/generated.toml"),
        ),
        Step(
            "What separates them, the first thing a reviewer asks.",
            ("channel", "diff", "direct", "generated"),
        ),
        Step(
            "The scores. 96 transitions lack a reading: each such side is refused by name and kept\n"
            "beside the entries, the rest is admitted.",
            ("ingest", "scores.parquet"),
        ),
        Step("The same file again changes nothing.", ("ingest", "scores.parquet")),
        Step(
            "Does the sign of a step survive a change of evaluator? Here it does not: half of the\n"
            "1,004 complete transitions change sign, and the two means stand on opposite sides of 0.\n"
            "The median does not share the mean's sign, and the sentence says so.",
            transport,
        ),
        Step(
            "Asked again, the same design is the same record: nothing is signed twice.",
            (*transport, "--resamples", "10000"),
        ),
        Step("Where one number came from, down to the row of the file.", ("lineage", entry)),
        Step(
            "Everything stored is what was signed, and the audit can be computed again.", ("verify", "--full")
        ),
        Step(
            "Now one byte of a stored segment is changed behind the ledger's back: found, and named.",
            ("verify",),
            NOT_VERIFIED,
            _flip_a_byte,
        ),
    )


@contextmanager
def _elsewhere(folder: Path) -> Iterator[None]:
    """Run in `folder` with a home and keys of its own, whatever the caller's environment says."""
    names = ("LEDGER_HOME", "LEDGER_KEY", "XDG_CONFIG_HOME")
    saved = {name: os.environ.get(name) for name in names}
    here, home = Path.cwd(), state.CURRENT.home
    for name in names:
        os.environ.pop(name, None)
    os.environ["XDG_CONFIG_HOME"] = str(folder / ".config")
    state.CURRENT.home = None
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
        state.CURRENT.home = home
        for name, value in saved.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)


def _first_entry() -> str:
    """The id of the first entry of the newest segment."""
    from ledger.index import Index

    with Index.open(state.find_home()) as index:
        segment = index.segments()[-1]
    return f"{segment.root.removeprefix('sha256:')[:16]}:0"


def play(folder: Path) -> None:
    """Write the files into `folder` and run every step there; a step that ends otherwise is an error."""
    from cli import demo_files
    from cli.main import dispatch

    demo_files.write(folder)
    with _elsewhere(folder):
        entry = ""
        for number in range(len(steps(entry))):
            if number == 7:
                entry = _first_entry()
            step = steps(entry)[number]
            if step.before is not None:
                step.before(folder)
            render.say("", step.meaning, "", f"$ ledger {' '.join(step.words)}")
            code = dispatch(list(step.words))
            if code != step.code:
                raise LedgerError(
                    "the demo did not end as it should", expected=f"exit {step.code}", got=f"exit {code}"
                )


def register(app: typer.Typer) -> None:
    """Add `demo` to the application."""

    @app.command(epilog="Example: ledger demo")
    def demo(
        keep: Annotated[Path | None, typer.Option(help="Play in this empty folder and keep it.")] = None,
        files: Annotated[
            Path | None, typer.Option(help="Only write the demo's input files into this folder.")
        ] = None,
    ) -> None:
        """Run the main job on a synthetic cohort, in a folder that is thrown away."""
        if files is not None:
            from cli import demo_files

            for path in demo_files.write(files):
                render.say(f"wrote {path}")
            return
        render.say(
            "SYNTHETIC DATA. No evaluator produced these scores: they are calibrated to the shape of a",
            "published study (100 trajectories, 1,100 transitions, two evaluation channels).",
        )
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            play(keep.resolve())
            render.say("", f"kept in {keep}; keys are in {keep}/.config")
            return
        with tempfile.TemporaryDirectory(prefix="ledger-demo-") as folder:
            play(Path(folder).resolve())
        render.say(
            "",
            "the folder is gone again; next: ledger demo --files . and ledger init in a folder of your own",
        )
