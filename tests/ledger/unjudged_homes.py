"""Homes written without the contracts of ingest, entry by entry: what tests of snapshots start from."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from audits.faces import Faces, assemble
from contracts.channel import Channel, fingerprint
from contracts.digest import blake3_digest, pack
from contracts.refusals import CellFault, RefusedSide
from contracts.schema import TRANSPORT
from ledger import home as homes
from ledger import log
from ledger.events import AcquisitionEvent, ChannelEvent, RefusalEvent, ScopeRows, SegmentEvent, Source
from ledger.home import Home
from ledger.keys import SigningKey
from ledger.object_names import refusal_index_name
from ledger.refusals import encode_index
from ledger.scope import Arm, Scope
from ledger.segments import write
from ledger.snapshot import Snapshot, open_snapshot

SOURCE = Source("scores.parquet", blake3_digest(b"scores"), 1)


def spec(view: str) -> dict[str, dict[str, object]]:
    return {
        "prompt": {"id": view}, "readout": {"kind": "label"}, "stack": {}, "view": {"kind": view},
        "presentation": {"layouts": 2},
    }  # fmt: skip


DIRECT = Channel("direct", 1, spec("none"), fingerprint(spec("none")))
SHOWN = Channel("shown", 1, spec("quote"), fingerprint(spec("quote")))
REF, ALT = Arm(DIRECT), Arm(SHOWN)
SCOPE = Scope("transport", (REF, ALT))


def side(channel: Channel, trajectory="t0", step=0, acquisition="main", view_source="own", **given):
    """The entries of a whole side that meets every rule."""
    transition = f"{trajectory}/{step}"
    return [
        {
            "trajectory_id": trajectory, "step": step, "endpoint": endpoint, "view_source": view_source,
            "channel": channel.fingerprint, "layout": layout, "acquisition_id": acquisition,
            "candidate": candidate, "target": "A",
            "energy": float(hash_of(transition, endpoint, layout, candidate)),
            "state_hash": f"state {transition}/{endpoint}", "candidates_hash": f"candidates {transition}",
            "request_hash": f"{transition}/{endpoint}/{layout}/{channel.name}/{view_source}/{acquisition}",
            "view_hash": f"view {transition}/{endpoint}" if channel.needs_view else None,
            "step_kind": None, "success": None,
        }
        | given
        for endpoint in ("before", "after")
        for layout in (0, 1)
        for candidate in "ABC"
    ]  # fmt: skip


def hash_of(*parts: object) -> int:
    return int(blake3_digest(repr(parts).encode())[7:9], 16) % 7


def face(trajectory="t0", step=0, **given):
    return side(DIRECT, trajectory, step, **given) + side(SHOWN, trajectory, step, **given)


def canonical(rows) -> pa.Table:
    columns = {}
    for column in TRANSPORT.columns:
        values = [row.get(column.name) for row in rows]
        if column.name == "channel":
            values = [pack(value) for value in values]
        elif column.type == "digest":
            values = [None if value is None else pack(blake3_digest(value.encode())) for value in values]
        columns[column.name] = pa.array(values, TRANSPORT.arrow.field(column.name).type)
    columns["source_file"] = pa.array(np.zeros(len(rows), np.int32))
    columns["source_row"] = pa.array(np.arange(1, len(rows) + 1))
    return pa.table(columns)


def refused_side(*faults: CellFault, trajectory="t0", step=0, acquisition="main", **given) -> RefusedSide:
    return RefusedSide(
        **{
            "trajectory_id": trajectory, "step": step, "view_source": "own", "channel": DIRECT.fingerprint,
            "acquisition_id": acquisition, "reason": "cell-missing", "faults": faults, "rows": 1,
            "absent": len(faults), "duplicated": 0, "failed": 0, "unknown": 0,
            "digest": blake3_digest(b"side"), "step_kind": None, "target": "A", "target_type": None,
            "success": None,
        }
        | given
    )  # fmt: skip


class Ledger:
    """A home to write to without the contracts of ingest, so that it can hold what they would refuse."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.key: SigningKey = homes.signing_key(home)
        self._seen: set[str] = set()

    @classmethod
    def new(cls, path: Path) -> Ledger:
        """A new home with the two channels registered."""
        made = cls(homes.init(path))
        made.commit(*(ChannelEvent(c.name, 1, c.fingerprint, c.spec) for c in (DIRECT, SHOWN)))
        return made

    def commit(self, *events) -> int:
        return log.commit(self.home, self.key, lambda _: events).size

    def enter(self, *calls) -> int:
        """Each list of entries becomes segments of its own; returns the size of the log."""
        events = []
        for rows in calls:
            for w in write(canonical(rows), TRANSPORT, self.home.objects):
                named = [a for _, a, _ in w.scope if a not in self._seen]
                self._seen.update(named)
                events += [AcquisitionEvent(a, "transport") for a in dict.fromkeys(named)]
                events.append(
                    SegmentEvent(
                        "transport", w.schema, "test", w.file, w.bytes, w.root, w.rows, w.leaves, w.rows_file,
                        (SOURCE,), tuple(sorted({c for c, _, _ in w.scope if c})),
                        tuple(sorted({a for _, a, _ in w.scope})), tuple(ScopeRows(*s) for s in w.scope),
                        w.first, w.last, w.trajectories,
                    )
                )  # fmt: skip
        return self.commit(*events)

    def refuse(self, *sides: RefusedSide) -> int:
        """A refusal of these sides; their rows are any row, since no audit reads them."""
        (w,) = write(canonical(side(DIRECT)[:1]), TRANSPORT, self.home.objects, folder="refusals")
        index = encode_index(sides)
        self.home.objects.put(refusal_index_name(blake3_digest(index)), index)
        named = [side.acquisition_id for side in sides if side.acquisition_id not in self._seen]
        self._seen.update(named)
        return self.commit(
            *(AcquisitionEvent(a, "transport") for a in dict.fromkeys(named)),
            RefusalEvent(
                w.schema, w.file, w.bytes, w.root, w.rows, w.leaves, w.rows_file, len(sides),
                blake3_digest(index), (SOURCE,),
            ),
        )  # fmt: skip

    def snapshot(self, **given) -> Snapshot:
        return open_snapshot(self.home, **given)

    def faces(self, scope: Scope = SCOPE) -> Faces:
        return assemble(self.snapshot().select(scope))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with nothing but its channels, and the configuration that goes with it, to be copied."""
    folder = tmp_path_factory.mktemp("template")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        Ledger.new(folder / "home")
    return folder


@pytest.fixture
def ledger(template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return Ledger(homes.read(tmp_path / "home"))


def same(ours: Faces, theirs: Faces) -> bool:
    return (
        ours.flow == theirs.flow
        and ours.trajectories == theirs.trajectories
        and np.array_equal(ours.step, theirs.step)
        and all(np.array_equal(a, b) for a, b in zip(ours.margins, theirs.margins, strict=True))
    )
