"""Segments: order, roots and sizes of what is written, and reads that refuse every changed byte."""

from __future__ import annotations

import dataclasses
import io
import itertools
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.errors import MalformedError, TamperError, UsageError
from contracts.schema import JEV, REFUSED, TRANSPORT, Column, SegmentSchema
from ledger import entry_id, segments
from ledger.objects import Store
from ledger.pages import page_leaves
from ledger.segment_reader import SegmentReader
from ledger.segments import WrittenSegment
from ledger.sorting import sort
from tests.ledger.score_tables import coded, digest, entries, in_flight
from tests.ledger.stores import FORMS, new_store, overwrite

KEY = TRANSPORT.key


@pytest.fixture(params=FORMS)
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return new_store(request.param, tmp_path)


@pytest.fixture
def small_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "GROUP_ROWS", 512)


def rows_of(table: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.select(TRANSPORT.names).to_pylist()]


def key_order(row: dict[str, object], schema: SegmentSchema = TRANSPORT) -> tuple[object, ...]:
    values = (row[name] for name in schema.key)
    return tuple((v is not None, v.encode() if isinstance(v, str) else v) for v in values)


def plain_text(table: pa.Table) -> pa.Table:
    return table.select(TRANSPORT.names).cast(TRANSPORT.arrow)


# --- order


def test_rows_are_sorted_by_key_with_text_by_bytes() -> None:
    table = entries(4, 3)
    ordered = sorted(table.to_pylist(), key=key_order)
    assert sort(table, TRANSPORT).to_pylist() == ordered
    assert sort(coded(table), TRANSPORT).to_pylist() == ordered
    assert [row["candidate"] for row in ordered[:3]] == ["A", "NONE", "Ä"]


def test_a_table_in_order_is_left_as_it_is() -> None:
    ordered = sort(entries(), TRANSPORT)
    assert sort(ordered, TRANSPORT) is ordered


def test_absent_key_parts_come_first_and_wide_ranges_do_not_overflow() -> None:
    schema = SegmentSchema(
        "t",
        "t",
        (*(Column(f"n{i}", "int32", key=True, nullable=True) for i in range(5)), Column("s", "text")),
    )
    numbers = np.random.default_rng(5).integers(-(2**31), 2**31, (400, 5))
    columns = {f"n{i}": pa.array(numbers[:, i], pa.int32(), mask=numbers[:, i] % 7 == 0) for i in range(5)}
    table = pa.table({**columns, "s": pa.array(["x"] * 400)})
    assert sort(table, schema).to_pylist() == sorted(table.to_pylist(), key=lambda r: key_order(r, schema))


def test_rows_of_equal_key_are_ordered_by_their_content() -> None:
    """Refused rows may repeat a key; their order must still not depend on the files."""
    table = refused_rows()
    doubled = pa.concat_tables([table, table.set_column(8, "energy", pa.array([-0.0] * table.num_rows))])
    shuffled = doubled.take(pa.array(np.random.default_rng(1).permutation(doubled.num_rows)))
    assert page_leaves(sort(doubled, REFUSED), REFUSED) == page_leaves(sort(shuffled, REFUSED), REFUSED)


def refused_rows() -> pa.Table:
    table = entries(1, 1)
    status = ["ok" if i % 5 else "timeout" for i in range(table.num_rows)]
    energy = [0.0 if s == "ok" else None for s in status]
    table = table.set_column(8, "energy", pa.array(energy, pa.float64()))
    return table.add_column(9, "status", pa.array(status))


# --- writing


