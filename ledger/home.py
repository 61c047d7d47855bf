"""The home of a ledger: where it is, what it is called, and how a new one comes into being.

`ledger.toml` says the origin, the format and where catalog and objects stand. Anybody who can write the
home can write that file, so nothing trust rests on is read from it: the origin must agree with the signed
head, and which key signs is known from the pin outside the home.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tomllib
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from contracts.errors import LedgerError, StorageError, UsageError
from ledger import durable, pin, server
from ledger.objects import STAGING, Staging, Store
from ledger.objects_place import checked, open_store
from ledger.server import Server
from ledger.vkey import is_name

if TYPE_CHECKING:
    from ledger.keys import SigningKey

FOLDER = ".ledger"
SETTINGS = "ledger.toml"
FORMAT = 1
CATALOG_URL = "sqlite:catalog.sqlite"
OBJECTS_URL = "file:objects"
MAX_ORIGIN = 64
_INSIDE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*", re.ASCII)
_UNUSUAL = re.compile(r"[^A-Za-z0-9._-]+", re.ASCII)
_MAX_SETTINGS = 64 * 1024
_MAX_FOLDER = 40


@dataclass(frozen=True)
class Home:
    """A directory that holds a ledger; URLs are relative to it."""

    path: Path
    origin: str
    format_version: int = FORMAT
    catalog_url: str = CATALOG_URL
    objects_url: str = OBJECTS_URL

    @property
    def catalog(self) -> Path | Server:
        """The catalog's file, or its schema on a server."""
        if server.is_url(self.catalog_url):
            return server.parse(self.catalog_url, self.path / SETTINGS)
        return self._inside(self.catalog_url, "sqlite", "catalog")

    @property
    def catalog_name(self) -> str:
        """What the catalog is called where a place in the home is meant."""
        place = self.catalog
        return place.name if isinstance(place, Path) else "catalog"

    @property
    def objects(self) -> Store:
        """The object store."""
        return open_store(self.objects_url, self.path, self.path / SETTINGS)

    @property
    def stage_at(self) -> Staging:
        """Where files wait that become part of the home: on its own file system."""
        place = self.objects.stage_at
        return place if place.root.is_relative_to(self.path) else Staging(self.path / STAGING)

    @property
    def folder(self) -> str:
        """The folder in the home that is its own: of the objects, or of what is staged for elsewhere."""
        return self.stage_at.root.relative_to(self.path).parts[0]

    def staged(self) -> Iterator[Path]:
        """Every file that waits to become a part of the home or an object, finished or not."""
        for place in dict.fromkeys((self.objects.stage_at, self.stage_at)):
            yield from place.files()

    def relative(self, path: Path) -> str:
        """A path as it is told: below the home, or in full."""
        return path.relative_to(self.path).as_posix() if path.is_relative_to(self.path) else str(path)

    def _inside(self, url: str, scheme: str, name: str) -> Path:
        found, _, rest = url.partition(":")
        if found != scheme or _INSIDE.fullmatch(rest) is None:
            raise UsageError(
                f"this version cannot use that place for the {name}", code="unsupported-url",
                expected=f"{scheme}:PATH inside the home", where=self.path / SETTINGS,
            )  # fmt: skip
        return self.path / rest


def find(home: str | None = None) -> Home:
    """The home that `--home` or LEDGER_HOME names, else the nearest `.ledger` upwards; UsageError if none."""
    named = home or os.environ.get("LEDGER_HOME")
    if named:
        path = Path(named).expanduser()
        if not (path / SETTINGS).is_file():
            inside = (path / FOLDER / SETTINGS).is_file()
            raise UsageError(
                "no ledger home there", code="no-home", where=path, expected=f"a directory with {SETTINGS}",
                next_step=f"name {path / FOLDER}" if inside else "run `ledger init` to make one",
            )  # fmt: skip
        return read(path)
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / FOLDER / SETTINGS).is_file():
            return read(folder / FOLDER)
    raise UsageError(
        f"no ledger home here or in any folder above ({here})", code="no-home",
        next_step="run `ledger init`, or name one with --home or LEDGER_HOME",
    )  # fmt: skip


def read(path: Path) -> Home:
    """The home at `path`, from its settings."""
    file = path / SETTINGS
    with durable.storage("reading the home's settings", file), file.open("rb") as opened:
        data = opened.read(_MAX_SETTINGS)
    try:
        settings = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise StorageError(f"settings are not toml ({error})", code="bad-settings", where=file) from error
    version = settings.get("format")
    if isinstance(version, int) and version > FORMAT:
        raise StorageError(
            "this home was made by a newer version of this program", code="newer-home", where=file,
            expected=f"format {FORMAT} or older", got=f"format {version}",
            next_step="install that version (pip install --upgrade evaluator-ledger)",
        )  # fmt: skip
    texts = [settings.get(key) for key in ("origin", "catalog", "objects")]
    if version != FORMAT or isinstance(version, bool) or not all(isinstance(text, str) for text in texts):
        raise StorageError(
            "settings are incomplete", code="bad-settings", where=file,
            expected=f"format = {FORMAT}, origin, catalog and objects as text",
        )  # fmt: skip
    origin, catalog, objects = (str(text) for text in texts)
    return Home(path, check_origin(origin, str(file)), FORMAT, catalog, objects)


def key_path(origin: str) -> Path:
    """Where the signing key of a home stands when nothing else is said."""
    return pin.config_file(origin, ".pem")


