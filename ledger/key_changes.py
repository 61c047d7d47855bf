"""Changing who may sign what: keys added, rotated and retired, and a whole policy set at once.

What is written is judged by the rules every reader applies (`ledger.trust`), so a change that its signers
may not make is refused before anything is appended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from contracts.errors import MalformedError, UsageError, VerificationError
from ledger import durable, heads, lock, log
from ledger import trust as trusts
from ledger.event_types import KeyChangeEvent, PolicyEvent, RolePolicy
from ledger.home import Home, key_path
from ledger.index import Index
from ledger.keys import PublicKey, SigningKey
from ledger.log import Commit, Transaction
from ledger.trust import HEAD, ROLES, WITNESS, Change, Trust
from ledger.vkey import COSIGNATURE, ED25519, VerifierKey, is_name, is_vkey


@dataclass(frozen=True)
class Changed:
    """The event that changed the roles, and the roles behind it; not `new` when they were so already.

    `taken` are the roles that had keys before and have none now.
    """

    event: int
    trust: Trust
    commit: Commit
    new: bool = True
    taken: tuple[str, ...] = ()


def verifier_key(role: str, source: str, name: str | None = None) -> VerifierKey:
    """The key of a role from a verifier key's text or a PEM file, which `name` (else its stem) names."""
    check_role(role)
    if is_vkey(source):
        return trusts.read_key(role, source)
    named = name or Path(source.removeprefix("file:")).name.partition(".")[0]
    if not is_name(named):
        raise UsageError(
            "not a name for a key", code="key-name", expected="text without spaces or plus",
            got=ascii(named[:80]), next_step="give one with --name",
        )  # fmt: skip
    return VerifierKey(named, PublicKey.load(source).raw, COSIGNATURE if role == WITNESS else ED25519)


def check_role(role: str) -> None:
    """Refuses a role that there is not."""
    if role not in ROLES:
        raise UsageError("no such role", code="role", expected=" | ".join(ROLES), got=ascii(role[:40]))


def add(
    home: Home, key: SigningKey, role: str, added: VerifierKey, *, signers: Sequence[SigningKey] = (),
    wait: float = lock.WAIT,
) -> Changed:  # fmt: skip
    """Gives a key a role; adding a key that has it changes nothing. `signers` sign beside `key`."""
    if role == HEAD:
        raise UsageError(
            "a log has one key for its heads", code="role", next_step="use `ledger key rotate head`"
        )

    def change(trust: Trust) -> Change | None:
        held = {known.public for known in trust.role(role).keys}
        return None if added.public in held else _key_change(trust, "add", role, added)

    return _append(home, key, change, [key, *signers], wait)


def retire(
    home: Home, key: SigningKey, role: str, named: str, *, signers: Sequence[SigningKey] = (),
    wait: float = lock.WAIT,
) -> Changed:  # fmt: skip
    """Takes a key out of a role; what it signed before stays valid."""
    check_role(role)
    if role == HEAD:
        raise UsageError(
            "a log needs a key for its heads", code="role", next_step="use `ledger key rotate head`"
        )

    def change(trust: Trust) -> Change:
        return _key_change(trust, "retire", role, find(trust, role, named))

    return _append(home, key, change, [key, *signers], wait)


def rotate(
    home: Home, key: SigningKey, role: str, old: SigningKey, new: SigningKey, *, name: str | None = None,
    wait: float = lock.WAIT,
) -> Changed:  # fmt: skip
    """Puts a key in the place of another, signed by both; the new head is signed by the key in force then."""
    check_role(role)

    def change(trust: Trust) -> Change:
        held = [known for known in trust.role(role).keys if known.public == old.public.raw]
        if not held:
            raise UsageError(
                f"the old key does not have the role {role}", code="role", next_step="see `ledger key list`"
            )
        named = trust.log if role == HEAD else name or held[0].name
        made = VerifierKey(named, new.public.raw)
        return _key_change(trust, "rotate", role, made, replaces=held[0])

    return _append(home, key, change, [old, new], wait, successor=new if role == HEAD else None)


