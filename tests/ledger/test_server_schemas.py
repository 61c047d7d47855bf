"""New catalogs on a server: a schema of their own, nothing put over something, encodings and collations."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.errors import StorageError, UsageError
from ledger import durable, heads, log
from ledger import home as homes
from ledger.index import Index
from ledger.rebuild import rebuild
from tests.ledger.homes import segment_event
from tests.ledger.server_homes import acquisition, no_hook
from tests.postgres import Cluster

__all__ = ["no_hook"]  # fixtures


def test_two_ledgers_share_a_database(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.url(cluster.database(), over="socket")
    made = [homes.init(tmp_path / name / ".ledger", name, catalog=url) for name in ("One", "two")]
    assert [home.catalog.schema for home in made] == ["ledger_one", "ledger_two"]  # type: ignore[union-attr]
    for home, own in zip(made, ("a", "b"), strict=True):
        log.commit(home, homes.signing_key(home), lambda _, own=own: [acquisition(own)])
        with Index.open(homes.read(home.path)) as index:
            assert [row.id for row in index.acquisitions()] == [own]
            heads.check(home, index)


def test_nothing_is_put_over_something(cluster: Cluster, tmp_path: Path) -> None:
    database = cluster.database()
    homes.init(tmp_path / "a" / ".ledger", "a.b", catalog=cluster.url(database))
    with pytest.raises(UsageError, match=r"\?schema=NAME") as caught:
        homes.init(tmp_path / "b" / ".ledger", "a-b", catalog=cluster.url(database))
    assert caught.value.code == "catalog-exists"
    assert not homes.key_path("a-b").exists()
    cluster.sql(database, "CREATE SCHEMA used", "CREATE TABLE used.mine (x int)")
    with pytest.raises(UsageError):
        homes.init(tmp_path / "b" / ".ledger", "a-b", catalog=cluster.url(database) + "?schema=used")
    assert cluster.sql(database, "SELECT count(*) FROM used.mine") == [(0,)]
    homes.init(tmp_path / "b" / ".ledger", "a-b", catalog=cluster.url(database) + "?schema=other")


@pytest.mark.parametrize("word", ["select", "user", "table", "public", "desc"])
def test_a_schema_may_be_called_by_a_reserved_word(cluster: Cluster, tmp_path: Path, word: str) -> None:
    database = cluster.database()
    url = f"{cluster.url(database)}?schema={word}"
    made = homes.init(tmp_path / ".ledger", word, catalog=url)
    log.commit(made, homes.signing_key(made), lambda _: [acquisition("a")])
    kept = rebuild(made).kept
    assert str(kept).endswith(f"schema={word}_old_1")
    with Index.open(made) as index:
        assert [row.id for row in index.acquisitions()] == ["a"]
    durable.hook = lambda point: _end() if point == "home-built" else None
    with pytest.raises(StorageError, match="ended"):
        homes.init(
            tmp_path / "b" / ".ledger", "b", catalog=f"{cluster.url(cluster.database())}?schema={word}"
        )


def _end() -> None:
    raise StorageError("ended")


@pytest.mark.parametrize("before", [False, True])
def test_a_home_that_does_not_come_about_leaves_no_tables(
    cluster: Cluster, tmp_path: Path, before: bool
) -> None:
    database = cluster.database()
    if before:
        cluster.sql(database, "CREATE SCHEMA mine")

    def fail(point: str) -> None:
        if point == "home-built":
            raise StorageError("no")

    durable.hook = fail
    with pytest.raises(StorageError, match="no"):
        homes.init(tmp_path / ".ledger", "x", catalog=cluster.url(database) + "?schema=mine")
    durable.hook = None
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname = 'mine'"
    left = "SELECT count(*) FROM pg_class WHERE relnamespace = to_regnamespace('mine')"
    assert cluster.sql(database, schemas) == [(int(before),)]
    assert cluster.sql(database, left) == [(0,)]
    homes.init(tmp_path / ".ledger", "x", catalog=cluster.url(database) + "?schema=mine")


def test_a_database_of_another_encoding_is_refused(cluster: Cluster, tmp_path: Path) -> None:
    cluster.sql("postgres", "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'")
    try:
        with pytest.raises(UsageError, match="expected encoding UTF8"):
            homes.init(tmp_path / ".ledger", "x", catalog=cluster.url("latin"))
    finally:
        cluster.drop("latin")
    assert not (tmp_path / ".ledger").exists()


def test_text_is_in_the_order_of_its_bytes_under_any_collation(cluster: Cluster, tmp_path: Path) -> None:
    options = "ENCODING 'UTF8' LOCALE_PROVIDER icu ICU_LOCALE 'en' LOCALE 'C.UTF-8'"
    try:
        cluster.sql("postgres", f"CREATE DATABASE sorted TEMPLATE template0 {options}")
    except Exception as error:
        if type(error).__name__ != "FeatureNotSupported":
            raise
        pytest.skip("this server was built without ICU")
    try:
        assert cluster.sql("sorted", "SELECT 'a' < 'Z'") == [
            (True,)
        ]  # not by bytes, so there is a difference
        home = homes.init(tmp_path / ".ledger", "x", catalog=cluster.url("sorted"))
        made = [
            segment_event(home.objects, "1", span=("A", "Z")),
            segment_event(home.objects, "2", span=("a", "é")),
        ]
        log.commit(home, homes.signing_key(home), lambda _: made)
        with Index.open(home) as index:
            chosen = [
                [row.event for row in index.segments(trajectories=span)]
                for span in (("B", "Y"), ("Z~", "_"), ("b", "c"), ("zz", "zz"), ("ê", "ê"))
            ]
        assert chosen == [[1], [], [2], [2], []]
    finally:
        cluster.drop("sorted")