def test_written_rows_come_back_with_what_the_log_commits_to(objects: Store) -> None:
    table = entries(5, 3)
    (written,) = segments.write(table, TRANSPORT, objects)
    ordered = sort(table, TRANSPORT)
    assert (written.rows, written.trajectories) == (table.num_rows, 5)
    assert (written.first, written.last) == (("traj000", 0), ("traj004", 2))
    half = table.num_rows // 2
    assert {(a, n) for _, a, n in written.scope} == {("main-1", half)}
    assert [c for c, _, _ in written.scope] == sorted(
        "blake3:" + digest("channel", i).hex()[2:] for i in range(2)
    )
    assert written.sources == {0: half, 1: half}
    for opened in (SegmentReader.whole, SegmentReader.ranged):
        with opened(objects, written) as reader:
            assert plain_text(reader.read()).equals(plain_text(ordered))
            assert reader.read(columns=["energy", "step"]).column_names == ["energy", "step"]
            where = reader.source_rows(10, 20)
            assert where.files.tolist() == ordered["source_file"].slice(10, 10).to_pylist()
            assert where.rows.tolist() == ordered["source_row"].slice(10, 10).to_pylist()
            reader.check_pages()


def test_order_chunks_and_coding_of_the_input_do_not_change_a_root(objects: Store) -> None:
    table = entries(6, 4)
    (written,) = segments.write(table, TRANSPORT, objects)
    shuffled = coded(table.take(pa.array(np.random.default_rng(2).permutation(table.num_rows))))
    parts = pa.concat_tables([table.slice(200), table.slice(0, 200)])
    for other in (shuffled, parts):
        assert [w.root for w in segments.write(other, TRANSPORT, objects)] == [written.root]
        assert list(segments.commitments(other, TRANSPORT)) == [(written.root, written.rows)]


def test_a_call_is_cut_after_sorting(objects: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "SEGMENT_ROWS", 512)
    table = entries(10, 5)
    written = segments.write(table, TRANSPORT, objects)
    assert [w.rows for w in written] == [512, 512, table.num_rows - 1024]
    assert all(a.last <= b.first for a, b in itertools.pairwise(written))
    read = pa.concat_tables([SegmentReader.whole(objects, w).read() for w in written])
    assert rows_of(read) == rows_of(sort(table, TRANSPORT))


def test_progress_counts_every_row(objects: Store, small_groups: None) -> None:
    seen: list[int] = []
    table = entries(10, 5)
    segments.write(table, TRANSPORT, objects, progress=seen.append)
    assert sum(seen) == table.num_rows
    assert len(seen) == 3


def test_refused_rows_are_stored_the_same_way(objects: Store) -> None:
    (written,) = segments.write(refused_rows(), REFUSED, objects, folder="refusals")
    assert all(name.startswith("refusals/") for name in written.names)
    with SegmentReader.ranged(objects, written, "refusals") as reader:
        assert reader.read()["status"].to_pylist().count("timeout") == reader.read()["energy"].null_count > 0


def test_every_kind_is_stored_by_its_schema_alone(objects: Store) -> None:
    """Predictions: keys with absent parts, an absent channel, other first columns."""
    groups = [(None, None, "file:0"), ("questions", None, "run"), ("questions", digest("c"), "run")]
    rows: list[dict[str, object]] = [
        {
            "query_id": f"q{query}", "year": 2019 + query % 2, "scenario": "s", "intervention": intervention,
            "mode": None, "variant": None, "channel": channel, "acquisition_id": acquisition,
            "label": label, "arm": arm, "probability": 0.25, "label_position": None if query else 1,
            "request_hash": None, "evidence_hash": digest(query), "label_mass": None, "mass_kind": None,
        }
        for query in range(40)
        for intervention, channel, acquisition in groups
        for label in ("yes", "no")
        for arm in ("before", "after")
    ]  # fmt: skip
    table = in_flight(pa.Table.from_pylist(rows[::-1], schema=JEV.arrow))
    (written,) = segments.write(table, JEV, objects)
    assert (written.first, written.last, written.trajectories) == (("q0", 2019), ("q9", 2020), 40)
    assert {(c is None, a, n) for c, a, n in written.scope} == {
        (True, "file:0", 160), (True, "run", 160), (False, "run", 160)
    }  # fmt: skip
    ordered = sorted(rows, key=lambda row: key_order(row, JEV))
    with SegmentReader.ranged(objects, written) as reader:
        reader.check_pages()
        assert reader.read().to_pylist() == ordered
        start, stop = reader.find("q17", "q17")
        assert {row["query_id"] for row in reader.read(start, stop).to_pylist()} == {"q17"}
        assert stop - start == 12


