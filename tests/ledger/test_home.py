"""A home comes into being whole and with its key outside, and nothing in it is believed unsigned."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from contracts.errors import LedgerError, StorageError, UnknownKeyError, UsageError, VerificationError
from ledger import durable, events, heads, log, pin, publish
from ledger import home as homes
from ledger.home import Home, find, init
from ledger.index import Index
from ledger.keys import SigningKey
from tests.ledger.homes import files


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("LEDGER_HOME", "LEDGER_KEY", "LEDGER_KEY_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    yield tmp_path / "config" / "ledger"
    durable.hook = None


def test_a_new_home(tmp_path: Path, config: Path) -> None:
    home = init(tmp_path / "My study!" / ".ledger")
    assert home.origin.startswith("My-study-")
    assert (home.path / "ledger.toml").is_file()
    key = config / f"{home.origin}.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    with Index.open(home) as index:
        (event,) = index.events()
        checked = heads.check(home, index)
    decoded = events.decode(event.data)
    assert isinstance(decoded, events.KeyEvent)
    assert (decoded.role, decoded.vkey) == ("head", str(checked.vkey))
    assert home.origin.endswith(SigningKey.load(key).public.raw.hex()[:8])
    assert checked.pin is not None
    assert checked.pin.head.size == 1
    assert publish.check(home.objects, checked) == checked.head
    assert sorted(os.listdir(tmp_path / "My study!")) == [".ledger"]
    assert not list(home.objects.staged())
    assert not list(home.objects.strays())


def test_two_homes_never_share_an_origin(tmp_path: Path) -> None:
    first, second = init(tmp_path / "a" / "x" / ".ledger"), init(tmp_path / "b" / "x" / ".ledger")
    assert first.origin != second.origin


def test_an_empty_directory_becomes_a_home(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert init(tmp_path / "empty").origin.startswith("empty-")
    assert find(str(tmp_path / "empty")).path == tmp_path / "empty"


@pytest.mark.parametrize("taken", ["home", "folder", "file", "link", "dangling"])
def test_what_is_there_is_never_touched(tmp_path: Path, config: Path, taken: str) -> None:
    path = tmp_path / "place"
    if taken == "home":
        init(path)
    elif taken == "folder":
        path.mkdir()
        (path / "thesis.tex").write_text("years of work")
    elif taken == "file":
        path.write_text("years of work")
    elif taken == "link":
        (tmp_path / "elsewhere").mkdir()
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.symlink_to(tmp_path / "nowhere")
    before = files(tmp_path)
    with pytest.raises(UsageError) as caught:
        init(path)
    assert caught.value.exit_code == 2
    assert caught.value.code == ("home-exists" if taken == "home" else "place-taken")
    assert files(tmp_path) == before


def test_an_origin_is_taken_once(tmp_path: Path) -> None:
    init(tmp_path / "a", origin="lab")
    before = files(tmp_path)
    with pytest.raises(UsageError) as caught:
        init(tmp_path / "b", origin="lab")
    assert caught.value.code == "origin-taken"
    assert caught.value.next_step is not None
    assert caught.value.next_step.endswith(f"remove its pin {pin.config_file('lab', '.pin')}")
    pin.config_file("lab", ".pin").unlink()
    with pytest.raises(UsageError) as caught:
        init(tmp_path / "b", origin="lab")
    assert caught.value.code == "key-exists"
    assert "--key" in (caught.value.next_step or "")
    assert {name: data for name, data in before.items() if not name.endswith(".pin")} == files(tmp_path)


@pytest.mark.parametrize("origin", ["two words", "a+b", "", "x" * 65, "a\nb", "\x7f"])
def test_origins_that_cannot_name_a_log(tmp_path: Path, origin: str) -> None:
    if origin:
        with pytest.raises(UsageError) as caught:
            init(tmp_path / "a", origin=origin)
        assert caught.value.code == "bad-origin"
        assert files(tmp_path) == {}
    else:
        assert init(tmp_path / "a", origin=origin).origin.startswith("a-")


def test_an_origin_like_a_url_makes_no_folders(tmp_path: Path, config: Path) -> None:
    home = init(tmp_path / "a", origin="lab.example/scores")
    assert not [path for path in config.iterdir() if path.is_dir()]
    assert find(str(tmp_path / "a")) == home
    log.commit(home, homes.signing_key(home), lambda _: [events.AcquisitionEvent("a", "transport")])


def test_a_key_that_exists_can_be_used(tmp_path: Path, config: Path) -> None:
    key = SigningKey.generate()
    key.save(tmp_path / "keys" / "mine.pem")
    home = init(tmp_path / "a", key_uri=f"file:{tmp_path}/keys/mine.pem")
    assert not list(config.glob("*.pem"))
    with Index.open(home) as index:
        assert heads.check(home, index).vkey.public == key.public.raw
    with pytest.raises(UsageError) as caught:
        homes.signing_key(home)
    assert caught.value.code == "no-key"


def test_the_key_is_chosen_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = init(tmp_path / "a", origin="lab")
    kept = homes.signing_key(home)
    named, exported = SigningKey.generate(), SigningKey.generate()
    named.save(tmp_path / "named.pem")
    exported.save(tmp_path / "exported.pem")
    monkeypatch.setenv("PEM", (tmp_path / "exported.pem").read_text())
    monkeypatch.setenv("LEDGER_KEY", "env:PEM")
    assert homes.signing_key(home, str(tmp_path / "named.pem")) == named
    assert homes.signing_key(home) == exported
    monkeypatch.delenv("LEDGER_KEY")
    assert homes.signing_key(home) == kept
    with pytest.raises(UnknownKeyError):
        log.commit(home, named, lambda _: [events.AcquisitionEvent("a", "transport")])


def test_no_key_inside_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = init(tmp_path / "a")
    SigningKey.generate().save(home.path / "key.pem")
    (tmp_path / "link.pem").symlink_to(home.path / "key.pem")
    for uri in (home.path / "key.pem", f"file:{home.path}/key.pem", tmp_path / "link.pem"):
        with pytest.raises(UsageError) as caught:
            homes.signing_key(home, str(uri))
        assert caught.value.code == "key-inside"
        with pytest.raises(UsageError):
            init(home.path, key_uri=str(uri))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "b"))
    with pytest.raises(UsageError) as caught:
        init(tmp_path / "b")
    assert caught.value.code == "key-inside"
    assert not (tmp_path / "b").exists()


# Finding a home


def test_a_home_is_found_upwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = init(tmp_path / "study" / ".ledger")
    other = init(tmp_path / "other")
    below = tmp_path / "study" / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert find().origin == home.origin
    assert find(str(other.path)) == other
    monkeypatch.setenv("LEDGER_HOME", str(other.path))
    assert find() == other
    assert find(str(home.path)) == home


def test_no_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".ledger").mkdir()
    init(tmp_path / "study" / ".ledger")
    with pytest.raises(UsageError, match=r"study/\.ledger$"):
        find(str(tmp_path / "study"))
    for named in (None, str(tmp_path)):
        with pytest.raises(UsageError, match="ledger init") as caught:
            find(named)
        assert (caught.value.code, caught.value.exit_code) == ("no-home", 2)


# Settings anybody can edit


@pytest.mark.parametrize(
    ("old", "new", "error", "code"),
    [
        ("format = 1", "format = 2", StorageError, "newer-home"),
        ("format = 1", "format = true", StorageError, "bad-settings"),
        ("format = 1", "", StorageError, "bad-settings"),
        ("origin = ", "name = ", StorageError, "bad-settings"),
        ("origin = ", "origin == ", StorageError, "bad-settings"),
        ('"sqlite:catalog.sqlite"', '"sqlite:../other.sqlite"', UsageError, "unsupported-url"),
        ('"sqlite:catalog.sqlite"', '"sqlite:/etc/passwd"', UsageError, "unsupported-url"),
        ('"sqlite:catalog.sqlite"', '"postgresql://host/db"', UsageError, "unsupported-url"),
        ('"file:objects"', '"gs://bucket"', UsageError, "unsupported-url"),
        ('"file:objects"', "7", StorageError, "bad-settings"),
    ],
)
def test_settings_that_cannot_be_used(
    tmp_path: Path, old: str, new: str, error: type[LedgerError], code: str
) -> None:
    home = init(tmp_path / "a", origin="lab")
    settings = home.path / "ledger.toml"
    text = settings.read_text()
    assert old in text
    settings.write_text(text.replace(old, new))
    with pytest.raises(error) as caught:
        use(home.path)
    assert caught.value.code == code


def use(path: Path) -> None:
    """Finds a home and opens both parts of it."""
    home = find(str(path))
    home.objects.path("log/checkpoint")
    Index.open(home)


def test_settings_that_are_not_text(tmp_path: Path) -> None:
    home = init(tmp_path / "a")
    (home.path / "ledger.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(StorageError):
        find(str(home.path))


def test_an_edited_origin_is_found(tmp_path: Path) -> None:
    home, other = init(tmp_path / "a", origin="lab"), init(tmp_path / "b", origin="rival")
    key = homes.signing_key(home)
    for name in ("rival", "unheard-of"):
        edited = Home(home.path, name)
        (home.path / "ledger.toml").write_bytes(homes._settings(edited))
        assert find(str(home.path)).origin == name
        with Index.open(edited) as index, pytest.raises(VerificationError):
            heads.check(edited, index)
        with pytest.raises(VerificationError):
            log.commit(edited, key, lambda _: [events.AcquisitionEvent("a", "transport")])
    with Index.open(other) as index:
        heads.check(other, index)


def test_without_a_pin_somebody_has_to_vouch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = init(tmp_path / "a", origin="lab")
    key = homes.signing_key(home)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
    with Index.open(home) as index:
        with pytest.raises(VerificationError) as caught:
            heads.check(home, index)
        assert caught.value.code == "no-pin"
        assert heads.check(home, index, key=key.public).head.size == 1
        assert heads.check(home, index, trust_first=True).head.size == 1
        with pytest.raises(UnknownKeyError):
            heads.check(home, index, key=SigningKey.generate().public, trust_first=True)


def test_a_whole_other_log_in_its_place_is_found(tmp_path: Path) -> None:
    home = init(tmp_path / "a", origin="lab")
    kept = pin.load("lab")
    for suffix in (".pin", ".pem"):
        pin.config_file("lab", suffix).unlink()
    init(tmp_path / "b", origin="lab")  # somebody else's key, the same name
    assert kept is not None
    pin.store(kept)
    forged = Home(tmp_path / "b", "lab")
    with Index.open(forged) as index, pytest.raises(UnknownKeyError):
        heads.check(forged, index)
    with Index.open(home) as index:
        heads.check(home, index)


def test_an_older_head_is_checked_too(tmp_path: Path) -> None:
    home = init(tmp_path / "a", origin="lab")
    key = homes.signing_key(home)
    for name in "bc":
        log.commit(home, key, lambda _, name=name: [events.AcquisitionEvent(name, "transport")])  # type: ignore[misc]
    with Index.open(home) as index:
        checked = heads.check(home, index, at=2)
        assert (checked.head.size, len(checked.leaves)) == (2, 2)
        with pytest.raises(UsageError):
            heads.check(home, index, at=9)


# Crashes and failures while a home is made


class StopError(Exception):
    """Stands for a process that ends."""


@pytest.mark.parametrize("point", ["key-saved", "published log/checkpoint", "home-built", "home-named"])
def test_a_home_is_there_whole_or_not_at_all(tmp_path: Path, config: Path, point: str) -> None:
    def stop(name: str) -> None:
        if name == point:
            raise StopError

    durable.hook = stop
    with pytest.raises(StopError):
        init(tmp_path / "a", origin="lab")
    durable.hook = None
    if point == "home-named":
        home = find(str(tmp_path / "a"))
        log.commit(home, homes.signing_key(home), lambda _: [events.AcquisitionEvent("a", "transport")])
    else:
        assert not (tmp_path / "a").exists()
        if point != "key-saved":
            assert files(tmp_path) == {}
        else:
            pin.config_file("lab", ".pem").unlink()
        home = init(tmp_path / "a", origin="lab")
    with Index.open(home) as index:
        assert heads.check(home, index).pin is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "config"]
