"""Proofs of one entry: a C2SP tlog-proof that leads from a signed head to a row's values."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.canonical import canonical
from contracts.errors import MalformedError, UnknownKeyError, VerificationError
from contracts.schema import SCHEMAS, TRANSPORT
from ledger import entry_proof, tree
from ledger.identify import EntryFound, identify
from ledger.keys import PublicKey, SigningKey
from ledger.page_values import page_row
from ledger.pages import page_bytes
from ledger.reading import reading
from ledger.show import read_entry
from ledger.tlog_proof import TlogProof
from ledger.vkey import VerifierKey
from tests.audits.cohorts import new_ledger, noisy, rows

HASHES = st.binary(min_size=32, max_size=32)


@dataclass(frozen=True)
class Made:
    data: bytes
    values: dict[str, object]
    id: str
    public: PublicKey
    origin: str


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("proof")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        ledger = new_ledger(folder)
        ledger.ingest(rows(noisy(25, 2)))
        with reading(ledger.home) as opened:
            (segment,) = opened.index.segments()
            found = EntryFound(segment, segment.rows - 1)  # in the last page, which is not full
            assert segment.rows % 256
            entry = read_entry(opened, found)
            assert isinstance(identify(opened.index, entry.id, opened.size), EntryFound)
            data = entry_proof.prove(opened, found)
        yield Made(data, dict(entry.values), entry.id, ledger.key.public, ledger.home.origin)


def test_the_proof_gives_the_values_the_ledger_has(made: Made) -> None:
    found = entry_proof.check(made.data, made.public)
    assert (found.id, dict(found.values)) == (made.id, made.values)
    assert found.head.origin == made.origin


def test_another_key_is_told_apart_from_none(
    made: Made, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(UnknownKeyError):
        entry_proof.check(made.data, SigningKey.generate().public)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))
    with pytest.raises(VerificationError) as caught:
        entry_proof.check(made.data, None)
    assert caught.value.code == "no-pin"


def test_no_changed_byte_leads_to_an_entry(made: Made) -> None:
    step = len(made.data) // 400
    for at in range(0, len(made.data), step):
        changed = bytes([*made.data[:at], made.data[at] ^ 4, *made.data[at + 1 :]])
        with pytest.raises(VerificationError):
            entry_proof.check(changed, made.public)


def test_a_row_beside_or_a_page_of_another_place_is_refused(made: Made) -> None:
    proof = TlogProof.parse(made.data)
    extra = json.loads(proof.extra or b"")

    def changed(**parts: object) -> bytes:
        return replace(proof, extra=canonical({**extra, **parts})).to_bytes()

    assert entry_proof.check(changed(row=extra["row"] - 1), made.public).id != made.id
    for parts, match in (
        ({"row": 10_000_000}, "no such row"),
        ({"row": 0}, "not the one in the segment"),
        ({"path": extra["path"][:-1]}, "not the one in the segment"),
        ({"page": base64.b64encode(b"x").decode()}, "not the one in the segment"),
        ({"v": 2}, "another version"),
        ({"more": 1}, "unknown key"),
        ({"path": [1]}, "not a hash"),
    ):
        with pytest.raises(VerificationError, match=match):
            entry_proof.check(changed(**parts), made.public)
    with pytest.raises(MalformedError, match="of an event only"):
        entry_proof.check(replace(proof, extra=None).to_bytes(), made.public)


@given(
    index=st.integers(0, 2**62),
    path=st.lists(HASHES, max_size=63),
    extra=st.none() | st.binary(min_size=1, max_size=50),
)
def test_a_tlog_proof_reads_back_as_it_was_written(
    index: int, path: list[bytes], extra: bytes | None
) -> None:
    proof = TlogProof(index, tuple(path), b"origin\n1\nAAAA\n\n\xe2\x80\x94 a b\n", extra)
    assert TlogProof.parse(proof.to_bytes()) == proof
    assert TlogProof.parse(proof.to_bytes()).to_bytes() == proof.to_bytes()


@given(st.binary(max_size=200))
def test_any_other_bytes_are_no_tlog_proof(data: bytes) -> None:
    for tried in (data, b"c2sp.org/tlog-proof@v1\n" + data):
        try:
            parsed = TlogProof.parse(tried)
        except MalformedError:
            continue
        assert parsed.to_bytes() == tried


def test_every_schema_reads_its_pages_back() -> None:
    import pyarrow as pa

    for schema in SCHEMAS.values():
        samples = {
            "text": ["ä", "", "long text"], "int16": [-3, 0, 9], "int32": [1, 2, -(2**31)],
            "bool": [True, False, True],
            "float64": [0.5, -0.0, 1e300], "digest": [b"\x12" + bytes([i]) * 32 for i in range(3)],
        }  # fmt: skip
        table = pa.table(
            [
                pa.array(
                    [None if c.nullable and i == 1 else v for i, v in enumerate(samples[c.type])], f.type
                )
                for c, f in zip(schema.columns, schema.arrow, strict=True)
            ],
            schema=schema.arrow,
        )
        page = page_bytes(table, 0, schema)
        for row in range(3):
            found = page_row(page, 3, row, schema)
            wanted = {n: v for n, v in table.slice(row, 1).to_pylist()[0].items() if v is not None}
            shown = {n: v for n, v in found.items() if not str(v).startswith("sha256:")}
            assert shown == {n: v for n, v in wanted.items() if not isinstance(v, bytes)}
            assert set(found) == set(wanted)
        with pytest.raises(MalformedError):
            page_row(page + b"x", 3, 0, schema)
        with pytest.raises(MalformedError):
            page_row(page[:-1], 3, 2, schema)
    assert tree.HASH == 32
    assert TRANSPORT in SCHEMAS.values()


def test_proofbundle_accepts_it_and_refuses_a_tampered_one(made: Made, tmp_path: Path) -> None:
    program = shutil.which("proofbundle")
    if program is None:
        pytest.skip("proofbundle is not installed")
    proof = TlogProof.parse(made.data)
    event = base64.b64decode(json.loads(proof.extra or b"")["event"])
    vkey = str(VerifierKey(made.origin, made.public.raw))
    (tmp_path / "entry.tlog-proof").write_bytes(made.data)
    for payload, code in ((event, 0), (event[:-1] + b" ", 1)):
        (tmp_path / "event").write_bytes(payload)
        done = subprocess.run(
            [program, "verify-proof", str(tmp_path / "entry.tlog-proof"), "--payload-file",
             str(tmp_path / "event"), "--log-vkey", vkey],
            capture_output=True, check=False,
        )  # fmt: skip
        assert bool(done.returncode) == bool(code), done.stdout
