"""What all tests share: property tests without a deadline (machines differ), a quiet environment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from tests import gateway as gateways
from tests.postgres import Cluster, NoServerError, running

settings.register_profile("ledger", deadline=None)
settings.load_profile("ledger")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--catalog server` runs any test whose home names no catalog against a server."""
    parser.addoption("--catalog", choices=("file", "server"), default="file", help="where catalogs stand")


@pytest.fixture(scope="session", autouse=True)
def _catalogs(request: pytest.FixtureRequest) -> Iterator[None]:
    if request.config.getoption("--catalog") == "file":
        yield
        return
    from ledger import home
    from tests.ledger import homes

    init, server = home.init, request.getfixturevalue("cluster")

    def on_server(
        path: Path,
        origin: str | None = None,
        key_uri: str | None = None,
        *,
        catalog: str | None = None,
        objects: str | None = None,
    ) -> home.Home:
        return init(path, origin, key_uri, catalog=catalog or server.url(server.database()), objects=objects)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home, "init", on_server)
        patch.setattr(homes, "elsewhere", server)
        yield


@pytest.fixture(autouse=True)
def _own_config(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and pins of a test go to a folder of its own, and the caller's settings do not reach it."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    for name in ("LEDGER_HOME", "LEDGER_KEY", "LEDGER_KEY_PASSWORD", "SOURCE_DATE_EPOCH"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL server; tests that need one are skipped with the reason where there is none."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(running())
        except NoServerError as error:
            pytest.skip(f"no server catalog: {error}")
        yield started


@pytest.fixture(scope="session")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[gateways.Gateway]:
    """An S3 gateway; tests that need one are skipped with the reason where there is none."""
    with ExitStack() as stack:
        try:
            started = stack.enter_context(gateways.running(tmp_path_factory.mktemp("gateway")))
        except gateways.NoGatewayError as error:
            pytest.skip(f"no object storage: {error}")
        yield started


@pytest.fixture
def door(gateway: gateways.Gateway, monkeypatch: pytest.MonkeyPatch) -> Iterator[gateways.Door]:
    """The way into the gateway for this process; whoever kills the gateway need not start it again."""
    with gateways.opened(gateway) as door:
        for name, value in door.environment.items():
            monkeypatch.setenv(name, value)
        yield door
    if gateway.process is None or gateway.process.poll() is not None:
        gateway.start()
