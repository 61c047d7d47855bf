"""Lineage and show: from an entry to its row and from an audit to its segments, nothing unchecked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import TamperError, UsageError, VerificationError
from ledger import ingest, reading, segments
from ledger.identify import Found, identify, spelling
from ledger.index import Index
from ledger.index_rows import SegmentRow
from ledger.lineage import lineage
from ledger.node import Node
from ledger.query import Query, scores
from ledger.records import log_record
from ledger.revocations import revoke_acquisition
from ledger.show import show
from ledger.statement import AUDIT, Statement, Subject
from tests.ledger import score_files
from tests.ledger.homes import Place, by_hand
from tests.ledger.score_files import rows, without, write

HEAD = Subject("test-log@5", {"sha256": "1" * 64})


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Two calls of two segments each, one refusal, two audits, and a revoked acquisition."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", "")
        patch.setattr(segments, "SEGMENT_ROWS", 100)
        place = score_files.place_with_channels(tmp_path_factory.mktemp("template"))
        folder = place.home.path.parent
        made = without(rows(), trajectory_id="traj001", step=1, channel="direct", layout=1)
        files = [write(folder / "first.parquet", made[:50]), write(folder / "second.parquet", made[50:])]
        ingest.ingest(place.home, files, key=place.key)
        more = write(folder / "more.parquet", rows(range(8, 12), acquisition="main-2"))
        ingest.ingest(place.home, [more], key=place.key)
        with Index.open(place.home) as index:
            direct, generated = (index.channels().resolve(n).fingerprint for n in ("direct", "generated"))
            stored = index.segments()
        log_record(place.home, place.key, audit(stored[:2], [direct, generated]))
        log_record(place.home, place.key, audit(stored, [direct], [[None, "main-2"]]))
        revoke_acquisition(place.home, place.key, "main-2", "the server was swapped")
    return place


def audit(
    read: Sequence[SegmentRow], channels: Sequence[str], acquisitions: Sequence[list[str | None]] = ()
) -> Statement:
    """A statement as audits make them, without its numbers."""
    arms = [{"role": f"r{i}", "channel": fp, "view_source": "own"} for i, fp in enumerate(channels)]
    result = {
        "design": {"audit": "transport", "arms": arms, "scope": {"acquisitions": list(acquisitions)}},
        "flow": {"transitions": 8, "complete": 7, "trajectories": 4},
        "provenance": {"entries_in": 186, "entries_kept": 180, "level": "bound"},
    }
    named = [Subject(f"segment:{s.root[7:23]}", {"blake3": s.file[7:], "sha256": s.root[7:]}) for s in read]
    return Statement(
        (HEAD, *named), AUDIT, {"audit": "transport", "schema": "1", "result": result, "environment": {}}
    )


@pytest.fixture
def place(template: Place, tmp_path: Path) -> Place:
    return template.copy(tmp_path).use()


def trace(place: Place, text: str, source: Path | None = None, at: int | None = None) -> Node:
    with reading.reading(place.home, at=at) as view:
        return lineage(view, text, source)


def entries(place: Place, query: Query) -> list[dict[str, Any]]:
    with reading.reading(place.home) as view:
        return [row for table in scores(view, query) for row in table.to_pylist()]


def children(node: Node) -> list[str]:
    return [child.kind for child in node.children]


ONE = Query(("traj002",), (1,), ("after",), ("own",), (), (1,), ("main-1",), ("B",))


# --- an entry upward


def test_an_entry_leads_to_its_row_and_everything_it_depends_on(place: Place) -> None:
    made = without(rows(), trajectory_id="traj001", step=1, channel="direct", layout=1)
    key = {
        "trajectory_id": "traj002",
        "step": 1,
        "endpoint": "after",
        "layout": 1,
        "candidate": "B",
        "channel": "direct",
    }
    (row,) = (i for i, each in enumerate(made) if key.items() <= each.items())
    found = next(each for each in entries(place, ONE) if each["channel"] == "direct@1")
    node = trace(place, found["entry"])
    assert (node.kind, node.id) == ("entry", found["entry"])
    assert (node.facts["channel"], node.facts["energy"]) == ("direct@1", made[row]["energy"])
    assert children(node) == ["source", "segment", "channel", "acquisition", "inputs", "audit"]
    source, segment, channel, acquisition, inputs, used = node.children
    assert (source.facts["name"], source.facts["row"]) == ("second.parquet", row - 50 + 1)
    assert segment.id[7:23] == found["entry"].split(":")[0]
    assert segment.facts["row"] == int(found["entry"].split(":")[1])
    (event,) = segment.children
    assert event.facts["leaf"] == segment.facts["event"]
    assert event.facts["path"] == 4  # of 12 leaves
    (head,) = event.children
    assert (head.facts["origin"], head.facts["pinned"], head.facts["size"]) == (
        "test-log",
        True,
        event.facts["size"],
    )
    assert channel.facts["fingerprint"] == found["fingerprint"]
    assert "revoked" not in acquisition.facts
    assert inputs.facts == {name: made[row][f"{name}_hash"] for name in ("state", "candidates", "request")}
    assert (used.facts["complete"], used.facts["signed_by_this_log"]) == (7, True)
    json.dumps(node.as_json())


def test_a_revoked_acquisition_is_said_with_its_reason(place: Place) -> None:
    (found, _) = entries(place, Query(("traj009",), (0,), ("after",), (), (), (0,), (), ("A",)))
    (acquisition,) = trace(place, found["entry"]).find("acquisition")
    assert acquisition.facts["revoked"]["reason"] == "the server was swapped"  # type: ignore[index]


def test_audits_are_told_by_segment_channel_and_acquisition(place: Place) -> None:
    """The second audit read every segment, but of them only acquisition main-2 of channel direct."""
    with Index.open(place.home) as index:
        first, second = (row.record for row in index.records())
    asked = {
        "traj002": {"direct@1": [first], "generated@1": [first]},
        "traj009": {"direct@1": [second], "generated@1": []},
    }
    for trajectory, expected in asked.items():
        for found in entries(place, Query((trajectory,), (0,), ("before",), (), (), (0,), (), ("A",))):
            used = [child.id for child in trace(place, found["entry"]).find("audit")]
            assert used == expected[found["channel"]]


@pytest.mark.parametrize("digits", [16, 17, 64])
def test_longer_ids_name_the_same_entry(place: Place, digits: int) -> None:
    found = entries(place, ONE)[0]["entry"]
    with Index.open(place.home) as index:
        (segment,) = index.segments_by_root(found.split(":")[0])
    assert trace(place, f"{segment.root[7 : 7 + digits]}:{found.split(':')[1]}").id == found


def test_an_ambiguous_id_lists_the_candidates(place: Place) -> None:
    with Index.open(place.home) as index:
        roots = [segment.root for segment in index.segments()]
    shared = roots[0][:24] + "f" * (len(roots[1]) - 24)
    by_hand(place, "UPDATE segment SET root = ? WHERE root = ?", shared, roots[1])
    with pytest.raises(UsageError) as caught:
        trace(place, f"{roots[0][7:23]}:3")
    assert caught.value.code == "ambiguous-id"
    assert roots[0][7:] in str(caught.value)
    assert shared[7:] in str(caught.value)


# --- the source file


def test_the_file_an_entry_came_from_is_known_again_with_its_row(place: Place, template: Place) -> None:
    found = entries(place, ONE)[0]
    node = trace(place, found["entry"], template.home.path.parent / "second.parquet")
    (file,) = node.find("file")
    assert file.facts["values"]["energy"] == found["energy"]  # type: ignore[index]
    assert file.facts["values"]["state_hash"] == found["state_hash"]  # type: ignore[index]
    (segment,) = node.find("segment")
    below = trace(place, segment.id, template.home.path.parent / "first.parquet").children
    assert (below[0].kind, below[0].facts["recorded_as"]) == ("file", "first.parquet")
    for other in ("first", "more"):
        with pytest.raises(VerificationError, match="not the file it came from"):
            trace(place, found["entry"], template.home.path.parent / f"{other}.parquet")


# --- downward


def test_an_audit_leads_down_to_what_it_read(place: Place) -> None:
    with Index.open(place.home) as index:
        first, second = index.records()
    node = trace(place, first.record)
    assert children(node) == ["event", "channel", "channel", "acquisition", "segment", "segment"]
    assert (node.facts["entries_in"], node.facts["transitions"]) == (186, 8)
    assert trace(place, str(first.event)) == trace(place, first.record[7:19]) == node
    below = trace(place, f"record:{second.record[7:]}")
    assert [n.id for n in below.find("channel")] == ["direct@1"]
    assert [n.id for n in below.find("acquisition")] == ["main-2"]
    assert len(list(below.find("segment"))) == 4


def test_channels_acquisitions_segments_and_refusals_have_their_own_trees(place: Place) -> None:
    with Index.open(place.home) as index:
        records = [row.record for row in index.records()]
        segment, refusal = index.segments()[0], index.refusals()[0]
    direct = trace(place, "direct")
    assert [n.id for n in direct.find("audit")] == records
    assert [n.id for n in direct.find("acquisition")] == ["main-1", "main-2"]
    assert [n.id for n in trace(place, "generated@1").find("audit")] == records[:1]
    assert [n.id for n in trace(place, "main-2").find("audit")] == records[1:]
    assert len(list(trace(place, "main-1").find("segment"))) == 2
    assert trace(place, segment.file[:20]) == trace(place, segment.root) == trace(place, str(segment.event))
    assert (trace(place, refusal.file).kind, trace(place, refusal.file).facts["sides"]) == ("refusal", 1)
    assert children(trace(place, "0")) == ["head"]


def test_an_older_head_knows_nothing_of_what_came_later(place: Place) -> None:
    with Index.open(place.home) as index:
        (first, _), sizes = index.records(), index.heads()
    at = max(size for size in sizes if size <= first.event)
    found = entries(place, ONE)[0]["entry"]
    assert list(trace(place, found, at=at).find("audit")) == []
    with pytest.raises(UsageError, match="nothing in this ledger"):
        trace(place, first.record, at=at)


# --- ids


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        "0123456789abcdef:0",
        "sha256:" + "0" * 64,
        "blake3:" + "0" * 64,
        "99999",
        "event:99",
        "channel:x",
        "",
    ],
)
def test_what_is_not_there_is_said(place: Place, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        trace(place, text)
    assert caught.value.code == "unknown-id"


def test_a_row_beyond_the_segment_is_said(place: Place) -> None:
    found = entries(place, ONE)[0]["entry"].split(":")[0]
    with pytest.raises(UsageError, match="no such row"):
        trace(place, f"{found}:100")


def test_every_spelling_means_one_thing(place: Place) -> None:
    with Index.open(place.home) as index:
        things: list[Found] = [
            *index.segments(),
            *index.refusals(),
            *index.records(),
            *index.channel_rows(),
            *index.acquisitions(),
        ]
        for thing in things:
            assert identify(index, spelling(thing), index.size) == thing


def test_a_name_of_a_channel_and_an_acquisition_must_be_spelt_out(place: Place) -> None:
    made = rows([20], acquisition="direct")
    ingest.ingest(place.home, [write(place.home.path.parent / "x.parquet", made)], key=place.key)
    with pytest.raises(UsageError) as caught:
        trace(place, "direct")
    assert "channel:direct@1, acquisition:direct" in str(caught.value)
    assert trace(place, "acquisition:direct").kind == "acquisition"


# --- show


def test_show_tells_one_thing_itself(place: Place) -> None:
    found = entries(place, ONE)[0]
    with reading.reading(place.home) as view:
        entry = show(view, found["entry"])
        assert entry.children == ()
        assert entry.facts["state_hash"] == found["state_hash"]
        assert entry.facts["source"]["row"] > 0  # type: ignore[index]
        assert show(view, "direct").facts["spec"]["readout"]["labels"] == ["A", "B", "C"]  # type: ignore[index]
        event = show(view, "3")
        assert (event.facts["type"], event.facts["proof"]["size"]) == ("acquisition", view.size)  # type: ignore[index]
        record = view.index.records()[0].record
        assert show(view, record).facts["predicate"]["result"]["flow"]["complete"] == 7  # type: ignore[index]
        for text in ("main-1", view.index.segments()[0].root, view.index.refusals()[0].file):
            json.dumps(show(view, text).as_json())


# --- nothing unchecked


@pytest.mark.parametrize(
    ("statement", "text"),
    [
        ("UPDATE segment SET sources = replace(sources, 'second', 'forged')", None),
        ("UPDATE acquisition SET id = 'main-9' WHERE id = 'main-1'", "main-9"),
        ("UPDATE record SET result = 'sha256:' || hex(zeroblob(32))", "10"),
        ("UPDATE event SET data = CAST(replace(data, 'direct', 'dirext') AS BLOB)", "direct"),
    ],
)  # fmt: skip
def test_a_catalog_that_contradicts_the_log_is_not_quoted(
    place: Place, statement: str, text: str | None
) -> None:
    asked = text or entries(place, ONE)[0]["entry"]
    by_hand(place, statement)
    with pytest.raises(TamperError):
        trace(place, asked)


def test_a_changed_entry_is_not_shown(place: Place) -> None:
    found = entries(place, ONE)[0]["entry"]
    with Index.open(place.home) as index:
        (segment,) = index.segments_by_root(found.split(":")[0])
    for name in (f"segments/{segment.leaves[7:]}.leaves", f"segments/{segment.rows_file[7:]}.rows"):
        path = place.home.objects.path(name)
        kept = path.read_bytes()
        path.write_bytes(bytes([kept[0] ^ 1]) + kept[1:])
        with pytest.raises(TamperError):
            trace(place, found)
        path.write_bytes(kept)
    assert trace(place, found).id == found
