"""A call that is judged part by part has the outcome of one that is judged at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet as pq

from contracts.errors import ContractError, StorageError
from ledger import ingest, score_rows, segments
from tests.ledger import score_files
from tests.ledger.homes import Place, files
from tests.ledger.large_calls import (
    CALLS,
    CELL,
    IN_ALL,
    MADE,
    REFUSED,
    changed,
    divided,
    of,
    outcome,
    rebound,
    shuffled,
)
from tests.ledger.score_files import Row, without, write


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return score_files.place_with_channels(tmp_path_factory.mktemp("template"))


divided_rows = score_rows.divided


def both(
    template: Place, folder: Path, paths: Sequence[Path], before: Sequence[Path] = (), **options: object
) -> dict[str, object]:
    """The outcome of a call, which is the same whether it is judged at once or in parts."""
    found = []
    for name, way in (("whole", nullcontext), ("parts", divided)):
        place = template.copy(folder / name).use()
        if before:
            ingest.ingest(place.home, before, key=place.key)
        with pytest.MonkeyPatch.context() as patch, way():
            patch.setattr(segments, "SEGMENT_ROWS", 64)
            found.append(outcome(place, paths, **options))
        staging = place.home.path / "objects" / "staging"
        assert not staging.is_dir() or not files(staging)
    assert found[1] == found[0]
    return found[0]


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("order", [list, shuffled], ids=["in order", "shuffled"])
def test_in_parts_as_at_once(
    template: Place, tmp_path: Path, name: str, order: Callable[[Sequence[Row]], list[Row]]
) -> None:
    made = order([{**IN_ALL, **row} for row in CALLS[name]])
    found = both(template, tmp_path, [write(tmp_path / "scores.parquet", made)])
    assert found["rows"] == len(made)
    assert (found["error"] is not None) == (name in REFUSED)
    assert (found["findings"] == {"by_code": {}, "rejects": []}) == (
        name in ("clean", "no requests at all", "a view from a donor")
    )


def test_the_sets_of_a_digest_are_told_apart_across_parts(template: Place, tmp_path: Path) -> None:
    def sides(made: list[Row]) -> set[str]:
        found = both(template, tmp_path / str(len(list(tmp_path.iterdir()))), [_written(tmp_path, made)])
        return {f"{side['trajectory_id']}/{side['step']}" for side in found["sides"]}  # type: ignore[attr-defined]

    assert sides(rebound((5, 1))) == {"traj005/1"}
    assert sides(rebound((4, 1), (5, 1))) == {"traj000/0", "traj002/0", "traj004/1", "traj005/1"}


def _written(folder: Path, made: Sequence[Row]) -> Path:
    return write(folder / "rebound.parquet", made)


@pytest.mark.parametrize("step", [None, 1], ids=["apart", "in one step"])
def test_sentences_about_sides_are_the_same_in_parts(
    template: Place, tmp_path: Path, step: int | None
) -> None:
    """An acquisition is named where the step has rows of another one, whatever else the call holds."""
    made = without(MADE, trajectory_id="traj001", **CELL)
    made = without(made, **{**CELL, "trajectory_id": "traj004", "channel": "generated", "layout": 0})
    there = of(4) if step is None else of(4, step=step, channel="generated")
    path = write(tmp_path / "scores.parquet", shuffled(changed(made, there, acquisition_id="again")))
    found = []
    for name, way in (("whole", nullcontext), ("parts", divided)):
        place = template.copy(tmp_path / name).use()
        with way():
            found.append(ingest.ingest(place.home, [path], key=place.key).findings.examples)
    assert found[1] == found[0]
    assert [", again)" in each.message for each in found[0]] == [False, step is not None]


@pytest.mark.parametrize("options", [{"strict": True}, {"dry_run": True}], ids=["strict", "dry run"])
@pytest.mark.parametrize("name", ["clean", "a cell is missing"])
def test_options_hold_in_parts(template: Place, tmp_path: Path, name: str, options: dict[str, bool]) -> None:
    made = shuffled([{**IN_ALL, **row} for row in CALLS[name]])
    both(template, tmp_path, [write(tmp_path / "scores.parquet", made)], **options)


def test_several_files_are_one_set(template: Place, tmp_path: Path) -> None:
    made = shuffled(MADE)
    paths = [write(tmp_path / f"{n}.parquet", made[n::3]) for n in range(3)]
    assert both(template, tmp_path, paths)["admitted"] == len(MADE)


@pytest.mark.parametrize("energy", [None, 1.5], ids=["the same", "another"])
def test_entries_of_the_ledger_count_in_every_part(
    template: Place, tmp_path: Path, energy: float | None
) -> None:
    before = write(tmp_path / "before.parquet", [row for row in MADE if row["step"] == 0])
    made = MADE if energy is None else changed(MADE, of(4, **{**CELL, "step": 0}), energy=energy)
    paths = [write(tmp_path / "scores.parquet", shuffled(made))]
    found = both(template, tmp_path, paths, [before])
    assert (found["error"], found["skipped"]) == (None, 144) if energy is None else ("conflict", 143)


@pytest.mark.parametrize("form", ["csv", "jsonl", "arrow", "arrows"])
@pytest.mark.parametrize("fault", [False, True], ids=["clean", "faulty"])
def test_every_format_comes_in_batches(template: Place, tmp_path: Path, form: str, fault: bool) -> None:
    made = shuffled(changed(MADE, of(2, **CELL), energy=float("inf")) if fault else MADE)
    path = tmp_path / f"scores.{form}"
    table = pq.read_table(write(tmp_path / "scores.parquet", made))
    if form == "csv":
        pa.csv.write_csv(table, path)
    elif form == "jsonl":
        lines = [json.dumps({**row, "energy": "x"} if row["energy"] == float("inf") else row) for row in made]
        path.write_text("\n".join(lines))
    else:
        opened = pa.ipc.new_file if form == "arrow" else pa.ipc.new_stream
        with opened(path, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=70):
                writer.write_batch(batch)
    found = both(template, tmp_path, [path])
    assert (found["error"] is not None) == fault


def test_a_file_that_breaks_off_inside_leaves_nothing(template: Place, tmp_path: Path) -> None:
    place = template.copy(tmp_path).use()
    path = tmp_path / "scores.parquet"
    pq.write_table(pq.read_table(write(path, MADE)), path, row_group_size=48, write_page_checksum=True)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    before = files(place.home.path)
    with divided(), pytest.raises((StorageError, ContractError)):
        ingest.ingest(place.home, [path], key=place.key)
    assert files(place.home.path) == before


def test_an_empty_file_is_refused_in_batches_too(template: Place, tmp_path: Path) -> None:
    place = template.copy(tmp_path).use()
    path = write(tmp_path / "scores.parquet", MADE)
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    with divided(), pytest.raises(ContractError, match="no rows"):
        ingest.ingest(place.home, [path, write(tmp_path / "more.parquet", MADE)], key=place.key)


@pytest.mark.parametrize("used", [False, True], ids=["unused", "used"])
def test_a_null_among_the_labels_of_a_dictionary(template: Place, tmp_path: Path, used: bool) -> None:
    table = pq.read_table(write(tmp_path / "scores.parquet", MADE))
    codes = table["trajectory_id"].combine_chunks().dictionary_encode()
    labels = pa.concat_arrays([codes.dictionary, pa.nulls(1, pa.string())])
    at = codes.indices.to_numpy(zero_copy_only=False).copy()
    at[7] = len(labels) - 1 if used else at[7]
    column = pa.DictionaryArray.from_arrays(pa.array(at), labels)
    table = table.set_column(table.column_names.index("trajectory_id"), "trajectory_id", column)
    path = tmp_path / "scores.arrow"
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)
    assert (both(template, tmp_path, [path])["error"] is not None) == used


@pytest.mark.parametrize("column", ["trajectory_id", "energy", "step"])
@pytest.mark.parametrize("fault", ["missing", "of another type"])
def test_a_fault_of_a_whole_file_is_told_once(
    template: Place, tmp_path: Path, column: str, fault: str
) -> None:
    path = write(tmp_path / "scores.parquet", MADE)
    table = pq.read_table(path)
    at = table.column_names.index(column)
    nothing = pa.array([b"x"] * table.num_rows)
    table = table.set_column(at, column, nothing) if fault != "missing" else table.remove_column(at)
    pq.write_table(table, path)
    found = both(template, tmp_path, [path], kind="transport")
    assert found["error"] in ("missing-column", "wrong-type")
    assert len(found["findings"]["rejects"]) == 1  # type: ignore[index]


def test_rows_decide_what_is_large_and_not_bytes(template: Place, tmp_path: Path) -> None:
    place = template.copy(tmp_path).use()
    called = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "DIVIDED_ROWS", len(MADE) - 1)
        patch.setattr(score_rows, "divided", lambda *given: called.append(1) or divided_rows(*given))
        ingest.ingest(place.home, [write(tmp_path / "scores.parquet", MADE)], key=place.key)
    assert called
