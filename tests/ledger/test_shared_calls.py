"""A large call whose work is shared with workers says and leaves, byte for byte, what one process does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from ledger import ingest
from ledger.engine_pool import Pool
from tests.ledger import score_files
from tests.ledger.homes import Place
from tests.ledger.large_calls import CALLS, CELL, IN_ALL, MADE, changed, divided, exactly, of, rebound, shuffled
from tests.ledger.score_files import Row, write


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return score_files.place_with_channels(tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    made = Pool(2, always=True)
    yield made
    made.close()


def same(
    template: Place,
    folder: Path,
    pool: Pool,
    paths: Sequence[Path],
    before: Sequence[Path] = (),
    **options: object,
) -> dict[str, object]:
    """What a call says and leaves, which is the same whether workers take part in it or not."""
    found = []
    for name, given in (("here", {}), ("shared", {"engine": pool})):
        place = template.copy(folder / name).use()
        if before:
            exactly(place, before)
        with divided():
            found.append(exactly(place, paths, **options, **given))
    assert found[1] == found[0]
    assert found[0]["staged"] == []
    return found[0]


@pytest.mark.parametrize("name", CALLS)
def test_in_workers_as_here(template: Place, tmp_path: Path, pool: Pool, name: str) -> None:
    made = shuffled([{**IN_ALL, **row} for row in CALLS[name]])
    found = same(template, tmp_path, pool, [write(tmp_path / "scores.parquet", made)])
    assert found["rows"] == len(made)
