"""The ranges a selection is read in: the same faces however entries are spread, within bounds of memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from audits.faces import assemble
from ledger import range_tasks, ranges, segment_rows, segments
from ledger.inventory import Runs, take
from ledger.matching import Matcher
from ledger.ranges import RangeReader, Trajectories, cut
from ledger.scope import Scope
from ledger.segment_reader import SegmentReader
from ledger.snapshot import Snapshot
from tests.ledger.unjudged_homes import DIRECT, SCOPE, Ledger, face, ledger, same, side, template

__all__ = ["ledger", "template"]  # fixtures


def entries(snapshot: Snapshot, scope: Scope = SCOPE) -> pa.Table:
    return pa.concat_tables([part.entries for part in snapshot.select(scope).ranges()])


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
