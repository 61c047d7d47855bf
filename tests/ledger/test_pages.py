"""Page bytes against an encoder written from the description alone, and against every way to hold a table."""

from __future__ import annotations

import hashlib
import json
import re
import struct
from pathlib import Path

import pyarrow as pa
import pytest

from contracts.digest import pack
from contracts.errors import ContractError
from contracts.schema import TRANSPORT, Column, SegmentSchema
from ledger import tree
from ledger.pages import PAGE_ROWS, entries_root, page_bytes, page_count, page_leaves
from tests.ledger.score_tables import coded, entries

GOLDEN = Path(__file__).parents[1] / "golden" / "page.hex"
PACK = {"int16": "<h", "int32": "<i", "float64": "<d", "bool": "<?"}
WIDTH = {"int16": 2, "int32": 4, "float64": 8, "bool": 1, "digest": 33}


def described(table: pa.Table, schema: SegmentSchema) -> bytes:
    """The bytes of one page, value by value."""
    out = b""
    for column in schema.columns:
        values = table.column(column.name).to_pylist()
        if column.nullable:
            out += b"".join(b"\x00" if value is None else b"\x01" for value in values)
        if column.type == "text":
            texts = [(value or "").encode() for value in values]
            out += b"".join(struct.pack("<I", len(text)) for text in texts) + b"".join(texts)
        elif column.type == "digest":
            out += b"".join(value or bytes(33) for value in values)
        else:
            for value in values:
                out += bytes(WIDTH[column.type]) if value is None else struct.pack(PACK[column.type], value)
    return out


def leaves_described(table: pa.Table, schema: SegmentSchema) -> list[bytes]:
    starts = range(0, table.num_rows, PAGE_ROWS)
    pages = [described(table.slice(start, PAGE_ROWS), schema) for start in starts]
    return [hashlib.sha256(b"\x00" + page).digest() for page in pages]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return entries(trajectories=20, steps=3)


@pytest.mark.parametrize("rows", [0, 1, 2, 255, 256, 257, 512, 513])
def test_leaves_are_as_described_at_page_boundaries(table: pa.Table, rows: int) -> None:
    some = table.slice(0, rows)
    leaves = page_leaves(some, TRANSPORT)
    assert len(leaves) == page_count(rows)
    assert leaves == leaves_described(some, TRANSPORT)
    assert entries_root(leaves) == "sha256:" + tree.root(leaves).hex()


def test_one_page_is_the_bytes_that_were_hashed(table: pa.Table) -> None:
    leaves = page_leaves(table, TRANSPORT)
    for page in range(page_count(table.num_rows)):
        assert tree.leaf_hash(page_bytes(table, page, TRANSPORT)) == leaves[page]
    with pytest.raises(IndexError):
        page_bytes(table, page_count(table.num_rows), TRANSPORT)


def test_equal_values_give_equal_bytes_however_they_are_held(table: pa.Table) -> None:
    expected = page_leaves(table, TRANSPORT)
    dictionary = coded(table)
    wide = table
    for index, column in enumerate(TRANSPORT.columns):
        if column.type == "text":
            wide = wide.set_column(index, column.name, table.column(index).cast(pa.large_string()))
    chunks = pa.concat_tables([table.slice(0, 100), table.slice(100, 300), table.slice(400)])
    recoded = pa.concat_tables([coded(table.slice(0, 300)), coded(table.slice(300))])
    padded = pa.concat_tables([table.slice(7, 5), table]).combine_chunks().slice(5)
    for held in (dictionary, wide, chunks, recoded, padded, coded(padded)):
        assert page_leaves(held, TRANSPORT) == expected


def test_blocks_in_threads_keep_their_order() -> None:
    table = entries(trajectories=57, steps=13, channels=2, layouts=2)
    assert table.num_rows > 17_000
    assert page_leaves(coded(table), TRANSPORT) == leaves_described(table, TRANSPORT)


