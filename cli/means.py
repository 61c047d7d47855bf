"""By which engine a command has its work done, as its options say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.render import Advance
    from ledger.engines import Means


@contextmanager
def means(engine: str | None, workers: int | None, progress: Advance) -> Iterator[Means]:
    """What `--engine` and `--workers` ask for, as long as the work lasts (see `ledger.engines.engine`)."""
    from ledger.engines import Means
    from ledger.engines import engine as made

    chosen = made(engine, workers)
    try:
        yield Means(chosen, progress)
    finally:
        chosen.close()
