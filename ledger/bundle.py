"""The container of a bundle: a zip file with a manifest, stored objects of a ledger, and proofs.

    bundle.json                     canonical {v, type, record, event, size}: what the bundle is about
    objects/<name>                  objects and published log files under the names of a home
    proofs/<event>.tlog-proof       each event the audit rests on, in the form other tools read

Members are stored, not compressed (entries are compressed already), so a bundle is never larger inside than
outside, and a reader takes members straight from the file: nothing is unpacked onto a disk.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

from contracts.canonical import canonical, parse_canonical
from contracts.errors import MalformedError, TamperError
from ledger import durable
from ledger.fields import Fields
from ledger.object_names import ADDRESSED, PUBLISHED
from ledger.objects import Objects

MAGIC = b"PK\x03\x04"
MANIFEST = "bundle.json"
OBJECTS = "objects/"
TYPE = "ledger.bundle"
VERSION = 1
MAX_MEMBERS = 1_000_000
PROOF = re.compile(r"proofs/(0|[1-9][0-9]{0,18})\.tlog-proof", re.ASCII)
_DAMAGED = re.compile(r"Bad CRC-32 for file '(.*)'")
_ASK = "ask for the bundle again"
_EPOCH = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class Manifest:
    """What a bundle is about: an audit by its record and event, and the size of the head it was made at."""

    record: str
    event: int
    size: int

    def to_bytes(self) -> bytes:
        """Canonical JSON; `parse` reads it back."""
        fields = {"v": VERSION, "type": TYPE, "record": self.record, "event": self.event, "size": self.size}
        return canonical(fields)

    @classmethod
    def parse(cls, data: bytes) -> Manifest:
        """The manifest in a bundle; it only says where to look and is believed in nothing."""
        fields = Fields.of(parse_canonical(data), "manifest")
        if (fields.text("type"), fields.whole("v")) != (TYPE, VERSION):
            raise MalformedError("a bundle of another kind or version", expected=f"{TYPE} version {VERSION}")
        found = cls(fields.digest("record", "sha256"), fields.whole("event"), fields.whole("size"))
        fields.close()
        return found


@dataclass(frozen=True)
class Watched(Objects):
    """Objects of a store, and which of them were read, in the order of the first reading."""

    store: Objects
    opened: dict[str, None] = field(default_factory=dict)

    @property
    def far(self) -> bool:
        """As the store."""
        return self.store.far

    def where(self, name: str) -> str:
        """As the store."""
        return self.store.where(name)

    def exists(self, name: str) -> bool:
        """As the store."""
        return self.store.exists(name)

    def size(self, name: str) -> int:
        """As the store."""
        return self.store.size(name)

    def open(self, name: str) -> BinaryIO:
        """As the store."""
        self.opened.setdefault(name)
        return self.store.open(name)

    def ranged(self, name: str) -> BinaryIO:
        """As the store."""
        self.opened.setdefault(name)
        return self.store.ranged(name)


@dataclass(frozen=True)
class Bundled(Objects):
    """The objects in an open bundle; `root` is the bundle itself. It can only be read."""

    root: Path
    members: zipfile.ZipFile
    names: frozenset[str]
    opened: dict[str, None] = field(default_factory=dict)
    when_changed = _ASK

    def where(self, name: str) -> str:
        """As a path below the bundle."""
        return str(self.root / name)

    def size(self, name: str) -> int:
        """How many bytes its member has."""
        return self.members.getinfo(self._known(OBJECTS + name)).file_size

    def exists(self, name: str) -> bool:
        """Whether the bundle holds an object."""
        return OBJECTS + name in self.names

    def open(self, name: str) -> BinaryIO:
        """An object for reading; MalformedError when the bundle does not hold it."""
        return self.member(OBJECTS + name)

    def member(self, name: str) -> BinaryIO:
        """Any member for reading."""
        self.opened.setdefault(self._known(name))
        return cast("BinaryIO", self.members.open(name))

    def _known(self, name: str) -> str:
        """The same name; MalformedError when no member has it."""
        if name not in self.names:
            raise MalformedError(
                "the bundle lacks something it needs", expected=name, where=self.root,
                next_step="ask for a new one: `ledger bundle`",
            )  # fmt: skip
        return name

    def bytes_of(self, name: str, limit: int) -> bytes:
        """The bytes of a member that has to be short."""
        with self.member(name) as file:
            data = file.read(limit + 1)
        if len(data) > limit:
            raise MalformedError("a member is too long", expected=f"at most {limit} bytes", where=name)
        return data

    def unread(self) -> list[str]:
        """The members nobody asked for, in order."""
        return sorted(self.names - self.opened.keys())


class Writer:
    """Adds members to a new bundle, each under its name and with nothing that differs between two runs."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive

    def add(self, name: str, data: bytes) -> None:
        """A member from its bytes."""
        self._archive.writestr(_info(name, len(data)), data)

    def copy(self, name: str, source: BinaryIO, size: int) -> None:
        """A member from an open file of that size."""
        with self._archive.open(_info(name, size), "w", force_zip64=size >= zipfile.ZIP64_LIMIT) as target:
            while chunk := source.read(1 << 20):
                target.write(chunk)


