"""Files exchanged, cut, taken away or put back from a backup: found and named."""

from __future__ import annotations

import itertools
import random
import shutil
import sqlite3
from pathlib import Path, PurePosixPath

import pytest

from contracts.errors import LedgerError
from ledger import pin, seal
from ledger.verify import verify
from migrations.append_only import TABLES
from tests.cli.calls import called
from tests.tamper.victims import CATALOG, SETTINGS, Victim, changed, edit, found, look, put_back

FEW = 4
NEWEST, OLDER = 21, 20
PARTS = ("catalog", "checkpoint", "tiles", "heads", "witnessed")


def kind(name: str) -> tuple[str, str]:
    """Files that could be taken for each other: of one folder and one ending."""
    path = PurePosixPath(name)
    folder = path.parent.parent if path.parent.name.endswith(".p") else path.parent
    return str(folder), "".join(path.suffixes[-1:])


def alike(victim: Victim) -> list[tuple[str, str]]:
    names = sorted((name for name in victim.names() if name.startswith("objects/")), key=kind)
    return [
        pair
        for _, group in itertools.groupby(names, kind)
        for pair in itertools.combinations(group, 2)
        if victim.path(pair[0]).read_bytes() != victim.path(pair[1]).read_bytes()
    ]


def exchange(victim: Victim, one: str, other: str) -> None:
    first, second = (victim.path(name).read_bytes() for name in (one, other))
    victim.path(one).write_bytes(second)
    victim.path(other).write_bytes(first)


def exchanged(victim: Victim, pairs: list[tuple[str, str]]) -> None:
    for one, other in pairs:
        with changed(victim, one, other):
            exchange(victim, one, other)
            places = {problem.where for problem in found(victim, one).findings}
            assert other in places, (one, other)
    assert verify(victim.home).ok


def test_two_files_that_change_places_are_found(victim: Victim) -> None:
    pairs = alike(victim)
    assert {PurePosixPath(one).parts[1] for one, _ in pairs} >= {"segments", "records", "attestations", "log"}
    heads = [pair for pair in pairs if "/heads/" in pair[0]]
    exchanged(victim, [pair for pair in pairs if pair not in heads] + random.Random(4).sample(heads, FEW))


@pytest.mark.sweep
def test_every_two_published_heads_that_change_places_are_found(victim: Victim) -> None:
    exchanged(victim, [pair for pair in alike(victim) if "/heads/" in pair[0]])


def test_files_of_different_kinds_that_change_places_are_found(victim: Victim) -> None:
    names = victim.names()
    one_of_each = [next(name for name in names if kind(name) == k) for k in sorted(set(map(kind, names)))]
    stored = [name for name in one_of_each if name.startswith("objects/") and "/log/" not in name]
    exchanged(victim, list(itertools.pairwise(stored)))


def test_a_missing_file_is_found_or_told(victim: Victim) -> None:
    """What a crash may leave behind is told as a note: a missing seal, a missing cosignature."""
    for name in victim.names():
        with changed(victim, name):
            victim.path(name).unlink()
            if name in (SETTINGS, CATALOG):
                with pytest.raises(LedgerError) as caught:
                    verify(
                        victim.home if name == CATALOG else type(victim.home)(victim.home.path, "", 1, "", "")
                    )
                assert caught.value.exit_code in (2, 3)
            elif name == seal.SEAL:
                assert any(seal.SEAL in notice for notice in look(victim).notices)
            elif "/witnessed/" in name:
                assert any("not cosigned" in notice for notice in look(victim).notices)
            elif name.endswith(f"/{OLDER}") and "/tile/" in name:
                assert verify(victim.home).ok  # a part of an older head, which the newer one holds
            else:
                found(victim, name)


SWEPT = pytest.mark.sweep


@pytest.mark.parametrize("left", [0.5, pytest.param(0, marks=SWEPT), pytest.param(-1, marks=SWEPT)])
def test_a_cut_file_is_found_and_named(victim: Victim, left: float) -> None:
    for name in victim.names():
        if name == SETTINGS:
            continue
        with changed(victim, name):
            data = victim.path(name).read_bytes()
            victim.path(name).write_bytes(data[: int(len(data) * left) if left >= 0 else -1])
            found(victim, name, *((CATALOG,) if name == seal.SEAL else ()))


