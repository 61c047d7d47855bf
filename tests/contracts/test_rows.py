"""The row level: every rule by its code, every way a column may arrive, bounded work on hostile files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.channel import Channel, ChannelBook, fingerprint
from contracts.channel_file import load_spec
from contracts.digest import blake3_digest, pack, unpack
from contracts.labels import text_labels
from contracts.rows import IN_FLIGHT, canonicalise
from contracts.source_table import SourceTable, Unread
from contracts.template import template
from ledger.sources import read_sources
from tests.contracts.score_book import (
    BOOK,
    DIGEST,
    DIRECT,
    GENERATED,
    channel,
    judged,
    row,
    source,
    table,
    with_column,
)

SHARED = Path(__file__).parents[2].parent / "shared"


def test_good_rows_become_the_canonical_table() -> None:
    result = judged(row(), row(candidate="B", endpoint="after", step=3, energy=-0.0))
    assert result.findings.total == 0
    assert result.table.schema.equals(IN_FLIGHT)
    first, second = result.table.to_pylist()
    assert first["channel"] == pack(DIRECT.fingerprint)
    assert (first["view_source"], first["status"], first["target_type"]) == ("own", "ok", None)
    assert (second["source_file"], second["source_row"], second["step"]) == (0, 2, 3)
    assert np.signbit(second["energy"])
    assert unpack(first["state_hash"]) == DIGEST


# Each kind of fault alone in one row between two good ones: the code, the column it is told of, the value.
FAULTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "nan": ("nan", "energy", {"energy": float("nan")}),
    "negative nan": ("nan", "energy", {"energy": float(np.copysign(np.nan, -1.0))}),
    "infinite": ("infinite", "energy", {"energy": float("inf")}),
    "minus infinite": ("infinite", "energy", {"energy": float("-inf")}),
    "null energy": ("null-energy", "energy", {"energy": None}),
    "too large": ("energy-too-large", "energy", {"energy": float(np.nextafter(2.0**20, 2.0**21))}),
    "too small": ("energy-too-large", "energy", {"energy": -(2.0**21)}),
    "scored and failed": ("energy-with-status", "energy", {"status": "timeout"}),
    "nan and failed": ("nan", "energy", {"status": "error", "energy": float("nan")}),
    "unknown status": ("status-unknown", "status", {"status": "OK"}),
    "null key": ("null", "trajectory_id", {"trajectory_id": None}),
    "null candidate": ("null", "candidate", {"candidate": None}),
    "null target": ("null", "target", {"target": None}),
    "null step": ("null", "step", {"step": None}),
    "null layout": ("null", "layout", {"layout": None}),
    "null channel": ("null", "channel", {"channel": None}),
    "empty": ("empty", "candidate", {"candidate": ""}),
    "leading space": ("outer-space", "trajectory_id", {"trajectory_id": " t1"}),
    "trailing space": ("outer-space", "acquisition_id", {"acquisition_id": "run-1 "}),
    "line end": ("control-character", "candidate", {"candidate": "A\r\n"}),
    "nul": ("control-character", "trajectory_id", {"trajectory_id": "t\x001"}),
    "line separator": ("control-character", "step_kind", {"step_kind": "a\u2028b"}),
    "decomposed": ("not-nfc", "trajectory_id", {"trajectory_id": "cafe\u0301"}),
    "zero width": ("look-alike", "candidate", {"candidate": "A\u200b"}),
    "bidirectional": ("look-alike", "candidate", {"candidate": "A\u202e"}),
    "variation": ("look-alike", "candidate", {"candidate": "A\ufe0f"}),
    "no-break space": ("look-alike", "trajectory_id", {"trajectory_id": "t\u00a01"}),
    "cyrillic twin": ("look-alike", "candidate", {"candidate": "\u0410"}),
    "fullwidth twin": ("look-alike", "candidate", {"candidate": "\uff21"}),
    "long": ("too-long", "trajectory_id", {"trajectory_id": "é" * 2049}),
    "endpoint": ("endpoint-unknown", "endpoint", {"endpoint": "Before"}),
    "view source": ("view-source-syntax", "view_source", {"view_source": "mine"}),
    "donor without name": ("view-source-syntax", "view_source", {"view_source": "donor:"}),
    "negative step": ("step-range", "step", {"step": -1}),
    "large step": ("step-range", "step", {"step": 2**31}),
    "layout": ("layout-out-of-range", "layout", {"layout": 2}),
    "negative layout": ("layout-out-of-range", "layout", {"layout": -1}),
    "position": ("position-range", "position", {"position": 2**15}),
    "label mass": ("label-mass-range", "label_mass", {"label_mass": 1.0000001}),
    "label mass nan": ("label-mass-range", "label_mass", {"label_mass": float("nan")}),
    "unregistered": ("unknown-channel", "channel", {"channel": "dirct"}),
    "no reference": ("unknown-channel", "channel", {"channel": "not a channel"}),
    "upper-case digest": ("bad-digest", "state_hash", {"state_hash": DIGEST.upper()}),
    "digest and more": ("bad-digest", "request_hash", {"request_hash": DIGEST + "\n"}),
    "unicode digit": ("bad-digest", "state_hash", {"state_hash": DIGEST[:-1] + "\u0661"}),
    "other algorithm": ("bad-digest", "response_hash", {"response_hash": "md5:" + "0" * 64}),
    "missing digest": ("missing-digest", "request_hash", {"request_hash": None}),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_has_its_code_its_row_and_its_value(kind: str) -> None:
    code, column, changed = FAULTS[kind]
    result = judged(row(), row(**changed), row())
    assert result.findings.by_code == {code: 1}
    (finding,) = result.findings.examples
    assert (finding.column, finding.file, finding.rows, finding.level) == (column, "a.parquet", (2,), "row")
    assert finding.wanted
    assert result.table.num_rows == 0
    (reject,) = result.findings.rejects().to_pylist()
    assert (reject["code"], reject["column"], reject["row"]) == (code, column, 2)


def test_faults_of_one_row_are_told_apart() -> None:
    result = judged(row(step=-1, layout=7, energy=float("inf"), candidate=" \u200b"))
    assert result.findings.by_code == {
        "outer-space": 1, "look-alike": 1, "step-range": 1, "infinite": 1, "layout-out-of-range": 1,
    }  # fmt: skip


def test_a_message_names_the_entry_and_the_next_step() -> None:
    (nan,) = judged(row(energy=float("nan"))).findings.examples
    assert nan.message.startswith("a.parquet row 1 (t1/step00 before direct layout 0 run-1 A): energy is NaN")
    assert nan.key is not None
    assert nan.key["step"] == 0
    (unknown,) = judged(row(channel="dirct")).findings.examples
    assert "did you mean direct?" in unknown.message
    assert "ledger channel add" in unknown.message


def test_labels_are_one_finding_for_all_their_rows_of_a_file() -> None:
    bad = [row(candidate="A "), row(), row(candidate="A "), row(candidate="B ")]
    files = [source(table(bad)), source(table(bad[:1]), "b.parquet")]
    findings = canonicalise(files, BOOK).findings
    assert [(f.got, f.file, f.rows, f.count) for f in findings.examples] == [
        ("A ", "a.parquet", (1, 3), 2),
        ("B ", "a.parquet", (4,), 1),
        ("A ", "b.parquet", (1,), 1),
    ]


def test_a_failed_reading_needs_neither_energy_nor_digests() -> None:
    failed = row(status="timeout", energy=None, request_hash=None)
    result = judged(row(status="ok"), failed)
    assert result.findings.total == 0
    assert result.table["status"].to_pylist() == ["ok", "timeout"]
    assert result.missing_digests == {}


def test_the_largest_energy_and_the_least_label_mass_are_good() -> None:
    edges = [row(energy=2.0**20, label_mass=0.0), row(energy=-(2.0**20), label_mass=1.0, step=2**31 - 1)]
    assert judged(*edges).findings.total == 0


def test_a_script_is_no_fault_without_a_twin() -> None:
    assert judged(row(candidate="\u0410"), row(candidate="\u4f60\u597d")).findings.total == 0


@pytest.mark.parametrize(
    "text", ["own", "before", "after", "donor:t2", "donor:t2/0", "donor:a/b/12", "donor:a b"]
)
def test_view_sources(text: str) -> None:
    assert judged(row(view_source=text)).table["view_source"].to_pylist() == [text]


def test_an_ambiguous_name_lists_its_versions() -> None:
    book = ChannelBook((DIRECT, channel("direct", version=2)))
    (finding,) = judged(row(), book=book).findings.examples
    assert finding.code == "ambiguous-channel"
    assert "direct@1" in finding.message
    assert "direct@2" in finding.message
    assert judged(row(channel="direct@2"), book=book).findings.total == 0


def test_after_many_unknown_channels_a_version_is_still_resolved() -> None:
    book = ChannelBook((DIRECT, channel("direct", version=2)))
    findings = judged(
        *(row(channel=f"c{i}") for i in range(150)), row(channel="direct@2"), book=book
    ).findings
    assert findings.by_code == {"unknown-channel": 150}


def test_two_names_of_one_channel_are_one_channel() -> None:
    alias = Channel("alias", 1, DIRECT.spec, DIRECT.fingerprint)
    result = judged(
        row(), row(channel="alias"), row(channel=DIRECT.fingerprint), book=ChannelBook((DIRECT, alias))
    )
    (column,) = result.table["channel"].chunks
    assert column.indices.to_pylist() == [0, 0, 0]
    assert column.dictionary.to_pylist() == [pack(DIRECT.fingerprint)]


def test_a_channel_without_layouts_carries_no_scores() -> None:
    book = ChannelBook((channel("direct", presentation={}),))
    assert judged(row(), book=book).findings.by_code == {"channel-without-layouts": 1}


class TestDigests:
    def test_a_file_without_a_digest_column_is_declared(self) -> None:
        files = [source(table([row()]), "a"), source(table([row(request_hash=...)]), "b")]
        result = canonicalise(files, BOOK)
        assert result.findings.total == 0
        assert result.missing_digests == {"request_hash": ("b",)}

    def test_a_column_of_nulls_is_an_absent_one(self) -> None:
        result = judged(row(state_hash=None), row(state_hash=None))
        assert result.findings.total == 0
        assert result.missing_digests == {"state_hash": ("a.parquet",)}

    def test_a_view_is_asked_of_channels_that_show_one(self) -> None:
        shown = row(channel="generated", view_hash=DIGEST)
        assert judged(row(), shown).findings.total == 0
        result = judged(row(), shown, row(channel="generated"))
        assert result.findings.by_code == {"view-hash-missing": 1}
        assert result.findings.examples[0].rows == (3,)
        assert judged(row(channel="generated")).missing_digests == {"view_hash": ("a.parquet",)}

    def test_texts_stand_for_their_digests(self) -> None:
        texts = {"state": "seen", "candidates": "A|B", "request": "ask", "view": "look"}
        hashed = {f"{name}_hash": ... for name in ("state", "candidates", "request")}
        (entry,) = judged(row(channel="generated", **texts, **hashed)).table.to_pylist()
        for name, text in texts.items():
            assert unpack(entry[f"{name}_hash"]) == blake3_digest(text.encode())

    def test_a_text_and_its_digest_must_agree(self) -> None:
        seen = blake3_digest(b"seen")
        good = row(state="seen", state_hash=seen)
        assert judged(good, row(state=None), row(state="seen", state_hash=None)).findings.total == 0
        result = judged(good, row(state="other", state_hash=seen))
        (finding,) = result.findings.examples
        assert (finding.code, finding.rows, finding.got) == ("digest-disagrees", (2,), seen)

    @pytest.mark.parametrize("where", ["field", "file"])
    @pytest.mark.parametrize("coded", [True, False])
    def test_binary_digests_with_their_algorithm(self, where: str, coded: bool) -> None:
        raw = table([row(), row(state_hash=None, status="error", energy=None)])
        values = pa.array([bytes.fromhex("ab" * 32), None], pa.binary(32))
        metadata = {"ledger.digest": "sha256"}
        given = with_column(
            raw,
            "state_hash",
            values.dictionary_encode() if coded else values,
            metadata if where == "field" else None,
        )
        given = given.replace_schema_metadata(metadata if where == "file" else None)
        result = canonicalise([source(given)], BOOK)
        assert result.table["state_hash"].to_pylist() == [pack("sha256:" + "ab" * 32), None]

    def test_binary_digests_without_an_algorithm_are_refused(self) -> None:
        bare = with_column(table([row()]), "state_hash", pa.array([b"x" * 32], pa.binary(32)))
        (finding,) = canonicalise([source(bare)], BOOK).findings.examples
        assert (finding.code, finding.column) == ("wrong-type", "state_hash")
        assert finding.got == "fixed_size_binary[32]"

    def test_packed_digests_of_an_unknown_algorithm_are_refused(self) -> None:
        values = pa.array([pack(DIGEST), b"\x13" + b"x" * 32], pa.binary(33))
        given = with_column(table([row(), row()]), "state_hash", values)
        findings = canonicalise([source(given)], BOOK).findings
        assert findings.by_code == {"bad-digest": 1}
        assert findings.examples[0].rows == (2,)

    def test_files_may_spell_digests_in_different_ways(self) -> None:
        packed = with_column(table([row()]), "state_hash", pa.array([pack(DIGEST)], pa.binary(33)))
        result = canonicalise([source(table([row()])), source(packed)], BOOK)
        (column,) = result.table["state_hash"].chunks
        assert column.indices.to_pylist() == [0, 0]


class TestTypes:
    @pytest.mark.parametrize(
        ("column", "kind"),
        [
            ("energy", pa.string()), ("energy", pa.decimal128(10, 4)), ("energy", pa.int64()),
            ("energy", pa.float16()), ("step", pa.float64()), ("step", pa.string()), ("layout", pa.bool_()),
            ("trajectory_id", pa.int64()), ("trajectory_id", pa.binary()), ("success", pa.int8()),
            ("success", pa.string()), ("channel", pa.int32()), ("state_hash", pa.binary()),
            ("label_mass", pa.string()), ("target", pa.list_(pa.string())), ("request", pa.int64()),
        ],
    )  # fmt: skip
    def test_a_wrong_type_is_a_finding_of_the_file(self, column: str, kind: pa.DataType) -> None:
        raw = with_column(table([row(), row()]), column, pa.nulls(2, kind))
        result = canonicalise([SourceTable("a", DIGEST, raw)], BOOK)
        (finding,) = result.findings.examples
        assert (finding.code, finding.level, finding.column) == ("wrong-type", "file", column)
        assert finding.got == ("text" if pa.types.is_string(kind) else str(kind))
        assert finding.wanted
        assert result.findings.rejects().num_rows == 1

    @pytest.mark.parametrize("column", ["trajectory_id", "step", "endpoint", "candidate", "energy", "target"])
    def test_a_missing_column_is_told_once(self, column: str) -> None:
        result = judged(row(**{column: ...}), row(**{column: ...}))
        assert result.findings.by_code == {"missing-column": 1}
        assert result.findings.examples[0].column == column

    def test_defaults_fill_absent_columns_only(self) -> None:
        bare = source(table([row(channel=..., acquisition_id=...)]))
        assert canonicalise([bare], BOOK).findings.by_code == {"missing-column": 2}
        given = source(table([row(channel="generated", acquisition_id="x", view_hash=DIGEST)]))
        result = canonicalise([bare, given], BOOK, default_channel="direct", default_acquisition="run-9")
        assert result.table["acquisition_id"].to_pylist() == ["run-9", "x"]
        fingerprints = [unpack(value) for value in result.table["channel"].to_pylist()]
        assert fingerprints == [DIRECT.fingerprint, GENERATED.fingerprint]
        null = source(table([row(channel=None)]))
        assert canonicalise([null], BOOK, default_channel="direct").findings.by_code == {"null": 1}

    @pytest.mark.parametrize(
        "kind", [pa.int8(), pa.uint8(), pa.int16(), pa.uint32(), pa.int64(), pa.uint64()]
    )
    def test_integers_of_any_width(self, kind: pa.DataType) -> None:
        raw = table([row(step=7, position=3)])
        for column in ("step", "layout", "position"):
            raw = with_column(raw, column, raw[column].cast(kind))
        result = canonicalise([source(raw)], BOOK)
        assert [result.table[c].to_pylist() for c in ("step", "layout", "position")] == [[7], [0], [3]]

    def test_an_unsigned_integer_beyond_int64_is_out_of_range(self) -> None:
        raw = with_column(table([row()]), "step", pa.array([2**64 - 1], pa.uint64()))
        assert canonicalise([source(raw)], BOOK).findings.by_code == {"step-range": 1}

    def test_single_precision_only_where_the_channel_reads_in_it(self) -> None:
        raw = table([row(channel="single"), row(), row(channel="single", energy=0.1)])
        raw = with_column(raw, "energy", raw["energy"].cast(pa.float32()))
        result = canonicalise([source(raw)], BOOK)
        assert result.findings.by_code == {"float32-energy": 1}
        assert result.findings.examples[0].rows == (2,)
        (_, _, third) = canonicalise([source(raw.take([0, 0, 2]))], BOOK).table["energy"].to_pylist()
        assert third == float(np.float32(0.1))

    def test_columns_of_no_type_are_absent(self) -> None:
        raw = table([row()]).append_column("success", pa.nulls(1)).append_column("state", pa.nulls(1))
        assert canonicalise([source(raw)], BOOK).findings.total == 0

    def test_a_value_the_reader_could_not_read_is_told_once(self) -> None:
        unread = Unread("energy", "not-a-number", np.array([1]), pa.array(["abc"]))
        file = SourceTable("a.csv", DIGEST, table([row(), row(energy=None)]), unread=(unread,))
        (finding,) = canonicalise([file], BOOK).findings.examples
        assert (finding.code, finding.rows, finding.got) == ("not-a-number", (2,), "abc")

    def test_row_numbers_are_those_of_the_file(self) -> None:
        file = SourceTable("a.jsonl", DIGEST, table([row(), row(step=-1)]), row_numbers=np.array([1, 4]))
        assert canonicalise([file], BOOK).findings.examples[0].rows == (4,)


# Ways to lay out the same text column.
def _chunked(values: list[str | None]) -> pa.ChunkedArray:
    """Dictionaries that differ between chunks, name a label twice, hold null and labels nobody uses."""
    chunks = []
    for start in range(0, len(values), 2):
        part = values[start : start + 2]
        labels = [*part, "unused \u200b", None, *part]
        indices = pa.array([len(part) + 2 + i if i else 0 for i in range(len(part))], pa.int8())
        chunks.append(pa.DictionaryArray.from_arrays(indices, pa.array(labels, pa.string())))
    return pa.chunked_array(chunks, pa.dictionary(pa.int8(), pa.string()))


LAYOUTS = {
    "large": lambda values: pa.chunked_array([pa.array(values, pa.large_string())]),
    "view": lambda values: pa.chunked_array([pa.array(values, pa.string_view())]),
    "dictionary": lambda values: pa.chunked_array([pa.array(values, pa.string()).dictionary_encode()]),
    "large dictionary": lambda values: pa.chunked_array(
        [pa.array(values, pa.large_string()).dictionary_encode()]
    ),
    "unsigned": lambda values: pa.chunked_array(
        [pa.array(values, pa.string()).dictionary_encode().cast(pa.dictionary(pa.uint64(), pa.string()))]
    ),
    "sliced": lambda values: pa.chunked_array([pa.array(["x", *values, "y"], pa.string())[1:-1]]),
    "odd chunks": _chunked,
    "one by one": lambda values: pa.chunked_array([pa.array([v], pa.string()) for v in values], pa.string()),
    "enum": lambda values: pa.chunked_array(
        [pl.Series(values, dtype=pl.Enum([*sorted({v for v in values if v}), "never"])).to_arrow()]
    ),
    "categorical": lambda values: pa.chunked_array([pl.Series(values, dtype=pl.Categorical).to_arrow()]),
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
@settings(max_examples=6)
@given(st.data())
def test_text_is_read_alike_however_it_is_laid_out(layout: str, data: st.DataObject) -> None:
    names = st.sampled_from(["t1", "t2", "é", "Z", "\U0001f600", "a b"])
    rows = [
        row(
            trajectory_id=data.draw(names), candidate=data.draw(names), step_kind=data.draw(st.none() | names)
        )
        for _ in range(data.draw(st.integers(1, 7)))
    ]
    plain = table(rows)
    columns = {
        name: LAYOUTS[layout](column.to_pylist()) if column.type == pa.string() else column
        for name, column in zip(plain.column_names, plain.columns, strict=True)
    }
    expected = canonicalise([source(plain)], BOOK)
    result = canonicalise([source(pa.table(columns))], BOOK)
    assert result.findings.total == expected.findings.total == 0
    assert result.table.to_pylist() == expected.table.to_pylist()
    for name in ("trajectory_id", "candidate", "step_kind"):
        (column,) = result.table[name].chunks
        labels = [value.encode() for value in column.dictionary.to_pylist()]
        assert labels == sorted(set(labels))
        assert set(column.indices.drop_null().to_pylist()) == set(range(len(labels)))


def test_an_unknown_label_is_named_and_an_unused_one_is_not() -> None:
    values = pa.DictionaryArray.from_arrays(
        pa.array([0, 2], pa.int8()), pa.array(["before", "nowhere", "during"])
    )
    raw = with_column(table([row(), row()]), "endpoint", values)
    (finding,) = canonicalise([source(raw)], BOOK).findings.examples
    assert (finding.code, finding.got, finding.rows) == ("endpoint-unknown", "during", (2,))


def test_labels_of_no_rows() -> None:
    assert len(text_labels([0]).codes) == 0
    assert canonicalise([], BOOK).table.num_rows == 0


def test_ignored_columns_are_named_once() -> None:
    files = [SourceTable(name, DIGEST, table([row()]), ignored=("note", "arm")) for name in "ab"]
    assert canonicalise(files, BOOK).ignored == ("note", "arm")


SWITCHED_OFF = """
from tests.contracts.score_book import judged, row
import pandera.config
assert not pandera.config.CONFIG.validation_enabled
print(judged(row(energy=float("nan"), step=-1, candidate=" ")).findings.by_code)
"""


def test_no_environment_variable_switches_the_contract_off(tmp_path: Path) -> None:
    script = tmp_path / "switched_off.py"  # a file, since pyspark takes a program without one for doctests
    script.write_text(SWITCHED_OFF)
    env = {
        "PANDERA_VALIDATION_ENABLED": "False",
        "PANDERA_VALIDATION_DEPTH": "SCHEMA_ONLY",
        "PANDERA_USE_NARWHALS_BACKEND": "True",
    }
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, **env, "PYTHONPATH": str(Path(__file__).parents[2])},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "{'outer-space': 1, 'step-range': 1, 'nan': 1}"


def test_many_failing_rows_are_counted_exactly_and_kept_in_bounds() -> None:
    count = 100_000
    rows = table([row()]).take(pa.array(np.zeros(count, np.int64)))
    changed = {
        "energy": pa.array(np.full(count, np.nan)),
        "layout": pa.array(np.arange(count) % 3),
        "candidate": pa.array([f"c{i} " for i in range(count)]),
        "channel": pa.array([f"c{i}" for i in range(count)]),
    }
    for name, values in changed.items():
        rows = with_column(rows, name, values)
    start = time.perf_counter()
    findings = canonicalise([source(rows)], BOOK).findings
    assert time.perf_counter() - start < 20, "a million failing rows would take minutes"
    assert findings.by_code == {"outer-space": count, "unknown-channel": count, "nan": count}
    assert len(findings.examples) == 3 * findings.limit
    assert findings.rejects().num_rows == 3 * count


def _book(folder: Path) -> ChannelBook:
    specs = [load_spec(path) for path in sorted(folder.glob("*.toml"))]
    return ChannelBook(tuple(Channel(name, 1, spec, fingerprint(spec)) for name, spec in specs))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name",
    [
        "cohort/bridge",
        "cohort/controls",
        "cohort/cube",
        "cohort/retrieval_face",
        "cohort/scores",
        "real/mtbench/mtbench_scores",
        "real/smollm2/scores",
    ],
)
def test_real_and_synthetic_scores_are_canonical(name: str) -> None:
    path = SHARED / f"{name}.parquet"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    raw = pq.read_table(path)
    result = canonicalise([source(raw)], _book(path.parent / "channels"))
    assert result.findings.total == 0
    assert result.table.num_rows == raw.num_rows
    assert result.table["energy"].to_pylist() == raw["energy"].to_pylist()
    assert result.table["candidate"].to_pylist() == raw["candidate"].to_pylist()
    assert result.missing_digests == {}


def test_a_layout_written_as_a_float_is_told_with_its_value_and_how_to_write_it(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(template("transport").replace(",direct,0,", ",direct,0.0,", 1))
    (finding,) = canonicalise(read_sources([path]), BOOK).findings.examples[:1]
    assert "layout 0.0" in finding.message
    assert "astype(int)" in finding.message


def test_a_misspelt_column_is_guessed(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(template("transport").replace("candidate,", "candidat,", 1))
    (finding,) = canonicalise(read_sources([path]), BOOK).findings.examples[:1]
    assert (
        "required column candidate is missing; expected text; did you mean it by candidat?" in finding.message
    )


def test_an_integer_column_of_floats_is_told_how_to_be_written() -> None:
    raw = pa.table({"layout": pa.array([0.0])})
    found = canonicalise([SourceTable("a", "blake3:" + "ab" * 32, raw)], BOOK).findings.examples
    (finding,) = [finding for finding in found if finding.code == "wrong-type"]
    assert finding.message.endswith("(in pandas, astype(int))")
