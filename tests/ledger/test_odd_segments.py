"""Segments whose signer committed to a Parquet file that no writer of the format makes.

The pages, the root and the digest of the file are honest, so only a look at the file itself can tell.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audits import transport
from contracts.digest import blake3_digest
from contracts.errors import LedgerError, TamperError
from contracts.schema import TRANSPORT
from ledger import log, segments
from ledger.event_types import AcquisitionEvent, Source
from ledger.index import Index
from ledger.ingest import ingest
from ledger.ingest_store import segment_event
from ledger.object_names import segment_name
from ledger.segment_reader import SegmentReader
from ledger.snapshot import open_snapshot
from ledger.staging import stage
from ledger.verify import verify
from tests.ledger.homes import Place
from tests.ledger.large_calls import changed, of
from tests.ledger.score_files import place_with_channels, rows, write

File = Callable[[pa.Table], bytes]
MADE = rows(range(12))


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> pa.Table:
    """The rows of one call in segment order, with the columns that say where each came from."""
    folder = tmp_path_factory.mktemp("honest")
    place = place_with_channels(folder)
    ingest(place.home, [write(folder / "a.parquet", MADE)], key=place.key)
    with (
        Index.open(place.home) as index,
        SegmentReader.whole(place.home.objects, index.segments()[0]) as reader,
    ):
        table, sources = reader.read().cast(TRANSPORT.arrow), reader.source_rows()
    table = table.append_column("source_file", pa.array(sources.files.astype("int32")))
    return table.append_column("source_row", pa.array(sources.rows.astype("int64")))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    before = os.environ.get("XDG_CONFIG_HOME")
    place = place_with_channels(tmp_path_factory.mktemp("template"))
    write(place.home.path.parent / "a.parquet", MADE)
    yield place
    if before is not None:
        os.environ["XDG_CONFIG_HOME"] = before


def forge(template: Place, folder: Path, honest: pa.Table, file: File) -> tuple[Place, str]:
    """A home whose one segment has the file that is made of the honest rows, and the file's name."""
    place = template.copy(folder).use()
    path = write(folder / "a.parquet", MADE)
    (written,) = segments.write(honest, TRANSPORT, place.home.objects, in_order=True)
    place.home.objects.remove(written.names[0])
    data = file(honest.select(TRANSPORT.names))
    source = Source(path.name, stage(path).digest, len(MADE))
    event = segment_event(written, "transport", "ledger.transport-contract.v1", (source,))
    event = replace(event, file=blake3_digest(data), size=len(data))
    place.home.objects.put(segment_name(event.file), data)
    log.commit(place.home, place.key, lambda _: (AcquisitionEvent("main-1", "transport"), event))
    return place, segment_name(event.file)


def parquet(table: pa.Table, **options: object) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **{"store_schema": False, **options})
    return bytes(sink.getvalue())


def with_column(name: str, change: Callable[[pa.ChunkedArray], object], **options: object) -> File:
    def file(table: pa.Table) -> bytes:
        at = table.schema.get_field_index(name)
        return parquet(table.set_column(at, name, change(table.column(at))), **options)

    return file


def as_type(name: str, kind: pa.DataType, **options: object) -> File:
    return with_column(name, lambda values: values.cast(kind), **options)


def without_value(name: str) -> File:
    def change(values: pa.ChunkedArray) -> pa.Array:
        return pa.array([None, *values.to_pylist()[1:]], values.type)

    return with_column(name, change)


def in_groups(*sizes: int) -> File:
    def file(table: pa.Table) -> bytes:
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
            at = 0
            for size in sizes:
                writer.write_table(table.slice(at, size))
                at += size
            writer.write_table(table.slice(at))
        return bytes(sink.getvalue())

    return file


def false_bounds(right: bytes, wrong: bytes) -> File:
    """Row groups that state other first or last trajectories than they have."""

    def file(table: pa.Table) -> bytes:
        data = parquet(table, row_group_size=256)
        footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
        return data[:footer] + data[footer:].replace(right, wrong)

    return file


