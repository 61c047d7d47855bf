"""A call that is judged part by part has the outcome of one that is judged at once."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet as pq

from contracts.errors import ContractError, StorageError
from ledger import ingest, score_rows, segments
from ledger.receipt import Receipt, RefusedCallError
from tests.ledger import score_files
from tests.ledger.homes import Place, files
from tests.ledger.score_files import Row, digest, rows, without, write


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return score_files.place_with_channels(tmp_path_factory.mktemp("template"))


divided_rows = score_rows.divided


def shuffled(made: Sequence[Row], seed: int = 1) -> list[Row]:
    mixed = list(made)
    random.Random(seed).shuffle(mixed)
    return mixed


def outcome(place: Place, paths: Sequence[Path], **options: object) -> dict[str, object]:
    """What a person and the log are told; how findings of rows are told together is left out."""
    try:
        receipt: Receipt = ingest.ingest(place.home, paths, key=place.key, **options)  # type: ignore[arg-type]
        error = None
    except RefusedCallError as refused:
        receipt, error = refused.receipt, refused.code
    told = receipt.as_json()
    told["findings"] = {"by_code": dict(receipt.findings.by_code), "rejects": _rejects(receipt)}
    told["hint"] = (receipt.hint or "").partition("; --rejects")[0]  # named where many findings are
    told["sides"] = receipt.sides.to_pylist() if receipt.sides is not None else None
    if isinstance(told["head"], dict):
        told["head"] = told["head"]["size"]  # the root holds the time
    return {**told, "error": error}


def _rejects(receipt: Receipt) -> list[tuple[object, ...]]:
    rejected = receipt.findings.rejects()
    return sorted((tuple(row.values()) for row in rejected.to_pylist()), key=repr)


@contextmanager
def divided() -> Iterator[None]:
    """Every call is read in batches of 50 rows and judged in parts of about 100."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ingest, "LARGE", 0)
        patch.setattr(ingest, "DIVIDED_ROWS", 0)
        patch.setattr(score_rows, "BATCH_ROWS", 50)
        patch.setattr(score_rows, "PART_ROWS", 100)
        yield


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


def changed(made: Sequence[Row], at: Callable[[Row], bool], **values: object) -> list[Row]:
    """The rows, those that are meant with other values."""
    return [{**row, **values} if at(row) else row for row in made]


def of(trajectory: int, **key: object) -> Callable[[Row], bool]:
    wanted = {"trajectory_id": f"traj{trajectory:03d}", **key}
    return lambda row: all(row[name] == value for name, value in wanted.items())


MADE = rows(range(6))  # 48 rows a trajectory
CELL = {"step": 1, "endpoint": "after", "channel": "direct", "layout": 1, "candidate": "C"}
LOOKS_LIKE = "tr\u0430j000"  # with a Cyrillic a
SHARED_DIGEST = digest("candidates", "shared")


def rebound(*transitions: tuple[int, int]) -> list[Row]:
    """One digest for the candidates of four steps, of which some have another set of them."""
    made = MADE
    for t, step in ((0, 0), (2, 0), (4, 1), (5, 1)):
        made = changed(made, of(t, step=step), candidates_hash=SHARED_DIGEST)
    for t, step in transitions:
        made = changed(made, of(t, step=step, candidate="C"), candidate="D")
    return made


CALLS: dict[str, list[Row]] = {
    "clean": MADE,
    "a cell is missing": without(MADE, trajectory_id="traj004", **CELL),
    "a cell is there twice": [*MADE, *(row for row in MADE if of(3, **CELL)(row))],
    "a reading failed": changed(MADE, of(2, **CELL), energy=None, status="timeout"),
    "two targets": changed(MADE, of(1, **CELL), target="B"),
    "two outcomes of one trajectory": changed(MADE, of(5, **CELL), success=True),
    "a candidate nobody else has": changed(MADE, of(0, **CELL), candidate="Z"),
    "a digest stands for two sets, one of them more often": rebound((5, 1)),
    "a digest stands for two sets, equally often": rebound((4, 1), (5, 1)),
    "an energy is not a number": changed(MADE, of(3, **CELL), energy=float("nan")),
    "a channel nobody knows": changed(MADE, of(4), channel="nobody"),
    "an id looks like another": changed(MADE, of(5), trajectory_id=LOOKS_LIKE),
    "an id is missing": changed(MADE, of(5, **CELL), trajectory_id=None),
    "a digest in most rows only": changed(MADE, of(0), request_hash=None),
    "no requests at all": changed(MADE, lambda row: True, request_hash=None),
    "a view from a donor": [
        {
            **row,
            "view_source": "donor:traj003",
            "view_hash": digest("view", (3, row["step"]), row["endpoint"]),
        }
        if of(1, channel="generated")(row)
        else row
        for row in MADE
    ],
    "a view its donor never showed": changed(MADE, of(1, channel="generated"), view_source="donor:traj003"),
}
REFUSED = {
    "an energy is not a number", "a channel nobody knows", "an id looks like another", "an id is missing",
    "a digest in most rows only",
}  # fmt: skip
IN_ALL = {"view_source": "own", "status": "ok"}


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
