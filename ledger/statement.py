"""Statements (in-toto Statement v1): what is claimed, and about which bytes.

Subjects are named by digests only. A statement is written in canonical JSON; one that was received is
read leniently in layout but never written again, so its signature stays over the bytes that came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from contracts.canonical import canonical
from contracts.canonical import parse as parse_json
from contracts.errors import MalformedError

STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
AUDIT = "urn:evaluator-ledger:audit:v1"
MAX_STATEMENT = 48 * 1024 * 1024
MAX_SUBJECTS = 1_000_000
_HEX = re.compile(r"(?:[0-9a-f]{2})+", re.ASCII)


@dataclass(frozen=True)
class Subject:
    """Something a statement is about: a name, and its digests as algorithm to lower-case hex."""

    name: str
    digest: Mapping[str, str] = field(hash=False)


@dataclass(frozen=True)
class Statement:
    """Subjects, the type of the predicate, and the predicate itself (a JSON object)."""

    subjects: tuple[Subject, ...]
    predicate_type: str
    predicate: Mapping[str, object] = field(hash=False)

    def to_bytes(self) -> bytes:
        """The canonical JSON that is signed; MalformedError when a part is not JSON or breaks the format."""
        data = canonical(
            {
                "_type": STATEMENT_TYPE,
                "subject": [{"name": s.name, "digest": dict(s.digest)} for s in self.subjects],
                "predicateType": self.predicate_type,
                "predicate": dict(self.predicate),
            }
        )
        parse(data)  # nothing is signed that a reader would refuse
        return data


def parse(data: bytes) -> Statement:
    """The statement in JSON bytes; members this version does not know are left out of the value."""
    fields = parse_json(data, limit=MAX_STATEMENT, whole_floats=True)
    if not isinstance(fields, dict) or fields.get("_type") != STATEMENT_TYPE:
        raise MalformedError("not an in-toto statement", expected=f"_type {STATEMENT_TYPE}")
    subjects, predicate_type = fields.get("subject"), fields.get("predicateType")
    if not isinstance(subjects, list) or not 1 <= len(subjects) <= MAX_SUBJECTS:
        raise MalformedError("statement without subjects", expected=f"a list of 1 to {MAX_SUBJECTS}")
    if not isinstance(predicate_type, str) or not predicate_type:
        raise MalformedError("statement without a predicate type")
    predicate = fields.get("predicate", {})
    if not isinstance(predicate, dict):
        raise MalformedError("predicate is not an object", got=type(predicate).__name__)
    return Statement(tuple(map(_subject, subjects)), predicate_type, predicate)


def _subject(value: object) -> Subject:
    digest = value.get("digest") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(digest, dict) or not digest:
        raise MalformedError("subject without a digest")
    name = value.get("name", "")
    if not isinstance(name, str):
        raise MalformedError("subject name is not text", got=type(name).__name__)
    for algorithm, found in digest.items():
        if not algorithm or not isinstance(found, str) or not _HEX.fullmatch(found):
            raise MalformedError("subject digest is not lower-case hex", where=name[:80] or None)
    return Subject(name, digest)