BEYOND = {"int16": pa.int32(), "int32": pa.int64(), "float64": pa.float32(), "bool": pa.int8()}
ODD: dict[str, File] = {
    "a first group of no rows": in_groups(0, 256),
    "a group of no rows": in_groups(256, 0),
    "a last group of no rows": in_groups(256, 320),
    "a column more": lambda table: parquet(table.append_column("x", table.column("step"))),
    "a column twice": lambda table: parquet(table.append_column("energy", table.column("energy"))),
    "columns in another order": lambda table: parquet(table.select(table.column_names[::-1])),
    **{
        f"{c.name} as bytes": as_type(c.name, pa.binary())
        for c in TRANSPORT.columns
        if c.type in ("text", "digest")
    },
    **{
        f"{c.name} as {BEYOND[c.type]}": as_type(c.name, BEYOND[c.type])
        for c in TRANSPORT.columns
        if c.type in BEYOND and c.name not in ("position", "label_mass")
    },
    **{f"{name} as text": as_type(name, pa.string()) for name in ("step", "layout", "energy", "success")},
    **{f"{name} as doubles": as_type(name, pa.float64()) for name in ("step", "layout")},
    **{f"{name} as lists": with_column(name, lambda v: pa.array([[x] for x in v.to_pylist()]))
       for name in ("trajectory_id", "energy", "state_hash")},
    **{f"{name} as structs": with_column(name, lambda v: pa.array([{"x": x} for x in v.to_pylist()]))
       for name in ("target", "energy")},
    **{f"{c.name} absent": without_value(c.name) for c in TRANSPORT.columns if not c.nullable},
    **{
        f"{c.name} not UTF-8": with_column(
            c.name, lambda v: pa.chunked_array([pa.Array.from_buffers(
                pa.string(), len(v), pa.array([b"\xff"] * len(v), pa.binary()).buffers())])
        )
        for c in TRANSPORT.columns
        if c.type == "text"
    },
    "a trajectory beyond the bounds": false_bounds(b"traj011", b"traj000"),
    "bounds that are no text": false_bounds(b"traj000", b"traj\xff00"),
}  # fmt: skip
BY_DEFAULT = {
    "a group of no rows", "channel as bytes", "trajectory_id as bytes", "step as doubles", "energy as lists",
    "energy as float", "energy absent", "target not UTF-8", "trajectory_id not UTF-8",
    "a trajectory beyond the bounds",
}  # fmt: skip


@pytest.fixture(scope="module")
def right(template: Place, tmp_path_factory: pytest.TempPathFactory, honest: pa.Table) -> list[float]:
    """What an audit of the honest rows gives."""
    place, _ = forge(template, tmp_path_factory.mktemp("right"), honest, parquet)
    found: list[float] = transport(
        open_snapshot(place.home), "direct", "generated", resamples=100
    ).pair.interaction.numerators.tolist()
    return found


def names() -> list[object]:
    return [name if name in BY_DEFAULT else pytest.param(name, marks=pytest.mark.sweep) for name in ODD]


@pytest.mark.parametrize("name", names())
def test_full_verification_names_the_file(
    template: Place, tmp_path: Path, honest: pa.Table, name: str
) -> None:
    place, odd = forge(template, tmp_path, honest, ODD[name])
    assert verify(place.home).ok  # every byte is what was signed
    found = verify(place.home, full=True).findings
    assert {(problem.kind, problem.where) for problem in found} == {("data", f"objects/{odd}")}


@pytest.mark.parametrize("name", names())
def test_no_reader_meets_anything_but_what_is_right_or_named(
    template: Place, tmp_path: Path, honest: pa.Table, right: list[float], name: str
) -> None:
    """A reader either gives what the pages say, or names the file."""
    place, odd = forge(template, tmp_path, honest, ODD[name])
    path = tmp_path / "a.parquet"

    def again() -> object:
        receipt = ingest(place.home, [path], key=place.key)
        return receipt.admitted, receipt.skipped

    def audit() -> object:
        return transport(
            open_snapshot(place.home), "direct", "generated", resamples=100
        ).pair.interaction.numerators.tolist()

    assert outcome(again) in ((0, len(MADE)), odd)
    assert outcome(audit) in (right, odd)


def outcome(read: Callable[[], object]) -> object:
    """What was read, or the object that an error names."""
    try:
        return read()
    except TamperError as error:
        return str(error.where).partition(" ")[0]


def test_bounds_in_a_footer_hide_no_contradiction(template: Place, tmp_path: Path, honest: pa.Table) -> None:
    place, _ = forge(template, tmp_path, honest, ODD["a trajectory beyond the bounds"])
    cell = {"step": 1, "endpoint": "after", "channel": "direct", "layout": 1, "candidate": "B"}
    other = [row for row in changed(MADE, of(11, **cell), energy=9.0) if row["trajectory_id"] == "traj011"]
    with pytest.raises(LedgerError) as caught:
        ingest(place.home, [write(tmp_path / "b.parquet", other)], key=place.key)
    assert caught.value.code != "internal"
    assert caught.value.exit_code in (1, 4)


FINE: dict[str, File] = {
    "as it is": parquet,
    "a row to a group": lambda table: parquet(table.slice(0), row_group_size=1),
    "groups across pages": lambda table: parquet(table, row_group_size=100),
    "no statistics": lambda table: parquet(table, write_statistics=False, row_group_size=64),
    "wide text": as_type("target", pa.large_string(), store_schema=True),
    "text as views": as_type("trajectory_id", pa.string_view(), store_schema=True),
    "numbers as codes": with_column("step", lambda v: v.dictionary_encode(), store_schema=True),
    "text as codes": with_column("candidate", lambda v: v.dictionary_encode(), store_schema=True),
}


@pytest.mark.parametrize("name", FINE)
def test_another_writer_may_have_made_it(
    template: Place, tmp_path: Path, honest: pa.Table, name: str
) -> None:
    place, _ = forge(template, tmp_path, honest, FINE[name])
    assert verify(place.home, full=True).ok
    receipt = ingest(place.home, [tmp_path / "a.parquet"], key=place.key)
    assert (receipt.admitted, receipt.skipped) == (0, len(MADE))
