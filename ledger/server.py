"""Where a catalog on PostgreSQL stands: a libpq URL and a schema of its own in that database.

`postgresql://user@host:port/database?schema=NAME`, with what else of libpq's form holds no secret (several
hosts, a socket directory, `sslmode`, `service`; see `ledger.server_grammar`). The address is written into the
home, where anybody who may read the ledger reads it: a password is refused here and belongs where libpq looks
for one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from hashlib import blake2b

from contracts.errors import UsageError
from ledger import server_grammar
from ledger.server_grammar import SCHEMA

SCHEMES = ("postgresql://", "postgres://")
MAX_NAME = 63
MAX_URL = 2048
WHERE_PASSWORDS_BELONG = "leave it out, and use ~/.pgpass, PGPASSWORD or a service (PGSERVICE)"
_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
_OTHER = re.compile(r"[^a-z0-9]+", re.ASCII)


@dataclass(frozen=True)
class Server:
    """A schema of a database; `conninfo` is the URL that libpq gets."""

    conninfo: str
    schema: str

    @property
    def url(self) -> str:
        """The address with the schema in it, as a home keeps it."""
        return f"{self.conninfo}{'&' if '?' in self.conninfo else '?'}{SCHEMA}={self.schema}"

    def __str__(self) -> str:
        return self.url

    def named(self, schema: str) -> Server:
        """Another schema of the same database."""
        return replace(self, schema=schema)

    def beside(self, suffix: str) -> Server:
        """A schema that stands beside this one, under its name and a suffix."""
        return self.named(self.schema[: MAX_NAME - len(suffix)] + suffix)

    def lock_key(self, purpose: str) -> int:
        """The number of this catalog's advisory lock for a purpose, the same in every program."""
        digest = blake2b(f"{purpose} {self.schema}".encode(), digest_size=8, person=b"ledger.lock.v1")
        return int.from_bytes(digest.digest(), "big", signed=True)


def is_url(text: str) -> bool:
    """Whether a catalog's address names a server."""
    return text.startswith(SCHEMES)


def parse(url: str, where: object, origin: str | None = None) -> Server:
    """The server and schema in a URL; without one the schema is named after `origin`, where that is given.

    UsageError for a password, a schema that cannot be one, or another kind of address. No part of the URL is
    repeated in a message: what was mistyped may be a password. The grammar is `ledger.server_grammar`'s.
    """
    if not is_url(url) or len(url) > MAX_URL or not url.isprintable():
        raise UsageError(
            "not the address of a catalog on a server", code="unsupported-url", where=where,
            expected="postgresql://[USER@]HOST[:PORT]/DATABASE[?schema=NAME]",
        )  # fmt: skip
    fault = server_grammar.fault(url.partition("://")[2])
    if fault is not None and fault.secret:
        raise UsageError(
            f"a password in the address of the catalog would be kept in the home: {fault.what}",
            code="password-in-url", where=where, next_step=WHERE_PASSWORDS_BELONG,
        )  # fmt: skip
    if fault is not None:
        raise UsageError(
            f"that cannot be the address of the catalog: {fault.what}",
            code="unsupported-url", where=where, expected=fault.expected,
        )  # fmt: skip
    place, _, query = url.partition("?")
    settings = [(part, *part.partition("=")[::2]) for part in query.split("&") if part]
    schemas = [value for _, name, value in settings if name == SCHEMA]
    if not schemas and origin is not None:
        schemas = [default_schema(origin)]
    if len(schemas) != 1 or not is_schema(schemas[0]):
        raise UsageError(
            "no schema for the catalog", code="unsupported-url", where=where,
            expected=f"?{SCHEMA}= and up to {MAX_NAME} of a-z, 0-9 and _, not beginning with a digit or pg_",
        )  # fmt: skip
    kept = [part for part, name, _ in settings if name != SCHEMA]
    return Server(place + ("?" + "&".join(kept) if kept else ""), schemas[0])


def is_schema(name: str) -> bool:
    """Whether a schema of ours can have that name."""
    reserved = name.startswith("pg_") or name == "information_schema"
    return _NAME.fullmatch(name) is not None and len(name) <= MAX_NAME and not reserved


def default_schema(origin: str) -> str:
    """`ledger_` and the origin in the letters that need no quotes; two origins can come out the same."""
    return f"ledger_{_OTHER.sub('_', origin.lower()).strip('_')}"[:MAX_NAME].rstrip("_")
