"""What a collector digests of score files: the files, and the requests and responses of one acquisition."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from contracts.digest import is_digest, pack
from contracts.errors import UsageError
from contracts.labels import Labels, Mask
from contracts.raw_rows import RawRows, gather
from ledger import tree
from ledger.attestations import DigestRoot
from ledger.sources import kind_of, read_source
from ledger.staging import stage
from ledger.statement import Subject

STAND_IN = {"request_hash": "request", "response_hash": None}


def root(digests: Iterable[bytes]) -> DigestRoot | None:
    """The root over different digests of 33 bytes; None where there are none."""
    ordered = sorted(set(digests))
    if not ordered:
        return None
    return DigestRoot(len(ordered), "sha256:" + tree.root([tree.leaf_hash(one) for one in ordered]).hex())


class Collected:
    """Score files as a collector has them, with no ledger at hand."""

    def __init__(self, paths: Sequence[Path], acquisition: str, *, only: bool = False) -> None:
        """Reads and digests the files; `only` where they have no acquisition column of their own."""
        self.subjects: tuple[Subject, ...] = ()
        self.rows = 0
        self.requests: DigestRoot | None = None
        self.responses: DigestRoot | None = None
        staged = [stage(path) for path in paths]
        self.subjects = tuple(
            Subject(
                Path(item.name).name,
                {"blake3": item.digest.partition(":")[2], "sha256": hashlib.sha256(item.view).hexdigest()},
            )
            for item in staged
        )
        if {kind_of(item, None) for item in staged} != {"transport"}:
            return  # predictions digest their requests in the rows themselves; the files are what is signed
        files = [read_source(item, "transport") for item in staged]
        rows = gather(files, acquisition=acquisition if only else None)
        mine = _of_acquisition(rows, acquisition)
        self.rows = int(mine.sum())
        if not self.rows:
            raise UsageError(
                f"no row of acquisition {acquisition} in these files", code="unknown-acquisition",
                next_step="name the acquisition as the files do, or give --whole where they name none",
            )  # fmt: skip
        self.requests = root(_digests(rows, "request_hash", mine))
        self.responses = root(_digests(rows, "response_hash", mine))


def _of_acquisition(rows: RawRows, acquisition: str) -> Mask:
    named = rows.text["acquisition_id"]
    return named.rows_of(np.array([value == acquisition for value in named.values.to_pylist()], bool))


def _digests(rows: RawRows, column: str, mine: Mask) -> Iterable[bytes]:
    """The digests of a column in some rows, in whichever of its forms a row has it."""
    given = rows.digests[column]
    for text in _used(given.text, mine):
        if isinstance(text, str) and is_digest(text):
            yield pack(text)
    yield from _used(given.packed, mine)
    stand_in = STAND_IN[column]
    if stand_in is not None:
        yield from _used(rows.stand_ins[stand_in], mine)


def _used(labels: Labels, mine: Mask) -> list[bytes]:
    codes = np.unique(labels.codes[mine & labels.present])
    found: list[bytes] = labels.values.take(pa.array(codes)).to_pylist()
    return found
