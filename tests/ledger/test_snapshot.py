"""Snapshots of real homes: what is verified before anything is read, and what a scope selects."""

from __future__ import annotations

import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from audits.faces import Faces, assemble
from contracts.channel import Channel, fingerprint
from contracts.digest import blake3_digest, pack
from contracts.errors import TamperError, UsageError, VerificationError
from contracts.refusals import CellFault, RefusedSide
from contracts.schema import TRANSPORT
from ledger import home as homes
from ledger import log, range_tasks, ranges, segment_rows, segments
from ledger.channels import add as add_channels
from ledger.events import AcquisitionEvent, ChannelEvent, RefusalEvent, ScopeRows, SegmentEvent, Source
from ledger.home import Home
from ledger.ingest import ingest
from ledger.inventory import Runs, take
from ledger.keys import SigningKey
from ledger.matching import Matcher
from ledger.object_names import refusal_index_name
from ledger.ranges import RangeReader, Trajectories, cut
from ledger.refusals import encode_index
from ledger.revocations import revoke_acquisition
from ledger.scope import Arm, Level, Scope
from ledger.segment_reader import SegmentReader
from ledger.segments import write
from ledger.snapshot import RULES, Snapshot, open_snapshot

SHARED = Path(__file__).parents[2].parent / "shared"
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


def entries(snapshot: Snapshot, scope: Scope = SCOPE) -> pa.Table:
    return pa.concat_tables([part.entries for part in snapshot.select(scope).ranges()])


def same(ours: Faces, theirs: Faces) -> bool:
    return (
        ours.flow == theirs.flow
        and ours.trajectories == theirs.trajectories
        and np.array_equal(ours.step, theirs.step)
        and all(np.array_equal(a, b) for a, b in zip(ours.margins, theirs.margins, strict=True))
    )


class TestVerification:
    def test_a_snapshot_says_what_was_signed(self, ledger):
        size = ledger.enter(face())
        snapshot = ledger.snapshot()
        assert snapshot.size == size
        assert snapshot.origin == ledger.home.origin
        assert snapshot.root.removeprefix("sha256:") == snapshot.checked.head.root.hex()
        assert snapshot.origin.encode() in snapshot.note
        assert snapshot.book.names == ("direct", "shown")
        assert snapshot.acquisitions == {"main": "transport"}
        assert not snapshot.has_newer_head

    def test_an_older_head_knows_nothing_of_what_came_later(self, ledger):
        old = ledger.enter(face())
        new = ledger.enter(face("t1"))
        then, now = ledger.snapshot(at=old), ledger.snapshot(at=new)
        assert (then.has_newer_head, now.has_newer_head) == (True, False)
        assert (len(then.segments), len(now.segments)) == (1, 2)
        assert len(assemble(then.select(SCOPE))) == 1
        with pytest.raises(UsageError, match="no head was signed at size"):
            ledger.snapshot(at=old - 1)

    def test_without_a_pin_somebody_has_to_vouch_for_the_log(self, ledger, tmp_path, monkeypatch):
        ledger.enter(face())
        public = ledger.key.public
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
        with pytest.raises(VerificationError, match="--trust-first") as error:
            ledger.snapshot()
        assert error.value.exit_code == 4
        assert ledger.snapshot(key=public).size == ledger.snapshot(trust_first=True).size
        with pytest.raises(VerificationError):
            ledger.snapshot(key=SigningKey.generate().public)

    def test_a_backup_older_than_the_pin_is_refused(self, ledger, tmp_path):
        ledger.enter(face())
        backup = tmp_path / "backup"
        shutil.copytree(ledger.home.path, backup)
        ledger.enter(face("t1"))
        with pytest.raises(TamperError) as error:
            open_snapshot(homes.read(backup))
        assert error.value.kind == "rolled-back-head"

    @pytest.mark.parametrize("column", ["data", "leaf_hash"])
    def test_an_event_changed_behind_the_triggers(self, ledger, column):
        ledger.enter(face())
        with sqlite3.connect(ledger.home.catalog) as catalog:
            for (name,) in catalog.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                catalog.execute(f"DROP TRIGGER {name}")
            (value,) = catalog.execute(f"SELECT {column} FROM event WHERE leaf_index = 1").fetchone()
            catalog.execute(f"UPDATE event SET {column} = ? WHERE leaf_index = 1", (value[:-2] + b"x}",))
        with pytest.raises(TamperError) as error:
            ledger.snapshot()
        assert error.value.kind == ("catalog" if column == "data" else "tree")

    def test_what_the_other_tables_of_the_catalog_say_does_not_matter(self, ledger):
        ledger.enter(face(), side(SHOWN, acquisition="bad"))
        revoke_acquisition(ledger.home, ledger.key, "bad", "wrong prompt")
        expected = ledger.faces()
        with sqlite3.connect(ledger.home.catalog) as catalog:
            for (name,) in catalog.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                catalog.execute(f"DROP TRIGGER {name}")
            for table in ("revocation", "segment_scope", "segment", "acquisition", "channel"):
                catalog.execute(f"DELETE FROM {table}")
        assert same(ledger.faces(), expected)

    def test_a_changed_segment_is_named(self, ledger):
        ledger.enter(face())
        (path,) = (ledger.home.path / "objects/segments").glob("*.parquet")
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.chmod(0o600)
        path.write_bytes(data)
        with pytest.raises(TamperError) as error:
            ledger.faces()
        assert error.value.kind == "data"
        assert path.name in str(error.value)

    def test_a_changed_list_of_refused_sides(self, ledger):
        ledger.enter(face())
        ledger.refuse(refused_side(trajectory="t9"))
        (path,) = (ledger.home.path / "objects/refusals").glob("*.json")
        path.chmod(0o600)
        path.write_bytes(path.read_bytes().replace(b"t9", b"t8"))
        with pytest.raises(TamperError):
            ledger.snapshot().select(SCOPE)


