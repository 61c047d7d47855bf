"""A ledger whose objects stand in a bucket, through the command line and a real S3 gateway."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.digest import blake3_digest
from contracts.errors import StorageError
from ledger import segments
from ledger.bucket_requests import connected
from ledger.home import read
from ledger.object_names import segment_name
from tests import gateway as gateways
from tests.audits.cohorts import SPEC, noisy, rows
from tests.cli.calls import called
from tests.gateway import Door
from tests.postgres import Cluster

AUDIT = ("audit", "transport", "--ref", "direct", "--alt", "generated", "--resamples", "100")


@dataclass(frozen=True)
class Lab:
    """A home with its objects behind a door, and the folder it stands in."""

    folder: Path
    url: str
    door: Door

    def ok(self, *words: str) -> str:
        """What a command that succeeds prints."""
        done = called(*words)
        assert done.code == 0, (words, done.err or done.out)
        return done.out

    def names(self, suffix: str = "") -> list[str]:
        """Everything in the bucket below the prefix."""
        return [
            item["path"]
            for answer in obstore.list(connected(self.url))
            for item in answer
            if item["path"].endswith(suffix)
        ]

    def scores(self, name: str = "scores", trajectories: int = 12, **more: object) -> str:
        """A file of scores."""
        file = self.folder / f"{name}.parquet"
        pq.write_table(pa.Table.from_pylist(rows(noisy(trajectories), **more)), file)  # type: ignore[arg-type]
        return str(file)


@pytest.fixture
def lab(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    url = f"s3://{door.gateway.bucket()}/lab/scores"
    monkeypatch.setenv("LEDGER_HOME", str(tmp_path / ".ledger"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("LEDGER_OBJECTS_WAIT", "1")
    made = Lab(tmp_path, url, door)
    made.ok("init", "--objects", url, "--origin", f"lab-{door.gateway.port}-{url.split('/')[2]}")
    for name in ("direct", "generated"):
        (tmp_path / f"{name}.toml").write_text(SPEC.format(name=name, layouts=2, hosted="false"))
        made.ok("channel", "add", str(tmp_path / f"{name}.toml"))
    return made


def test_everything_is_done_in_a_bucket(lab: Lab) -> None:
    lab.ok("ingest", lab.scores())
    lab.ok("ingest", lab.scores("again", acquisitions={"direct": ["main-2"], "generated": ["main-2"]}))
    home = lab.folder / ".ledger"
    assert {path.name for path in home.iterdir()} >= {"ledger.toml", "catalog.sqlite", "staging"}
    assert not (home / "objects").exists()
    assert len(lab.names(".parquet")) == 2
    record = json.loads(lab.ok(*AUDIT, "--acquisition", "main-1", "--json"))["record"]
    entry = json.loads(lab.ok("scores", "--trajectory", "t003", "--limit", "1", "--json"))["entries"][0]
    assert "t003" in lab.ok("lineage", entry["entry"])
    assert "verified" in lab.ok("verify")
    lab.ok("verify", "--full")
    bundle = str(lab.folder / "one.bundle")
    lab.ok("bundle", record, "-o", bundle)
    lab.ok("verify", bundle)
    lab.ok("revoke", "acquisition", "main-2", "--reason", "the server was swapped")
    lab.ok("repair")
    (home / "catalog.sqlite").unlink()
    lab.ok("rebuild")
    assert "verified" in lab.ok("verify", "--full")
    kept = b"".join(path.read_bytes() for path in lab.folder.rglob("*") if path.is_file())
    for secret in (gateways.USER, gateways.SECRET, f"localhost:{lab.door.port}"):
        assert secret.encode() not in kept


def test_what_was_deleted_or_changed_in_the_bucket_is_named(lab: Lab) -> None:
    lab.ok("ingest", lab.scores())
    store = connected(lab.url)
    (name,) = lab.names(".parquet")
    right = bytes(obstore.get(store, name).bytes())
    (rows_name,) = lab.names(".rows")
    damages = {
        name: right[:-900] + b"\0" + right[-899:],
        rows_name: b"",
        "log/checkpoint": b"nothing of the kind\n",
    }
    for damaged, data in damages.items():
        before = bytes(obstore.get(store, damaged).bytes())
        obstore.put(store, damaged, data)
        changed = called("verify")
        assert (changed.code, damaged in changed.out + changed.err) == (4, True), changed
        obstore.delete(store, damaged)
        gone = called("verify")
        assert (gone.code, damaged in gone.out + gone.err) == (4, True), gone
        obstore.put(store, damaged, before)
    obstore.put(store, name, b"")
    assert called("scores", "--trajectory", "t003").code == 4
    obstore.put(store, name, right)
    obstore.put(store, "lists/" + "0" * 64 + ".json", b"[]")
    obstore.put(store, "notes/of mine.txt", b"hello")
    told = called("verify")
    assert told.code == 0
    assert "named by no event" in told.err
    assert "notes/of mine.txt" in told.err


def test_one_prefix_holds_one_ledger(lab: Lab) -> None:
    other = lab.folder / "other"
    other.mkdir()
    os.environ.pop("LEDGER_HOME")
    again = called("init", str(other), "--objects", lab.url)
    assert again.code == 2
    assert "already there" in again.err
    assert not list(other.iterdir())
    missing = called("init", str(other), "--objects", "s3://no-such-bucket-here/lab")
    assert missing.code == 3
    assert "no such bucket" in missing.err
    assert not list(other.iterdir())


def test_a_gateway_that_dies_while_it_is_written_to(lab: Lab) -> None:
    file = lab.scores(trajectories=40)
    before = set(lab.names())

    def die(method: str, path: str, so_far: int) -> bool:
        if method == "PUT" and path.endswith(".parquet"):
            lab.door.gateway.kill()
            return True
        return False

    lab.door.cut = die
    failed = called("ingest", file)
    lab.door.cut = None
    assert failed.code == 3
    assert ".parquet: writing an object failed: the service cannot be reached" in failed.err
    assert gateways.SECRET not in failed.err
    lab.door.gateway.start()
    assert not [name for name in set(lab.names()) - before if name.endswith(".parquet")]
    assert json.loads(lab.ok("status", "--json"))["size"] == 3
    lab.ok("ingest", file)
    lab.ok("verify", "--full")


def test_a_gateway_that_dies_after_the_commit(lab: Lab) -> None:
    def die(method: str, path: str, so_far: int) -> bool:
        if method == "PUT" and "/log/" in path:
            lab.door.gateway.kill()
            return True
        return False

    lab.door.cut = die
    done = called("ingest", lab.scores())
    lab.door.cut = None
    assert done.code == 0
    assert "recorded, but not yet published" in " ".join((done.out + done.err).split())
    lab.door.gateway.start()
    unpublished = called("verify")
    assert (unpublished.code, "not published yet" in unpublished.err) == (0, True)
    assert "published: log/checkpoint" in lab.ok("repair")
    lab.ok("verify", "--full")


def test_a_gateway_that_dies_while_it_is_read(lab: Lab) -> None:
    lab.ok("ingest", lab.scores(trajectories=40))

    def die(method: str, path: str, so_far: int) -> bool:
        if method == "GET" and path.endswith(".parquet"):
            lab.door.gateway.kill()
            return True
        return False

    for words in (("verify",), ("scores", "--trajectory", "t003")):
        lab.door.cut = die
        failed = called(*words)
        lab.door.cut = None
        assert failed.code == 3, failed
        assert ".parquet: reading an object failed: the " in failed.err
        lab.door.gateway.start()
        lab.ok(*words)


def test_an_answer_that_breaks_off_is_taken_up_where_it_ended(lab: Lab) -> None:
    lab.ok("ingest", lab.scores(trajectories=40))
    broken: list[str] = []

    def once(method: str, path: str, so_far: int) -> bool:
        if path.endswith(".parquet") and path not in broken:
            broken.append(path)
            return True
        return False

    lab.door.cut = once
    lab.ok("verify")
    assert broken


def test_a_busy_service_is_asked_again(lab: Lab) -> None:
    lab.door.busy = 3
    lab.ok("ingest", lab.scores())
    assert lab.door.busy == 0
    lab.door.busy = 2
    lab.ok("verify")
    lab.door.busy = 1000
    failed = called("verify")
    lab.door.busy = 0
    assert (failed.code, "(503 SlowDown)" in failed.err) == (3, True), failed


def test_what_a_crash_left_in_the_bucket_is_cleared(lab: Lab) -> None:
    lab.ok("ingest", lab.scores())
    orphan = "segments/" + "ab" * 32 + ".parquet"
    obstore.put(connected(lab.url), orphan, b"half a call")
    assert "left 1 file younger than an hour, which a writer may still need" in lab.ok("repair")
    assert orphan in lab.names()
    from ledger import repair

    done = repair.repair(read(lab.folder / ".ledger"), grace=-60)
    assert [action.name for action in done.actions] == [orphan]
    assert orphan not in lab.names()
    obstore.delete(connected(lab.url), "log/checkpoint")
    assert "log/checkpoint" in lab.ok("repair")
    lab.ok("verify", "--full")


def test_one_trajectory_costs_a_small_part_of_a_segment(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "GROUP_ROWS", 2048)
    lab.ok("ingest", lab.scores(trajectories=640))
    (name,) = lab.names(".parquet")
    size = read(lab.folder / ".ledger").objects.size(name)
    for words in (
        ("scores", "--trajectory", "t333"),
        (*AUDIT, "--no-record", "--where", "trajectory_id=t333"),
    ):
        lab.door.passed.clear()
        assert "t333" in lab.ok(*words, "--json")
        asked = [one for one in lab.door.passed if one.path.endswith(".parquet")]
        assert sum(one.down for one in asked) < size / 4
        assert len(asked) <= 6
        assert {one.status for one in asked if one.down} == {206}
    lab.door.passed.clear()
    lab.ok("verify")
    assert [one.down for one in lab.door.passed if one.path.endswith(".parquet")] == [size]


def test_a_ledger_moves_into_a_bucket(door: Door, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_HOME", str(tmp_path / ".ledger"))
    url = f"s3://{door.gateway.bucket()}"
    made = Lab(tmp_path, url, door)
    made.ok("init")
    for name in ("direct", "generated"):
        (tmp_path / f"{name}.toml").write_text(SPEC.format(name=name, layouts=2, hosted="false"))
        made.ok("channel", "add", str(tmp_path / f"{name}.toml"))
    made.ok("ingest", made.scores())
    there = tmp_path / ".ledger" / "objects"
    for path in there.rglob("*"):
        if path.is_file():
            obstore.put(connected(url), path.relative_to(there).as_posix(), path)
    shutil.rmtree(there)
    settings = tmp_path / ".ledger" / "ledger.toml"
    settings.write_text(settings.read_text().replace("file:objects", url))
    made.ok("verify", "--full")
    made.ok(*AUDIT)


@pytest.mark.sweep
def test_worker_processes_open_the_bucket_themselves(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1790000000")
    lab.ok("ingest", lab.scores(trajectories=40))
    here = lab.ok(*AUDIT, "--no-record", "--json", "--engine", "inline")
    assert lab.ok(*AUDIT, "--no-record", "--json", "--engine", "pool", "--workers", "2") == here


@pytest.mark.sweep
def test_neither_catalog_nor_objects_in_the_home(
    door: Door, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_HOME", str(tmp_path / ".ledger"))
    made = Lab(tmp_path, f"s3://{door.gateway.bucket()}/lab", door)
    made.ok("init", "--objects", made.url, "--catalog", cluster.url(cluster.database()))
    for name in ("direct", "generated"):
        (tmp_path / f"{name}.toml").write_text(SPEC.format(name=name, layouts=2, hosted="false"))
        made.ok("channel", "add", str(tmp_path / f"{name}.toml"))
    made.ok("ingest", made.scores())
    made.ok(*AUDIT)
    made.ok("rebuild")
    assert "verified" in made.ok("verify", "--full")
    assert {path.name for path in (tmp_path / ".ledger").iterdir()} <= {
        "ledger.toml",
        "staging",
        "writer.lock",
    }


def test_large_files_go_up_in_parts_and_come_back(lab: Lab) -> None:
    objects = read(lab.folder / ".ledger").objects
    data = os.urandom(20 << 20)
    staged = objects.stage(".parquet")
    staged.write_bytes(data)
    name = segment_name(blake3_digest(data))
    objects.put(name, staged)
    assert not staged.exists()
    assert sum("partNumber" in one.path for one in lab.door.passed) == 3
    assert objects.read_checked(name) == data
    with objects.ranged(name) as file:
        file.seek(9 << 20)
        assert file.read(100) == data[9 << 20 :][:100]


def test_a_large_file_that_is_cut_short_is_nowhere_to_be_seen(lab: Lab) -> None:
    objects = read(lab.folder / ".ledger").objects
    data = os.urandom(20 << 20)
    name = segment_name(blake3_digest(data))

    def die(method: str, path: str, so_far: int) -> bool:
        if "partNumber=2" in path and so_far > 1 << 20:
            lab.door.gateway.kill()
            return True
        return False

    lab.door.cut = die
    with pytest.raises(StorageError) as caught:
        objects.put(name, data)
    lab.door.cut = None
    assert name in str(caught.value)
    lab.door.gateway.start()
    assert not objects.exists(name)
    assert name not in lab.names()
    objects.put(name, data)
    assert objects.read_checked(name) == data


def test_objects_in_a_folder_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEDGER_HOME", str(tmp_path / ".ledger"))
    place = tmp_path / "big disk"
    made = Lab(tmp_path, "", None)  # type: ignore[arg-type]
    assert called("init", "--objects", f"file://{tmp_path}").code == 2
    assert called("init", "--objects", "memory://").code == 2
    made.ok("init", "--objects", f"file://{place}")
    for name in ("direct", "generated"):
        (tmp_path / f"{name}.toml").write_text(SPEC.format(name=name, layouts=2, hosted="false"))
        made.ok("channel", "add", str(tmp_path / f"{name}.toml"))
    made.ok("ingest", made.scores())
    assert len(list(place.rglob("segments/*.parquet"))) == 1
    made.ok("verify", "--full")
    (tmp_path / ".ledger" / "catalog.sqlite").unlink()
    made.ok("rebuild")
    made.ok("repair")
    assert "verified" in made.ok("verify")
    shutil.rmtree(place)
    assert called("verify").code == 4
