"""A PostgreSQL server of the tests' own: one cluster a session, a database for each home.

Started as an unprivileged user where the tests run as root, on a free port of the loopback and a socket in
its folder, without a password and without syncing: what is tested is what the program asks of a server.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

OWNER = "keeper"
ROLES = ("writer", "reader")
LOCKED = "locked"  # a role that has to bring a password, once somebody made it
SETTINGS = {
    "listen_addresses": "127.0.0.1", "fsync": "off", "full_page_writes": "off", "autovacuum": "off",
    "shared_buffers": "16MB", "max_connections": "60", "max_wal_senders": "0", "wal_level": "minimal",
    "synchronous_commit": "off", "log_min_messages": "fatal",
}  # fmt: skip


class NoServerError(Exception):
    """Why no server can be started here."""


@dataclass
class Cluster:
    """A running server and the databases in it."""

    programs: Path
    folder: Path
    port: int
    user: str | None
    process: subprocess.Popen[bytes] | None = None
    made: list[str] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def url(self, database: str, user: str | None = OWNER, over: str = "127.0.0.1") -> str:
        """The address of a database; over TCP, or the folder of the socket."""
        who = "" if user is None else f"{user}@"
        if over == "socket":
            return f"postgresql:///{database}?host={self.folder}&port={self.port}" + (
                f"&user={user}" if user else ""
            )
        return f"postgresql://{who}{over}:{self.port}/{database}"

    def sql(self, database: str, *statements: str, user: str = OWNER) -> list[Any]:
        """What somebody at a database shell does; the rows of the last statement."""
        import psycopg

        with psycopg.connect(self.url(database, user), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def database(self, template: str = "template0") -> str:
        """A new database, empty or as another one is."""
        name = f"test{next(self._numbers)}"
        self.made.append(name)
        self.sql("postgres", f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
        return name

    def drop(self, name: str) -> None:
        """Takes a database away, whoever is still in it."""
        self.sql("postgres", f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def start(self) -> None:
        """Starts the server and waits until it answers."""
        settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
        command = [
            self.programs / "postgres",
            "-D",
            self.folder / "data",
            "-k",
            self.folder,
            "-p",
            str(self.port),
        ]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*command, *settings], stdout=log, stderr=log, cwd=self.folder, **as_user(self.user)
            )
        for _ in range(200):
            ready = [self.programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]
            if subprocess.run(ready, check=False).returncode == 0:
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise NoServerError((self.folder / "log").read_text(errors="replace")[-300:])

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """Ends the server: at once (SIGQUIT, as a crash would), or letting sessions go first (SIGINT)."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(30)
            self.process = None


def as_user(user: str | None) -> dict[str, Any]:
    """Arguments of a child process that runs as that user."""
    if user is None:
        return {}
    entry = pwd.getpwnam(user)
    return {
        "user": entry.pw_uid,
        "group": entry.pw_gid,
        "extra_groups": [],
        "env": {"PATH": os.environ["PATH"]},
    }


@contextmanager
def running() -> Iterator[Cluster]:
    """A new cluster for the length of the block; NoServerError where there can be none."""
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise NoServerError("no psycopg: pip install 'evaluator-ledger[postgres]'") from error
    programs, user = _programs(), _user()
    folder = Path(tempfile.mkdtemp(prefix="ledger-pg-"))
    cluster = Cluster(programs, folder, _port(), user)
    try:
        if user is not None:
            os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
        made = subprocess.run(
            [
                programs / "initdb", "-D", folder / "data", "-U", OWNER, "--auth=trust", "-E", "UTF8",
                "--locale=C.UTF-8", "--no-sync", "--no-instructions",
            ],
            capture_output=True, text=True, check=False, cwd=folder, **as_user(user),
        )  # fmt: skip
        if made.returncode:
            raise NoServerError(f"initdb: {made.stderr.strip()[-300:]}")
        rules = folder / "data" / "pg_hba.conf"
        rules.write_text(f"host all {LOCKED} 127.0.0.1/32 scram-sha-256\n" + rules.read_text())
        cluster.start()
        cluster.sql("postgres", *(f"CREATE ROLE {role} LOGIN" for role in ROLES))
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    places = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name.split(".")[0])
    )
    places = [path for path in places if path.parent.name == "15"] or places[::-1]
    found = shutil.which("initdb")
    places += [Path(found).resolve().parent] if found else []
    for place in places:
        if all((place / name).is_file() for name in ("initdb", "postgres", "pg_isready")):
            return place
    raise NoServerError("no PostgreSQL here: apt-get install postgresql-15")


def _user() -> str | None:
    """Whom the server runs as: this user, or another where it is root, which PostgreSQL refuses."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in ("postgres", "nobody"):
        if name in known:
            return name
    raise NoServerError("running as root, and there is no user postgres or nobody to run a server as")


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
