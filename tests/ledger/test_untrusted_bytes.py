"""Every reader of bytes that somebody else may have written: what is valid comes back, the rest does no harm.

A reader either refuses with an error of ours or gives a value. Where a format has one spelling for a value,
what was read is written again as the same bytes.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audits.recompute import recompute
from contracts.canonical import canonical, parse, parse_canonical
from contracts.digest import blake3_digest
from contracts.errors import LedgerError, MalformedError
from ledger import (
    attestations,
    bundle_verify,
    bundle_write,
    entry_proof,
    envelope,
    events,
    notes,
    pin,
    policy_file,
    refusals,
    statement,
    weights,
)
from ledger import home as homes
from ledger.bundle import MANIFEST, Manifest
from ledger.cosignature import cosigned
from ledger.entry_id import parse as parse_entry
from ledger.foreign_head import claimed
from ledger.identify import EntryFound, identify
from ledger.index import Index
from ledger.keys import PublicKey, SigningKey
from ledger.notes import TreeHead
from ledger.reading import reading
from ledger.seal import Seal
from ledger.segment_reader import SegmentReader
from ledger.tiles import Tile, bundle_bytes, parse_bundle, parse_tile
from ledger.tlog_proof import TlogProof
from ledger.vkey import COSIGNATURE, parse_vkey
from tests.ledger.studies import Study, make

MANY = settings(max_examples=30, suppress_health_check=list(HealthCheck))
MORE = settings(max_examples=300, suppress_health_check=list(HealthCheck))
Read = Callable[[bytes], object]


@dataclass(frozen=True)
class Format:
    """How bytes are read, what is written of a value where the format has one spelling, valid examples."""

    read: Read
    examples: tuple[bytes, ...]
    write: Callable[..., bytes] | None = None


@cache
def study() -> Study:
    folder = Path(tempfile.mkdtemp(prefix="ledger-untrusted-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    before = os.environ.get("XDG_CONFIG_HOME", "")
    os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
    try:
        made = make(folder)
        with reading(made.place.home) as opened:
            entry = identify(opened.index, opened.index.segments()[0].root[7:] + ":0", opened.size)
            assert isinstance(entry, EntryFound)
            (folder / "entry.tlog-proof").write_bytes(entry_proof.prove(opened, entry))
            bundle_write.write(opened, made.ids["planned"], folder / "audit.bundle", recompute)
    finally:
        os.environ["XDG_CONFIG_HOME"] = before
    return made


def stored(pattern: str) -> tuple[bytes, ...]:
    return tuple(path.read_bytes() for path in sorted(study().place.home.path.glob(pattern)))


def beside(name: str) -> bytes:
    return (study().folder / name).read_bytes()


def as_text(data: bytes) -> str:
    """Text as its callers hand it on, who decode it first."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise MalformedError("not utf-8") from error


def in_a_file(read: Callable[[Path], object], suffix: str = "") -> Read:
    def written(data: bytes) -> object:
        with tempfile.NamedTemporaryFile(suffix=suffix) as file:
            file.write(data)
            file.flush()
            return read(Path(file.name))

    return written


def vkeys() -> tuple[str, ...]:
    with Index.open(study().place.home) as index:
        found = [events.decode(row.data) for row in index.events()]
    return tuple(str(event.vkey) for event in found if hasattr(event, "vkey"))


def note(data: bytes) -> object:
    return notes.verify(data, [vkeys()[0]])


def witnessed(data: bytes) -> object:
    (desk,) = (key for key in policy_keys() if key.startswith("desk+"))
    return cosigned(notes.verify(data, [vkeys()[0]]), [parse_vkey(desk, COSIGNATURE)])


def policy_keys() -> list[str]:
    with Index.open(study().place.home) as index:
        found = [events.decode(row.data) for row in index.events() if row.type == "policy"]
    return [key for event in found for role in getattr(event, "roles", ()) for key in role.keys]


def pinned(data: bytes) -> object:
    pin.config_file("test-log", ".pin").parent.mkdir(parents=True, exist_ok=True)
    pin.config_file("test-log", ".pin").write_bytes(data)
    return pin.load("test-log")


def own_pin() -> bytes:
    return (study().place.config / "ledger" / "test-log.pin").read_bytes()


