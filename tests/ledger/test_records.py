"""Audit records are signed, logged once, and found again; what stands in their place is not accepted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from contracts.canonical import canonical
from contracts.digest import sha256_digest
from contracts.errors import MalformedError, StorageError, TamperError, UnknownKeyError
from ledger import envelope, log, records
from ledger.event_types import AuditEvent, RevocationEvent
from ledger.events import decode
from ledger.index import Index
from ledger.keys import SigningKey
from ledger.object_names import record_name
from ledger.records import log_record
from ledger.statement import AUDIT, PAYLOAD_TYPE, Statement, Subject, parse
from tests.ledger.homes import Place, new_place

RESULT = {"design": {"seed": 1}, "estimates": {"interaction": {"value": -0.25}}}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return new_place(tmp_path)


def statement(
    result: object = RESULT, *, size: int = 1, segments: tuple[str, ...] = ("ab",), time: str = "then"
) -> Statement:
    subjects = (
        Subject(f"test-log@{size}", {"sha256": "00" * 32}),
        *(Subject(f"segment:{name}", {"sha256": name * 32}) for name in segments),
    )
    return Statement(subjects, AUDIT, {"audit": "transport", "result": result, "environment": {"time": time}})


def test_a_record_is_an_envelope_named_by_its_bytes_with_an_event_of_its_digests(place: Place) -> None:
    logged = log_record(place.home, place.key, statement())
    assert not logged.existed
    assert logged.record == sha256_digest(logged.envelope)
    assert place.home.objects.read_checked(record_name(logged.record)) == logged.envelope
    with Index.open(place.home) as index:
        (row,) = index.events(logged.event, logged.event + 1)
    event = decode(row.data)
    assert isinstance(event, AuditEvent)
    assert event.kind == "transport"
    assert event.result == sha256_digest(canonical(RESULT))
    assert event.design == sha256_digest(canonical(RESULT["design"]))


def test_the_envelope_verifies_and_holds_the_statement(place: Place) -> None:
    logged = log_record(place.home, place.key, statement())
    received = envelope.parse(logged.envelope)
    assert received.payload_type == PAYLOAD_TYPE
    assert parse(envelope.verify(received, [place.key.public])) == statement()


def test_securesystemslib_verifies_the_envelope(place: Place) -> None:
    """The same bytes through the library that in-toto tools use (`keyid` is its key lookup only)."""
    dsse = pytest.importorskip("securesystemslib.dsse")
    signer = pytest.importorskip("securesystemslib.signer")
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    logged = log_record(place.home, place.key, statement())
    public = signer.SSlibKey.from_crypto(load_pem_public_key(place.key.public.to_pem()))
    other = signer.SSlibKey.from_crypto(load_pem_public_key(SigningKey.generate().public.to_pem()))
    received = json.loads(logged.envelope)
    # it looks keys up by the id of its own scheme; ours is the digest of the DER key
    for signature in received["signatures"]:
        signature["keyid"] = public.keyid
    theirs = dsse.Envelope.from_dict(received)
    assert set(theirs.verify([public], 1)) == {public.keyid}
    with pytest.raises(Exception, match=r"threshold|verif|Accepted"):
        theirs.verify([other], 1)


def test_the_same_result_is_logged_once_whatever_the_environment(place: Place) -> None:
    first = log_record(place.home, place.key, statement(size=1, time="then"))
    again = log_record(place.home, place.key, statement(size=7, time="later"))
    assert again.existed
    assert (again.record, again.event, again.envelope) == (first.record, first.event, first.envelope)
    with Index.open(place.home) as index:
        assert index.size == first.event + 1


@pytest.mark.parametrize(
    "other",
    [
        statement(RESULT | {"design": {"seed": 2}}),
        statement(RESULT | {"estimates": {}}),
        statement(segments=("ab", "cd")),
        statement(segments=("cd",)),
        replace(statement(), predicate=statement().predicate | {"audit": "face"}),
    ],
    ids=["design", "result", "more segments", "other segments", "kind"],
)
def test_anything_relevant_that_differs_is_another_record(place: Place, other: Statement) -> None:
    first = log_record(place.home, place.key, statement())
    second = log_record(place.home, place.key, other)
    assert not second.existed
    assert second.event == first.event + 1


def test_a_revoked_record_does_not_stand_for_a_new_one(place: Place) -> None:
    first = log_record(place.home, place.key, statement())
    log.commit(place.home, place.key, lambda _: [RevocationEvent("audit", first.record, "wrong seed")])
    second = log_record(place.home, place.key, statement(time="later"))
    assert not second.existed
    assert second.record != first.record


def test_two_writers_at_once_log_one_record(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other writer commits between this one's look and its lock."""
    commit, other = log.commit, []

    def late(home: object, key: object, build: object, *, wait: float) -> log.Commit:
        if not other:
            other.append(None)
            other[0] = log_record(place.home, place.key, statement(time="faster"))
        return commit(home, key, build, wait=wait)  # type: ignore[arg-type]

    monkeypatch.setattr(records.log, "commit", late)
    mine = log_record(place.home, place.key, statement(time="slower"))
    assert mine.existed
    assert mine == replace(other[0], existed=True)
    with Index.open(place.home) as index:
        assert len(index.records()) == 1


def test_a_key_of_somebody_else_logs_nothing(place: Place) -> None:
    with pytest.raises(UnknownKeyError):
        log_record(place.home, SigningKey.generate(), statement())
    with Index.open(place.home) as index:
        assert index.records() == ()


def test_a_record_that_changed_or_is_gone_is_not_vouched_for(place: Place) -> None:
    logged = log_record(place.home, place.key, statement())
    path = place.home.objects.path(record_name(logged.record))
    data = path.read_bytes()
    path.write_bytes(data.replace(b"A", b"B", 1))
    with pytest.raises(TamperError):
        log_record(place.home, place.key, statement())
    path.unlink()
    with pytest.raises(TamperError, match="is gone"):
        log_record(place.home, place.key, statement())


def test_only_statements_of_audits_are_logged(place: Place) -> None:
    for predicate in ({}, {"audit": "transport", "result": {}}, {"audit": 1, "result": RESULT}):
        with pytest.raises(MalformedError):
            log_record(place.home, place.key, Statement(statement().subjects, AUDIT, predicate))


def test_a_locked_log_says_so_and_the_call_can_be_repeated(place: Place) -> None:
    with log.writer(place.home), pytest.raises(StorageError) as refused:
        log_record(place.home, place.key, statement(), wait=0.0)
    assert refused.value.code == "locked"
    assert not log_record(place.home, place.key, statement()).existed
