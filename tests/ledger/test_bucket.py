"""Objects in a bucket: addresses, failures in our own words, and a home whose objects are in memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.exceptions import GenericError, PermissionDeniedError

from audits.transport import transport
from contracts.errors import LedgerError, StorageError, TamperError, UsageError
from ledger import bucket_requests, channels, durable
from ledger import home as homes
from ledger.bucket_requests import asking, connected, memory, patience
from ledger.home import Home, init, signing_key
from ledger.index import Index
from ledger.ingest import ingest
from ledger.objects import STAGING, Staging
from ledger.objects_bucket import Bucket
from ledger.objects_folder import Folder
from ledger.objects_place import checked, open_store
from ledger.rebuild import rebuild
from ledger.repair import repair
from ledger.snapshot import open_snapshot
from ledger.verify import verify
from tests.audits.cohorts import SPEC, noisy, rows


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("s3://scores", "s3://scores"),
        ("s3://scores/", "s3://scores"),
        ("s3://scores/lab/2026", "s3://scores/lab/2026"),
        ("s3://scores.example/lab_1/day=3/", "s3://scores.example/lab_1/day=3"),
        ("file:///big/disk", "file:///big/disk"),
        ("file:///big disk", "file:///big disk"),
    ],
)
def test_addresses_are_kept_in_one_form(url: str, kept: str) -> None:
    home = Path("/home/.ledger")
    assert checked(url, "--objects", home) == kept == checked(kept, "--objects", home)
    store = open_store(kept, home, "ledger.toml")
    if isinstance(store, Folder):
        assert store.where("log/checkpoint") == f"{kept.removeprefix('file://')}/log/checkpoint"
    else:
        assert store.where("log/checkpoint") == f"{kept}/log/checkpoint"
        assert store.stage_at == Staging(home / STAGING)


@pytest.mark.parametrize(
    "url",
    [
        "", "s3://", "s3://b", "s3://Scores/x", "s3://scores//x", "s3://scores/../x", "s3://scores/.x", "S3://scores",
        "s3://scores:9000/x", "s3://scores/%41", "s3://scores/a b", "gs://scores", "https://scores.example/x",
        "file://relative", "file:relative", "file:///", "file:///a/../b", "file:///a/", "file:///a%20b", "file://host/a",
        "file:///home/.ledger/objects", "file:///home", "memory://../x", "/absolute", "s3://scores/x\n",
    ],
)  # fmt: skip
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked(url, "--objects", Path("/home/.ledger"))
    assert caught.value.code == "unsupported-url"


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("s3://bk/study", "a bucket's name has 3 to 63 characters, this one 2"),
        ("s3:///study", "it names no bucket"),
        ("s3://My_Bucket/x", "a bucket's name has a-z"),
        ("s3://scores//x", "a name in the prefix is empty"),
        ("s3://scores/a b", "names in the prefix have"),
        ("file://relative", "whole path"),
        ("gs://scores", "for the objects; expected s3://"),
    ],
)
def test_the_part_of_an_address_that_is_wrong_is_told(url: str, told: str) -> None:
    with pytest.raises(UsageError) as caught:
        checked(url, "--objects", Path("/home/.ledger"))
    assert told in str(caught.value)
    assert url not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "s3://AKIA123:topsecret@scores/x", "s3://topsecret@scores", "s3://scores/x?aws_secret_access_key=topsecret",
        "s3://scores/x#topsecret", "file:///a?token=topsecret", "s3://" + "topsecret/" * 200,
    ],
)  # fmt: skip
def test_an_address_with_more_than_the_place_is_refused_and_not_repeated(url: str, tmp_path: Path) -> None:
    refused: list[LedgerError] = []
    with pytest.raises(UsageError) as caught:
        checked(url, "--objects", tmp_path)
    refused.append(caught.value)
    with pytest.raises(UsageError) as caught:
        init(tmp_path / "a", objects=url)
    refused.append(caught.value)
    home = init(tmp_path / "b")
    settings = home.path / "ledger.toml"
    settings.write_text(settings.read_text().replace("file:objects", url))
    with pytest.raises(UsageError) as caught:
        _ = homes.read(home.path).objects
    refused.append(caught.value)
    for error in refused:
        assert "topsecret" not in str(error.as_dict())
        assert error.code == "secret-in-url"
    assert not (tmp_path / "a").exists()


SECRETIVE = "request with Credential=AKIA123 and topsecret to http://10.0.0.7:9000/scores"


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (FileNotFoundError(f"{SECRETIVE} 404"), "missing-object", "an object is missing"),
        (FileNotFoundError(f"{SECRETIVE} <Code>NoSuchBucket</Code>"), "no-bucket", "no such bucket"),
        (
            PermissionDeniedError(f"{SECRETIVE} status code: 403 <Code>SignatureDoesNotMatch</Code>"),
            "refused",
            "the service refuses it (403 SignatureDoesNotMatch)",
        ),
        (GenericError(f"{SECRETIVE} status code: 503 <Code>SlowDown</Code>"), "io-error", "(503 SlowDown)"),
        (GenericError(f"{SECRETIVE} error sending request"), "unreachable", "cannot be reached"),
        (GenericError(f"{SECRETIVE} HTTP error: builder error BadScheme"), "plain-http", "plain http"),
        (GenericError(f"{SECRETIVE} PUT http://169.254.169.254/latest"), "no-credentials", "no credentials"),
        (ValueError(SECRETIVE), "io-error", "reading failed"),
    ],
)
def test_a_failure_is_told_in_our_words(error: Exception, code: str, told: str) -> None:
    with pytest.raises(StorageError) as caught, asking("reading", "s3://scores/x"):
        raise error
    found = caught.value
    assert (found.code, told in found.what, found.where) == (code, True, "s3://scores/x")
    assert found.next_step is not None or code == "missing-object"
    assert found.__cause__ is None
    assert found.__suppress_context__
    assert not [word for word in ("AKIA", "topsecret", "10.0.0.7") if word in str(found.as_dict())]


def test_waiting_is_bounded_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert patience() == bucket_requests.WAIT
    monkeypatch.setenv("LEDGER_OBJECTS_WAIT", "7")
    assert patience() == 7
    for text in ("", "-1", "1e9", "soon", "12345"):
        monkeypatch.setenv("LEDGER_OBJECTS_WAIT", text)
        with pytest.raises(UsageError):
            patience()


def test_a_place_nobody_listens_at_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "topsecret", "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": "http://localhost:9", "AWS_ALLOW_HTTP": "true", "LEDGER_OBJECTS_WAIT": "0",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    store = Bucket("s3://scores/lab", Staging(Path(STAGING)))
    for use in (lambda: store.exists("log/checkpoint"), lambda: list(store.list())):
        with pytest.raises(StorageError) as caught:
            use()
        assert caught.value.code == "unreachable"
        assert "s3://scores/lab/" in str(caught.value)
    monkeypatch.delenv("AWS_ALLOW_HTTP")
    with pytest.raises(StorageError) as caught:
        store.publish("log/checkpoint", b"")
    assert caught.value.code == "plain-http"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("AWS_ENDPOINT_URL", "topsecret"), ("AWS_ENDPOINT_URL", ""),
        ("AWS_ENDPOINT_URL", "http://a:topsecret@host"),
        ("AWS_ALLOW_HTTP", "topsecret"), ("AWS_CHECKSUM_ALGORITHM", "topsecret"),
        ("AWS_ACCESS_KEY_ID", "top\nsecret"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_used_are_not_repeated(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "topsecret")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:9")
    monkeypatch.setenv("LEDGER_OBJECTS_WAIT", "0")
    monkeypatch.setenv(name, value)
    with pytest.raises(StorageError) as caught:
        Bucket("s3://scores/lab", Staging(Path(STAGING))).exists("log/checkpoint")
    assert caught.value.code == "bad-environment"
    assert "secret" not in str(caught.value)
    assert "secret" not in capfd.readouterr().err


def test_a_connection_is_not_taken_through_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bucket_requests, "_process", [os.getpid() + 1])
    with pytest.raises(StorageError) as caught:
        connected("s3://scores/lab")
    assert caught.value.code == "forked"


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "ledger.objects_bucket")
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(UsageError) as caught:
        open_store("s3://scores", tmp_path, "ledger.toml")
    assert "evaluator-ledger[s3]" in str(caught.value)
    assert open_store("file:objects", tmp_path, "ledger.toml") == Folder(tmp_path / "objects")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home whose objects are in memory, where two channels are registered."""
    made = init(tmp_path / ".ledger", origin="in-memory", objects="memory://")
    files = []
    for name in ("direct", "generated"):
        files.append(tmp_path / f"{name}.toml")
        files[-1].write_text(SPEC.format(name=name, layouts=2, hosted="false"))
    channels.add(made, signing_key(made), files)
    pq.write_table(pa.Table.from_pylist(rows(noisy(6))), tmp_path / "scores.parquet")
    return homes.read(made.path)


