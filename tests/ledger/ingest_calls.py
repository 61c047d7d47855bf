"""Calls of ingest on a home with two channels, and what the home holds after them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from ledger import events, ingest
from ledger.index import Index
from ledger.receipt import Receipt
from ledger.segment_reader import SegmentReader
from tests.ledger import score_files
from tests.ledger.homes import Place
from tests.ledger.score_files import Row, write


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return score_files.place_with_channels(tmp_path_factory.mktemp("template"))


@pytest.fixture
def place(template: Place, tmp_path: Path) -> Place:
    return template.copy(tmp_path).use()


def take(place: Place, *paths: Path, **options: object) -> Receipt:
    return ingest.ingest(place.home, paths, key=place.key, **options)  # type: ignore[arg-type]


def take_rows(place: Place, made: Sequence[Row], name: str = "scores", **options: object) -> Receipt:
    return take(place, write(place.home.path.parent / f"{name}.parquet", made), **options)


def logged(place: Place) -> list[events.Event]:
    with Index.open(place.home) as index:
        return [events.decode(row.data) for row in index.events()]


def stored(place: Place) -> int:
    """How many entries the segments of a home hold, each file checked."""
    with Index.open(place.home) as index:
        return sum(SegmentReader.whole(place.home.objects, s).read().num_rows for s in index.segments())
