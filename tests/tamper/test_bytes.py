"""A byte flipped anywhere in the home is found, and the file is named."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator

import pytest

from contracts.errors import LedgerError
from ledger import seal
from ledger.home import read
from ledger.verify import verify
from tests.cli.calls import called
from tests.tamper.victims import CATALOG, SETTINGS, Victim, changed, flip, found, look

NEWEST = ("20", "21")
SMALL = 300  # bytes; every one of them in the sweep
SPOTS = 25  # of a larger file in the sweep, and of the older published heads
# Of each kind of file one, through the command with everything on.
KINDS = (
    CATALOG, seal.SEAL, "objects/log/checkpoint", "objects/log/heads/*", "objects/log/tile/0/*/*",
    "objects/log/tile/entries/*/*", "objects/log/witnessed/*", "objects/segments/*.parquet",
    "objects/segments/*.leaves", "objects/segments/*.rows", "objects/refusals/*.parquet",
    "objects/refusals/*.json", "objects/refusals/*.leaves", "objects/refusals/*.rows", "objects/records/*",
    "objects/attestations/*",
)  # fmt: skip


def spots(name: str, size: int, more: int) -> Iterator[tuple[int, int]]:
    """Places and bits in a file: first, middle, last and some drawn from its name."""
    draw = random.Random(name.encode()[-20:])
    for spot in {0, size // 2, size - 1, *(draw.randrange(size) for _ in range(more))}:
        yield spot, draw.randrange(8)


def flip_each(victim: Victim, name: str, places: Iterable[tuple[int, int]]) -> None:
    where = (name, CATALOG) if name == seal.SEAL else (name,)
    for spot, bit in places:
        with changed(victim, name):
            flip(victim, name, spot, bit)
            if "/witnessed/" in name and (report := look(victim)).ok:
                # the name or key of a witness: what is left is a line of nobody known, which does not count
                assert any("is not cosigned by 1 of the 1 witnesses" in notice for notice in report.notices)
            else:
                found(victim, *where)


def test_the_home_has_files_of_every_kind(victim: Victim) -> None:
    names = victim.names()
    for pattern in KINDS:
        assert list(victim.home.path.glob(pattern)), pattern
    kinds = {str(path.parent) for pattern in KINDS for path in victim.home.path.glob(pattern)}
    assert {str(victim.path(name).parent) for name in names} <= kinds | {str(victim.home.path)}
    assert verify(victim.home).ok


def test_a_flipped_byte_in_any_file_is_found_and_named(victim: Victim) -> None:
    for name in victim.names():
        if name != SETTINGS:
            size = victim.path(name).stat().st_size
            flip_each(victim, name, spots(name, size, 12 if name == CATALOG else 1))
    assert verify(victim.home).ok


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(8))
def test_every_byte_of_small_files_and_many_of_large_ones(victim: Victim, part: int) -> None:
    for name in victim.names()[part::8]:
        size = victim.path(name).stat().st_size
        draw = random.Random(name)
        if name == SETTINGS:
            continue
        if size <= SMALL and not ("/heads/" in name and name[-2:] not in NEWEST):
            flip_each(victim, name, ((spot, draw.randrange(8)) for spot in range(size)))
        else:
            flip_each(victim, name, spots(name, size, 200 if name == CATALOG else SPOTS))


@pytest.mark.parametrize("pattern", [KINDS[0], KINDS[2], KINDS[7], KINDS[-2]])
def test_the_command_ends_with_4_and_names_the_file(
    victim: Victim, pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_HOME", str(victim.home.path))
    path = sorted(victim.home.path.glob(pattern))[0]
    name = path.relative_to(victim.home.path).as_posix()
    size = path.stat().st_size
    flip(victim, name, size // 2, 3)
    done = called("verify", "--full")
    assert done.code == 4
    assert f"PROBLEM {name}" in " ".join(done.out.split())
    assert "not verified" in done.err


def test_the_full_form_finds_what_the_quick_one_finds(
    victim: Victim, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEDGER_HOME", str(victim.home.path))
    path = sorted(victim.home.path.glob("objects/segments/*.parquet"))[0]
    flip(victim, path.relative_to(victim.home.path).as_posix(), 100, 0)
    quick, full = (json.loads(called("verify", "--json", *more).out) for more in ((), ("--full",)))
    assert (quick["ok"], full["ok"], full["error"]["exit"]) == (False, False, 4)
    assert all(finding in full["findings"] for finding in quick["findings"])


@pytest.mark.parametrize("bit", [0, pytest.param(5, marks=pytest.mark.sweep)])
def test_damaged_settings_never_pass(victim: Victim, bit: int) -> None:
    """They are settings and no evidence: 2 or 3 where they cannot be used, 4 where they lead elsewhere."""
    for spot in range(victim.path(SETTINGS).stat().st_size):
        with changed(victim, SETTINGS):
            flip(victim, SETTINGS, spot, bit)
            ended, told = outcome(victim)
            assert ended in (2, 3, 4), spot
            assert told


def outcome(victim: Victim) -> tuple[int, str]:
    """How a look at the home ends, and what it says."""
    try:
        error: LedgerError | None = verify(read(victim.home.path)).error()
    except LedgerError as raised:
        error = raised
    return (0, "") if error is None else (error.exit_code, str(error))
