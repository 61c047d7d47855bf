"""Reading score files: every format to the same rows, and the bytes that were hashed."""

from __future__ import annotations

import errno
import math
import os
import random
import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.digest import blake3_digest, sha256_digest
from contracts.errors import StorageError, UsageError
from contracts.rows import canonicalise
from contracts.source_table import SourceTable
from ledger import durable, staging
from ledger.sources import read_sources
from tests.contracts.score_book import BOOK, DIGEST, row, table, with_column
from tests.ledger.score_files import Row
from tests.ledger.written_sources import FORMATS, ipc, read, written

names = st.text(st.characters(categories=["Lu", "Ll", "Nd", "Po"]), min_size=1, max_size=6).map(
    lambda text: "n" + "".join(c for c in text if c.isprintable())
)
energies = st.floats(-(2.0**20), 2.0**20)
good_rows = st.builds(
    row,
    trajectory_id=names,
    candidate=names,
    step=st.integers(0, 2**31 - 1),
    energy=energies,
    success=st.none() | st.booleans(),
    label_mass=st.none() | st.floats(0, 1),
    step_kind=st.none() | names,
    request_hash=st.sampled_from([DIGEST, sha256_digest(b"x")]),
)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_same_rows(form: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("formats")
    name, write = FORMATS[form]

    @settings(max_examples=7)
    @given(st.lists(good_rows, min_size=1, max_size=9))
    def check(rows: list[Row]) -> None:
        raw = table(rows)
        data = written(write, raw)
        source = read(folder / name, data)
        assert source.digest == blake3_digest(data)
        expected = canonicalise([SourceTable("a", DIGEST, raw)], BOOK)
        result = canonicalise([source], BOOK)
        assert result.findings.by_code == expected.findings.by_code
        assert result.table.to_pylist() == expected.table.to_pylist()
        signs = [math.copysign(1, each["energy"]) for each in result.table.to_pylist()]
        assert signs == [math.copysign(1, each["energy"]) for each in expected.table.to_pylist()]

    check()


class TestBytes:
    def test_a_pipe_is_read_like_a_file(self, tmp_path: Path) -> None:
        data = written(pq.write_table, table([row()]))
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        feeder = threading.Thread(target=pipe.write_bytes, args=(data,))
        feeder.start()
        (source,) = read_sources([pipe])
        feeder.join()
        assert (source.digest, source.table.num_rows) == (blake3_digest(data), 1)

    @pytest.mark.parametrize("form", ["parquet", "arrow file", "csv", "json lines"])
    def test_large_inputs_wait_in_the_staging_directory(
        self, form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(staging, "IN_MEMORY", 100)
        monkeypatch.setattr(staging, "CHUNK", 64)
        waiting = tmp_path / "staging"
        waiting.mkdir()
        name, write = FORMATS[form]
        data = written(write, table([row(), row(candidate="B")]))
        (tmp_path / name).write_bytes(data)
        (source,) = read_sources([tmp_path / name], staging=waiting)
        assert source.digest == blake3_digest(data)
        assert canonicalise([source], BOOK).table.num_rows == 2
        assert list(waiting.iterdir()) == []

    @pytest.mark.parametrize("at", [1, 3])
    @pytest.mark.parametrize("named", [False, True])
    def test_a_full_disk_is_not_blamed_on_the_input(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, named: bool
    ) -> None:
        """Whether it is full at once or at the rest."""
        monkeypatch.setattr(staging, "IN_MEMORY", 100)
        monkeypatch.setattr(staging, "CHUNK", 64)
        write, count = durable.write_all, 0

        def fill(descriptor: int, data: bytes | memoryview) -> None:
            nonlocal count
            count += 1
            if count == at:
                raise OSError(errno.ENOSPC, "No space left on device")
            write(descriptor, data)

        monkeypatch.setattr(durable, "write_all", fill)
        waiting = tmp_path / "staging"
        waiting.mkdir()
        (tmp_path / "a.csv").write_bytes(b"x" * 300)
        with pytest.raises(StorageError, match="no space left") as caught:
            staging.stage(tmp_path / "a.csv", waiting, waiting / "named" if named else None)
        assert (caught.value.code, caught.value.where) == ("disk-full", str(waiting))

    def test_a_staging_directory_that_is_gone_is_not_blamed_on_the_input(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(staging, "IN_MEMORY", 100)
        (tmp_path / "a.csv").write_bytes(b"x" * 300)
        with pytest.raises(StorageError) as caught:
            staging.stage(tmp_path / "a.csv", tmp_path / "gone")
        assert (caught.value.code, caught.value.where) == ("missing-file", str(tmp_path / "gone"))

    def test_a_name_that_is_not_utf8_is_refused_since_it_would_be_recorded(self, tmp_path: Path) -> None:
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/a\xff.csv"))
        with pytest.raises(UsageError, match="not UTF-8") as caught:
            staging.stage(path)
        assert caught.value.code == "not-utf-8"

    def test_what_is_decoded_is_what_was_hashed(self, tmp_path: Path) -> None:
        path = tmp_path / "a.arrow"
        source = read(path, written(ipc(pa.ipc.new_file, 9), table([row(energy=0.25)])))
        path.write_bytes(b"\0" * path.stat().st_size)
        assert source.table["energy"].to_pylist() == [0.25]

    @pytest.mark.parametrize("path", ["absent.csv", "."])
    def test_what_cannot_be_opened(self, path: str, tmp_path: Path) -> None:
        with pytest.raises(StorageError, match=r"no such file|folder"):
            read_sources([tmp_path / path])


def test_other_columns_are_named_and_change_nothing(tmp_path: Path) -> None:
    raw = table([row(), row(candidate="B")])
    expected = canonicalise([SourceTable("a", DIGEST, raw)], BOOK).table.to_pylist()
    for name in ("source_file", "source_row", "arm", "value", "status_", "__index_level_0__", " energy"):
        raw = with_column(raw, name, pa.array([7, 8]))
    for form in ("parquet", "arrow file", "csv", "json lines"):
        file, write = FORMATS[form]
        source = read(tmp_path / file, written(write, raw))
        assert set(source.ignored) == set(raw.column_names) - set(row())
        assert canonicalise([source], BOOK).table.to_pylist() == expected


@pytest.mark.parametrize("form", FORMATS)
def test_texts_are_digested_on_arrival(form: str, tmp_path: Path) -> None:
    rows = [
        row(state="s", request=text, view=None, state_hash=sha256_digest(b"s"), request_hash=...)
        for text in ("one, two", "one, two", 'say "é"', "two\nlines", "x" * 5000)
    ]
    name, write = FORMATS[form]
    source = read(tmp_path / name, written(write, table(rows)))
    assert source.table["request"].type == pa.dictionary(pa.int32(), pa.binary(33))
    result = canonicalise([source], BOOK)
    assert result.findings.by_code == {}
    digests = [value[1:].hex() for value in result.table["request_hash"].to_pylist()]
    assert digests == [blake3_digest(each["request"].encode()).partition(":")[2] for each in rows]


@pytest.mark.parametrize("named", [False, True])
def test_what_was_read_of_a_large_input_is_let_go_of_and_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: bool
) -> None:
    monkeypatch.setattr(staging, "IN_MEMORY", 1 << 16)
    data = random.Random(1).randbytes(1 << 22)
    (tmp_path / "a").write_bytes(data)
    file = tmp_path / "b" if named else None
    staged = staging.stage(tmp_path / "a", tmp_path, file)
    assert bytes(staged.view) == data
    held = _resident(staged)
    staged.let_go()
    assert held is None or (held >= len(data) and _resident(staged) == 0)
    assert bytes(staged.view) == data
    small = staging.stage(_small(tmp_path))
    small.let_go()
    assert bytes(small.view) == b"x"


def _small(folder: Path) -> Path:
    (folder / "small").write_bytes(b"x")
    return folder / "small"


def _resident(staged: staging.Staged) -> int | None:
    """How many bytes of a mapped input this process holds, None where the system does not tell."""
    maps = Path("/proc/self/smaps")
    if not maps.exists():
        return None
    start, inside = f"{staged.data.address:x}-", False
    for line in maps.read_text().splitlines():
        if inside and line.startswith("Rss:"):
            return int(line.split()[1]) << 10
        inside = inside or line.startswith(start)
    return None