def test_sorted_rows_take_no_more_than_plain_zstd_parquet(objects: Store, tmp_path: Path) -> None:
    table = sort(entries(80, 5, layouts=4), TRANSPORT)
    (written,) = segments.write(table, TRANSPORT, objects)
    pq.write_table(plain_text(table), tmp_path / "plain.parquet", compression="zstd")
    assert written.bytes <= 1.1 * (tmp_path / "plain.parquet").stat().st_size


# --- ranged reads


@pytest.fixture
def stored(objects: Store, small_groups: None) -> tuple[Store, WrittenSegment, pa.Table]:
    table = entries(9, 6)
    (written,) = segments.write(table, TRANSPORT, objects)
    return objects, written, plain_text(sort(table, TRANSPORT))


Stored = tuple[Store, WrittenSegment, pa.Table]


def test_any_range_is_exactly_those_rows(stored: Stored) -> None:
    objects, written, ordered = stored
    with SegmentReader.ranged(objects, written) as reader:
        edges = [0, 1, 255, 256, 257, 511, 512, 513, 1024, written.rows - 1, written.rows]
        for start, stop in itertools.combinations_with_replacement(edges, 2):
            assert plain_text(reader.read(start, stop)).equals(ordered.slice(start, stop - start))
        assert rows_of(pa.concat_tables(reader.groups())) == rows_of(ordered)
        with pytest.raises(IndexError):
            reader.read(5, written.rows + 1)


@pytest.mark.parametrize("opened", [SegmentReader.whole, SegmentReader.ranged])
def test_trajectories_are_found_or_proved_absent(stored: Stored, opened: type) -> None:
    objects, written, ordered = stored
    ids = ordered["trajectory_id"].to_pylist()
    asked = ["", "traj000", "traj0005", "traj003", "traj008", "traj008x", "zzz"]
    with opened(objects, written) as reader:
        for first, last in itertools.combinations_with_replacement(asked, 2):
            start, stop = reader.find(first, last)
            assert list(range(start, stop)) == [i for i, t in enumerate(ids) if first <= t <= last]


def rewrite(objects: Store, name: str, table: pa.Table, **options: object) -> None:
    """What somebody with write access does: another file under the committed name."""
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    overwrite(objects, name, file.getvalue())


def changed(table: pa.Table, row: int, column: str, value: object) -> pa.Table:
    values = table[column].to_pylist()
    values[row] = value
    at = table.column_names.index(column)
    return table.set_column(at, table.schema.field(column), pa.array(values, table.schema.field(column).type))


def test_a_changed_value_is_named_by_file_page_and_entry(stored: Stored) -> None:
    objects, written, ordered = stored
    rewrite(objects, written.names[0], changed(ordered, 700, "energy", 1.5), row_group_size=512)
    with SegmentReader.ranged(objects, written) as reader:
        assert plain_text(reader.read(0, 512)).equals(ordered.slice(0, 512))
        with pytest.raises(TamperError) as caught:
            reader.read(690, 691)
        assert caught.value.kind == "data"
        assert written.names[0] in str(caught.value)
        assert "page 2" in str(caught.value)
        assert entry_id.entry_id(written.root, 512) in str(caught.value)
        with pytest.raises(TamperError, match="page 2"):
            reader.check_pages()
    with pytest.raises(TamperError, match="segment file changed"):
        SegmentReader.whole(objects, written)


def test_a_file_rewritten_by_another_parquet_writer_keeps_its_entries(stored: Stored) -> None:
    objects, written, ordered = stored
    rewrite(objects, written.names[0], ordered, row_group_size=300, compression="snappy")
    with SegmentReader.ranged(objects, written) as reader:
        reader.check_pages()
        start, stop = reader.find("traj004", "traj005")
        assert set(reader.read(start, stop)["trajectory_id"].to_pylist()) == {"traj004", "traj005"}


