"""Small homes for tests: a new ledger, events whose objects exist, and its files as bytes."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from contracts.canonical import canonical
from contracts.channel import fingerprint
from contracts.digest import blake3_digest, sha256_digest
from contracts.refusals import CellFault, RefusedSide
from ledger import home as homes
from ledger import object_names as names
from ledger.events import (
    AcquisitionEvent,
    AuditEvent,
    ChannelEvent,
    Event,
    RefusalEvent,
    RevocationEvent,
    ScopeRows,
    SegmentEvent,
    Source,
)
from ledger.home import Home
from ledger.keys import SigningKey
from ledger.objects import Store
from ledger.refusals import encode_index
from ledger.server import Server
from migrations.append_only import TABLES
from tests.postgres import Cluster

FILE, SERVER = "file", "server"
CATALOGS = (FILE, SERVER)
on_file = pytest.mark.parametrize("place", [FILE], indirect=True)
on_server_in_sweep = pytest.mark.parametrize(
    "place", [FILE, pytest.param(SERVER, marks=pytest.mark.sweep)], indirect=True
)
on_server = pytest.mark.parametrize("place", [SERVER], indirect=True)


def chosen(request: pytest.FixtureRequest) -> Cluster | None:
    """The server of a test whose `place` has its catalog there; None for a file."""
    if getattr(request, "param", FILE) == FILE:
        return None
    server: Cluster = request.getfixturevalue("cluster")
    _template(server)
    before = len(server.made)

    def clear() -> None:
        while len(server.made) > before:
            server.drop(server.made.pop())

    request.addfinalizer(clear)
    return server


@dataclass(frozen=True)
class Place:
    """A home and the configuration folder beside it, which move together; a database too, on a server."""

    home: Home
    config: Path
    key: SigningKey
    cluster: Cluster | None = None

    def copy(self, to: Path) -> Place:
        """All as they are now, elsewhere."""
        shutil.copytree(self.home.path, to / ".ledger")
        shutil.copytree(self.config, to / "config")
        home = replace(self.home, path=to / ".ledger")
        if self.cluster is not None:
            settings = home.path / homes.SETTINGS
            copied = self.cluster.url(self.cluster.database(self.database)) + f"?schema={self.schema}"
            settings.write_text(settings.read_text().replace(home.catalog_url, copied))
            home = replace(home, catalog_url=copied)
        return Place(home, to / "config", self.key, self.cluster)

    @property
    def database(self) -> str:
        """The name of the database on the server."""
        return self.home.catalog_url.partition("?")[0].rpartition("/")[2]

    @property
    def schema(self) -> str:
        """The schema in it."""
        assert isinstance(self.home.catalog, Server)
        return self.home.catalog.schema

    def sql(self, *statements: str, user: str = "keeper") -> list[Any]:
        """What somebody at a shell of the server does."""
        assert self.cluster is not None
        return self.cluster.sql(self.database, f"SET search_path TO {self.schema}", *statements, user=user)

    def use(self) -> Place:
        """Makes this configuration the one the process sees."""
        os.environ["XDG_CONFIG_HOME"] = str(self.config)
        return self


def new_place(folder: Path, cluster: Cluster | None = None) -> Place:
    """A new home, made once and copied; the caller restores XDG_CONFIG_HOME (`monkeypatch.setenv` does)."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = cluster or elsewhere
    return _template(cluster).copy(folder).use()


_templates: dict[int | None, Place] = {}
elsewhere: Cluster | None = None  # the server of homes that name none, see --catalog in conftest.py


