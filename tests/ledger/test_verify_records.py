"""Verification of records: who signed them, what was logged of them, and their audits computed again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from contracts.canonical import canonical
from contracts.digest import sha256_digest
from contracts.errors import CannotAnswerError
from ledger import envelope, log, seal
from ledger.event_types import AuditEvent
from ledger.keys import SigningKey
from ledger.object_names import record_name
from ledger.statement import PAYLOAD_TYPE
from ledger.verify import Report, verify
from tests.ledger.homes import Place, put
from tests.ledger.verified_homes import RESULT, STATEMENT, made, place

__all__ = ["made", "place"]  # fixtures


def forged_record(
    place: Place, key: SigningKey, event: dict[str, str] | None = None, payload_type: str = PAYLOAD_TYPE
) -> Report:
    data = envelope.sign(STATEMENT.to_bytes() + b" ", payload_type, [key]).to_bytes()
    digests = {
        "result": sha256_digest(canonical(RESULT)),
        "design": sha256_digest(canonical(RESULT["design"])),
    }
    record = put(place.home.objects, record_name, data, sha256_digest)
    log.commit(
        place.home, place.key, lambda _: [AuditEvent("transport", record, **{**digests, **(event or {})})]
    )
    seal.write(place.home)
    return verify(place.home)


def test_a_record_must_be_signed_by_a_key_of_the_log(place: Place) -> None:
    assert forged_record(place, place.key).ok
    (problem,) = forged_record(place, SigningKey(b"9" * 32)).findings
    assert (problem.kind, problem.entry) == ("signature", "event 9")


@pytest.mark.parametrize("part", ["result", "design"])
def test_a_record_must_hold_what_was_logged(place: Place, part: str) -> None:
    (problem,) = forged_record(place, place.key, {part: sha256_digest(b"another")}).findings
    assert problem.kind == "record"
    assert f"another {part} than was logged" in problem.message


def test_a_record_of_another_type_is_refused(place: Place) -> None:
    (problem,) = forged_record(place, place.key, payload_type="text/plain").findings
    assert (problem.kind, problem.message.partition(";")[0]) == ("record", "record of another type")


def cannot(payload: bytes) -> bytes:
    raise CannotAnswerError("the entries are not there")


@pytest.mark.parametrize(
    ("recompute", "message"),
    [
        (lambda payload: canonical({**RESULT, "n": 4}), "computing the audit again gives another result"),
        (lambda payload: canonical(RESULT) + b"\n", "computing the audit again gives another result"),
        (cannot, "the entries are not there"),
    ],
)
def test_an_audit_that_comes_out_differently_is_a_record_problem(
    place: Place, recompute: Callable[[bytes], bytes], message: str
) -> None:
    (problem,) = verify(place.home, full=True, recompute=recompute).findings
    assert (problem.kind, problem.message) == ("record", message)


def test_an_audit_this_version_cannot_compute_is_a_notice(place: Place) -> None:
    report = verify(place.home, full=True, recompute=lambda payload: None)
    assert report.ok
    assert report.counts["recomputed"] == 0
    assert "cannot be computed again by this version" in report.notices[0]