@pytest.mark.sweep
def test_an_added_byte_is_found_and_named(victim: Victim) -> None:
    for name in victim.names():
        if name == SETTINGS:
            continue
        with changed(victim, name):
            victim.path(name).write_bytes(victim.path(name).read_bytes() + b"\n")
            found(victim, name, *((CATALOG,) if name == seal.SEAL else ()))


# The tail of the log


def cut(victim: Victim, parts: tuple[str, ...]) -> None:
    """Takes the newest event away from some of the places where it stands."""

    def shorten(connection: sqlite3.Connection) -> None:
        for table in TABLES:
            if table not in ("event", "head"):
                connection.execute(f"DELETE FROM {table} WHERE event >= {OLDER}")
        connection.execute(f"DELETE FROM event WHERE leaf_index >= {OLDER}")
        connection.execute(f"DELETE FROM head WHERE size > {OLDER}")

    log = victim.path("objects/log")
    if "catalog" in parts:
        edit(victim, shorten)
    if "checkpoint" in parts:
        shutil.copyfile(log / "heads" / str(OLDER), log / "checkpoint")
    if "tiles" in parts:
        for path in log.glob(f"tile/**/{NEWEST}"):
            path.unlink()
    if "heads" in parts:
        (log / "heads" / str(NEWEST)).unlink()
    if "witnessed" in parts:
        (log / "witnessed" / str(NEWEST)).unlink()


def subsets(every: bool) -> list[tuple[str, ...]]:
    """The places to cut at: each alone and all together, or every choice of them."""
    counts = range(1, len(PARTS) + 1) if every else (1, len(PARTS))
    return [parts for count in counts for parts in itertools.combinations(PARTS, count)]


def pin_of_somebody_who_saw_less(victim: Victim) -> None:
    known = pin.load(victim.home.origin)
    assert known is not None
    note = victim.path(f"objects/log/heads/{OLDER}").read_bytes()
    pin.store(pin.Pin(known.origin, known.vkey, note))


def backed_up(victim: Victim) -> list[str]:
    return [CATALOG, seal.SEAL, *(name for name in victim.names() if "/log/" in name)]


EVERY = pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.sweep)])


@EVERY
def test_a_tail_cut_off_anywhere_is_found_by_whoever_saw_it(victim: Victim, every: bool) -> None:
    for parts in subsets(every):
        with changed(victim, *backed_up(victim)):
            cut(victim, parts)
            if "catalog" in parts:
                where = str(pin.config_file(victim.home.origin, ".pin"))
                found(victim, where, kinds=("rolled-back-head",))
            elif {"heads", "tiles"} & set(parts) and "checkpoint" not in parts:
                found(victim, *(name for name in backed_up(victim) if name.endswith(f"/{NEWEST}")),
                      f"objects/log/heads/{NEWEST}", f"objects/log/tile/0/000.p/{NEWEST}")  # fmt: skip
            else:  # as a crash before publishing leaves it; whoever reads only the published log sees less
                assert verify(victim.home).notices


@EVERY
def test_a_tail_cut_off_everywhere_passes_only_for_somebody_who_never_saw_it(
    victim: Victim, every: bool
) -> None:
    for parts in subsets(every):
        if "catalog" not in parts:
            continue
        with changed(victim, *backed_up(victim)):
            pin_of_somebody_who_saw_less(victim)
            cut(victim, parts)
            if {"checkpoint", "heads", "witnessed"} <= set(parts):
                assert verify(victim.home).ok  # as docs/trust.md says of the storage administrator
            else:
                found(victim, *(f"objects/log/{n}" for n in ("checkpoint", "heads/21", "witnessed/21")),
                      kinds=("rolled-back-head",))  # fmt: skip


def test_a_restored_backup_is_refused_by_every_command_that_reads_the_head(
    victim: Victim, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put_back(victim.study.folder / "backup" / ".ledger", victim)
    found(victim, str(pin.config_file(victim.home.origin, ".pin")), kinds=("rolled-back-head",))
    monkeypatch.setenv("LEDGER_HOME", str(victim.home.path))
    for words in (
        ("verify", "--full"), ("status",), ("log",), ("lineage", "a"), ("scores",),
        ("audit", "transport", "--ref", "direct", "--alt", "generated", "--no-record"),
        ("acquisition", "list"), ("attest", "list"), ("revoke", "acquisition", "a", "--reason", "x"),
        ("ingest", str(victim.study.folder / "first.parquet")),
    ):  # fmt: skip
        done = called(*words)
        assert done.code == 4, words
        assert "shorter than when it was last trusted" in done.out + done.err, words
