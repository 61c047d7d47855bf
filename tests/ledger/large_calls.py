"""Calls that are judged part by part, made small: the files, and everything that is told of their outcome."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from ledger import ingest, score_rows, segments
from ledger.index import Index
from ledger.receipt import Receipt, RefusedCallError
from tests.ledger.homes import Place
from tests.ledger.score_files import Row, digest, rows, without


def shuffled(made: Sequence[Row], seed: int = 1) -> list[Row]:
    mixed = list(made)
    random.Random(seed).shuffle(mixed)
    return mixed


def outcome(place: Place, paths: Sequence[Path], **options: object) -> dict[str, object]:
    """What a person and the log are told; how findings of rows are told together is left out."""
    try:
        receipt: Receipt = ingest.ingest(place.home, paths, key=place.key, **options)  # type: ignore[arg-type]
        error = None
    except RefusedCallError as refused:
        receipt, error = refused.receipt, refused.code
    told = receipt.as_json()
    told["findings"] = {"by_code": dict(receipt.findings.by_code), "rejects": _rejects(receipt)}
    told["hint"] = (receipt.hint or "").partition("; --rejects")[0]  # named where many findings are
    told["sides"] = receipt.sides.to_pylist() if receipt.sides is not None else None
    if isinstance(told["head"], dict):
        told["head"] = told["head"]["size"]  # the root holds the time
    return {**told, "error": error}


def _rejects(receipt: Receipt) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in receipt.findings.rejects().to_pylist()]


@contextmanager
def divided() -> Iterator[None]:
    """Every call is read in batches of 50 rows and judged in parts of about 100."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "LARGE", 0)
        patch.setattr(ingest, "DIVIDED_ROWS", 0)
        patch.setattr(score_rows, "BATCH_ROWS", 50)
        patch.setattr(score_rows, "PART_ROWS", 100)
        yield


def changed(made: Sequence[Row], at: Callable[[Row], bool], **values: object) -> list[Row]:
    """The rows, those that are meant with other values."""
    return [{**row, **values} if at(row) else row for row in made]


def of(trajectory: int, **key: object) -> Callable[[Row], bool]:
    wanted = {"trajectory_id": f"traj{trajectory:03d}", **key}
    return lambda row: all(row[name] == value for name, value in wanted.items())


MADE = rows(range(6))  # 48 rows a trajectory
CELL = {"step": 1, "endpoint": "after", "channel": "direct", "layout": 1, "candidate": "C"}
LOOKS_LIKE = "tr\u0430j000"  # with a Cyrillic a
SHARED_DIGEST = digest("candidates", "shared")


def rebound(*transitions: tuple[int, int]) -> list[Row]:
    """One digest for the candidates of four steps, of which some have another set of them."""
    made = MADE
    for t, step in ((0, 0), (2, 0), (4, 1), (5, 1)):
        made = changed(made, of(t, step=step), candidates_hash=SHARED_DIGEST)
    for t, step in transitions:
        made = changed(made, of(t, step=step, candidate="C"), candidate="D")
    return made


CALLS: dict[str, list[Row]] = {
    "clean": MADE,
    "a cell is missing": without(MADE, trajectory_id="traj004", **CELL),
    "a cell is there twice": [*MADE, *(row for row in MADE if of(3, **CELL)(row))],
    "a reading failed": changed(MADE, of(2, **CELL), energy=None, status="timeout"),
    "two targets": changed(MADE, of(1, **CELL), target="B"),
    "two outcomes of one trajectory": changed(MADE, of(5, **CELL), success=True),
    "a candidate nobody else has": changed(MADE, of(0, **CELL), candidate="Z"),
    "a digest stands for two sets, one of them more often": rebound((5, 1)),
    "a digest stands for two sets, equally often": rebound((4, 1), (5, 1)),
    "an energy is not a number": changed(MADE, of(3, **CELL), energy=float("nan")),
    "a channel nobody knows": changed(MADE, of(4), channel="nobody"),
    "an id looks like another": changed(MADE, of(5), trajectory_id=LOOKS_LIKE),
    "an id is missing": changed(MADE, of(5, **CELL), trajectory_id=None),
    "a digest in most rows only": changed(MADE, of(0), request_hash=None),
    "no requests at all": changed(MADE, lambda row: True, request_hash=None),
    "a view from a donor": [
        {
            **row,
            "view_source": "donor:traj003",
            "view_hash": digest("view", (3, row["step"]), row["endpoint"]),
        }
        if of(1, channel="generated")(row)
        else row
        for row in MADE
    ],
    "a view its donor never showed": changed(MADE, of(1, channel="generated"), view_source="donor:traj003"),
}
REFUSED = {
    "an energy is not a number", "a channel nobody knows", "an id looks like another", "an id is missing",
    "a digest in most rows only",
}  # fmt: skip
IN_ALL = {"view_source": "own", "status": "ok"}


def exactly(place: Place, paths: Sequence[Path], **options: object) -> dict[str, object]:
    """All that a call says and leaves: the receipt, every reject in order, and every file of the home."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "SEGMENT_ROWS", 64)
        patch.setenv("SOURCE_DATE_EPOCH", "1767225600")
        try:
            receipt: Receipt = ingest.ingest(place.home, paths, key=place.key, **options)  # type: ignore[arg-type]
            error = None
        except RefusedCallError as refused:
            receipt, error = refused.receipt, refused.as_dict()
    with Index.open(place.home) as index:
        events = [row.data for row in index.events(0, index.size)]
        head = index.head().note
    return {
        **receipt.as_json(),
        "error": error,
        "rejects": receipt.findings.rejects().to_pylist(),
        "listed": None if receipt.sides is None else receipt.sides.to_pylist(),
        "events": events,
        "note": head,
        "objects": {name: place.home.objects.read(name) for name in place.home.objects.names()},
        "staged": list(place.home.staged()),
    }
