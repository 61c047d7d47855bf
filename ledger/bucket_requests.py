"""Requests to a bucket: how it is opened, how long one may take, and what its failure means.

Everything secret comes from the environment (what obstore reads: AWS_ACCESS_KEY_ID and the like) and goes
nowhere else. The client's own messages repeat requests and answers, so none of their text is passed on:
only the status, the service's code for it, and what it means.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import MemoryStore, S3Store

from contracts.errors import StorageError, UsageError
from ledger.objects import MISSING_STEP
from ledger.objects_place import split

if TYPE_CHECKING:
    from obstore.store import S3Config

PATIENCE = "LEDGER_OBJECTS_WAIT"
WAIT = 30.0  # seconds in which a failing request is tried again
CONNECT, SILENCE, WHOLE = "5s", "20s", "600s"  # the longest a connection, a pause and a request may take
_ENDPOINTS = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")
_ENDPOINT = re.compile(  # the client ends the process on any other
    r"https?://(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:]+\])(?::[0-9]{1,5})?(?:/[A-Za-z0-9._~/-]*)?", re.ASCII
)
_STATUS = re.compile(r"status code: ([1-5][0-9]{2})")
_CODE = re.compile(r"<Code>([A-Za-z]{1,40})</Code>")
_STEP = "check the network and AWS_ENDPOINT_URL, then run the command again"
_MEANINGS = (
    ("NoSuchBucket", "no such bucket", "no-bucket", "make the bucket first, or check AWS_ENDPOINT_URL"),
    ("169.254.169.254", "there are no credentials", "no-credentials",
     "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
    ("BadScheme", "its address is plain http", "plain-http", "set AWS_ALLOW_HTTP=true if that is meant"),
    ("builder error", "its address is not usable", "bad-endpoint",
     "check AWS_ENDPOINT_URL, and AWS_ALLOW_HTTP for plain http"),
    ("error sending request", "the service cannot be reached", "unreachable", _STEP),
    ("error decoding response body", "the answer broke off", "broken-off", _STEP),
    ("request or response body error", "the answer broke off", "broken-off", _STEP),
    ("operation timed out", "the service does not answer", "unreachable", _STEP),
)  # fmt: skip

# Given as settings rather than as options of the client, which would hide those of the environment.
_SETTINGS = {
    "connect_timeout": CONNECT,
    "read_timeout": SILENCE,
    "timeout": WHOLE,
    "disable_bulk_delete": True,  # one object at a time: not every gateway answers the other well
}

_memory: dict[str, MemoryStore] = {}
_process: list[int] = []


def patience() -> float:
    """How long a failing request is tried again, in seconds."""
    text = os.environ.get(PATIENCE)
    if text is None:
        return WAIT
    if re.fullmatch(r"[0-9]{1,4}", text, re.ASCII) is None:
        raise UsageError("not a number of seconds", code="bad-wait", where=PATIENCE, expected="0 to 9999")
    return float(text)


def connected(url: str) -> S3Store:
    """The client of an address, for the environment as it is now; one for all who ask."""
    if _process and _process[0] != os.getpid():
        raise StorageError(
            "a connection to a bucket does not survive a fork", code="forked", where=url,
            next_step="start worker processes with spawn",
        )  # fmt: skip
    _process[:] = [os.getpid()]
    settings = frozenset(item for item in os.environ.items() if item[0].startswith("AWS_"))
    wrong = [n for n, value in settings if n in _ENDPOINTS and _ENDPOINT.fullmatch(value) is None]
    try:
        if not wrong:
            return _client(url, patience(), settings)
    except (BaseError, ValueError):
        wrong = ["the variables that begin with AWS_"]
    raise StorageError(
        "the settings in the environment are not understood", code="bad-environment", where=url,
        next_step=f"check {wrong[0]}",
    ) from None  # fmt: skip


@lru_cache(maxsize=8)
def _client(url: str, wait: float, _settings: frozenset[tuple[str, str]]) -> S3Store:
    bucket, prefix = split(url)
    return S3Store(
        bucket,
        prefix=prefix or None,
        config=cast("S3Config", _SETTINGS),
        retry_config={
            "max_retries": 1000 if wait else 0,
            "retry_timeout": timedelta(seconds=wait),
            "backoff": {
                "init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=3), "base": 2
            },
        },
    )  # fmt: skip


def new_memory() -> str:
    """The address of a new empty store in this process."""
    url = f"memory://{secrets.token_hex(8)}"
    _memory[url] = MemoryStore()
    return url


def memory(url: str) -> MemoryStore:
    """The store that `new_memory` made in this process."""
    if url not in _memory:
        raise StorageError(
            "these objects were in the memory of another process", code="memory", where=url,
            next_step="make a home whose objects stand in a folder or a bucket",
        )  # fmt: skip
    return _memory[url]


@contextmanager
def asking(doing: str, where: str, *, missing_is_ours: bool = True) -> Iterator[None]:
    """Turns what the client raises inside the block into a StorageError that says what was being done.

    With `missing_is_ours` an object that is not there is such an error too, else a FileNotFoundError.
    """
    try:
        yield
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error):
            raise _error(str(error), doing, where) from None
        if not missing_is_ours:
            raise
        raise StorageError(
            "an object is missing", code="missing-object", where=where, next_step=MISSING_STEP
        ) from None
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise StorageError(
            f"{doing} failed: the service refuses it{_told(str(error))}", code="refused", where=where,
            next_step="check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and what they may do",
        ) from None  # fmt: skip
    except (BaseError, ValueError, OSError) as error:
        raise _error(str(error), doing, where) from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise StorageError(  # a setting it did not expect, in most cases
            f"{doing} failed: the client broke down", code="bad-environment", where=where,
            next_step="check the variables that begin with AWS_",
        ) from None  # fmt: skip


def _error(text: str, doing: str, where: str) -> StorageError:
    for sign, meaning, code, step in _MEANINGS:
        if sign in text:
            return StorageError(f"{doing} failed: {meaning}", code=code, where=where, next_step=step)
    return StorageError(
        f"{doing} failed{_told(text)}", code="io-error", where=where,
        next_step="run the command again; if it stays, look into the log of the service",
    )  # fmt: skip


def _told(text: str) -> str:
    """The status and the code the service answered with, in parentheses; nothing else of a message."""
    found = [match[1] for match in (_STATUS.search(text), _CODE.search(text)) if match]
    return f" ({' '.join(found)})" if found else ""