def set_policy(
    home: Home, key: SigningKey, roles: Sequence[RolePolicy], *, signers: Sequence[SigningKey] = (),
    wait: float = lock.WAIT,
) -> Changed:  # fmt: skip
    """Replaces all roles but the key of the heads; a policy that is in force already changes nothing."""

    def change(trust: Trust) -> Change | None:
        stated = {role.role: role for role in roles}
        (head,) = trust.role(HEAD).keys
        if stated.get(HEAD, RolePolicy(HEAD, (str(head),), 1)) != RolePolicy(HEAD, (str(head),), 1):
            raise UsageError(
                "a policy cannot change the key of the heads", code="policy", where=HEAD,
                next_step="leave the table out, and use `ledger key rotate head`",
            )  # fmt: skip
        stated[HEAD] = RolePolicy(HEAD, (str(head),), 1)
        wanted = tuple(stated[name] for name in ROLES if name in stated)
        return None if wanted == in_force(trust) else PolicyEvent(wanted, trust.log, trust.changed)

    return _append(home, key, change, [key, *signers], wait)


def in_force(trust: Trust) -> tuple[RolePolicy, ...]:
    """The roles that have keys, in their usual order."""
    named = ((name, trust.role(name)) for name in ROLES)
    return tuple(RolePolicy(n, tuple(map(str, r.keys)), r.threshold) for n, r in named if r.keys)


def find(trust: Trust, role: str, named: str) -> VerifierKey:
    """The key of a role that a name, a verifier key or the start of its id means."""
    keys = trust.role(role).keys
    found = [key for key in keys if named in (key.name, str(key)) or key.id.hex() == named]
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"{'several keys' if found else 'no key'} of the role {role} called {ascii(named[:80])[1:-1]}",
        code="unknown-key-name",
        expected="one of " + ", ".join(f"{key.name}+{key.id.hex()}" for key in keys) if keys else None,
        next_step="see `ledger key list`",
    )


def successor_path(home: Home) -> Path:
    """Where a new key of the heads waits until the log names it."""
    return key_path(home.origin).with_suffix(".next.pem")


def install_successor(home: Home) -> Path:
    """Puts the waiting key in the place of the one that signed until now, which is kept beside it."""
    current, waiting = key_path(home.origin), successor_path(home)
    number = 1
    while (kept := current.with_suffix(f".old-{number}.pem")).exists():
        number += 1
    with durable.storage("putting the new key in place", current):
        if current.exists():
            durable.replace(current, kept)
        durable.replace(waiting, current)
    return kept


def finish_rotation(home: Home) -> Path | None:
    """Puts a waiting key in place that the log has named already, as a crash in between leaves it."""
    path = successor_path(home)
    if not path.exists():
        return None
    with Index.open(home) as index:
        named = heads.check(home, index).vkey.public
    return install_successor(home) if SigningKey.load(path).public.raw == named else None


def successor(home: Home) -> SigningKey:
    """The key that waits to sign heads: the one a crash left, else a new one, saved before it is named."""
    path = successor_path(home)
    if path.exists():
        return SigningKey.load(path)
    made = SigningKey.generate()
    made.save(path)
    return made


def _key_change(
    trust: Trust, action: str, role: str, key: VerifierKey, *, replaces: VerifierKey | None = None
) -> KeyChangeEvent:
    old = None if replaces is None else str(replaces)
    return KeyChangeEvent(action, role, str(key), old, trust.log, trust.changed)


def _append(
    home: Home,
    key: SigningKey,
    change: Callable[[Trust], Change | None],
    signers: Sequence[SigningKey],
    wait: float,
    successor: SigningKey | None = None,
) -> Changed:
    behind: list[Trust] = []
    before: list[Trust] = []

    def build(transaction: Transaction) -> list[Change]:
        made = change(transaction.trust)
        before.append(transaction.trust)
        if made is None:
            behind.append(transaction.trust)
            return []
        event = trusts.signed(made, signers)
        behind.append(_judged(transaction, event))
        return [event]

    commit = log.commit(home, key, build, wait=wait, successor=successor)
    new = commit.first_index < commit.size
    kept = {role.role for role in in_force(behind[-1])}
    taken = tuple(role.role for role in in_force(before[-1]) if role.role not in kept)
    return Changed(behind[-1].changed, behind[-1], commit, new, taken)


def _judged(transaction: Transaction, event: Change) -> Trust:
    """The roles behind an event; what it may not say is the caller's mistake, not a forgery."""
    try:
        return trusts.apply(transaction.trust, transaction.size, event)
    except MalformedError as error:
        raise UsageError(error.what, code="policy", expected=error.expected, got=error.got) from error
    except VerificationError as error:
        error.where = None
        who = transaction.trust.authority
        names = ", ".join(known.name for known in who.keys)
        error.next_step = f"let {who.threshold} of these sign with --signer: {names}"
        raise