def _template(cluster: Cluster | None) -> Place:
    server = None if cluster is None else cluster.port
    if server not in _templates:
        folder = Path(tempfile.mkdtemp(prefix="ledger-tests-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["XDG_CONFIG_HOME"] = str(folder / "config")
        url = None if cluster is None else cluster.url(cluster.database())
        home = homes.init(folder / ".ledger", origin="test-log", catalog=url)
        _templates[server] = Place(home, folder / "config", homes.signing_key(home), cluster)
    return _templates[server]


def spec(text: str = "score it", layouts: int = 4) -> dict[str, object]:
    """A small valid channel specification."""
    return {
        "prompt": {"text": text},
        "readout": {"kind": "logits"},
        "stack": {"model": "m"},
        "view": {"kind": "none"},
        "presentation": {"layouts": layouts},
    }


def channel_event(name: str = "direct", text: str = "score it", version: int = 1) -> ChannelEvent:
    """A channel with its right fingerprint."""
    return ChannelEvent(name, version, fingerprint(spec(text)), spec(text))


def put(
    objects: Store, name: Callable[[str], str], data: bytes, digest: Callable[[bytes], str] = blake3_digest
) -> str:
    """Stores an object and returns its digest."""
    objects.put(name(digest(data)), data)
    return digest(data)


def segment_event(
    objects: Store,
    tag: str = "a",
    scope: tuple[tuple[str | None, str, int], ...] = ((channel_event().fingerprint, "run-1", 8),),
    span: tuple[str, str] = ("t0", "t9"),
) -> SegmentEvent:
    """A segment whose three objects exist, though they hold no entries."""
    return SegmentEvent(
        kind="transport",
        schema="ledger.transport.v1",
        contract="ledger.transport.v1",
        file=put(objects, names.segment_name, f"file {tag}".encode()),
        size=len(f"file {tag}"),
        root=sha256_digest(tag.encode()),
        rows=sum(rows for *_, rows in scope),
        leaves=put(objects, names.leaves_name, f"leaves {tag}".encode()),
        rows_file=put(objects, names.rows_name, f"rows {tag}".encode()),
        sources=(Source(f"{tag}.parquet", blake3_digest(tag.encode()), 8),),
        channels=tuple(sorted({channel for channel, *_ in scope if channel})),
        acquisitions=tuple(sorted({acquisition for _, acquisition, _ in scope})),
        scope=tuple(ScopeRows(*part) for part in scope),
        first=(span[0], 0),
        last=(span[1], 3),
        trajectories=2,
    )


def refused_side(number: int, channel: str = channel_event().fingerprint) -> RefusedSide:
    """A refused side of its own transition."""
    faults = (CellFault("before", 2, "c1", "absent"), CellFault("after", 0, "c0", "failed:timeout"))
    return RefusedSide(
        trajectory_id=f"traj{number:06d}", step=number % 7, view_source="own", channel=channel,
        acquisition_id="run-1", reason="side-incomplete", faults=faults,
        rows=7, absent=1, duplicated=0, failed=1, unknown=0,
        digest=blake3_digest(str(number).encode()), step_kind=None, target="c0", target_type=None,
        success=number % 2 == 0,
    )  # fmt: skip


def refusal_event(objects: Store, sides: int = 3) -> RefusalEvent:
    """A refusal whose objects exist."""
    index = encode_index([refused_side(n) for n in range(sides)])
    return RefusalEvent(
        schema="ledger.transport-refused.v1",
        file=put(objects, names.refusal_rows_name, b"refused rows"),
        size=12,
        root=sha256_digest(b"refused"),
        rows=7 * sides,
        leaves=put(objects, names.refusal_leaves_name, b"refused leaves"),
        rows_file=put(objects, names.refusal_source_rows_name, b"refused source rows"),
        sides=sides,
        index=put(objects, names.refusal_index_name, index),
        sources=(Source("a.parquet", blake3_digest(b"a"), 99),),
    )


def audit_event(objects: Store, tag: str = "one") -> AuditEvent:
    """A logged audit whose record exists."""
    record = put(objects, names.record_name, canonical({"record": tag}), sha256_digest)
    return AuditEvent("transport", record, sha256_digest(tag.encode()), sha256_digest(b"design"))


def one_of_each(objects: Store) -> list[Event]:
    """An event of every type that derives rows."""
    return [
        channel_event(),
        AcquisitionEvent("run-1", "transport"),
        segment_event(objects),
        refusal_event(objects),
        audit_event(objects),
        RevocationEvent("acquisition", "run-1", "the server was swapped"),
    ]


def files(root: Path) -> dict[str, bytes]:
    """Every file below a folder, by relative path; locks left out."""
    return {
        path.relative_to(root).as_posix(): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.suffix != ".lock"
    }


def by_hand(place: Place, statement: str, *values: object, drop: bool = True) -> None:
    """Changes the catalog as somebody with a database shell would, without its triggers when `drop`."""
    if place.cluster is not None:
        _by_hand_on_server(place, statement, values, drop)
        return
    with sqlite3.connect(place.home.catalog) as connection:
        if drop:
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement, values)


def _by_hand_on_server(place: Place, statement: str, values: tuple[object, ...], drop: bool) -> None:
    import psycopg

    assert place.cluster is not None
    for ours, theirs in (
        (r"zeroblob\((\d+)\)", r"decode(repeat('00', \1), 'hex')"),
        (r"x'([0-9a-f]*)'", r"'\\x\1'::bytea"),
    ):
        statement = re.sub(ours, theirs, statement)
    with psycopg.connect(place.cluster.url(place.database)) as connection:
        connection.execute(f"SET search_path TO {place.schema}".encode())
        if drop:
            connection.execute("SET session_replication_role = replica")  # foreign keys rest
            found = connection.execute(
                "SELECT tgname, tgrelid::regclass::text FROM pg_trigger WHERE NOT tgisinternal"
            ).fetchall()
            for name, table in found:
                connection.execute(f"DROP TRIGGER {name} ON {table}".encode())
        if statement.startswith("DROP TABLE"):
            statement += " CASCADE"
        connection.execute(statement.replace("?", "%s").encode(), values)


def lose_catalog(place: Place) -> None:
    """Takes the catalog away."""
    if place.cluster is not None:
        place.sql(f"DROP SCHEMA {place.schema} CASCADE")
    else:
        place.home.catalog.unlink()


def backup(place: Place) -> Callable[[], None]:
    """Copies the catalog, and returns what puts the copy back in its place."""
    cluster, name = place.cluster, place.database
    if cluster is None:
        data = place.home.catalog.read_bytes()
        return lambda: place.home.catalog.write_bytes(data) and None
    copy = cluster.database(name)

    def restore() -> None:
        cluster.drop(name)
        cluster.sql("postgres", f"CREATE DATABASE {name} TEMPLATE {copy} STRATEGY file_copy")

    return restore


def stored(place: Place) -> dict[str, list[tuple[object, ...]]]:
    """Every row of the catalog, by table."""
    query = "SELECT * FROM {} ORDER BY 1, 2"
    if place.cluster is not None:
        return {table: place.sql(query.format(table)) for table in TABLES}
    with sqlite3.connect(place.home.catalog) as connection:
        return {table: connection.execute(query.format(table)).fetchall() for table in TABLES}