def test_what_lies_under_an_absent_value_is_not_hashed(table: pa.Table) -> None:
    """Arrow leaves arbitrary bytes below a null; two such tables are the same entries."""
    schema = SegmentSchema(
        "t", "t", (Column("n", "int32", nullable=True), Column("d", "digest", nullable=True))
    )
    validity = pa.py_buffer(bytes([0b101]))

    def held(filler: bytes) -> pa.Table:
        numbers = pa.Array.from_buffers(
            pa.int32(), 3, [validity, pa.py_buffer(b"\1\0\0\0" + filler[:4] + b"\2\0\0\0")]
        )
        digests = pa.Array.from_buffers(
            pa.binary(33), 3, [validity, pa.py_buffer(b"a" * 33 + filler + b"b" * 33)]
        )
        return pa.table({"n": numbers, "d": digests})

    assert page_bytes(held(b"x" * 33), 0, schema) == page_bytes(held(bytes(33)), 0, schema)
    expected = "010001" + "01000000" + "00000000" + "02000000" + "010001" + "61" * 33 + "00" * 33 + "62" * 33
    assert page_bytes(held(b"y" * 33), 0, schema).hex() == expected


def test_null_inside_a_dictionary_is_an_absent_value() -> None:
    schema = SegmentSchema("t", "t", (Column("s", "text", nullable=True),))
    holed = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0], pa.int32()), pa.array(["x", None]))
    assert (
        page_bytes(pa.table({"s": holed}), 0, schema).hex()
        == "010001" + "01000000" + "00000000" + "01000000" + "7878"
    )


def test_an_absent_value_where_none_may_be_is_refused(table: pa.Table) -> None:
    holed = table.set_column(8, "energy", pa.array([None] + [0.0] * (table.num_rows - 1), pa.float64()))
    with pytest.raises(ContractError, match="column energy"):
        page_leaves(holed, TRANSPORT)


@pytest.mark.parametrize(
    ("name", "value", "other"), [("energy", -0.0, 0.0), ("step", 7, 8), ("success", False, None)]
)
def test_values_that_compare_equal_have_other_bytes(
    table: pa.Table, name: str, value: object, other: object
) -> None:
    one = table.slice(0, 1)
    column = TRANSPORT.names.index(name)
    first = one.set_column(column, name, pa.array([value], TRANSPORT.arrow.field(name).type))
    second = one.set_column(column, name, pa.array([other], TRANSPORT.arrow.field(name).type))
    assert page_leaves(first, TRANSPORT) != page_leaves(second, TRANSPORT)


def test_golden_page() -> None:
    """The bytes of a fixed page, kept as a file: a change of the format must be a decision."""
    assert page_bytes(entries(1, 1, layouts=1), 0, TRANSPORT).hex() == GOLDEN.read_text().replace("\n", "")


def test_the_worked_example_of_the_format_page() -> None:
    """The rows on the page, encoded here, are the bytes, the leaf and the root that the page prints."""
    text = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
    rows, page, leaf = (
        re.search(rf"^```{name}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)[1]  # type: ignore[index]
        for name in ("json", "page", "leaf")
    )
    digests = {column.name for column in TRANSPORT.columns if column.type == "digest"}
    entries = [
        {name: pack(value) if name in digests else value for name, value in row.items()}
        for row in json.loads(rows)
    ]
    table = pa.Table.from_pylist(entries, schema=TRANSPORT.arrow)
    printed = [line.split() for line in page.splitlines()]
    assert [name for name, *_ in printed] == list(TRANSPORT.names)
    data = page_bytes(table, 0, TRANSPORT)
    assert "".join(part for _, *parts in printed for part in parts) == data.hex()
    assert f"the {len(data)} bytes" in text
    assert tree.root([tree.leaf_hash(data)]).hex() == leaf.strip()
    assert data == described(table, TRANSPORT)
