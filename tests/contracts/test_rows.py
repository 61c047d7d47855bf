"""The row level: every rule by its code, and bounded work on hostile input."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.channel import Channel, ChannelBook, fingerprint
from contracts.channel_file import load_spec
from contracts.digest import pack, unpack
from contracts.rows import IN_FLIGHT, canonicalise
from tests.contracts.score_book import BOOK, DIGEST, DIRECT, channel, judged, row, source, table, with_column

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
