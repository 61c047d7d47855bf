"""How the work of one call is shared with an engine: by tasks, and by files that its workers can reach.

Small facts travel as results; rows wait in files of the call (`shelf`) from one step to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ledger.engines import INLINE, Engine

if TYPE_CHECKING:
    from ledger.home import Home
    from ledger.shelf import Shelf


@dataclass(frozen=True)
class Sharing:
    """An engine, and the files of the call."""

    engine: Engine
    shelf: Shelf


@contextmanager
def sharing(home: Home, engine: Engine, dry_run: bool) -> Iterator[Sharing | None]:
    """What a call shares its work by as long as it lasts; None where this process does all of it."""
    if engine is INLINE:
        yield None
        return
    from ledger.shelf import shelf

    with shelf(None if dry_run else home.objects.staging()) as files:
        yield Sharing(engine, files)