def signing_key(home: Home, uri: str | None = None) -> SigningKey:
    """The key to sign with: the one named, else LEDGER_KEY, else the one `init` made for this origin."""
    from ledger.keys import SigningKey

    named = uri or os.environ.get("LEDGER_KEY")
    if named:
        return SigningKey.load(_outside(home.path, named))
    path = key_path(home.origin)
    if not path.is_file():
        raise UsageError(
            "no signing key for this home", code="no-key", where=path,
            next_step="name one with --key or LEDGER_KEY",
        )  # fmt: skip
    return SigningKey.load(_outside(home.path, str(path)))


def init(
    path: Path,
    origin: str | None = None,
    key_uri: str | None = None,
    *,
    catalog: str | None = None,
    objects: str | None = None,
) -> Home:
    """Makes a home, its key and its first signed head, or nothing at all.

    The home is built beside `path` and renamed; the key (unless `key_uri` names one) is made outside it
    and never over another; the pin comes last. UsageError where a home or anything else already stands.
    `catalog` is the URL of a server, see `ledger.server`; without it the catalog is a file in the home.
    `objects` is an address of `ledger.objects_place` where nothing stands yet; without it they stand in
    the home.
    """
    from ledger.keys import SigningKey

    path = path.expanduser().absolute()
    _refuse_taken(path)
    key = SigningKey.load(_outside(path, key_uri)) if key_uri else SigningKey.generate()
    name = check_origin(origin or _default_origin(path, key), "--origin")
    if pin.load(name) is not None:
        raise UsageError(
            f"another home is called {name}", code="origin-taken", where="--origin",
            next_step="choose another --origin, or, if that home is gone for good, remove its pin "
            f"{pin.config_file(name, '.pin')}",
        )  # fmt: skip
    wanted = Home(path, name)
    if catalog is not None:
        wanted = replace(wanted, catalog_url=server.parse(catalog, "--catalog", name).url)
    if objects is not None:
        wanted = replace(wanted, objects_url=checked(objects, "--objects", path))
    if key_uri:
        return _make(wanted, key)
    place = key_path(name)
    _outside(path, str(place))
    if place.exists():
        raise UsageError(
            f"a key for {name} is already there", code="key-exists", where=place,
            next_step=f"use it with --key {place}, or choose another --origin",
        )  # fmt: skip
    key.save(place)
    durable.crash_point("key-saved")
    try:
        return _make(wanted, key)
    except BaseException:
        if not (path / SETTINGS).is_file():
            place.unlink(missing_ok=True)
        raise


def check_origin(origin: str, where: str) -> str:
    """The same origin when it can name a log and the files of its key and pin; UsageError otherwise."""
    if not is_name(origin) or len(origin.encode()) > MAX_ORIGIN:
        raise UsageError(
            "not an origin", code="bad-origin", where=where, got=ascii(origin[:80]),
            expected=f"1 to {MAX_ORIGIN} bytes without spaces, plus or control characters",
        )  # fmt: skip
    return origin


def _make(wanted: Home, key: SigningKey) -> Home:
    """Builds the home beside its place and renames it there, whole."""
    from ledger import log

    path = wanted.path
    with durable.storage("making the home", path):
        path.parent.mkdir(parents=True, exist_ok=True)
        building = path.with_name(f"{path.name}.new-{secrets.token_hex(4)}")
        building.mkdir()
    try:
        home = replace(wanted, path=building)
        with _claimed(home.objects):
            with durable.storage("making the home", path):
                durable.create(building / SETTINGS, _settings(home))
                home.objects.staging()
            with log.begin(home, key) as head, durable.storage("making the home", path):
                durable.sync(building)
                durable.crash_point("home-built")
                _refuse_taken(path)
                durable.replace(building, path)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    durable.crash_point("home-named")
    pin.store(head)
    return wanted


def _settings(home: Home) -> bytes:
    # A JSON text is also a TOML basic string.
    lines = {"origin": home.origin, "catalog": home.catalog_url, "objects": home.objects_url}
    return "".join(
        [
            f"format = {home.format_version}\n",
            *(f"{key} = {json.dumps(text)}\n" for key, text in lines.items()),
        ]
    ).encode()


def _refuse_taken(path: Path) -> None:
    """An empty directory may become a home; nothing else that exists may."""
    if (path / SETTINGS).exists():
        raise UsageError("a ledger home is already there", code="home-exists", where=path)
    if path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
        raise UsageError(
            "something else is already there", code="place-taken", where=path,
            expected="a new or an empty directory",
        )  # fmt: skip


@contextmanager
def _claimed(objects: Store) -> Iterator[None]:
    """Objects where nothing stands yet; what fails inside the block leaves nothing there either."""
    for name in objects.names():
        raise UsageError(
            "something else is already there", code="place-taken", where=objects.where(name),
            expected="an empty prefix or folder", next_step="choose one that no other ledger uses",
        )  # fmt: skip
    try:
        yield
    except BaseException:
        with suppress(LedgerError):
            for name in list(objects.list()):
                objects.remove(name)
        raise


def _outside(home: Path, uri: str) -> str:
    """The same key URI unless it names a file inside the home, where it would be copied along with it."""
    if not uri.startswith("env:"):
        file = Path(uri.removeprefix("file:")).expanduser().resolve()
        if file.is_relative_to(home.resolve()):
            raise UsageError(
                "the signing key would stand inside the home", code="key-inside", where=file,
                next_step="keep it outside: whoever copies or edits the home must not get the key",
            )  # fmt: skip
    return uri


def _default_origin(path: Path, key: SigningKey) -> str:
    """`<folder>-<8 hex of the public key>`, so that no two homes share a key or a pin."""
    folder = path.parent.name if path.name == FOLDER else path.name
    plain = _UNUSUAL.sub("-", unicodedata.normalize("NFKD", folder)).strip("-._")[:_MAX_FOLDER]
    return f"{plain or 'ledger'}-{key.public.raw.hex()[:8]}"