class TestScope:
    def test_acquisitions_are_those_with_an_entry_or_a_refused_side(self, ledger):
        ledger.enter(face() + side(SHOWN, acquisition="b"))
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent"), acquisition="a", step=3))
        found = ledger.snapshot().select(SCOPE)
        assert found.acquisitions == {REF: ("a", "main"), ALT: ("b", "main")}
        assert list(found.acquisitions) == [REF, ALT]

    def test_named_acquisitions_for_all_channels_or_for_one(self, ledger):
        ledger.enter(face() + face(acquisition="b") + side(SHOWN, acquisition="c"))

        def named(*acquisitions):
            return list(
                ledger.snapshot().select(replace(SCOPE, acquisitions=acquisitions)).acquisitions.values()
            )

        assert named((None, "b")) == [("b",), ("b",)]
        assert named((SHOWN.fingerprint, "c")) == [("b", "main"), ("c",)]
        assert named((None, "b"), (SHOWN.fingerprint, "c")) == [("b",), ("b", "c")]
        with pytest.raises(UsageError, match=r"unknown acquisition nobody; expected one of b, main, c"):
            named((None, "nobody"))

    def test_view_sources_make_arms_of_one_channel(self, ledger):
        ledger.enter(side(SHOWN), side(SHOWN, view_source="before", view_hash="v", acquisition="frozen"))
        scope = Scope("transport", (ALT, Arm(SHOWN, "before")))
        found = ledger.snapshot().select(scope)
        assert list(found.acquisitions.values()) == [("main",), ("frozen",)]
        assert len(assemble(found)) == 1

    @pytest.mark.parametrize(
        ("where", "steps"),
        [
            ({"step_kind": ("search",)}, [1]),
            ({"step_kind": ("search", "reason")}, [0, 1]),
            ({"success": ("true",)}, [1]),
            ({"success": ("false", "true")}, [0, 1]),
            ({"step": ("0", "2")}, [0, 2]),
            ({"target": ("A",), "step": ("2",)}, [2]),
            ({"target": ("Z",)}, []),
            ({"trajectory_id": ("t0",)}, [0, 1, 2]),
            ({"trajectory_id": ("t", "u")}, []),
        ],
    )
    def test_where_keeps_the_entries_with_one_of_the_values(self, ledger, where, steps):
        rows = face(step=0, step_kind="reason", success=False) + face(
            step=1, step_kind="search", success=True
        )
        ledger.enter(rows + face(step=2))
        found = ledger.faces(replace(SCOPE, where=tuple(where.items())))
        assert found.step.tolist() == steps
        assert found.flow.transitions == len(steps)

    @pytest.mark.parametrize("where", [("step", ("one",)), ("success", ("1",)), ("step", ("-1",))])
    def test_values_that_no_entry_could_have(self, ledger, where):
        ledger.enter(face())
        with pytest.raises(UsageError, match=f"--where {where[0]}"):
            ledger.faces(replace(SCOPE, where=(where,)))

    def test_columns_that_are_not_for_filtering(self):
        with pytest.raises(UsageError, match="energy"):
            replace(SCOPE, where=(("energy", ("0",)),))

    def test_where_comes_before_acquisitions(self, ledger):
        ledger.enter(face(step_kind="reason") + side(SHOWN, step=1, acquisition="other", step_kind="search"))
        scope = replace(SCOPE, where=(("step_kind", ("reason",)),))
        assert ledger.snapshot().select(scope).acquisitions == {REF: ("main",), ALT: ("main",)}
        assert len(ledger.faces(scope)) == 1
        assert len(ledger.faces()) == 0

    def test_segments_that_give_nothing_are_no_subjects(self, ledger):
        ledger.enter(face(), side(DIRECT, "t1", acquisition="other"), face("t2", step_kind="search"))
        scope = replace(SCOPE, acquisitions=((None, "main"),), where=(("trajectory_id", ("t0",)),))
        snapshot = ledger.snapshot()
        assert snapshot.select(scope).used_segments == snapshot.segments[:1]
        assert snapshot.select(SCOPE).used_segments == snapshot.segments


