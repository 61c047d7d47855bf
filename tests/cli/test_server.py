"""The whole program against a server: each command, the roles of docs/postgres.md, the bytes of a file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledger import home as homes
from ledger.index import Index
from tests.audits.cohorts import SPEC, noisy, rows
from tests.cli.calls import Called, called
from tests.ledger.homes import files
from tests.postgres import Cluster

ROOT = Path(__file__).parents[2]
PAIR = ("audit", "transport", "--ref", "direct", "--alt", "generated", "--resamples", "200")
PLAN = """name = "main"
audit = "transport"
ref = "direct"
alt = "generated"
estimands = ["interaction"]
resamples = 100
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    for name in ("direct", "generated"):
        Path(f"{name}.toml").write_text(SPEC.format(name=name, layouts=2, hosted="false"))
    made = rows(noisy(12, 2))
    dropped = [row for row in made if (row["trajectory_id"], row["step"], row["layout"]) != ("t003", 1, 1)]
    pq.write_table(pa.Table.from_pylist(dropped), "scores.parquet")
    pq.write_table(
        pa.Table.from_pylist([{**row, "energy": row["energy"] + 1} for row in made]), "other.parquet"
    )
    Path("plan.toml").write_text(PLAN)
    return tmp_path


def right(*words: str) -> dict[str, Any]:
    done = called(*words, "--json")
    assert done.code == 0, (words, done.out + done.err)
    found: dict[str, Any] = json.loads(done.out)
    return found


def walk(init: tuple[str, ...] = ()) -> list[str]:
    """What a study does, from its home to its record; the ids it made."""
    right("init", *init)
    right("channel", "add", "direct.toml", "generated.toml")
    right("plan", "add", "plan.toml")
    receipt = right("ingest", "scores.parquet")
    audit = right("audit", "--plan", "main")
    return [receipt["segments"][0]["root"].partition(":")[2], audit["record"]]


@pytest.mark.sweep
def test_everything_works_there(folder: Path, cluster: Cluster) -> None:
    database = cluster.database()
    root, record = walk(("--catalog", cluster.url(database, over="socket")))
    receipt = right("ingest", "scores.parquet")
    assert (receipt["admitted"], receipt["skipped"] > 0) == (0, True)
    assert called("ingest", "other.parquet").code == 1
    assert right("status")["refused_sides"] == 2
    right("show", record)
    assert called("lineage", f"{root[:16]}:0").code == 0
    assert "t000" in called("scores", "--channel", "direct").out
    made = right("key", "generate", "alpha.pem")
    right("key", "add", "collector", made["vkey"])
    signed = called(
        "attest", "acquisition", "main-1", "scores.parquet", "--sign-with", "alpha.pem", "-o", "a.json"
    )
    assert signed.code == 0, signed.err
    right("attest", "add", "a.json")
    desk = right("witness", "create", "desk")
    right("key", "add", "witness", desk["vkey"])
    right("witness", "sign", "desk")
    right("key", "rotate", "head")
    right("bundle", record, "-o", "audit.bundle")
    assert called("report", record, "-o", "page.html").code == 0
    right("revoke", "acquisition", "main-1", "--reason", "the server was swapped")
    assert called(*PAIR, "--no-record").code == 5
    assert right("verify", "--full")["ok"] is True
    assert right("repair")["actions"] == []
    before = right("log", "--start", "0")
    cluster.sql(database, f"DROP SCHEMA {schema(folder)} CASCADE")
    assert called("status").code == 3
    assert "ledger rebuild" in called("log").err
    right("rebuild")
    assert right("log", "--start", "0") == before
    assert right("rebuild")["kept"].endswith("_old_1")
    assert right("verify", "--full")["ok"] is True
    right("plan", "add", "plan.toml")


def schema(folder: Path) -> str:
    place = homes.read(folder / ".ledger").catalog
    assert not isinstance(place, Path)
    return place.schema


def test_the_bytes_are_those_of_a_home_with_a_file(
    folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1800000000")
    right("key", "generate", "head.pem")
    same = ("--origin", "study", "--key", str(folder / "head.pem"))
    monkeypatch.setenv("LEDGER_KEY", str(folder / "head.pem"))
    made, stored = [], []
    for name, more in (("file", ()), ("server", ("--catalog", cluster.url(cluster.database())))):
        monkeypatch.setenv("LEDGER_HOME", str(folder / name))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / f"{name}-config"))
        made.append(walk((*same, *more)))
        with Index.open(homes.read(folder / name)) as index:
            stored.append((index.leaves(), [row.data for row in index.events()], index.head()))
    assert made[0] == made[1]
    assert stored[0] == stored[1]
    one, two = (files(folder / name / "objects") for name in ("file", "server"))
    assert one.keys() == two.keys()
    assert {name for name in one if one[name] != two[name]} == set()
    assert {name.partition("/")[0] for name in one} >= {"segments", "records", "refusals", "log"}
    # and a home moves: the same log, with its catalog in the other place
    settings = folder / "file" / "ledger.toml"
    url = cluster.url(cluster.database()) + "?schema=moved"
    settings.write_text(settings.read_text().replace("sqlite:catalog.sqlite", url))
    monkeypatch.setenv("LEDGER_HOME", str(folder / "file"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "file-config"))
    assert right("rebuild")["kept"] is None
    with Index.open(homes.read(folder / "file")) as index:
        assert (index.leaves(), [row.data for row in index.events()], index.head()) == stored[0]
    assert right("verify", "--full")["ok"] is True


