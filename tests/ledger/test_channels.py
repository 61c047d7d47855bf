"""Channels are registered all together or not at all, and a name is bound to one specification."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contracts.channel import fingerprint, look_alikes
from contracts.errors import ContractError, StorageError, UsageError
from ledger import channels
from ledger.index import Index
from tests.ledger.homes import Place, files, new_place, spec


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return new_place(tmp_path / "home")


def written(folder: Path, name: str, text: str, file: str | None = None) -> Path:
    path = folder / f"{file or name}.json"
    path.write_text(json.dumps({"name": name, **spec(text)}))
    return path


def add(place: Place, *paths: Path, new_version: bool = False) -> channels.Registration:
    return channels.add(place.home, place.key, paths, new_version=new_version)


def test_files_become_channels(place: Place, tmp_path: Path) -> None:
    result = add(place, written(tmp_path, "direct", "a"), written(tmp_path, "generated", "b"))
    assert [(r.channel.reference, r.new) for r in result.channels] == [
        ("direct@1", True),
        ("generated@1", True),
    ]
    assert (result.commit.first_index, result.commit.size) == (1, 3)
    with Index.open(place.home) as index:
        book = index.channels()
    assert book.resolve("direct").fingerprint == fingerprint(spec("a"))
    assert book.resolve("generated").spec == spec("b")


def test_a_known_specification_changes_nothing(place: Place, tmp_path: Path) -> None:
    path = written(tmp_path, "direct", "a")
    add(place, path)
    before = files(place.home.path)
    (again,) = add(place, path).channels
    assert not again.new
    assert files(place.home.path) == before
    assert [r.new for r in add(place, path, written(tmp_path, "generated", "b")).channels] == [False, True]


def test_a_known_name_needs_a_new_version(place: Place, tmp_path: Path) -> None:
    add(place, written(tmp_path, "direct", "a"))
    other = written(tmp_path, "direct", "b", "second")
    with pytest.raises(UsageError) as caught:
        add(place, other)
    assert caught.value.code == "channel-exists"
    assert "prompt.text" in str(caught.value)
    assert "--new-version" in str(caught.value)
    (second,) = add(place, other, new_version=True).channels
    assert second.channel.reference == "direct@2"
    (known,) = add(place, written(tmp_path, "direct", "a"), new_version=True).channels
    assert (known.channel.reference, known.new) == ("direct@1", False)
    with Index.open(place.home) as index:
        with pytest.raises(UsageError, match="direct@1"):
            index.channels().resolve("direct")
        assert index.channels().resolve("direct@2").fingerprint == fingerprint(spec("b"))


def test_one_refused_file_registers_none(place: Place, tmp_path: Path) -> None:
    add(place, written(tmp_path, "direct", "a"))
    before = files(place.home.path)
    good, other = written(tmp_path, "new", "c"), written(tmp_path, "direct", "b", "second")
    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    third = written(tmp_path, "new", "d", "third")
    for second, error in (
        (other, UsageError), (broken, ContractError), (tmp_path / "none.toml", StorageError),
        (third, ContractError),
    ):  # fmt: skip
        with pytest.raises(error):
            add(place, good, second)
    assert files(place.home.path) == before


def test_the_same_file_twice_in_a_call_is_one_channel(place: Place, tmp_path: Path) -> None:
    path = written(tmp_path, "direct", "a")
    result = add(place, path, path)
    assert [r.new for r in result.channels] == [True, False]
    assert result.commit.size == 2


def test_two_names_for_one_specification_are_told(place: Place, tmp_path: Path) -> None:
    add(place, written(tmp_path, "direct", "a"))
    (alias,) = add(place, written(tmp_path, "plain", "a")).channels
    assert alias.new
    assert alias.aliases == ("direct@1",)


def test_a_specification_longer_than_an_event(place: Place, tmp_path: Path) -> None:
    add(place, written(tmp_path, "long", "x" * 100_000))
    with Index.open(place.home) as index:
        assert index.channels().resolve("long").spec == spec("x" * 100_000)


def test_a_dry_run_judges_and_writes_nothing(place: Place, tmp_path: Path) -> None:
    path = written(tmp_path, "direct", "a")
    before = files(place.home.path)
    (found,) = channels.judge(place.home, [path])
    assert found.new
    assert files(place.home.path) == before


def test_a_key_that_looks_like_one_the_ledger_reads_is_warned_of() -> None:
    spec = {
        "prompt": {},
        "readout": {"kind": "k", "lables": []},
        "stack": {},
        "view": {},
        "presentation": {"layout": 4},
    }
    assert [text.split(" ")[0] for text in look_alikes(spec)] == ["readout.lables", "presentation.layout"]
    assert not list(
        look_alikes({**spec, "readout": {"kind": "k"}, "presentation": {"layouts": 4, "order": "x"}})
    )