class TestRefusedSides:
    def test_they_count_by_the_same_attributes(self, ledger):
        ledger.enter(face(step_kind="reason"))
        ledger.refuse(
            refused_side(CellFault("before", 0, "A", "failed:timeout"), step=1, step_kind="reason"),
            refused_side(CellFault("before", 0, "A", "absent"), step=2, step_kind="search"),
            refused_side(CellFault("before", 0, "A", "absent"), step=3, view_source="after"),
        )
        found = ledger.faces(replace(SCOPE, where=(("step_kind", ("reason",)),)))
        assert found.flow.transitions == 2
        assert [e.reason for e in found.flow.excluded] == ["failed:timeout"]
        assert ledger.faces().flow.transitions == 3

    def test_one_that_came_whole_later_is_complete(self, ledger):
        ledger.enter(side(SHOWN))
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent")))
        assert len(ledger.faces()) == 0
        ledger.enter(side(DIRECT))
        found = ledger.faces()
        assert (len(found), found.flow.transitions) == (1, 1)

    def test_the_latest_refusal_says_why(self, ledger):
        ledger.enter(side(SHOWN))
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent")))
        ledger.refuse(refused_side(CellFault("after", 1, "C", "failed:refused")))
        assert [e.reason for e in ledger.faces().flow.excluded] == ["failed:refused"]

    def test_an_entry_of_another_acquisition_does_not_replace_it(self, ledger):
        ledger.enter(face())
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent"), acquisition="second"))
        found = ledger.faces()
        assert len(found) == 0
        assert found.flow.shortfall.code == "acquisition-empties"

    def test_those_of_other_acquisitions_are_outside(self, ledger):
        ledger.enter(face() + side(SHOWN, acquisition="b"))
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent"), acquisition="b", step=1))
        assert ledger.faces(replace(SCOPE, acquisitions=((None, "main"),))).flow.transitions == 1
        assert ledger.faces(replace(SCOPE, acquisitions=((None, "b"),))).flow.transitions == 2

    def test_trajectories_without_any_entry_are_in_some_range(self, ledger):
        ledger.enter(face("m"))
        ledger.refuse(
            *(refused_side(CellFault("before", 0, "A", "absent"), trajectory=t) for t in ("a", "z", "é"))
        )
        assert ledger.faces().flow.transitions == 4
        only = replace(SCOPE, where=(("trajectory_id", ("z",)),))
        assert ledger.faces(only).flow.transitions == 1