def take_in(home: Home) -> None:
    ingest(home, [home.path.parent / "scores.parquet"], key=signing_key(home))


def test_a_whole_ledger_in_memory(home: Home) -> None:
    take_in(home)
    assert {path.name for path in home.path.iterdir()} >= {"staging", "catalog.sqlite"}
    found = transport(open_snapshot(home), "direct", "generated", resamples=100)
    assert found is not None
    assert verify(home, full=True).ok
    assert isinstance(home.catalog, Path)
    home.catalog.unlink()
    rebuild(home)
    assert verify(home, full=True).ok
    assert repair(home).actions == ()


@pytest.mark.parametrize("point", ["object-staged", "object-named", "appended"])
def test_what_stops_before_the_commit_leaves_orphans_that_repair_clears(home: Home, point: str) -> None:
    objects = home.objects
    before = list(objects.list())

    def stop(name: str) -> None:
        if name == point:
            durable.hook = None
            raise KeyboardInterrupt

    durable.hook = stop
    try:
        with pytest.raises(KeyboardInterrupt):
            take_in(home)
    finally:
        durable.hook = None
    with Index.open(home) as index:
        assert len(index.segments()) == 0
    orphans = set(objects.list()) - set(before)
    assert repair(home, grace=3600).young or not orphans
    done = {action.name for action in repair(home, grace=-60).actions}
    assert (done, list(objects.list())) == (orphans, before)
    take_in(home)
    assert verify(home, full=True).ok


