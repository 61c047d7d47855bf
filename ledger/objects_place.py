"""The address of an object store: which forms there are, and the store that one opens.

    file:PATH               a folder inside the home, the default
    file:///ABSOLUTE/PATH   a folder elsewhere on this machine
    s3://BUCKET/PREFIX      a bucket of any service that speaks S3, through the extra `s3`
    memory://NAME           the memory of this process: for tests and callers of the Python API

What opens a bucket (keys, endpoint, region) is read from the environment whenever it is opened. An
address with any of it is refused and never repeated in a message: what was mistyped may be a secret.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from contracts.errors import UsageError
from ledger.objects import STAGING, Staging, Store
from ledger.objects_folder import Folder

if TYPE_CHECKING:
    from ledger.objects_bucket import Bucket

FORMS = "s3://BUCKET/PREFIX | file:///ABSOLUTE/PATH"
INSIDE = re.compile(r"file:([A-Za-z0-9][A-Za-z0-9._-]*(?:/[A-Za-z0-9][A-Za-z0-9._-]*)*)", re.ASCII)
MEMORY = re.compile(r"memory://([0-9a-z]*)", re.ASCII)
_S3 = re.compile(
    r"s3://(?P<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?P<prefix>(?:/[A-Za-z0-9_=-][A-Za-z0-9._=-]*)*)/?",
    re.ASCII,
)
_MAX_URL = 1024


def checked(url: str, where: object, home: Path) -> str:
    """The same address in the one way it is written in a home; UsageError where no new store can stand."""
    _refuse_secrets(url, where)
    if MEMORY.fullmatch(url):
        return _bucket().new_memory().url
    if match := _S3.fullmatch(url):
        return f"s3://{match['bucket']}{match['prefix']}"
    folder = _elsewhere(url)
    if folder is None:
        raise _unsupported(where, _fault(url))
    if folder.is_relative_to(home) or home.is_relative_to(folder):
        raise UsageError(
            "the objects would stand around or inside the home", code="unsupported-url", where=where,
            next_step="leave --objects out to keep them in the home",
        )  # fmt: skip
    return f"file://{folder}"


def open_store(url: str, home: Path, where: object) -> Store:
    """The store at an address of a home; UsageError for one this version cannot use."""
    _refuse_secrets(url, where)
    if match := INSIDE.fullmatch(url):
        return Folder(home / match[1])
    if folder := _elsewhere(url):
        return Folder(folder)
    if _S3.fullmatch(url) or MEMORY.fullmatch(url):
        return _bucket()(url, Staging(home / STAGING))
    raise _unsupported(where)


def split(url: str) -> tuple[str, str]:
    """Bucket and prefix of an address that was checked; the prefix may be empty."""
    match = _S3.fullmatch(url)
    assert match is not None, "only a checked address is opened"
    return match["bucket"], match["prefix"].strip("/")


def _bucket() -> type[Bucket]:
    try:
        from ledger.objects_bucket import Bucket
    except ImportError as error:
        raise UsageError(
            "objects in a bucket need the extra s3", code="missing-extra",
            next_step="pip install 'evaluator-ledger[s3]'",
        ) from error  # fmt: skip
    return Bucket


def _elsewhere(url: str) -> Path | None:
    """The folder of a file:/// address; None for any other."""
    path = url.removeprefix("file://")
    plain = path.isprintable() and not set(path) & set("%?#\\")
    if path == url or not plain or not path.startswith("/") or os.path.normpath(path) != path or path == "/":
        return None
    return Path(path)


def _refuse_secrets(url: str, where: object) -> None:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise _unsupported(where) from error
    if len(url) > _MAX_URL or "@" in parts.netloc or parts.query or parts.fragment:
        raise UsageError(
            "an address of objects holds nothing but the place", code="secret-in-url", where=where,
            expected=FORMS,
            next_step="give keys, endpoint and region in the environment: AWS_ACCESS_KEY_ID, "
            "AWS_SECRET_ACCESS_KEY, AWS_ENDPOINT_URL, AWS_REGION",
        )  # fmt: skip


def _fault(url: str) -> str | None:
    """Which part of an address is wrong, never repeating it; None where no part can be told from another."""
    if url.startswith("file:"):
        return "a folder is told by its whole path, file:///…, without .., %, ? or # and no slash at the end"
    if not url.startswith("s3://"):
        return None
    bucket, _, prefix = url.removeprefix("s3://").partition("/")
    lettered = _S3.fullmatch(f"s3://{bucket}")
    faults = {
        "it names no bucket": not bucket,
        f"a bucket's name has 3 to 63 characters, this one {len(bucket)}": not 3 <= len(bucket) <= 63,
        "a bucket's name has a-z, 0-9, dots and hyphens, no dot or hyphen at an end": not lettered,
        "a name in the prefix is empty": prefix.startswith("/") or "//" in prefix,
    }
    otherwise = "names in the prefix have letters, digits and . _ = -, and begin with no dot"
    return next((text for text, wrong in faults.items() if wrong), otherwise)


def _unsupported(where: object, fault: str | None = None) -> UsageError:
    what = "this version cannot use that place for the objects"
    return UsageError(
        what if fault is None else f"{what}: {fault}", code="unsupported-url", where=where, expected=FORMS
    )