class TestRevocation:
    def test_entries_are_left_out_and_counted(self, ledger):
        before = ledger.enter(face() + side(SHOWN, acquisition="bad", state_hash="wrong"))
        ledger.refuse(refused_side(CellFault("before", 0, "A", "absent"), acquisition="bad", step=5))
        assert len(ledger.faces()) == 0
        revoke_acquisition(ledger.home, ledger.key, "bad", "wrong prompt")
        found = ledger.snapshot().select(SCOPE)
        assert found.acquisitions == {REF: ("main",), ALT: ("main",)}
        faces = assemble(found)
        assert (len(faces), faces.flow.transitions) == (1, 2)
        assert [e.reason for e in faces.flow.excluded] == ["provenance:acquisition-revoked"]
        assert found.provenance.entries_in == 36
        assert found.provenance.entries_out["acquisition-revoked"] == 12
        assert found.provenance.entries_out["state-frozen"] == 0
        assert found.provenance.refused_sides_revoked == 1
        assert ledger.snapshot(at=before).revoked == frozenset()

    def test_naming_it_does_not_bring_it_back(self, ledger):
        ledger.enter(face() + side(SHOWN, acquisition="bad"))
        revoke_acquisition(ledger.home, ledger.key, "bad", "wrong prompt")
        found = ledger.faces(replace(SCOPE, acquisitions=((SHOWN.fingerprint, "bad"),)))
        assert len(found) == 0
        assert found.acquisitions == (("main",), ())


class TestProvenance:
    def test_broken_entries_never_reach_a_range_and_keep_their_place(self, ledger):
        ledger.enter(face() + face(step=1), side(SHOWN, "t1", candidates_hash="other") + side(DIRECT, "t1"))
        found = ledger.snapshot().select(SCOPE)
        parts = list(found.ranges())
        assert sum(part.entries.num_rows for part in parts) == 48
        assert [RULES[rule] for part in parts for rule in part.rule.tolist()].count("candidates-frozen") == 8
        out = pa.concat_tables([part.out.entries for part in parts])
        assert out.num_rows == 24
        assert set(out["trajectory_id"].to_pylist()) == {"t1"}
        assert found.provenance.entries_out["candidates-frozen"] == 24
        assert found.provenance.transitions_out["candidates-frozen"] == 1

    def test_counts_start_anew_with_every_pass(self, ledger):
        ledger.enter(face())
        found = ledger.snapshot().select(SCOPE)
        assert same(assemble(found), assemble(found))
        assert found.provenance.entries_in == 24

    def test_entries_without_digests_need_a_lower_level(self, ledger):
        ledger.enter([r | {"request_hash": None} for r in face()])
        found = ledger.faces()
        assert found.flow.shortfall.code == "level-not-reached"
        assert "--require declared" in str(found.flow.shortfall)
        assert len(ledger.faces(replace(SCOPE, require=Level.DECLARED))) == 1

    def test_a_donor_in_another_segment_outside_every_filter(self, ledger):
        donor = side(SHOWN, "d", acquisition="long-ago", view_hash="theirs", step_kind="reason")
        shown = side(
            SHOWN, "t0", view_source="donor:d", acquisition="control", view_hash="theirs", step_kind="search"
        )
        wrong = [
            row | {"view_hash": "not theirs"} if row["endpoint"] == "after" else row
            for row in side(
                SHOWN,
                "t1",
                view_source="donor:d",
                acquisition="control",
                view_hash="theirs",
                step_kind="search",
            )
        ]
        frozen = side(SHOWN, "d", view_source="before", acquisition="frozen", view_hash="before")
        ledger.enter(donor + frozen, shown + side(DIRECT) + side(DIRECT, "t1"), wrong)
        scope = Scope("transport", (REF, Arm(SHOWN, "donor")))
        found = ledger.faces(scope)
        assert found.trajectories == ("t0",)
        assert [e.reason for e in found.flow.excluded] == ["provenance:view-bound"]
        narrowed = replace(scope, where=(("trajectory_id", ("t1",)),))
        assert [e.reason for e in ledger.faces(narrowed).flow.excluded] == ["provenance:view-bound"]
        revoke_acquisition(ledger.home, ledger.key, "long-ago", "lost")
        assert ledger.faces(scope).trajectories == ("t0", "t1")


