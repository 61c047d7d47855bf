"""Small homes for tests: a new ledger, events whose objects exist, and its files as bytes."""

from __future__ import annotations

import atexit
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from contracts.canonical import canonical
from contracts.channel import fingerprint
from contracts.digest import blake3_digest, sha256_digest
from contracts.refusals import CellFault, RefusedSide
from ledger import home as homes
from ledger import object_names as names
from ledger.events import (
    AcquisitionEvent,
    AuditEvent,
    ChannelEvent,
    Event,
    RefusalEvent,
    RevocationEvent,
    ScopeRows,
    SegmentEvent,
    Source,
)
from ledger.home import Home
from ledger.keys import SigningKey
from ledger.objects import Objects
from ledger.refusals import encode_index


@dataclass(frozen=True)
class Place:
    """A home and the configuration folder beside it, which move together."""

    home: Home
    config: Path
    key: SigningKey

    def copy(self, to: Path) -> Place:
        """Both as they are now, elsewhere."""
        shutil.copytree(self.home.path, to / ".ledger")
        shutil.copytree(self.config, to / "config")
        return Place(replace(self.home, path=to / ".ledger"), to / "config", self.key)

    def use(self) -> Place:
        """Makes this configuration the one the process sees."""
        os.environ["XDG_CONFIG_HOME"] = str(self.config)
        return self


def new_place(folder: Path) -> Place:
    """A new home, made once and copied; the caller restores XDG_CONFIG_HOME (`monkeypatch.setenv` does)."""
    folder.mkdir(parents=True, exist_ok=True)
    return _template().copy(folder).use()


@cache
def _template() -> Place:
    folder = Path(tempfile.mkdtemp(prefix="ledger-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
    home = homes.init(folder / ".ledger", origin="test-log")
    return Place(home, folder / "config", homes.signing_key(home))


def spec(text: str = "score it", layouts: int = 4) -> dict[str, object]:
    """A small valid channel specification."""
    return {
        "prompt": {"text": text},
        "readout": {"kind": "logits"},
        "stack": {"model": "m"},
        "view": {"kind": "none"},
        "presentation": {"layouts": layouts},
    }


def channel_event(name: str = "direct", text: str = "score it", version: int = 1) -> ChannelEvent:
    """A channel with its right fingerprint."""
    return ChannelEvent(name, version, fingerprint(spec(text)), spec(text))


def put(
    objects: Objects, name: Callable[[str], str], data: bytes, digest: Callable[[bytes], str] = blake3_digest
) -> str:
    """Stores an object and returns its digest."""
    objects.put(name(digest(data)), data)
    return digest(data)


def segment_event(
    objects: Objects,
    tag: str = "a",
    scope: tuple[tuple[str | None, str, int], ...] = ((channel_event().fingerprint, "run-1", 8),),
    span: tuple[str, str] = ("t0", "t9"),
) -> SegmentEvent:
    """A segment whose three objects exist, though they hold no entries."""
    return SegmentEvent(
        kind="transport",
        schema="ledger.transport.v1",
        contract="ledger.transport.v1",
        file=put(objects, names.segment_name, f"file {tag}".encode()),
        size=len(f"file {tag}"),
        root=sha256_digest(tag.encode()),
        rows=sum(rows for *_, rows in scope),
        leaves=put(objects, names.leaves_name, f"leaves {tag}".encode()),
        rows_file=put(objects, names.rows_name, f"rows {tag}".encode()),
        sources=(Source(f"{tag}.parquet", blake3_digest(tag.encode()), 8),),
        channels=tuple(sorted({channel for channel, *_ in scope if channel})),
        acquisitions=tuple(sorted({acquisition for _, acquisition, _ in scope})),
        scope=tuple(ScopeRows(*part) for part in scope),
        first=(span[0], 0),
        last=(span[1], 3),
        trajectories=2,
    )


def refused_side(number: int, channel: str = channel_event().fingerprint) -> RefusedSide:
    """A refused side of its own transition."""
    faults = (CellFault("before", 2, "c1", "absent"), CellFault("after", 0, "c0", "failed:timeout"))
    return RefusedSide(
        trajectory_id=f"traj{number:06d}", step=number % 7, view_source="own", channel=channel,
        acquisition_id="run-1", reason="side-incomplete", faults=faults,
        rows=7, absent=1, duplicated=0, failed=1, unknown=0,
        digest=blake3_digest(str(number).encode()), step_kind=None, target="c0", target_type=None,
        success=number % 2 == 0,
    )  # fmt: skip


def refusal_event(objects: Objects, sides: int = 3) -> RefusalEvent:
    """A refusal whose objects exist."""
    index = encode_index([refused_side(n) for n in range(sides)])
    return RefusalEvent(
        schema="ledger.transport-refused.v1",
        file=put(objects, names.refusal_rows_name, b"refused rows"),
        size=12,
        root=sha256_digest(b"refused"),
        rows=7 * sides,
        leaves=put(objects, names.refusal_leaves_name, b"refused leaves"),
        rows_file=put(objects, names.refusal_source_rows_name, b"refused source rows"),
        sides=sides,
        index=put(objects, names.refusal_index_name, index),
        sources=(Source("a.parquet", blake3_digest(b"a"), 99),),
    )


def audit_event(objects: Objects, tag: str = "one") -> AuditEvent:
    """A logged audit whose record exists."""
    record = put(objects, names.record_name, canonical({"record": tag}), sha256_digest)
    return AuditEvent("transport", record, sha256_digest(tag.encode()), sha256_digest(b"design"))


def one_of_each(objects: Objects) -> list[Event]:
    """An event of every type that derives rows."""
    return [
        channel_event(),
        AcquisitionEvent("run-1", "transport"),
        segment_event(objects),
        refusal_event(objects),
        audit_event(objects),
        RevocationEvent("acquisition", "run-1", "the server was swapped"),
    ]


def files(root: Path) -> dict[str, bytes]:
    """Every file below a folder, by relative path; locks left out."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def by_hand(place: Place, statement: str, *values: object, drop: bool = True) -> None:
    """Changes the catalog as somebody with a database shell would, without its triggers when `drop`."""
    with sqlite3.connect(place.home.catalog) as connection:
        if drop:
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement, values)
