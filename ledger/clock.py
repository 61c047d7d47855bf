"""The time written into events: informative, in UTC, to the second."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime

from contracts.errors import MalformedError, UsageError

_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z", re.ASCII)
_LAST = 253402300799  # 9999-12-31T23:59:59Z, where RFC 3339 ends


def now() -> str:
    """The present moment in RFC 3339, or the moment SOURCE_DATE_EPOCH names (reproducible-builds.org)."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    if fixed is None or fixed == "":
        return wall()
    if not fixed.isascii() or not fixed.isdigit() or int(fixed) > _LAST:
        raise UsageError(
            "SOURCE_DATE_EPOCH is not a time", code="source-date-epoch", expected="whole seconds since 1970",
            got=fixed[:40],
        )  # fmt: skip
    return _text(int(fixed))


def wall() -> str:
    """The present moment, whatever the environment says: for notes between running processes."""
    return _text(int(time.time()))


def check(text: str) -> str:
    """The same text when it is a time in the form `now` writes; MalformedError otherwise."""
    if _FORM.fullmatch(text) is not None:
        try:
            datetime.fromisoformat(text)
        except ValueError:
            pass
        else:
            return text
    raise MalformedError("not a time", expected="RFC 3339 in UTC, YYYY-MM-DDTHH:MM:SSZ", got=text[:40])


def _text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