class TestRanges:
    @pytest.fixture
    def rows(self):
        names = ("a", "a1", "b", "c/1", "Z", "é")
        rows = [row for name in names for step in range(3) for row in face(name, step)]
        return [
            row for row in rows if not (row["trajectory_id"] == "b" and row["step"] == 1 and row["layout"])
        ]

    def test_the_same_faces_however_entries_are_spread_over_segments(
        self, ledger, tmp_path, rows, monkeypatch
    ):
        ledger.enter(rows)
        expected = ledger.faces()
        assert (len(expected), expected.flow.transitions) == (17, 18)
        spread = Ledger.new(tmp_path / "spread")
        sides = {(row["trajectory_id"], row["step"], row["channel"]) for row in rows}
        calls = [[] for _ in range(7)]
        for number, key in enumerate(sorted(sides)):
            calls[number * 5 % 7] += [r for r in rows if (r["trajectory_id"], r["step"], r["channel"]) == key]
        spread.enter(*calls)
        assert len(spread.snapshot().segments) == 7
        assert same(spread.faces(), expected)
        monkeypatch.setattr(range_tasks, "RANGE_ENTRIES", 50)
        monkeypatch.setattr(ranges, "HELD_ROWS", 10)
        assert same(spread.faces(), expected)

    def test_trajectories_that_go_on_in_the_next_row_group(self, ledger, tmp_path, rows, monkeypatch):
        ledger.enter(rows)
        expected = ledger.faces()
        monkeypatch.setattr(segments, "GROUP_ROWS", 35)
        monkeypatch.setattr(range_tasks, "RANGE_ENTRIES", 100)
        cut_up = Ledger.new(tmp_path / "cut-up")
        cut_up.enter(rows)
        assert same(cut_up.faces(), expected)
        cut_up.enter(side(DIRECT, "a", 9))
        assert cut_up.faces().flow.transitions == 19

    @pytest.mark.parametrize("most", [0, 150, 10**6])
    def test_what_is_held_for_the_next_range_is_bounded(self, ledger, rows, monkeypatch, most):
        ledger.enter(rows[0::3], rows[1::3], rows[2::3])
        monkeypatch.setattr(ranges, "HELD_ROWS", most)
        matcher = Matcher(SCOPE)
        snapshot = ledger.snapshot()
        found = take(ledger.home.objects, snapshot.segments, [], SCOPE)
        reader = RangeReader(
            ledger.home.objects, matcher, Trajectories.of(found.runs, pa.array([], pa.string()))
        )
        held = []
        for low in range(6):
            reader.read(low, low + 1)
            held.append(sum(len(piece.rows) for piece in reader._held.values()))
        assert max(held) <= most
        assert (held[0] > 0) == (most > 0)
        assert held[-1] == 0
        reader.close()

    def test_ranges_ascend_and_no_trajectory_is_in_two(self, ledger, rows, monkeypatch):
        ledger.enter(rows[::2], rows[1::2])
        monkeypatch.setattr(range_tasks, "RANGE_ENTRIES", 100)
        parts = [
            part.entries["trajectory_id"].unique().to_pylist()
            for part in ledger.snapshot().select(SCOPE).ranges()
        ]
        assert parts == [["Z"], ["a"], ["a1"], ["b"], ["c/1"], ["é"]]

    def test_a_range_has_all_entries_sorted_by_transition(self, ledger, rows):
        ledger.enter(rows[::2], rows[1::2])
        table = entries(ledger.snapshot())
        assert table.num_rows == len(rows)
        keys = list(zip(table["trajectory_id"].to_pylist(), table["step"].to_pylist(), strict=True))
        assert keys == sorted(keys, key=lambda key: (key[0].encode(), key[1]))

    def test_one_segment_is_open_at_a_time(self, ledger, monkeypatch):
        ledger.enter(*(face(f"t{i:02}") for i in range(30)))
        opened: list[SegmentReader] = []
        most = 0

        class Watched(SegmentReader):
            def __init__(self, *given, **named) -> None:
                nonlocal most
                super().__init__(*given, **named)
                opened.append(self)
                most = max(most, len(opened))

            def close(self) -> None:
                super().close()
                opened.remove(self)

        monkeypatch.setattr(segment_rows, "SegmentReader", Watched)
        monkeypatch.setattr(range_tasks, "RANGE_ENTRIES", 100)
        assert len(ledger.faces()) == 30
        assert opened == []
        assert most == 1

    def test_wanted_trajectories_are_read_by_their_pages_alone(self, ledger, monkeypatch):
        ledger.enter(*(face(f"t{i}") for i in range(4)))

        def whole(*_: object) -> None:
            raise AssertionError("a whole segment was read")

        opened = []

        def find(reader: SegmentReader, first: str, last: str) -> tuple[int, int]:
            opened.append(reader.segment)
            return found_by(reader, first, last)

        found_by = SegmentReader.find
        monkeypatch.setattr(SegmentReader, "whole", whole)
        monkeypatch.setattr(SegmentReader, "find", find)
        snapshot = ledger.snapshot()
        found = snapshot.select(replace(SCOPE, where=(("trajectory_id", ("t2",)),)))
        assert assemble(found).trajectories == ("t2",)
        assert [segment.event for segment in opened] == [snapshot.segments[2].event]
        with pytest.raises(AssertionError, match="whole segment"):
            ledger.faces()

    def test_cuts_hold_at_most_so_many_entries_or_one_trajectory(self):
        assert list(cut(np.array([3, 3, 3, 9, 1, 1]), 6)) == [(0, 2), (2, 3), (3, 4), (4, 6)]
        assert list(cut(np.array([0, 0, 5, 0]), 5)) == [(0, 4)]
        assert list(cut(np.array([], np.int64), 5)) == []
        assert list(cut(np.array([7]), 1)) == [(0, 1)]

    def test_trajectories_of_all_segments_by_their_bytes(self):
        def runs(*names: str) -> Runs:
            n = np.arange(len(names))
            return Runs(None, (), pa.array(names), n * 10, n * 10 + 10, n + 1)  # type: ignore[arg-type]

        found = Trajectories.of([runs("a", "c"), runs("b", "c", "é")], pa.array(["z", "z"]))
        assert found.names.to_pylist() == ["a", "b", "c", "z", "é"]
        assert found.entries.tolist() == [1, 1, 4, 0, 3]
        assert list(found.spans(1, 3)) == [(0, 10, 20), (1, 0, 20)]
        assert list(found.spans(3, 4)) == []