def granted(cluster: Cluster, database: str, name: str) -> None:
    """What docs/postgres.md tells the owner to run."""
    (block,) = re.findall(
        r"^```sql\n(.*?)^```", (ROOT / "docs" / "postgres.md").read_text(), re.DOTALL | re.MULTILINE
    )
    block = block.replace("ledger_acme", name).replace("DATABASE ledgers", f"DATABASE {database}")
    cluster.sql("postgres", f"REVOKE ALL ON DATABASE {database} FROM PUBLIC")
    cluster.sql(database, "REVOKE ALL ON SCHEMA public FROM PUBLIC", *block.strip().rstrip(";").split(";\n"))


def test_roles_can_do_what_their_page_says(
    folder: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = cluster.database()
    monkeypatch.setenv("PGUSER", "keeper")
    root, record = walk(("--catalog", cluster.url(database, user=None)))
    name = schema(folder)
    granted(cluster, database, name)

    monkeypatch.setenv("PGUSER", "reader")
    for words in (
        ("status",), ("log",), ("show", record), ("channel", "list"), ("acquisition", "list"),
        ("scores", "--channel", "direct"), ("lineage", f"{root[:16]}:0"), ("verify",), ("verify", "--full"),
        (*PAIR, "--no-record"), ("plan", "list"), ("key", "list"), ("attest", "list"),
        ("bundle", record, "-o", "audit.bundle"), ("ingest", "scores.parquet", "--dry-run"),
    ):  # fmt: skip
        done = called(*words)
        assert done.code == 0, (words, done.out + done.err)
    refusals: list[tuple[str, ...]] = [
        ("revoke", "acquisition", "main-1", "--reason", "x"), PAIR, ("rebuild",)
    ]  # fmt: skip
    for words in refusals:
        done = called(*words)
        assert (done.code, "docs/postgres.md" in done.err.replace("\n", "")) == (3, True), (words, done.err)
        assert max(map(len, done.err.splitlines()[:1])) > 0
    assert right("verify")["ok"] is True

    monkeypatch.setenv("PGUSER", "writer")
    right("ingest", "scores.parquet")
    assert called(*PAIR).code == 0
    right("revoke", "acquisition", "main-1", "--reason", "x")
    right("repair")
    assert right("verify", "--full")["ok"] is True
    assert called("rebuild").code == 3
    import psycopg

    for statement in (
        "UPDATE {}.event SET type = 'x'", "DELETE FROM {}.head", "TRUNCATE {}.record", "DROP TABLE {}.plan",
        "ALTER TABLE {}.event DISABLE TRIGGER ALL", "INSERT INTO {}.alembic_version VALUES ('9')",
        "CREATE TABLE {}.mine (x int)", "CREATE SCHEMA mine",
    ):  # fmt: skip
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            cluster.sql(database, statement.format(name), user="writer")

    monkeypatch.setenv("PGUSER", "keeper")
    right("rebuild")
    for role in ("reader", "writer"):
        monkeypatch.setenv("PGUSER", role)
        assert right("verify")["ok"] is True
    assert called(*PAIR, "--resamples", "201").code == 5  # everything is revoked: logged all the same
    assert right("status")["audits"] == 3


def fails(done: Called, code: int, *parts: str) -> None:
    assert done.code == code, done.err
    assert all(part in " ".join(done.err.split()) for part in parts), done.err


def test_what_cannot_be(folder: Path, cluster: Cluster) -> None:
    with_password = cluster.url("postgres").replace("keeper@", "keeper:hunter2@")
    done = called("init", "--catalog", with_password)
    fails(done, 2, "PGPASSWORD", "~/.pgpass")
    assert "hunter2" not in done.out + done.err
    fails(called("init", "--catalog", "mysql://h/d"), 2, "postgresql://")
    fails(called("init", "--catalog", "postgresql://127.0.0.1:1/x"), 3, "cannot be reached", "~/.pgpass")
    fails(called("init", "--catalog", cluster.url("none")), 3, 'database "none" does not exist')
    assert not (folder / ".ledger").exists()
    made = right("init", "--catalog", cluster.url(cluster.database()) + "?schema=mine")
    assert made["catalog"].endswith("?schema=mine")
    settings = folder / ".ledger" / "ledger.toml"
    settings.write_text(settings.read_text().replace("keeper@", "keeper:hunter2@"))
    done = called("status")
    fails(done, 2, "password")
    assert "hunter2" not in done.out + done.err
