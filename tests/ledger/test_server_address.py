"""The address of a server: what libpq reads, a schema, and never a password."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.errors import StorageError, UsageError
from ledger import home as homes
from ledger.server import MAX_NAME, Server, default_schema, is_schema, parse


@pytest.mark.parametrize(
    ("url", "conninfo", "schema"),
    [
        ("postgresql://host/db?schema=mine", "postgresql://host/db", "mine"),
        ("postgres://u@h:5433/db", "postgres://u@h:5433/db", "ledger_acme_judges_1"),
        ("postgresql:///db?host=/run/pg&schema=a&port=7", "postgresql:///db?host=/run/pg&port=7", "a"),
        ("postgresql://a:1,b:2/db?target_session_attrs=read-write", None, "ledger_acme_judges_1"),
        ("postgresql://u%40x@[::1]:5432/db%20x?sslmode=verify-full", None, "ledger_acme_judges_1"),
        ("postgresql:///?service=ledger", None, "ledger_acme_judges_1"),
    ],
)
def test_addresses_come_back_as_they_were(url: str, conninfo: str | None, schema: str) -> None:
    found = parse(url, "--catalog", "Acme-judges.1")
    assert found == Server(conninfo or url, schema)
    assert parse(found.url, "there") == found


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:hunter2@host/db", "postgresql://u:@host/db", "postgresql://:hunter2@host/db",
        "postgresql://host/db?password=hunter2", "postgresql://host/db?user=u&p%61ssword=hunter2",
        "postgresql://host/db?sslpassword=hunter2&schema=a", "postgres://u:hun@ter2@host/db",
    ],
)  # fmt: skip
def test_a_password_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match=r"~/\.pgpass") as caught:
        parse(url, "--catalog", "x")
    assert caught.value.code == "password-in-url"
    assert "hun" not in json.dumps(dict(caught.value.as_dict()))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h/d", "postgresql://h/d?schema=", "postgresql://h/d?schema=A",
        "postgresql://h/d?schema=a&schema=b", "postgresql://h/d?schema=pg_x", "postgresql://h/d?schema=1a",
        "postgresql://h/d?schema=information_schema", "postgresql://h/d?schema=a%22%3Bb", "mysql://h/d?schema=a",
        f"postgresql://h/d?schema={'a' * 64}", "postgresql://h/d\n?schema=a", "postgresql://[h/d?schema=a",
        "postgresql://h/" + "d" * 3000 + "?schema=a",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_catalog(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(url, "ledger.toml")
    assert caught.value.code == "unsupported-url"


def test_schemas_have_names_that_need_no_quotes() -> None:
    for origin in ("a", "Ä-b.c/d", "-", "x" * 64, "ledger", "日本"):
        assert is_schema(default_schema(origin)), origin
    long = Server("postgresql://h/d", "s" * MAX_NAME)
    assert len(long.beside("_old_17").schema) == MAX_NAME
    assert is_schema(long.beside("_new").schema)


def test_locks_have_keys_of_their_own() -> None:
    one, two = (Server("postgresql://h/d", name) for name in "ab")
    keys = {place.lock_key(purpose) for place in (one, two) for purpose in ("writer", "commit")}
    assert len(keys) == 4
    assert all(-(2**63) <= key < 2**63 for key in keys)


def test_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be reached") as caught:
        homes.init(tmp_path / ".ledger", "there", catalog="postgresql://127.0.0.1:1/db?connect_timeout=2")
    assert caught.value.code == "unreachable"
    assert not (tmp_path / ".ledger").exists()
    assert not homes.key_path("there").exists()
    with pytest.raises(UsageError, match="address of the catalog"):
        homes.init(tmp_path / ".ledger", "there", catalog="postgresql://h/d?nonsense=1")


def test_without_the_driver_the_way_to_it_is_told(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None\n"
        "from pathlib import Path; from ledger import home; from contracts.errors import UsageError\n"
        "try:\n    home.init(Path(sys.argv[1]), 'there', catalog='postgresql://h/d')\n"
        "except UsageError as error:\n    print(error.code, error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / ".ledger")], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("no-driver ")
    assert "evaluator-ledger[postgres]" in done.stdout
