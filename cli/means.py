"""By which engine a command has its work done, as its options say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.render import Advance
    from ledger.engines import Means

ABSENT = ("missing-extra", "no-engine")


@contextmanager
def means(
    engine: str | None, workers: int | None, progress: Advance, *, needed: bool = True
) -> Iterator[Means]:
    """What `--engine` and `--workers` ask for, as long as the work lasts (see `ledger.engines.engine`).

    Where it is not sure to be `needed`, an engine that is not there is an error once it is asked for work.
    """
    from contracts.errors import LedgerError
    from ledger.engines import Engine, Means, Missing
    from ledger.engines import engine as made

    chosen: Engine
    try:
        chosen = made(engine, workers)
    except LedgerError as error:
        if needed or error.code not in ABSENT:
            raise
        chosen = Missing(error)
    try:
        yield Means(chosen, progress)
    finally:
        chosen.close()