def settings_file(data: bytes) -> object:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "ledger.toml").write_bytes(data)
        return homes.read(Path(folder))


def segment(name: str) -> Read:
    """A segment one of whose three files holds these bytes; read in ranges, where pages are checked."""

    def read(data: bytes) -> object:
        place = study().place
        with Index.open(place.home) as index:
            row = index.segments()[0]
        stem = {"parquet": row.file, "leaves": row.leaves, "rows": row.rows_file}[name]
        with tempfile.TemporaryDirectory() as folder:
            segments = Path(folder) / "objects" / "segments"
            shutil.copytree(place.home.path / "objects" / "segments", segments)
            (segments / f"{stem[7:]}.{name}").write_bytes(data)
            if name == "rows":  # their digest is right, so that the decoder is reached
                row = replace(row, rows_file=blake3_digest(data))
                (segments / f"{row.rows_file[7:]}.rows").write_bytes(data)
            objects = replace(place.home, path=Path(folder)).objects
            with SegmentReader.ranged(objects, row) as reader:
                table = reader.read(0, row.rows)
                return table, reader.source_rows()

    return read


def segment_files(name: str) -> tuple[bytes, ...]:
    with Index.open(study().place.home) as index:
        row = index.segments()[0]
    stem = {"parquet": row.file, "leaves": row.leaves, "rows": row.rows_file}[name]
    return stored(f"objects/segments/{stem[7:]}.{name}")


def checked_bundle(path: Path) -> object:
    return bundle_verify.verify(path, study().place.key.public, lambda *_: None)


@cache
def formats() -> dict[str, Format]:
    envelopes = (*stored("objects/records/*"), *stored("objects/attestations/*"))
    heads = (*stored("objects/log/heads/*"), *stored("objects/log/checkpoint"))
    tile, entries = stored("objects/log/tile/0/*/21")[0], stored("objects/log/tile/entries/*/21")[0]
    log = tuple(parse_bundle(entries, Tile(None, 0, 21)))
    payloads = tuple(envelope.parse(data).payload for data in envelopes)
    sides = stored("objects/refusals/*.json")
    (desk,) = (key for key in policy_keys() if key.startswith("desk+"))
    policy = f'[witness]\nkeys = ["{desk}"]\nthreshold = 1\n'.encode()
    return {
        "json": Format(parse, payloads),
        "canonical json": Format(parse_canonical, payloads, canonical),
        "event": Format(events.decode, log, events.encode),
        "note": Format(note, heads),
        "tree head": Format(
            lambda data: TreeHead.parse(as_text(data)),
            tuple(data.partition(b"\n\n")[0] + b"\n" for data in heads),
            lambda head: str(head).encode(),
        ),
        "claimed head": Format(claimed, heads),
        "cosigned note": Format(witnessed, stored("objects/log/witnessed/*")),
        "verifier key": Format(
            lambda data: parse_vkey(as_text(data)),
            tuple(key.encode() for key in vkeys()),
            lambda key: str(key).encode(),
        ),
        "envelope": Format(envelope.parse, envelopes),
        "statement": Format(statement.parse, payloads),
        "attestation": Format(attestations.receive, stored("objects/attestations/*")),
        "tile": Format(lambda data: parse_tile(data, Tile(0, 0, 21)), (tile,), b"".join),
        "entry bundle": Format(lambda data: parse_bundle(data, Tile(None, 0, 21)), (entries,), bundle_bytes),
        "tile path": Format(
            lambda data: Tile.parse(as_text(data)),
            (b"tile/0/x001/067", b"tile/entries/000.p/21"),
            lambda found: found.path.encode(),
        ),
        "tlog-proof": Format(TlogProof.parse, (beside("entry.tlog-proof"),), TlogProof.to_bytes),
        "entry proof": Format(
            lambda data: entry_proof.check(data, study().place.key.public), (beside("entry.tlog-proof"),)
        ),
        "refused sides": Format(lambda data: refusals.decode_index(data, 8), sides),
        "seal": Format(Seal.parse, stored("catalog.seal"), Seal.to_bytes),
        "pin": Format(pinned, (own_pin(),)),
        "settings": Format(settings_file, stored("ledger.toml")),
        "entry id": Format(lambda data: parse_entry(as_text(data)), (b"0123456789abcdef:7",)),
        "public key": Format(PublicKey.from_pem, (SigningKey(b"1" * 32).public.to_pem(),)),
        "policy": Format(in_a_file(policy_file.load), (policy,)),
        "weights": Format(in_a_file(weights.read), (beside("m.safetensors"), b"GGUF\x03\0\0\0" + bytes(16))),
        "bundle manifest": Format(Manifest.parse, (manifest(),)),
        "bundle": Format(in_a_file(checked_bundle), (beside("audit.bundle"),)),
        "segment": Format(segment("parquet"), segment_files("parquet")),
        "segment leaves": Format(segment("leaves"), segment_files("leaves")),
        "segment rows": Format(segment("rows"), segment_files("rows")),
    }


