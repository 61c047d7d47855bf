"""Whether every object that an event names is there, whole, and what nobody names."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

from blake3 import blake3

from contracts.errors import LedgerError, TamperError
from ledger import durable
from ledger.home import CATALOG_URL, SETTINGS, Home
from ledger.object_names import digest_in
from ledger.objects import Objects
from ledger.problems import Problems
from ledger.seal import SEAL
from ledger.verify_catalog import Named
from ledger.verify_log import OBJECTS

CHUNK = 1 << 20
THREADS = min(4, os.cpu_count() or 1)
RECORDS = "records/"
# What `rebuild` keeps of a catalog that is a file; it may be older than a move to a server.
_KEPT = re.compile(rf"{re.escape(CATALOG_URL.removeprefix('sqlite:'))}\.old-[1-9][0-9]*(-journal)?")


def check_objects(
    found: Problems, objects: Objects, named: Named, progress: Callable[[int], None]
) -> dict[str, int]:
    """Bytes against names, in parallel. Returns the sizes of the objects that are right, by name."""
    sizes: dict[str, int] = {}
    with ThreadPoolExecutor(THREADS) as pool:
        outcomes = pool.map(lambda name: _digested(objects, name), named.objects)
        for done, (name, outcome) in enumerate(zip(named.objects, outcomes, strict=True), 1):
            if isinstance(outcome, int):
                sizes[name] = outcome
            else:
                kind = "record" if name.startswith(RECORDS) else "data"
                entry = _first_entry(objects, name, named) or f"event {named.objects[name]}"
                found.add_error(outcome, kind, f"{OBJECTS}/{name}", entry)
            progress(done)
    return sizes


def check_strays(found: Problems, home: Home, named: Named | None) -> None:
    """Lists what no event accounts for: files that are no objects, and objects that are not `named`.

    The log of a damaged catalog may name more than it shows, so without `named` no object is called idle.
    """
    objects = home.objects
    for name in _strays(home):
        if _KEPT.fullmatch(name):
            found.notices.append(f"{name} was kept by `ledger rebuild`; delete it when you like")
        else:
            found.notices.append(f"{name} is no file of this ledger")
    if named is not None:
        idle = [name for name in objects.list() if digest_in(name) and name not in named.objects]
        found.notices += [
            f"{OBJECTS}/{name} is named by no event; `ledger repair` removes it after an hour"
            for name in idle
        ]
    for folder, files in itertools.groupby(home.staged(), key=lambda path: path.parent):
        unfinished = f"{len(list(files))} unfinished files in {home.relative(folder)}"
        found.notices.append(f"{unfinished}; `ledger repair` removes them after an hour")


def _strays(home: Home) -> Iterator[str]:
    catalog = home.catalog_name
    ours = {SETTINGS, SEAL, home.folder, "writer.lock", catalog, f"{catalog}-journal"}
    with durable.storage("listing the home", home.path):
        names = sorted(path.name for path in Path(home.path).iterdir())
    yield from (name for name in names if name not in ours)
    yield from (f"{OBJECTS}/{name}" for name in home.objects.strays())


def _digested(objects: Objects, name: str) -> int | LedgerError:
    """The size of an object that has the digest in its name, or what is wrong with it."""
    wanted = digest_in(name)
    assert wanted is not None, "events name objects by digest only"
    hasher = sha256() if wanted.startswith("sha256:") else blake3()
    size = 0
    try:
        with objects.open(name) as file, durable.storage("reading an object", objects.where(name)):
            while chunk := file.read(CHUNK):
                hasher.update(chunk)
                size += len(chunk)
    except LedgerError as error:
        return error
    got = f"{wanted.partition(':')[0]}:{hasher.hexdigest()}"
    if got != wanted:
        kind = "record" if name.startswith(RECORDS) else "data"
        return TamperError("the file changed since it was written", kind=kind, expected=wanted, got=got)
    return size


def _first_entry(objects: Objects, name: str, named: Named) -> str | None:
    """The id of the first entry a damaged Parquet file no longer gives back as it was."""
    if not name.endswith(".parquet"):
        return None
    for _, event in named.stored:
        if name.endswith(f"/{event.file.removeprefix('blake3:')}.parquet"):
            from ledger.verify_full import first_bad_entry

            return first_bad_entry(objects, event)
    return None
