"""A trust policy as people write it: a TOML table for each role, with its keys and a threshold.

    [collector]
    keys = ["alpha+3f2a90c1+AbCd…", "keys/two.pem"]
    threshold = 1

A key is the text of a verifier key, or a PEM file relative to the policy, whose name names the key.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

from contracts.errors import UsageError
from ledger import durable
from ledger.event_types import RolePolicy
from ledger.key_changes import check_role, verifier_key
from ledger.vkey import is_vkey

MAX_POLICY = 256 * 1024
FIELDS = {"keys", "threshold"}


def load(path: Path) -> tuple[RolePolicy, ...]:
    """The roles in a policy file; UsageError where it is none."""
    with durable.storage("reading the policy", path), path.open("rb") as file:
        data = file.read(MAX_POLICY + 1)
    try:
        tables = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _wrong(path, f"not toml ({error})") from error
    if len(data) > MAX_POLICY:
        raise _wrong(path, "too long")
    if not tables:
        raise _wrong(path, "a policy without any role would take every role away")
    return tuple(_role(path, name, table) for name, table in tables.items())


def dump(roles: Iterable[RolePolicy]) -> str:
    """The same roles as a file that `load` reads."""
    parts = []
    for role in roles:
        keys = ", ".join(f'"{key}"' for key in role.keys)  # a verifier key has no quotes in it
        parts.append(f"[{role.role}]\nkeys = [{keys}]\nthreshold = {role.threshold}\n")
    return "\n".join(parts)


def _role(path: Path, name: str, table: object) -> RolePolicy:
    check_role(name)
    if not isinstance(table, dict) or not set(table) <= FIELDS:
        raise _wrong(path, f"the role {name} is not a table of keys and threshold")
    keys, threshold = table.get("keys"), table.get("threshold", 1)
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key for key in keys):
        raise _wrong(path, f"the role {name} has no list of keys")
    if not isinstance(threshold, int) or isinstance(threshold, bool) or not 1 <= threshold <= len(keys):
        raise _wrong(path, f"the threshold of {name} is not a number from 1 to {len(keys)}")
    texts = (key if is_vkey(key) else str(path.parent / key) for key in keys)
    return RolePolicy(name, tuple(str(verifier_key(name, text)) for text in texts), threshold)


def _wrong(path: Path, what: str) -> UsageError:
    return UsageError(
        what, code="policy", where=path, expected='[ROLE] tables with keys = ["…"] and threshold = n'
    )
