"""Objects come into being whole, under the digest of their bytes, or not at all."""

from __future__ import annotations

import errno
import os
import pickle
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.digest import blake3_digest, sha256_digest
from contracts.errors import MalformedError, StorageError, TamperError
from ledger import object_names as names
from ledger.objects import Staging, Store
from ledger.objects_bucket import Bucket
from ledger.objects_folder import Folder
from tests.ledger.stores import FORMS, new_store, overwrite

DATA = b"entries" * 1000


@pytest.fixture(params=FORMS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store of either form: what is asked of both is asked here."""
    return new_store(request.param, tmp_path / "objects")


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "objects")


def put(store: Store, data: bytes = DATA) -> str:
    name = names.segment_name(blake3_digest(data))
    store.put(name, data)
    return name


def everything(store: Store) -> list[str]:
    """Every object, stray and staged file."""
    staged = [f"staging/{path.name}" for path in store.staged()]
    return sorted([*store.list(), *store.strays(), *staged])


def test_bytes_and_staged_files_come_back(store: Store) -> None:
    name = put(store)
    staged = store.stage(".json")
    staged.write_bytes(b"[]")
    store.put(names.list_name(blake3_digest(b"[]")), staged)
    assert store.read(name) == store.read_checked(name) == DATA
    assert store.exists(name)
    assert not staged.exists()
    assert sorted(store.list()) == everything(store)
    assert list(store.list("lists")) == [names.list_name(blake3_digest(b"[]"))]
    assert list(store.staged()) == []


def test_the_same_content_twice_makes_its_age_start_again(store: Store) -> None:
    name = put(store)
    before = store.modified(name)
    time.sleep(0.02)
    put(store)
    assert everything(store) == [name]
    assert store.modified(name) > before


def test_the_same_content_twice_is_one_object(folder: Folder) -> None:
    name = put(folder)
    os.utime(folder.path(name), (1, 1))
    put(folder)
    assert everything(folder) == [name]
    assert folder.path(name).stat().st_mtime > 1


def test_records_are_named_by_sha256(store: Store) -> None:
    store.put(names.record_name(sha256_digest(b"{}")), b"{}")
    assert store.read_checked(names.record_name(sha256_digest(b"{}"))) == b"{}"
    with pytest.raises(MalformedError):
        names.record_name(blake3_digest(b"{}"))


def test_bytes_that_are_not_what_the_name_says_are_refused(store: Store) -> None:
    with pytest.raises(TamperError) as caught:
        store.put(names.segment_name(blake3_digest(b"other")), DATA)
    assert caught.value.kind == "data"
    assert everything(store) == []


def test_a_changed_object_is_neither_accepted_nor_read(store: Store) -> None:
    name = put(store)
    overwrite(store, name, DATA[:-1] + b"!")
    with pytest.raises(TamperError):
        put(store)
    with pytest.raises(TamperError):
        store.read_checked(name)
    assert list(store.staged()) == []


@pytest.mark.parametrize(
    "name",
    [
        "", "/etc/passwd", "../key.pem", "segments/../../key.pem", "segments/x.parquet", "segments//x",
        "log/checkpoint/", "log/tile/0/../1", "log/tile/00/000", "log/tile/0/000.p/0", "log/heads/0",
        "segments/" + "A" * 64 + ".parquet", "segments/" + "a" * 64 + ".parquet\n", "staging/a",
        "./log/checkpoint", "segments\\" + "a" * 64 + ".parquet", "segments/" + "a" * 64 + ".parquet\0",
    ],
)  # fmt: skip
@pytest.mark.parametrize("use", ["read", "exists", "size", "open", "ranged", "remove"])
def test_only_names_of_known_forms(store: Store, name: str, use: str) -> None:
    with pytest.raises(MalformedError):
        getattr(store, use)(name)
    with pytest.raises(MalformedError):
        store.put(name, b"")
    with pytest.raises(MalformedError):
        store.publish(name, b"")


def test_symbolic_links_are_refused_wherever_they_stand(folder: Folder, tmp_path: Path) -> None:
    name = put(folder)
    file = folder.path(name)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TamperError):
        folder.read(name)
    assert list(folder.strays()) == [name]
    file.unlink()
    file.parent.rmdir()
    (tmp_path / "folder").mkdir()
    (tmp_path / "elsewhere").rename(tmp_path / "folder" / file.name)
    file.parent.symlink_to(tmp_path / "folder")
    with pytest.raises(TamperError):
        folder.open(name)
    assert list(folder.strays()) == ["segments"]
    assert list(folder.list()) == []


def test_what_is_not_an_object_is_listed_as_stray(store: Store) -> None:
    put(store)
    store.stage().write_bytes(b"half")
    overwrite(store, "segments/notes.txt", b"mine")
    overwrite(store, ".DS_Store", b"")
    assert list(store.strays()) == [".DS_Store", "segments/notes.txt"]
    assert len(list(store.staged())) == 1


def test_missing_long_and_special_files(store: Store) -> None:
    name = put(store)
    with pytest.raises(MalformedError):
        store.read(name, limit=10)
    store.remove(name)
    store.remove(name)
    with pytest.raises(StorageError) as caught:
        store.read(name)
    assert caught.value.code == "missing-object"
    assert name in str(caught.value.where)
    for missing in (store.size, store.open, store.ranged, store.modified):
        with pytest.raises(StorageError):
            missing(name)
    assert not store.exists(name)


def test_a_folder_under_the_name_of_an_object(folder: Folder) -> None:
    name = put(folder)
    folder.remove(name)
    folder.path(name).mkdir()
    with pytest.raises(TamperError):
        folder.read(name)


def test_an_object_is_read_from_start_to_end_or_in_places(store: Store) -> None:
    data = bytes(range(256)) * 1024
    name = put(store, data)
    assert store.size(name) == len(data)
    with store.open(name) as file:
        assert file.read(3) == data[:3]
        assert file.read() == data[3:]
    with store.ranged(name) as file:
        for start, count in ((0, 5), (len(data) - 7, 20), (1000, 0), (len(data), 1), (7, len(data))):
            assert file.seek(start) == start == file.tell()
            assert file.read(count) == data[start : start + count]
        file.seek(-4, os.SEEK_END)
        file.seek(-1, os.SEEK_CUR)
        assert file.read() == data[-5:]


def test_an_empty_object(store: Store) -> None:
    name = put(store, b"")
    assert store.read_checked(name) == b""
    with store.ranged(name) as file:
        assert file.read() == b""


def test_a_store_can_be_opened_again_elsewhere(folder: Folder) -> None:
    bucket = Bucket("s3://scores/lab", Staging(Path("staging")))
    for store in (folder, bucket):
        assert pickle.loads(pickle.dumps(store)) == store
    with pytest.raises(StorageError) as caught:
        pickle.dumps(Bucket.new_memory())
    assert caught.value.code == "memory"


def test_objects_in_memory_end_with_their_process() -> None:
    with pytest.raises(StorageError) as caught:
        Bucket("memory://0123", Staging(Path("staging"))).exists("log/checkpoint")
    assert caught.value.code == "memory"


def test_the_published_log_is_replaced(store: Store) -> None:
    store.publish("log/tile/0/x001/067.p/8", b"one")
    store.publish("log/checkpoint", b"one")
    store.publish("log/checkpoint", b"two")
    assert store.read("log/checkpoint") == b"two"
    assert list(store.strays()) == []
    with pytest.raises(MalformedError):
        store.publish(names.segment_name(blake3_digest(DATA)), DATA)
    with pytest.raises(MalformedError):
        store.put("log/checkpoint", b"")


def failing(code: int) -> Callable[..., int]:
    def fail(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    return fail


@pytest.mark.parametrize("call", ["write", "fsync", "replace"])
@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, "disk-full"), (errno.EIO, "io-error"), (errno.EROFS, "read-only")]
)
def test_a_failing_disk_leaves_nothing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, call: str, number: int, code: str
) -> None:
    put(folder, b"before")
    kept = everything(folder)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(number))
        with pytest.raises(StorageError) as caught:
            put(folder)
    assert caught.value.code == code
    assert everything(folder) == kept
    put(folder)


def test_short_writes_are_continued(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:1000])))
    name = put(folder)
    assert folder.read(name) == DATA


def test_a_system_that_takes_no_bytes_is_an_error(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda fd, data: 0)
    with pytest.raises(StorageError):
        put(folder)
    assert everything(folder) == []


def test_file_name_and_directory_are_synced_in_that_order(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(folder, b"make the folders first")
    calls: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        calls.append("directory" if os.path.isdir(f"/proc/self/fd/{descriptor}") else "file")
        fsync(descriptor)

    def noted_replace(source: Path, target: Path) -> None:
        calls.append("rename")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    put(folder)
    staged = folder.stage()
    staged.write_bytes(b"staged by another writer")
    folder.put(names.rows_name(blake3_digest(b"staged by another writer")), staged)
    assert calls == ["file", "rename", "directory"] * 2
