"""What may stand in the address of a catalog on a server: less than libpq reads, so that no password passes.

Readers of URLs disagree where a user ends and a host begins: at `/`, `?`, `#`, or the first `@`, or the last.
A password with one of these letters would pass for a host, a database or a parameter in one of them. So
whatever stands before the last `@` has to be a bare name, and every other part keeps to letters that tell it
from any other, after its percent escapes are undone. A parameter that is not known here is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote

SCHEMA = "schema"
SECRETS = frozenset({"password", "passfile", "sslpassword", "oauth_client_secret"})
_NAME = re.compile(r"[\w$+.-]{1,63}")
_HOST = re.compile(r"[\w.-]{1,255}|(?:/[\w+.-]+){1,32}")
_BRACKETS = re.compile(r"\[[0-9A-Fa-f:.]{2,45}\]")
_PATH = re.compile(r"/?[\w+.-]+(?:/[\w+.-]+)*")
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_MAX_PORT = 65535
_LETTERS = "letters, digits and . _ + $ -"


class Fault(NamedTuple):
    """Which part of an address is wrong and what it has to be; `secret` where it looks like a password."""

    what: str
    expected: str
    secret: bool = False


def _words(text: str) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(word) for word in text.split()))


# The parameters of libpq that are no secret and cannot hold one unnoticed, with the values of each.
_LEVELS = _words("disable prefer require")
PARAMETERS: Mapping[str, re.Pattern[str]] = {
    SCHEMA: re.compile(r".*"),  # judged as the name of a schema
    "user": _NAME,
    "host": re.compile(rf"(?:{_HOST.pattern})(?:,(?:{_HOST.pattern}))*"),
    "hostaddr": re.compile(r"[0-9A-Fa-f:.,]{2,255}"),
    "port": re.compile(r"[0-9]{1,5}(?:,[0-9]{1,5})*", re.ASCII),
    "service": _NAME,
    "application_name": _NAME,
    "connect_timeout": _NUMBER,
    "target_session_attrs": _words("any read-write read-only primary standby prefer-standby"),
    "load_balance_hosts": _words("disable random"),
    "sslmode": _words("disable allow prefer require verify-ca verify-full"),
    "sslnegotiation": _words("postgres direct"),
    "sslrootcert": _PATH,
    "sslcert": _PATH,
    "sslkey": _PATH,
    "sslcrl": _PATH,
    "sslcrldir": _PATH,
    "sslsni": _words("0 1"),
    "sslcertmode": _words("disable allow require"),
    "ssl_min_protocol_version": _words("TLSv1 TLSv1.1 TLSv1.2 TLSv1.3"),
    "ssl_max_protocol_version": _words("TLSv1 TLSv1.1 TLSv1.2 TLSv1.3"),
    "gssencmode": _LEVELS,
    "channel_binding": _LEVELS,
    "krbsrvname": _NAME,
    "keepalives": _words("0 1"),
    "keepalives_idle": _NUMBER,
    "keepalives_interval": _NUMBER,
    "keepalives_count": _NUMBER,
    "tcp_user_timeout": _NUMBER,
}


def fault(rest: str) -> Fault | None:
    """The first thing wrong with an address, given without its scheme; None where it is sound."""
    user, at, place = rest.rpartition("@")
    if at and not _fits(_NAME, user):
        return Fault("what stands before the last @ is no bare name of a user", _LETTERS, secret=True)
    place, _, query = place.partition("?")
    hosts, _, database = place.partition("/")
    if not all(_is_host(host) for host in hosts.split(",")):
        return Fault("the host or its port", "HOST[:PORT], several joined by commas")
    if database and not _fits(_NAME, database):
        return Fault("the name of the database", f"up to 63 {_LETTERS}")
    return _query(query)


def _query(query: str) -> Fault | None:
    seen: set[str] = set()
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        if unquote(name).lower().strip() in SECRETS:
            return Fault("a query key asks for one", "no password among the parameters", secret=True)
        if name not in PARAMETERS or name in seen:
            return Fault("a query key is unknown or comes twice", "those of docs/postgres.md, each once")
        if not _fits(PARAMETERS[name], value) or (name == SCHEMA and "%" in value):
            return Fault(f"the value of the query key {name}", "one that libpq documents, plainly spelled")
        seen.add(name)
    return None


def _is_host(text: str) -> bool:
    """A host, an address in brackets, a socket's folder, or nothing; with a port or without."""
    found = _BRACKETS.match(text)
    host, colon, port = (found[0], *text[found.end() :].partition(":")[1:]) if found else text.partition(":")
    if found and text[found.end() :].partition(":")[0]:
        return False
    if colon and not (_NUMBER.fullmatch(port) and int(port) <= _MAX_PORT):
        return False
    return found is not None or not host or _fits(_HOST, host)


def _fits(pattern: re.Pattern[str], text: str) -> bool:
    """Whether a part is of that form once its percent escapes are undone, all of them in UTF-8."""
    try:
        return pattern.fullmatch(unquote(text, errors="strict")) is not None
    except UnicodeDecodeError:
        return False
