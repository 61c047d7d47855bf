"""Events and their bytes are one to one; what does not fit goes into objects."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.canonical import canonical
from contracts.digest import blake3_digest, sha256_digest
from contracts.errors import MalformedError, UsageError
from ledger import clock, events
from ledger.event_types import EventSignature, RolePolicy
from ledger.events import (
    AcquisitionEvent,
    AttestationEvent,
    AuditEvent,
    ChannelEvent,
    Event,
    KeyChangeEvent,
    KeyEvent,
    ObjectRef,
    PlanEvent,
    PolicyEvent,
    RefusalEvent,
    RevocationEvent,
    ScopeRows,
    SegmentEvent,
    Source,
)

SIGNED = EventSignature("ab" * 32, bytes(64))
TIME = "2026-09-28T10:00:00Z"
B = [blake3_digest(bytes([i])) for i in range(8)]
S = [sha256_digest(bytes([i])) for i in range(4)]
SEGMENT = SegmentEvent(
    kind="transport", schema="ledger.transport.v1", contract="ledger.transport.v1", file=B[0], size=1234,
    root=S[0], rows=10, leaves=B[1], rows_file=B[2], sources=(Source("scores.parquet", B[3], 12),),
    channels=(B[4], B[5]), acquisitions=("run-1", "läuf 2"),
    scope=(ScopeRows(B[4], "run-1", 6), ScopeRows(None, "läuf 2", 4)),
    first=("traj000", 0), last=("traj001", 7), trajectories=2, time=TIME,
)  # fmt: skip
PLAN = {"hypothesis": "interaction < 0", "bands": [0.1, None, True]}
EXAMPLES: tuple[Event, ...] = (
    KeyEvent("head", "origin+00000000+AAAA", TIME),
    KeyChangeEvent("add", "collector", "alpha+00000000+AAAA", None, "origin", 0, (SIGNED, SIGNED), TIME),
    KeyChangeEvent("rotate", "head", "b+00000000+AAAA", "a+00000000+AAAA", "origin", 3, (), TIME),
    PolicyEvent((RolePolicy("witness", ("w+00000000+AAAA",), 1),), "origin", 4, (SIGNED,), TIME),
    AttestationEvent("acquisition", "run-1", S[3], TIME),
    ChannelEvent("direct", 1, B[0], {"readout": {"kind": "logits", "scale": 1.5, "big": 1e300}}, TIME),
    ChannelEvent("direct", 2, B[1], ObjectRef(B[2]), TIME),
    AcquisitionEvent("run-1", "transport", time=TIME),
    SEGMENT,
    dataclasses.replace(SEGMENT, scope=ObjectRef(B[6]), sources=ObjectRef(B[7])),
    RefusalEvent(
        "ledger.transport-refused.v1", B[0], 99, S[0], 7, B[1], B[2], 3, B[3],
        (Source("a.csv", B[4], 7),), TIME,
    ),
    RevocationEvent("acquisition", "run-1", "the server was swapped", TIME),
    AuditEvent("transport", S[0], S[1], S[2], TIME),
    PlanEvent("main", sha256_digest(canonical(PLAN)), PLAN, TIME),
)  # fmt: skip


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda e: e.type)
def test_bytes_and_values_are_one_to_one(event: Event) -> None:
    data = events.encode(event)
    assert events.decode(data) == event
    assert events.encode(events.decode(data)) == data
    assert json.loads(data)["v"] == 1


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda e: e.type)
def test_every_key_is_needed_and_no_other_is_taken(event: Event) -> None:
    body = json.loads(events.encode(event))
    for key in body:
        with pytest.raises(MalformedError):
            events.decode(canonical({k: v for k, v in body.items() if k != key}))
        with pytest.raises(MalformedError):
            events.decode(canonical(body | {key: [{}]}))
    with pytest.raises(MalformedError, match="unknown key"):
        events.decode(canonical(body | {"extra": 1}))


def test_what_an_acquisition_supersedes_may_be_left_out() -> None:
    event = AcquisitionEvent("run-2", "transport", "run-1", TIME)
    assert events.decode(events.encode(event)) == event
    assert b"supersedes" not in events.encode(dataclasses.replace(event, supersedes=None))


@pytest.mark.parametrize(
    "change",
    [
        {"type": "spend"}, {"v": 2}, {"time": "yesterday"}, {"time": "2026-02-30T10:00:00Z"}, {"rows": -1},
        {"rows": True}, {"rows": "10"}, {"root": B[0]}, {"file": S[0]}, {"file": B[0] + "0"}, {"kind": ""},
        {"first": ["a"]}, {"first": [1, "a"]}, {"first": ["a", True]}, {"scope": [["x", "a", 1]]},
        {"scope": [[B[0], "a", -1]]}, {"scope": {"object": S[0]}}, {"scope": {"object": B[0], "x": 1}},
        {"sources": [{"name": "a", "digest": B[0]}]}, {"channels": [1]},
    ],
    ids=str,
)  # fmt: skip
def test_wrong_values_are_named(change: dict[str, Any]) -> None:
    with pytest.raises(MalformedError):
        events.decode(canonical(json.loads(events.encode(SEGMENT)) | change))


def test_only_canonical_bytes_are_an_event() -> None:
    data = events.encode(SEGMENT)
    for other in (data + b"\n", json.dumps(json.loads(data)).encode(), b"", b"[]", data[:-1]):
        with pytest.raises(MalformedError):
            events.decode(other)


def test_what_is_too_long_goes_into_objects() -> None:
    stored: dict[str, bytes] = {}

    def store(data: bytes) -> str:
        stored[blake3_digest(data)] = data
        return blake3_digest(data)

    scope = tuple(ScopeRows(B[i % 8], f"run-{i}", i) for i in range(3000))
    long = dataclasses.replace(SEGMENT, scope=scope, acquisitions=tuple(f"run-{i}" for i in range(3000)))
    with pytest.raises(MalformedError, match="too long"):
        events.encode(long)
    fitted = events.fit(long, store)
    assert len(events.encode(fitted)) <= events.LIMIT
    assert isinstance(fitted, SegmentEvent)
    assert isinstance(fitted.scope, ObjectRef)
    assert fitted.acquisitions == long.acquisitions
    assert json.loads(stored[fitted.scope.digest])[2] == [B[2], "run-2", 2]
    assert set(events.object_names(fitted)) >= {f"lists/{fitted.scope.digest[7:]}.json"}
    assert events.fit(SEGMENT, store) is SEGMENT

    spec = {"prompt": {"text": "x" * 70_000}}
    channel = events.fit(ChannelEvent("long", 1, B[0], spec, TIME), store)
    assert isinstance(channel, ChannelEvent)
    assert isinstance(channel.spec, ObjectRef)
    assert json.loads(stored[channel.spec.digest]) == spec
    with pytest.raises(MalformedError, match="too long"):
        events.fit(RevocationEvent("acquisition", "x", "y" * 70_000, TIME), store)


def test_an_event_names_its_objects() -> None:
    assert events.object_names(SEGMENT) == (
        f"segments/{B[0][7:]}.parquet", f"segments/{B[1][7:]}.leaves", f"segments/{B[2][7:]}.rows",
    )  # fmt: skip
    for event in EXAMPLES:
        digests = {name.split("/")[1].split(".")[0] for name in events.object_names(event)}
        assert digests <= {d.split(":")[1] for d in events.digests_in(events.body(event))}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(max_codepoint=127)), inner),
    )
)
def test_the_fast_bytes_of_lists_are_canonical(value: object) -> None:
    try:
        expected = canonical(value)
    except MalformedError:
        with pytest.raises(MalformedError):
            events.list_bytes(value)
    else:
        assert events.list_bytes(value) == expected


def test_time_comes_from_the_environment_when_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert AcquisitionEvent("a", "transport").time == "1970-01-01T00:00:00Z"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    assert clock.check(clock.now()) > "2025"
    for wrong in ("soon", "-1", "1.5", "²", "9" * 30):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", wrong)
        with pytest.raises(UsageError):
            clock.now()
