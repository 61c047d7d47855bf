"""Bundles: one file that a stranger checks with a public key, and that no change survives."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from audits.recompute import recompute
from audits.record import statement
from audits.transport import transport
from contracts.canonical import canonical
from contracts.digest import blake3_digest
from contracts.errors import (
    LedgerError,
    MalformedError,
    TamperError,
    UnknownKeyError,
    UsageError,
    VerificationError,
)
from ledger import bundle_write, log, notes, pin
from ledger.bundle_verify import Checked, verify
from ledger.event_types import RevocationEvent
from ledger.keys import PublicKey, SigningKey
from ledger.notes import TreeHead
from ledger.object_names import list_name
from ledger.reading import reading
from ledger.records import log_record
from ledger.snapshot import Snapshot
from ledger.statement import Statement
from ledger.vkey import VerifierKey
from tests.audits.cohorts import new_ledger, noisy, rows

Members = dict[str, bytes]


@dataclass(frozen=True)
class Made:
    """A bundle of the only audit of a ledger whose inputs were revoked afterwards, and who signed it."""

    path: Path
    key: SigningKey
    written: bundle_write.Written

    @property
    def public(self) -> PublicKey:
        return self.key.public

    def members(self) -> Members:
        with zipfile.ZipFile(self.path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    folder = tmp_path_factory.mktemp("bundle")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        ledger = new_ledger(folder)
        whole = rows(noisy(12, 2))
        ledger.ingest(
            [row for row in whole if (row["trajectory_id"], row["step"], row["layout"]) != ("t001", 1, 1)]
        )
        audit = transport(ledger.snapshot(), "direct", "generated", resamples=200).audit
        logged = log_record(
            ledger.home, ledger.key, statement(audit, versions={}, time="2026-01-01T00:00:00Z")
        )
        revocation = RevocationEvent("acquisition", "main-1", "the server was swapped")
        log.commit(ledger.home, ledger.key, lambda _: [revocation])
        path = folder / "audit.bundle"
        with reading(ledger.home) as opened:
            written = bundle_write.write(opened, logged.record, path, recompute)
        yield Made(path, ledger.key, written)


@pytest.fixture(autouse=True)
def _elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Another machine: no pin and no key."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nobody"))


def stated(_: Snapshot, found: Statement) -> bytes:
    """What a recomputation gives that agrees with the record."""
    return canonical(found.predicate["result"])


def check(path: Path, key: PublicKey | None, compute: bundle_write.Recompute = stated) -> Checked:
    return verify(path, key, compute)


def rewritten(made: Made, path: Path, change: Callable[[Members], object]) -> Path:
    """The bundle with other members, as a well-formed zip."""
    members = made.members()
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def test_a_public_key_alone_leads_to_the_numbers(made: Made) -> None:
    found = check(made.path, made.public, recompute)
    assert found.recomputed
    assert (found.record, found.event) == (made.written.record, made.written.event)
    assert (found.segments, found.proofs, found.unread) == (1, made.written.proofs, ())
    assert found.head.size == found.event + 2
    assert found.result["flow"]["complete"] == 23
    (revoked,) = found.revoked_since
    assert (revoked.target_id, revoked.reason) == ("main-1", "the server was swapped")


def test_it_holds_proofs_of_the_events_an_audit_rests_on_and_no_file_more(made: Made) -> None:
    members = made.members()
    proofs = {name for name in members if name.startswith("proofs/")}
    assert f"proofs/{made.written.event}.tlog-proof" in proofs
    assert made.written.proofs == len(proofs) == 5  # two channels, segment, refusal, audit
    folders = sorted({name.split("/")[1] for name in members if name.startswith("objects/")})
    assert folders == ["log", "records", "refusals", "segments"]
    assert [name for name in members if name.endswith((".rows", ".leaves"))] == []


def test_the_same_audit_at_the_same_head_gives_the_same_bytes(tmp_path: Path) -> None:
    ledger = new_ledger(tmp_path)
    ledger.ingest(rows(noisy(12, 1)))
    audit = transport(ledger.snapshot(), "direct", "generated", resamples=200).audit
    logged = log_record(ledger.home, ledger.key, statement(audit, versions={}, time="2026-01-01T00:00:00Z"))
    with reading(ledger.home) as opened:
        for name in ("one", "two"):
            bundle_write.write(opened, str(logged.event), tmp_path / name, stated)
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
        with pytest.raises(UsageError, match="not an audit"):
            bundle_write.write(opened, "0", tmp_path / "three", stated)
        with pytest.raises(UsageError, match="cannot compute"):
            bundle_write.write(opened, logged.record, tmp_path / "three", lambda *_: None)
        with pytest.raises(TamperError, match="another result"):
            bundle_write.write(opened, logged.record, tmp_path / "three", lambda *_: b"{}")
    assert sorted(path.name for path in tmp_path.glob("t*")) == ["two"]


def test_nothing_vouches_without_a_key_or_a_pin(made: Made) -> None:
    with pytest.raises(VerificationError) as caught:
        check(made.path, None)
    assert caught.value.code == "no-pin"
    assert verify(made.path, None, stated, trust_first=True).recomputed
    with pytest.raises(UnknownKeyError):
        check(made.path, SigningKey.generate().public)


def test_the_pin_of_the_log_is_as_good_as_a_key_and_tells_two_logs_apart(made: Made) -> None:
    found = check(made.path, made.public)
    vkey = VerifierKey(found.head.origin, made.public.raw)
    note = made.members()["objects/log/checkpoint"]
    pin.store(pin.Pin(found.head.origin, str(vkey), note))
    assert check(made.path, None).head == found.head
    other = notes.sign_head(TreeHead(found.head.origin, 3, b"1" * 32), made.key)
    pin.store(pin.Pin(found.head.origin, str(vkey), other))
    for key in (None, made.public):
        with pytest.raises(TamperError, match="not those that were trusted"):
            check(made.path, key)


def test_a_byte_changed_in_any_member_is_found(made: Made, tmp_path: Path) -> None:
    for name, data in made.members().items():
        for at in sorted({0, len(data) // 2, len(data) - 1}):
            changed = bytes([*data[:at], data[at] ^ 1, *data[at + 1 :]])
            path = rewritten(made, tmp_path / "changed", lambda m, n=name, d=changed: m.update({n: d}))
            with pytest.raises(LedgerError) as caught:
                check(path, made.public)
            assert caught.value.exit_code == 4, (name, at, caught.value)


def test_a_damaged_member_is_named_with_what_to_do(made: Made, tmp_path: Path) -> None:
    with zipfile.ZipFile(made.path) as archive:
        infos = [info for info in archive.infolist() if info.file_size > 8]
    for info in infos:
        data = bytearray(made.path.read_bytes())
        data[info.header_offset + 30 + len(info.filename) + info.file_size // 2] ^= 1
        damaged = tmp_path / "damaged.bundle"
        damaged.write_bytes(data)
        with pytest.raises(VerificationError) as caught:
            check(damaged, made.public)
        assert info.filename in (caught.value.where or "")
        assert caught.value.next_step == "ask for the bundle again"


def test_a_member_left_out_is_named(made: Made, tmp_path: Path) -> None:
    for name in made.members():
        if name.startswith("proofs/"):
            continue
        path = rewritten(made, tmp_path / "short", lambda m, n=name: m.pop(n))
        with pytest.raises(MalformedError, match="lacks something") as caught:
            check(path, made.public, recompute)
        assert caught.value.expected == name


def test_a_damaged_file_is_no_traceback(made: Made, tmp_path: Path) -> None:
    data = made.path.read_bytes()
    path = tmp_path / "damaged"
    for cut in (5, 200, len(data) // 2, len(data) - 3):
        path.write_bytes(data[:cut])
        with pytest.raises(VerificationError):
            check(path, made.public)
    for at in range(0, len(data), 479):
        path.write_bytes(bytes([*data[:at], data[at] ^ 0x55, *data[at + 1 :]]))
        outcome = _outcome(path, made.public)
        # a byte of the container that says nothing, such as the date of a member, changes nothing
        assert outcome in (4, made.written.record), at


def _outcome(path: Path, key: PublicKey) -> int | str:
    """The exit code of a refusal, or the record that was found."""
    try:
        return check(path, key).record
    except LedgerError as error:
        return error.exit_code


def test_a_container_that_could_do_harm_is_refused(made: Made, tmp_path: Path) -> None:
    def attempt(build: Callable[[zipfile.ZipFile], object], match: str) -> None:
        path = tmp_path / "hostile"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in made.members().items():
                archive.writestr(name, data)
            build(archive)
        with pytest.raises(MalformedError, match=match):
            check(path, made.public)

    for name in ("../evil", "/etc/passwd", "objects/../x", "objects/segments/x.parquet", "notes.txt"):
        attempt(lambda archive, n=name: archive.writestr(n, b"x"), "no bundle has")
    bomb = "objects/lists/" + "0" * 64 + ".json"
    attempt(lambda a: a.writestr(bomb, b"0" * 100_000, zipfile.ZIP_DEFLATED), "compressed member")
    with pytest.warns(UserWarning, match="Duplicate"):
        attempt(lambda archive: archive.writestr("bundle.json", b"{}"), "there twice")


def test_what_nothing_needs_is_told(made: Made, tmp_path: Path) -> None:
    extra = "objects/" + list_name(blake3_digest(b"[]"))
    path = rewritten(made, tmp_path / "more", lambda m: m.update({extra: b"[]"}))
    assert check(path, made.public, recompute).unread == (extra,)


def test_another_result_or_an_unknown_kind_of_audit_is_told_apart(made: Made) -> None:
    with pytest.raises(TamperError, match="another result"):
        check(made.path, made.public, lambda *_: b"{}")
    assert check(made.path, made.public, lambda *_: None).recomputed is False


def test_an_event_cannot_be_left_out(made: Made, tmp_path: Path) -> None:
    from ledger.tiles import Tile, bundle_bytes, parse_bundle

    members = made.members()
    (name,) = [n for n in members if "tile/entries" in n]
    size = made.written.size
    kept = list(parse_bundle(members[name], Tile(None, 0, size)))
    del kept[5]  # the refusal, so that the flow would look better
    short = bundle_bytes([*kept, kept[-1]])
    path = rewritten(made, tmp_path / "short", lambda m: m.update({name: short}))
    with pytest.raises(TamperError, match="do not lead to the root"):
        check(path, made.public)
