"""A PostgreSQL server of the benchmark's own, as durable as a server is by default."""

from __future__ import annotations

import atexit
import contextlib
from functools import cache


@cache
def url() -> str:
    """The address of an empty database; NoServerError where none can be started.

    The cluster of the tests is used, without the settings that make it forgetful and fast.
    """
    from tests import postgres

    postgres.SETTINGS.clear()
    postgres.SETTINGS.update(
        {
            "listen_addresses": "127.0.0.1",
            "max_wal_size": "8GB",  # no checkpoint in the middle of a copy
            "autovacuum": "off",  # nor anything afterwards, while others are measured
            "log_min_messages": "fatal",
        }
    )
    kept = contextlib.ExitStack()
    cluster = kept.enter_context(postgres.running())
    atexit.register(kept.close)
    return cluster.url(cluster.database())


def address() -> tuple[str, str | None]:
    """The address, or nothing and the reason."""
    try:
        from tests.postgres import NoServerError
    except ImportError as error:
        return "", f"PostgreSQL: {error}"
    try:
        return url(), None
    except NoServerError as error:
        return "", f"PostgreSQL: {error}"