@contextmanager
def create(path: Path) -> Iterator[Writer]:
    """A new bundle that appears whole under its name, or not at all."""
    staged = path.with_name(durable.temporary_name(".part"))
    try:
        with durable.storage("writing the bundle", path):
            with zipfile.ZipFile(staged, "x", zipfile.ZIP_STORED) as archive:
                yield Writer(archive)
            durable.sync(staged)
            durable.replace(staged, path)
    finally:
        staged.unlink(missing_ok=True)


@contextmanager
def opened(path: Path) -> Iterator[Bundled]:
    """The objects of a bundle; MalformedError for what is no zip file or no bundle.

    Members must be stored, of known names, each there once, and together not larger than the file: no
    member can grow, hide behind another, or name a place outside.
    """
    with durable.storage("reading the bundle", path), path.open("rb") as file:
        size = path.stat().st_size
        with reading(path), zipfile.ZipFile(file) as archive:
            names = _checked(archive.infolist(), size)
            yield Bundled(path, archive, names)


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turns what the zip reader says of damaged bytes into errors of ours."""
    try:
        yield
    except zipfile.BadZipFile as error:
        damaged = _DAMAGED.search(str(error))
        if damaged:
            member = ascii(damaged[1][:200])[1:-1]
            raise TamperError(
                "a member of the bundle changed", kind="data", where=f"{path} {member}",
                expected="the bytes its checksum is of", next_step=_ASK,
            ) from error  # fmt: skip
        raise MalformedError("not a zip file, or a damaged one", where=path) from error
    except (NotImplementedError, RuntimeError, EOFError, ValueError, OverflowError, KeyError) as error:
        raise MalformedError("a zip file no bundle is written as", where=path) from error


def _checked(members: list[zipfile.ZipInfo], size: int) -> frozenset[str]:
    if len(members) > MAX_MEMBERS:
        raise MalformedError("too many members", expected=f"at most {MAX_MEMBERS}", got=len(members))
    names = frozenset(info.filename for info in members)
    if len(names) != len(members):
        raise MalformedError("a member is there twice")
    for info in members:
        known = info.filename == MANIFEST or PROOF.fullmatch(info.filename) or _object(info.filename)
        if not known:
            raise MalformedError("a member no bundle has", got=ascii(info.filename[:120]))
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise MalformedError("a compressed member", expected="stored", where=info.filename)
    if sum(info.file_size for info in members) > size:
        raise MalformedError("members overlap: they are larger than the file", expected=f"at most {size}")
    return names


def _object(name: str) -> bool:
    inside = name.removeprefix(OBJECTS)
    return inside != name and bool(ADDRESSED.fullmatch(inside) or PUBLISHED.fullmatch(inside))


def _info(name: str, size: int) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name, _EPOCH)
    info.external_attr = 0o644 << 16
    info.create_system = 3  # the same bytes wherever it is written
    info.file_size = size
    return info