def test_statistics_that_hide_a_trajectory_are_caught(stored: Stored) -> None:
    """The footer says where to look; entries it leaves out must not go missing."""
    objects, written, ordered = stored
    moved = pa.concat_tables([ordered.slice(0, 512), ordered.slice(1024), ordered.slice(512, 512)])
    rewrite(objects, written.names[0], moved, row_group_size=512)
    hidden = ordered["trajectory_id"][700].as_py()
    with SegmentReader.ranged(objects, written) as reader, pytest.raises(TamperError):
        reader.read(*reader.find(hidden, hidden))


@pytest.mark.parametrize("damage", ["rows", "columns", "garbage", "empty"])
def test_a_file_of_another_shape_is_refused(stored: Stored, damage: str) -> None:
    objects, written, ordered = stored
    if damage == "rows":
        rewrite(objects, written.names[0], ordered.slice(1))
    elif damage == "columns":
        rewrite(objects, written.names[0], ordered.drop_columns(["success"]))
    else:
        overwrite(objects, written.names[0], b"PAR1" * 40 if damage == "garbage" else b"")
    with pytest.raises(TamperError) as caught:
        SegmentReader.ranged(objects, written)
    assert caught.value.kind == "data"


def test_false_leaves_are_refused(stored: Stored) -> None:
    objects, written, _ = stored
    right = objects.read(written.names[1])
    for forged in (right[:-32], bytes(32) + right[32:], right + bytes(32)):
        overwrite(objects, written.names[1], forged)
        with (
            SegmentReader.ranged(objects, written) as reader,
            pytest.raises(TamperError, match="entries root"),
        ):
            reader.read(0, 1)


def test_false_source_rows_are_refused(stored: Stored) -> None:
    objects, written, _ = stored
    forged = pa.Codec("zstd").compress(bytes(12 * written.rows), asbytes=True)
    overwrite(objects, written.names[2], forged)
    with SegmentReader.ranged(objects, written) as reader, pytest.raises(TamperError):
        reader.source_rows()


def test_an_unknown_schema_is_not_guessed(stored: Stored) -> None:
    objects, written, _ = stored
    with pytest.raises(MalformedError, match="unknown schema"):
        SegmentReader.whole(objects, dataclasses.replace(written, schema="ledger.other.v9"))


def flips(data: bytes, step: int) -> Iterator[tuple[int, bytes]]:
    for at in range(0, len(data), step):
        yield at, data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("step", [499, pytest.param(7, marks=pytest.mark.sweep)])
def test_no_flipped_bit_is_read_as_an_entry(objects: Store, step: int) -> None:
    """Whole reads refuse every flip; ranged reads refuse it, or the flip is in no value."""
    table = entries(2, 2)
    (written,) = segments.write(table, TRANSPORT, objects)
    ordered = plain_text(sort(table, TRANSPORT))
    for at, flipped in flips(objects.read(written.names[0]), step):
        overwrite(objects, written.names[0], flipped)
        with pytest.raises(TamperError):
            SegmentReader.whole(objects, written)
        with suppress(TamperError), SegmentReader.ranged(objects, written) as reader:
            assert plain_text(reader.read()).equals(ordered), at


# --- entry ids


def test_entry_ids_read_back() -> None:
    root = "sha256:" + "0123456789abcdef" * 4
    reference = entry_id.parse(entry_id.entry_id(root, 17))
    assert reference == entry_id.EntryReference("0123456789abcdef", 17)
    assert reference.names(root)
    assert not reference.names("sha256:" + "f" * 64)
    assert entry_id.parse(root + ":3") == entry_id.EntryReference("0123456789abcdef" * 4, 3)


def test_texts_that_are_no_entry_id() -> None:
    assert entry_id.parse("direct") is None
    assert entry_id.parse("sha256:" + "0" * 64) is None
    for broken in ("0123:4", "0123456789abcde:0", "0" * 65 + ":1"):
        with pytest.raises(UsageError, match="not an entry id"):
            entry_id.parse(broken)