def test_a_failed_beginning_leaves_nothing_in_the_store(tmp_path: Path) -> None:
    def stop(name: str) -> None:
        if name == "home-built":
            raise KeyboardInterrupt

    place = tmp_path / "objects"
    durable.hook = stop
    try:
        with pytest.raises(KeyboardInterrupt):
            init(tmp_path / "home", origin="one", objects=f"file://{place}")
    finally:
        durable.hook = None
    assert list(Folder(place).list()) == []
    init(tmp_path / "home", origin="one", objects=f"file://{place}")
    with pytest.raises(UsageError) as caught:
        init(tmp_path / "second", origin="two", objects=f"file://{place}")
    assert caught.value.code == "place-taken"


def test_two_ledgers_in_one_place_are_told_apart(home: Home, tmp_path: Path) -> None:
    other = init(tmp_path / "other", origin="in-memory-too", objects="memory://")
    one, two = memory(home.objects_url), memory(other.objects_url)
    for answer in list(obstore.list(two)):
        for item in answer:
            obstore.put(one, item["path"], bytes(obstore.get(two, item["path"]).bytes()))
    with pytest.raises(LedgerError):
        take_in(home)
    obstore.put(one, "log/checkpoint", b"nothing of the kind")
    with pytest.raises((TamperError, LedgerError)):
        take_in(home)
    assert not verify(home).ok