@pytest.fixture(scope="module")
def cohort_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (SHARED / "cohort").is_dir():
        pytest.skip("needs the synthetic cohort in ../shared/cohort")
    folder = tmp_path_factory.mktemp("cohort")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        home = homes.init(folder / "home")
        key = homes.signing_key(home)
        add_channels(home, key, sorted((SHARED / "cohort/channels").glob("*.toml")))
        for name in ("scores", "controls", "retrieval_face"):
            ingest(home, [SHARED / f"cohort/{name}.parquet"], key=key)
    return folder


@pytest.fixture
def cohort(cohort_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(cohort_folder / "config"))
    return homes.read(cohort_folder / "home")


def test_the_cohort_through_ingest(cohort: Home):
    snapshot = open_snapshot(cohort)
    ref, alt = (Arm(snapshot.book.resolve(name)) for name in ("direct", "generated"))
    selected = snapshot.select(Scope("transport", (ref, alt)))
    faces = assemble(selected)
    assert (faces.flow.transitions, len(faces), len(faces.trajectories)) == (1100, 1004, 100)
    assert sum(e.count for e in faces.flow.excluded) == 96
    assert {e.reason.partition(":")[0] for e in faces.flow.excluded} == {"absent", "failed"}
    examples = [x.text(("direct", "generated")) for e in faces.flow.excluded for x in e.examples]
    assert "traj000/step05: after, direct, layout 2, candidate A absent" in examples
    assert selected.provenance.entries_out == dict.fromkeys(selected.provenance.entries_out, 0)
    names = [faces.target.names[code] for code in faces.target.codes]
    assert {name: names.count(name) for name in faces.target.names} == {
        "A": 531,
        "B": 175,
        "C": 157,
        "NONE": 141,
    }
    gains = [(m[:, 1] - m[:, 0]).mean() / 2**40 for m in faces.margins]
    assert gains == pytest.approx([0.1630000072022823, -0.1599999920966709], abs=1e-9)


def test_its_donors_and_frozen_views_are_bound(cohort: Home):
    snapshot = open_snapshot(cohort)
    donors = snapshot.book.resolve("control/generated-neutral")
    own = assemble(snapshot.select(Scope("transport", (Arm(donors), Arm(donors, "donor")))))
    assert (len(own), own.flow.transitions) == (96, 96)
    seen = snapshot.book.resolve("cube/generated-neutral")
    frozen = snapshot.select(Scope("transport", (Arm(seen, "before"), Arm(seen, "after"))))
    assert len(assemble(frozen)) == 96
    assert pc.sum(pa.array(frozen.provenance.entries_out.values())).as_py() == 0
