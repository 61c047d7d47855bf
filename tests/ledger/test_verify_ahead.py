"""Full verification reads ahead in a thread: what goes wrong there comes out in its place, nothing stays."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.errors import TamperError
from contracts.schema import TRANSPORT
from contracts.threads import ahead, for_reading
from ledger import pages, segments, verify_segment
from ledger.event_types import AcquisitionEvent
from ledger.pages import PAGE_ROWS, page_bytes, page_leaves
from ledger.segment_reader import SegmentReader
from ledger.verify import verify
from tests.ledger.homes import Place
from tests.ledger.score_files import place_with_channels, rows
from tests.ledger.test_verify_full import append, event_of, honest, table_of

# What `ahead` promises


def test_items_come_in_order_and_no_more_are_made_than_asked_for() -> None:
    made: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10):
            made.append(number)
            assert threading.current_thread() is not threading.main_thread()
            yield number

    seen = []
    for number in ahead(items(), 2):
        seen.append(number)
        assert len(made) <= number + 3
    assert seen == list(range(10))
    assert list(ahead(iter(()), 2)) == []


def test_an_exception_comes_where_the_next_item_would() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise TamperError("page", kind="data")

    given = ahead(items(), 3)
    assert [next(given), next(given)] == [1, 2]
    with pytest.raises(TamperError):
        next(given)
    assert list(ahead(iter([3]), 2)) == [3]  # the thread is still there


def test_whoever_takes_no_more_waits_for_the_one_being_made() -> None:
    going, through = threading.Event(), threading.Event()

    def items() -> Iterator[int]:
        yield 1
        going.set()
        time.sleep(0.2)
        through.set()
        yield 2

    taken = ahead(items(), 2)
    assert next(taken) == 1
    assert going.wait(5)
    taken.close()
    assert through.is_set()


# Segments in several row groups


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A home with one segment of 864 rows in four row groups, the last one of less than a page."""
    made = place_with_channels(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(made.config))
    monkeypatch.setattr(segments, "GROUP_ROWS", 256)
    honest(made, "a", rows(range(9)) + rows(range(9, 18)))
    return made


def forged(place: Place, page: int) -> int:
    """Appends a segment whose file has another energy in a page than its leaves; the page it is in."""
    other = table_of(place).set_column(6, "acquisition_id", pa.array(["other"] * 864))
    energies = other.column("energy").to_pylist()
    energies[page * PAGE_ROWS + 3] += 1.0
    one, two = event_of(place, other), event_of(place, other.set_column(8, "energy", pa.array(energies)))
    append(place, AcquisitionEvent("other", "transport"), replace(one, file=two.file, size=two.size))
    return page


@pytest.mark.parametrize("page", range(4))
def test_a_page_of_any_group_is_found(place: Place, page: int) -> None:
    forged(place, page)
    (problem,) = verify(place.home, full=True).findings
    assert f"page {page} is not what was committed" in problem.message
    assert for_reading()._work_queue.qsize() == 0


@pytest.mark.parametrize("count", [1, 2, 9])
def test_groups_read_ahead_find_the_same(place: Place, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(verify_segment, "AHEAD", count)
    assert verify(place.home, full=True).findings == ()
    forged(place, 2)
    (problem,) = verify(place.home, full=True).findings
    assert "page 2 is not what was committed" in problem.message


@pytest.mark.parametrize("stage", ["_decode", "_compare", "with_codes", "_order", "source_rows"])
def test_an_error_of_any_stage_is_raised_and_the_file_is_closed_behind_it(
    place: Place, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    calls = 0
    closed: list[int] = []
    owner = {"with_codes": verify_segment, "_order": verify_segment.Check}.get(stage, SegmentReader)
    real, close = getattr(owner, stage), SegmentReader.close

    def failing(*given: object) -> object:
        nonlocal calls
        calls += 1
        if calls == (1 if stage == "source_rows" else 3):
            raise MemoryError("no room")
        return real(*given)

    def closing(self: SegmentReader) -> None:
        closed.append(calls)
        close(self)

    monkeypatch.setattr(owner, stage, failing)
    monkeypatch.setattr(SegmentReader, "close", closing)
    with pytest.raises(MemoryError):
        verify(place.home, full=True)
    assert closed == [calls]  # once, and nothing was read behind it


def test_ctrl_c_ends_it_at_once(place: Place) -> None:
    """A thread that reads is waited for, and the process ends as if there were none."""
    program = f"""
import os, signal, sys, time
from dataclasses import replace
from pathlib import Path
from ledger import home, segment_reader, verify_segment
from ledger.verify import verify
real = segment_reader.SegmentReader._decode
def slow(self, *given):
    print("reading", flush=True)
    time.sleep(0.5)
    return real(self, *given)
segment_reader.SegmentReader._decode = slow
try:
    verify(home.find({str(place.home.path)!r}), full=True)
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "reading\n"
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=30)
    assert told.splitlines()[-1] == "stopped"
    assert told.count("reading") <= 2
    assert process.returncode == 0


# Pages of columns that are encoded whole


@pytest.mark.parametrize("count", [255, 256, 257, 511, 512, 513, 767, 864])
def test_leaves_are_the_same_however_many_pages_are_encoded_at_once(
    place: Place, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    table = table_of(place).select(TRANSPORT.names).slice(0, count)
    path = place.home.path.parent / "rows.parquet"
    pq.write_table(table, path)
    text = [column.name for column in TRANSPORT.columns if column.type == "text"]
    read = pq.read_table(path, read_dictionary=text)
    expected = [
        pages._hashed([[memoryview(page_bytes(table, page, TRANSPORT))]])[0]
        for page in range(pages.page_count(count))
    ]
    monkeypatch.setattr(pages, "BLOCK_PAGES", 1)
    for at_once in (0, 1 << 17):
        monkeypatch.setattr(pages, "ROWS_AT_ONCE", at_once)
        for each in (table, read, pa.concat_tables([read.slice(0, 100), read.slice(100)])):
            assert page_leaves(each, TRANSPORT) == expected