def manifest() -> bytes:
    with zipfile.ZipFile(study().folder / "audit.bundle") as archive:
        return archive.read(MANIFEST)


NAMES = (
    "json", "canonical json", "event", "note", "tree head", "claimed head", "cosigned note", "verifier key",
    "envelope", "statement", "attestation", "tile", "entry bundle", "tile path", "tlog-proof", "entry proof",
    "refused sides", "seal", "pin", "settings", "entry id", "public key", "policy", "weights",
    "bundle manifest", "bundle", "segment", "segment leaves", "segment rows",
)  # fmt: skip
TOKENS = (
    b"", b"\n", b"\0", b'"', b"{", b"}", b"[", b",", b":", b"9" * 40, b"-1", b"1e999", b"NaN", b"null",
    b"\xff",
    b"\xed\xa0\x80", b"\\ud800", b"\\u0000", b"[" * 200, b"=", b"+", b"/", b" ", b"\xe2\x80\x94", b"true",
)  # fmt: skip


@st.composite
def damaged(draw: st.DrawFn, examples: tuple[bytes, ...]) -> bytes:
    """A valid example with one to three wounds: bits flipped, parts lost, doubled or replaced."""
    data = draw(st.sampled_from(examples))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(data)))
        stop = min(len(data), start + draw(st.sampled_from((0, 1, 2, 8, 64, 1000))))
        kind = draw(st.sampled_from(("flip", "put", "double", "cut", "bytes")))
        if kind == "flip" and start < len(data):
            data = data[:start] + bytes([data[start] ^ 1 << draw(st.integers(0, 7))]) + data[start + 1 :]
        elif kind == "put":
            data = data[:start] + draw(st.sampled_from(TOKENS)) + data[stop:]
        elif kind == "double":
            data = data[:stop] + data[start:stop] + data[stop:]
        elif kind == "cut":
            data = data[:start]
        else:
            data = data[:start] + draw(st.binary(max_size=12)) + data[stop:]
    return data


def harmless(found: Format, data: bytes) -> None:
    """Read, or refused by an error of ours; what was read of a canonical format is written as it came."""
    try:
        value = found.read(data)
    except LedgerError:
        return
    if found.write is not None:
        assert found.write(value) == data


def test_every_format_is_tried() -> None:
    assert tuple(formats()) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_what_is_valid_is_read_and_comes_back(name: str) -> None:
    found = formats()[name]
    assert found.examples
    for data in found.examples:
        value = found.read(data)
        assert found.write is None or found.write(value) == data


@pytest.mark.parametrize("name", NAMES)
def test_arbitrary_bytes_are_refused_by_our_errors_only(name: str) -> None:
    found = formats()[name]

    @MANY
    @given(st.binary(max_size=200))
    def check(data: bytes) -> None:
        harmless(found, data)

    check()


@pytest.mark.parametrize("name", NAMES)
def test_damaged_bytes_are_refused_by_our_errors_only(name: str) -> None:
    found = formats()[name]

    @MANY
    @given(damaged(found.examples))
    def check(data: bytes) -> None:
        harmless(found, data)

    check()


@pytest.mark.sweep
@pytest.mark.parametrize("name", NAMES)
def test_much_more_damage_is_refused_by_our_errors_only(name: str) -> None:
    found = formats()[name]

    @MORE
    @given(damaged(found.examples))
    def check(data: bytes) -> None:
        harmless(found, data)

    check()
