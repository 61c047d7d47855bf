"""The pin: kept outside the home, moved in one step, and never content with a shorter or another log."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from contracts.errors import MalformedError, SignatureError, StorageError, TamperError, UnknownKeyError
from ledger import durable, pin
from ledger.keys import SigningKey
from ledger.notes import TreeHead, sign_head
from ledger.pin import Pin
from ledger.tree import leaf_hash, root
from ledger.vkey import VerifierKey

KEY = SigningKey(b"1" * 32)
ORIGIN = "study-0123abcd"
VKEY = str(VerifierKey(ORIGIN, KEY.public.raw))
LEAVES = [leaf_hash(bytes([i])) for i in range(20)]


def head_of(size: int, leaves: list[bytes] = LEAVES) -> TreeHead:
    return TreeHead(ORIGIN, size, root(leaves[:size]))


def pin_of(size: int) -> Pin:
    return Pin(ORIGIN, VKEY, sign_head(head_of(size), KEY))


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "ledger"


def test_a_pin_comes_back_and_moves(config: Path) -> None:
    assert pin.load(ORIGIN) is None
    for size in (0, 1, 7):
        pin.store(pin_of(size))
        found = pin.load(ORIGIN)
        assert found == pin_of(size)
        assert found is not None
        assert found.head == head_of(size)
    assert os.listdir(config) == [f"{ORIGIN}.pin"]
    assert json.loads((config / f"{ORIGIN}.pin").read_bytes()).keys() == {"origin", "vkey", "note"}


def test_the_folder_follows_the_base_directory_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for configured in ("", "relative"):
        monkeypatch.setenv("XDG_CONFIG_HOME", configured)
        assert pin.config_dir() == tmp_path / ".config" / "ledger"


def test_an_origin_is_one_file_name_whatever_it_holds(config: Path) -> None:
    for origin in ("example.org/log/a", "..", "a%2Fb", "größe"):
        path = pin.config_file(origin, ".pem")
        assert path.parent == config
        key = SigningKey(b"2" * 32)
        vkey = str(VerifierKey(origin, key.public.raw))
        pin.store(Pin(origin, vkey, sign_head(TreeHead(origin, 0, root([])), key)))
        assert pin.load(origin) is not None
    assert len(list(config.iterdir())) == 4


def test_no_unchecked_pin_can_be_made() -> None:
    good = pin_of(3)
    with pytest.raises(SignatureError):
        Pin(ORIGIN, VKEY, good.note.replace(b"\n3\n", b"\n4\n"))
    with pytest.raises(UnknownKeyError):
        Pin(ORIGIN, str(VerifierKey(ORIGIN, SigningKey.generate().public.raw)), good.note)
    with pytest.raises(UnknownKeyError):
        Pin("another", VKEY, good.note)
    with pytest.raises(MalformedError):
        Pin(ORIGIN, VKEY, b"")


def test_every_flipped_bit_of_a_stored_pin_is_found(config: Path) -> None:
    pin.store(pin_of(7))
    path = config / f"{ORIGIN}.pin"
    data = path.read_bytes()
    for i in range(len(data)):
        changed = bytearray(data)
        changed[i] ^= 1 << i % 8
        path.write_bytes(bytes(changed))
        with pytest.raises(MalformedError, match="the pin is damaged"):
            pin.load(ORIGIN)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"note":1,"origin":2,"vkey":3}', b"x" * (pin.MAX_PIN + 1)]
)
def test_what_is_no_pin_is_said_with_its_path(config: Path, data: bytes) -> None:
    pin.store(pin_of(1))
    (config / f"{ORIGIN}.pin").write_bytes(data)
    with pytest.raises(MalformedError) as caught:
        pin.load(ORIGIN)
    assert caught.value.where == str(config / f"{ORIGIN}.pin")


def test_the_pin_of_another_log_does_not_pass_as_ours(config: Path) -> None:
    pin.store(pin_of(1))
    (config / f"{ORIGIN}.pin").rename(config / "other.pin")
    with pytest.raises(MalformedError, match="the pin of another log"):
        pin.load("other")


def test_places_that_cannot_be_read_or_written_are_storage_errors(config: Path) -> None:
    (config / f"{ORIGIN}.pin").mkdir(parents=True)
    with pytest.raises(StorageError, match="reading the pin failed"):
        pin.load(ORIGIN)
    with pytest.raises(StorageError, match="writing the pin failed"):
        pin.store(pin_of(1))
    assert os.listdir(config) == [f"{ORIGIN}.pin"]


def test_a_failed_write_leaves_the_last_pin(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pin.store(pin_of(3))

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(durable, "write_all", fail)
    with pytest.raises(StorageError) as caught:
        pin.store(pin_of(4))
    assert caught.value.code == "disk-full"
    assert pin.load(ORIGIN) == pin_of(3)
    assert os.listdir(config) == [f"{ORIGIN}.pin"]


def test_a_log_that_grew_from_the_pinned_one_passes() -> None:
    for pinned in (0, 1, 7, 8, 20):
        for size in range(pinned, 21):
            pin.check(pin_of(pinned), head_of(size), LEAVES[:size])


@pytest.mark.parametrize(("pinned", "size"), [(8, 7), (1, 0), (20, 19)])
def test_a_shorter_log_is_refused(pinned: int, size: int) -> None:
    with pytest.raises(TamperError, match="the log is shorter") as caught:
        pin.check(pin_of(pinned), head_of(size), LEAVES[:size])
    assert caught.value.kind == caught.value.code == "rolled-back-head"
    assert caught.value.exit_code == 4


@pytest.mark.parametrize("size", [8, 9, 20])
def test_a_log_rolled_back_and_grown_again_is_refused(size: int) -> None:
    other = [*LEAVES[:5], *reversed(LEAVES[5:])]
    with pytest.raises(TamperError, match="the first 8 events are not those") as caught:
        pin.check(pin_of(8), head_of(size, other), other[:size])
    assert caught.value.kind == "rolled-back-head"
