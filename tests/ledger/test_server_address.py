"""The address of a server: what libpq reads, a schema, and never a password."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contracts.errors import StorageError, UsageError
from ledger import home as homes
from ledger.server import MAX_NAME, Server, default_schema, is_schema, parse
from ledger.server_connection import connect
from ledger.server_grammar import SECRETS
from tests.cli.calls import called


@pytest.mark.parametrize(
    ("url", "conninfo", "schema"),
    [
        ("postgresql://host/db?schema=mine", "postgresql://host/db", "mine"),
        ("postgres://u@h:5433/db", "postgres://u@h:5433/db", "ledger_acme_judges_1"),
        ("postgresql:///db?host=/run/pg&schema=a&port=7", "postgresql:///db?host=/run/pg&port=7", "a"),
        ("postgresql://a:1,b:2/db?target_session_attrs=read-write", None, "ledger_acme_judges_1"),
        ("postgresql://u%2Dx@[::1]:5432/db%2Ex?sslmode=verify-full", None, "ledger_acme_judges_1"),
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
        "postgresql://u:hun?ter2@host/db", "postgresql://u:hun/ter2@host/db", "postgresql://u:hun#ter2@host/db",
        "postgresql://u%3Ahunter2@host/db", "postgresql://u%253Ahunter2@host/db",
        "postgresql://u hunter2@host/db", "postgresql://u%ff:hunter2@host/db",
        "postgresql://host/db?dbname=postgresql://u:hunter2@host", "postgresql://host/db?Password=hunter2",
        "postgresql://host/db?passfile=/hunter2", "postgresql://@hunter2@host/db",
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
        "postgresql://h/" + "d" * 3000 + "?schema=a", "postgresql://h/d;password=hunter2?schema=a",
        "postgresql://h/password=hunter2?schema=a", "postgresql://h/d?options=-cpassword%3Dhunter2&schema=a",
        "postgresql://h%20password%3Dhunter2/d?schema=a", "postgresql://h/d?dbname=hunter2&schema=a",
        "postgresql://h/d?sslmode=hunter2&schema=a", "postgresql://h/d?port=hunter2&schema=a",
        "postgresql://h:hunter2/d?schema=a", "postgresql://[::1]hunter2/d?schema=a", "postgresql://h/d#hunter2",
        "postgresql://h/d?application_name=password%3Dhunter2&schema=a", "postgresql://h/d?hunter2&schema=a",
        "postgresql://h/d?schema=hunter2%20", "postgresql://h/d/hunter2?schema=a", "postgresql://h:65536/d?schema=a",
    ],
)  # fmt: skip
def test_what_is_no_address_of_a_catalog(url: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(url, "ledger.toml")
    assert caught.value.code == "unsupported-url"
    assert "hunter2" not in json.dumps(dict(caught.value.as_dict()))


SECRET = "s3cr3tPW"  # in capitals too: no schema has them
_PIECES = st.sampled_from(
    [
        SECRET, SECRET, "u", "host", "db", "password", "dbname", "options", "schema", "service", "sslmode",
        "1", "postgresql://", ":", "@", "/", "?", "#", "&", "=", ";", " ", ",", "[", "]", "%3A", "%40", "%2F",
        "%3D", "%20", "%25", "%", "+", "\\", "'", "é",
    ]
)  # fmt: skip
_TEXT = st.lists(_PIECES, max_size=4).map("".join)
_SCHEMES = st.sampled_from(
    ["postgresql://", "postgresql://", "postgres://", "postgresql:", "POSTGRESQL://", ""]
)
_SHAPES = st.sampled_from(
    [
        "{}{}@host/db{}", "u:{}@{}/db?{}", "u{}@host{}/{}", "u:{}{}@host/db?{}", "host{}/db{}?schema=a{}",
        "host/db?{}={}&{}", "{}{}{}",
    ]
)  # fmt: skip
# Where the secret may stand in what libpq reads: it is the name of something there, and nobody can tell.
_NAMES = {"user", "host", "dbname", "service", "application_name"}


@given(shape=_SHAPES, scheme=_SCHEMES, parts=st.tuples(_TEXT, _TEXT, _TEXT))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_secret_leaves_an_address(
    shape: str, scheme: str, parts: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("nobody is there")

    monkeypatch.setattr(psycopg, "connect", away)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    url = scheme + shape.format(*parts)
    done = called("--home", str(tmp_path / "home"), "init", "--catalog", url, "--origin", "x")
    assert done.code in {2, 3}, "nobody is there"
    told = done.out + done.err
    files = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    if SECRET in told or SECRET.encode() in files:
        assert done.code == 3, url
        read = psycopg.conninfo.conninfo_to_dict(parse(url, "here", "x").conninfo)
        assert {name for name, value in read.items() if SECRET in str(value)} <= _NAMES, url
        assert not SECRETS & read.keys(), url


def test_a_home_changed_by_hand_does_not_repeat_its_address(tmp_path: Path) -> None:
    made = homes.init(tmp_path / ".ledger", "by-hand")
    settings_file = made.path / "ledger.toml"
    for url in (
        f"postgresql://u:p?{SECRET}@h/d?schema=a",
        f"mysql://u:{SECRET}@h/d",
        f"POSTGRESQL://u:{SECRET}@h/d",
    ):
        settings_file.chmod(0o644)
        settings_file.write_text(settings_file.read_text().replace("sqlite:catalog.sqlite", url))
        for command in (["status"], ["log", "--json"], ["verify"], ["rebuild"], ["repair"]):
            done = called("--home", str(made.path), *command)
            assert done.code == 2, done
            assert SECRET not in done.out + done.err
        settings_file.write_text(settings_file.read_text().replace(url, "sqlite:catalog.sqlite"))


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
    with pytest.raises(UsageError, match="one that libpq reads") as caught_by_libpq:
        connect(Server("postgresql://h/d?nonsense=hunter2", "a"), wait=1, readonly=True)
    assert "hunter2" not in str(caught_by_libpq.value)
    with pytest.raises(UsageError, match=r"~/\.pgpass") as caught_by_libpq:
        connect(Server("postgresql://u:hunter2@h/d", "a"), wait=1, readonly=True)
    assert "hunter2" not in str(caught_by_libpq.value)


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
    assert done.stdout.startswith("missing-extra ")
    assert "evaluator-ledger[postgres]" in done.stdout
