"""Objects come into being whole, under the digest of their bytes, or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from contracts.digest import blake3_digest, sha256_digest
from contracts.errors import MalformedError, StorageError, TamperError
from ledger import object_names as names
from ledger.objects_folder import Folder

DATA = b"entries" * 1000


@pytest.fixture
def store(tmp_path: Path) -> Objects:
    return Folder(tmp_path / "objects")


def put(store: Folder, data: bytes = DATA) -> str:
    name = names.segment_name(blake3_digest(data))
    store.put(name, data)
    return name


def everything(store: Folder) -> list[str]:
    return sorted(p.relative_to(store.root).as_posix() for p in store.root.rglob("*") if p.is_file())


def test_bytes_and_staged_files_come_back(store: Folder) -> None:
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


def test_the_same_content_twice_is_one_object(store: Folder) -> None:
    name = put(store)
    os.utime(store.path(name), (1, 1))
    put(store)
    assert everything(store) == [name]
    assert store.path(name).stat().st_mtime > 1


def test_records_are_named_by_sha256(store: Folder) -> None:
    store.put(names.record_name(sha256_digest(b"{}")), b"{}")
    assert store.read_checked(names.record_name(sha256_digest(b"{}"))) == b"{}"
    with pytest.raises(MalformedError):
        names.record_name(blake3_digest(b"{}"))


def test_bytes_that_are_not_what_the_name_says_are_refused(store: Folder) -> None:
    with pytest.raises(TamperError) as caught:
        store.put(names.segment_name(blake3_digest(b"other")), DATA)
    assert caught.value.kind == "data"
    assert everything(store) == []


def test_a_changed_object_is_neither_accepted_nor_read(store: Folder) -> None:
    name = put(store)
    store.path(name).write_bytes(DATA[:-1] + b"!")
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
@pytest.mark.parametrize("use", [Folder.read, Folder.exists, Folder.path, Folder.remove])
def test_only_names_of_known_forms(store: Folder, name: str, use: Callable[[Folder, str], object]) -> None:
    with pytest.raises(MalformedError):
        use(store, name)


def test_symbolic_links_are_refused_wherever_they_stand(store: Folder, tmp_path: Path) -> None:
    name = put(store)
    file = store.path(name)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(TamperError):
        store.read(name)
    assert list(store.strays()) == [name]
    file.unlink()
    file.parent.rmdir()
    (tmp_path / "folder").mkdir()
    (tmp_path / "elsewhere").rename(tmp_path / "folder" / file.name)
    file.parent.symlink_to(tmp_path / "folder")
    with pytest.raises(TamperError):
        store.open(name)
    assert list(store.strays()) == ["segments"]
    assert list(store.list()) == []


def test_what_is_not_an_object_is_listed_as_stray(store: Folder) -> None:
    put(store)
    store.stage().write_bytes(b"half")
    (store.root / "segments" / "notes.txt").write_text("mine")
    (store.root / ".DS_Store").write_text("")
    assert list(store.strays()) == [".DS_Store", "segments/notes.txt"]
    assert len(list(store.staged())) == 1


def test_missing_long_and_special_files(store: Folder) -> None:
    name = put(store)
    with pytest.raises(MalformedError):
        store.read(name, limit=10)
    store.remove(name)
    store.remove(name)
    with pytest.raises(StorageError) as caught:
        store.read(name)
    assert caught.value.code == "missing-object"
    store.path(name).mkdir()
    with pytest.raises(TamperError):
        store.read(name)


def test_the_published_log_is_replaced(store: Folder) -> None:
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
    store: Folder, monkeypatch: pytest.MonkeyPatch, call: str, number: int, code: str
) -> None:
    put(store, b"before")
    kept = everything(store)
    with monkeypatch.context() as patch:
        patch.setattr(os, call, failing(number))
        with pytest.raises(StorageError) as caught:
            put(store)
    assert caught.value.code == code
    assert everything(store) == kept
    put(store)


def test_short_writes_are_continued(store: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, bytes(data[:1000])))
    name = put(store)
    assert store.read(name) == DATA


def test_a_system_that_takes_no_bytes_is_an_error(store: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda fd, data: 0)
    with pytest.raises(StorageError):
        put(store)
    assert everything(store) == []


def test_file_name_and_directory_are_synced_in_that_order(
    store: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, b"make the folders first")
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
    put(store)
    staged = store.stage()
    staged.write_bytes(b"staged by another writer")
    store.put(names.rows_name(blake3_digest(b"staged by another writer")), staged)
    assert calls == ["file", "rename", "directory"] * 2
