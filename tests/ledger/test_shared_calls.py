"""A large call whose work is shared with workers says and leaves, byte for byte, what one process does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet as pq

from contracts.errors import StorageError
from ledger import channels, home, ingest, score_rows, segments
from ledger.engine_pool import Pool
from ledger.index import Index
from ledger.shelf import shelf
from ledger.source_batches import SourceBatches
from ledger.staging import stage
from tests.gateway import Door
from tests.ledger import score_files
from tests.ledger.homes import Place, files
from tests.ledger.kernels import Apart, Ending
from tests.ledger.large_calls import CALLS, CELL, IN_ALL, MADE, changed, divided, exactly, of, shuffled
from tests.ledger.score_files import rows, without, write

BY_DEFAULT = {
    "clean",
    "a cell is there twice",
    "a digest stands for two sets, one of them more often",
    "an id looks like another",
    "a digest in most rows only",
    "a view from a donor",
}


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


@pytest.mark.parametrize(
    "name", [name if name in BY_DEFAULT else pytest.param(name, marks=pytest.mark.sweep) for name in CALLS]
)
def test_in_workers_as_here(template: Place, tmp_path: Path, pool: Pool, name: str) -> None:
    made = shuffled([{**IN_ALL, **row} for row in CALLS[name]])
    found = same(template, tmp_path, pool, [write(tmp_path / "scores.parquet", made)])
    assert found["rows"] == len(made)


def as_type(name: str, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    """The table with a column of another type; values that are not of it become something of it."""

    def change(table: pa.Table) -> pa.Table:
        at = table.schema.get_field_index(name)
        filled = (
            pa.nulls(len(table), kind) if pa.types.is_null(kind) else pa.array([1] * len(table)).cast(kind)
        )
        return table.set_column(at, name, filled)

    return change


def bare_digests(table: pa.Table) -> pa.Table:
    """The states as 32 bytes, with nothing that says of which algorithm."""
    raw = pa.array(
        [bytes.fromhex(text[7:]) for text in table.column("state_hash").to_pylist()], pa.binary(32)
    )
    return table.set_column(table.schema.get_field_index("state_hash"), "state_hash", raw)


REQUIRED = ("trajectory_id", "step", "endpoint", "channel", "layout", "acquisition_id", "candidate",
            "energy", "target")  # fmt: skip
WHOLE_FILE: dict[str, Callable[[pa.Table], pa.Table]] = {
    **{
        f"no {name}": lambda table, name=name: table.drop_columns(name)
        for name in REQUIRED
        if name != "energy"
    },
    **{f"{name} of no value": as_type(name, pa.null()) for name in REQUIRED},
    **{
        f"{name} of numbers": as_type(name, pa.int64()) for name in REQUIRED if name not in ("step", "layout")
    },
    **{f"{name} of text": as_type(name, pa.string()) for name in ("step", "layout", "energy", "success")},
    "target of lists": lambda table: table.set_column(
        table.schema.get_field_index("target"), "target", pa.array([["A"]] * len(table))
    ),
    "energy in single precision": as_type("energy", pa.float32()),
    "digests of no algorithm": bare_digests,
    "two faults": lambda table: as_type("step", pa.string())(table.drop_columns("target")),
}
SLOW = set(WHOLE_FILE) - {"no trajectory_id", "no target", "step of text", "digests of no algorithm"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.sweep) if name in SLOW else name for name in WHOLE_FILE]
)
@pytest.mark.parametrize(
    "place", [None, 0, pytest.param(1, marks=pytest.mark.sweep)], ids=["alone", "first", "last"]
)
def test_a_fault_of_a_whole_file_is_told_once(
    template: Place, tmp_path: Path, pool: Pool, name: str, place: int | None
) -> None:
    """However many batches have it, and whatever stands in the other files of the call."""
    table = pq.read_table(write(tmp_path / "whole.parquet", MADE[:144]))
    pq.write_table(WHOLE_FILE[name](table), tmp_path / "faulty.parquet", row_group_size=50)
    paths = [tmp_path / "faulty.parquet"]
    if place is not None:
        paths.insert(1 - place, write(tmp_path / "good.parquet", MADE[144:]))
    found = same(template, tmp_path, pool, paths)
    assert found["error"] is not None
    assert found["admitted"] == 0


@pytest.mark.parametrize("options", [{"strict": True}, {"dry_run": True}], ids=["strict", "dry run"])
def test_options_hold_in_workers(
    template: Place, tmp_path: Path, pool: Pool, options: dict[str, bool]
) -> None:
    path = write(tmp_path / "scores.parquet", shuffled(CALLS["a cell is missing"]))
    same(template, tmp_path, pool, [path], **options)


@pytest.mark.parametrize("energy", [None, 1.5], ids=["the same", "another"])
def test_entries_of_the_ledger_count_in_workers(
    template: Place, tmp_path: Path, pool: Pool, energy: float | None
) -> None:
    before = write(tmp_path / "before.parquet", [row for row in MADE if row["step"] == 0])
    made = MADE if energy is None else changed(MADE, of(4, **{**CELL, "step": 0}), energy=energy)
    found = same(template, tmp_path, pool, [write(tmp_path / "scores.parquet", shuffled(made))], [before])
    assert found["skipped"] == (144 if energy is None else 143)


@pytest.mark.parametrize("groups", [pytest.param(20, marks=pytest.mark.sweep), 70])
def test_several_files_of_any_make_are_one_set(
    template: Place, tmp_path: Path, pool: Pool, groups: int
) -> None:
    failed = changed([{**IN_ALL, **row} for row in MADE], of(3, **CELL), status="timeout", energy=None)
    made = shuffled(failed)
    paths = [write(tmp_path / f"{n}.parquet", made[n::3]) for n in range(3)]
    for path in paths:
        pq.write_table(pq.read_table(path), path, row_group_size=groups)
    found = same(template, tmp_path, pool, paths)
    assert (found["admitted"], found["refused"]["sides"]) == (276, 1)  # type: ignore[index]


@pytest.mark.parametrize("form", [pytest.param("csv", marks=pytest.mark.sweep), "jsonl", "arrow", "arrows"])
@pytest.mark.parametrize(
    "fault", [False, pytest.param(True, marks=pytest.mark.sweep)], ids=["clean", "faulty"]
)
def test_every_format_is_shared(template: Place, tmp_path: Path, pool: Pool, form: str, fault: bool) -> None:
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
    assert (same(template, tmp_path, pool, [path])["error"] is not None) == fault


@pytest.mark.parametrize("groups", [7, 20, 25, 50, 65, 288])
def test_runs_of_a_file_are_all_of_it(tmp_path: Path, groups: int) -> None:
    path = write(tmp_path / "scores.parquet", MADE)
    pq.write_table(pq.read_table(path), path, row_group_size=groups)
    staged = stage(path)
    spans = list(SourceBatches(staged, 50).spans())
    parts = [part for first, stop in spans for part in SourceBatches(staged, 50, first, stop)]
    every = list(SourceBatches(staged, 50))
    assert [part.table.num_rows for part in every] == [50, 50, 50, 50, 50, 38]
    assert [p.row_numbers.tolist() for p in parts] == [p.row_numbers.tolist() for p in every]
    assert [p.table.to_pylist() for p in parts] == [p.table.to_pylist() for p in every]
    assert len(spans) == {7: 6, 20: 6, 25: 6, 50: 6, 65: 2, 288: 1}[groups]
    columns = [SourceBatches(staged, 50, first, stop).trajectories() or () for first, stop in spans]
    names = [name for arrays in columns for array in arrays for name in array.to_pylist()]
    assert names == [row["trajectory_id"] for row in MADE]


MOMENTS = ["scores.parquet from row 101 on", "part 2 of the call", "segment 3 of the call"]
MARKED = [MOMENTS[0], *(pytest.param(moment, marks=pytest.mark.sweep) for moment in MOMENTS[1:])]


@pytest.mark.parametrize("moment", MARKED)
def test_a_worker_that_dies_is_replaced(template: Place, tmp_path: Path, moment: str) -> None:
    path = write(tmp_path / "scores.parquet", MADE)
    pq.write_table(pq.read_table(path), path, row_group_size=50)
    mark = tmp_path / "mark"
    with divided():
        here = exactly(template.copy(tmp_path / "here").use(), [path])
        shared = exactly(
            template.copy(tmp_path / "shared").use(),
            [path],
            engine=Ending(Pool(2, always=True), moment, mark),
        )
    assert mark.exists()
    assert shared == here


@pytest.mark.parametrize("moment", MARKED)
@pytest.mark.parametrize("dies", [False, pytest.param(True, marks=pytest.mark.sweep)], ids=["fails", "dies"])
def test_a_task_that_cannot_be_done_leaves_nothing(
    template: Place, tmp_path: Path, moment: str, dies: bool
) -> None:
    place = template.copy(tmp_path).use()
    path = write(tmp_path / "scores.parquet", MADE)
    pq.write_table(pq.read_table(path), path, row_group_size=50)
    before = files(place.home.path)
    engine = Ending(Pool(2, always=True), moment, None if dies else ZeroDivisionError("by 0"))
    with divided(), pytest.raises(StorageError) as caught:
        exactly(place, [path], engine=engine)
    assert caught.value.code == "engine-task"
    assert dies or (caught.value.where or "").endswith(moment)
    assert files(place.home.path) == before


def test_staging_that_workers_do_not_see_is_told_before_any_work(template: Place, tmp_path: Path) -> None:
    place = template.copy(tmp_path).use()
    before = files(place.home.path)
    path = write(tmp_path / "scores.parquet", MADE)
    with divided(), pytest.raises(StorageError, match="does not see") as caught:
        exactly(place, [path], engine=Apart(Pool(2, always=True)))
    assert (caught.value.code, caught.value.where) == ("staging-unreachable", "/nowhere")
    assert files(place.home.path) == before


def test_what_comes_after_the_end_of_a_call_is_not_kept(tmp_path: Path) -> None:
    with shelf(tmp_path) as files_of_call:
        files_of_call.begin()
        (place,) = files_of_call.put([pa.table({"a": [1, 2]})])
        table = place.table()
    assert list(tmp_path.iterdir()) == []
    assert table.to_pydict() == {"a": [1, 2]}
    with pytest.raises(StorageError, match="does not see"):
        files_of_call.put([table])
    late = files_of_call.fresh()
    with pytest.raises(StorageError), files_of_call.kept(late):
        late.touch()
    assert list(tmp_path.iterdir()) == []


def test_a_call_that_is_not_large_is_taken_here(template: Place, tmp_path: Path) -> None:
    class Unused(Pool):
        def map(self, *_given: object) -> Iterator[object]:  # type: ignore[override]
            raise AssertionError("asked for")

    place = template.copy(tmp_path).use()
    receipt = ingest.ingest(
        place.home, [write(tmp_path / "a.parquet", MADE)], key=place.key, engine=Unused(2, always=True)
    )
    assert receipt.admitted == len(MADE)


def test_another_writer_in_between_is_seen(template: Place, tmp_path: Path, pool: Pool) -> None:
    place = template.copy(tmp_path).use()
    path = write(tmp_path / "all.parquet", MADE)
    first = write(tmp_path / "first.parquet", [row for row in MADE if row["step"] == 0])

    def overtake(phase: str, done: int, _total: int) -> None:
        if (phase, done) == ("log", 0):
            ingest.ingest(place.home, [first], key=place.key)

    with divided():
        receipt = ingest.ingest(place.home, [path], key=place.key, engine=pool, progress=overtake)
    assert (receipt.admitted, receipt.skipped) == (len(MADE) - 144, 144)


def test_objects_in_a_bucket(tmp_path: Path, door: Door, pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stored is the same; each home has a key of its own, so the logs are not."""
    made = without(rows(range(6)), trajectory_id="traj004", **CELL)
    path = write(tmp_path / "scores.parquet", shuffled(made))
    found = []
    for number, given in enumerate(({}, {"engine": pool})):
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / f"config{number}"))
        place = home.init(tmp_path / f"{number}", origin="lab", objects=f"s3://{door.gateway.bucket()}/lab")
        key = home.signing_key(place)
        specs = [tmp_path / f"{name}.toml" for name in ("direct", "generated")]
        for spec, view in zip(specs, ("none", "generated"), strict=True):
            spec.write_text(score_files.SPEC.format(name=spec.stem, view=view))
        channels.add(place, key, specs)
        with divided():
            receipt = ingest.ingest(place, [path], key=key, **given)  # type: ignore[arg-type]
        with Index.open(place) as index:
            names = {name for name in place.objects.names() if not name.startswith("log/")}
            found.append((receipt.segments, receipt.refusal, [row.file for row in index.segments()], names))
        assert list(place.staged()) == []
    assert found[1] == found[0]


def test_a_part_has_the_rows_of_a_segment_and_a_batch_fewer() -> None:
    """Two batches are held at a time, one part."""
    assert segments.SEGMENT_ROWS == score_rows.PART_ROWS == 1 << 20
    assert score_rows.PART_ROWS // 2 <= score_rows.BATCH_ROWS <= score_rows.PART_ROWS
