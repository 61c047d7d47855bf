"""A witness on this machine: it remembers the last head of each log, and cosigns only what grew from it.

State and key stand in the configuration folder, never in a home: `witness/<name>.pem`, and for every log
`witness/<name>/<origin>.head`, the signed head it cosigned last. Cosigned heads are published as
`log/witnessed/<size>`: the note with the lines of its witnesses.
"""

from __future__ import annotations

import time as clocks
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from contracts.errors import LedgerError, MalformedError, StorageError, TamperError, UsageError
from ledger import durable, heads, lock, pin
from ledger.cosignature import Cosigned, cosign, cosigned
from ledger.heads import CheckedHead
from ledger.home import Home
from ledger.index import Index
from ledger.keys import PublicKey, SigningKey
from ledger.notes import MAX_NOTE, Note, TreeHead, verify
from ledger.objects import Objects, Store
from ledger.tree import root
from ledger.trust import WITNESS, TrustHistory
from ledger.vkey import COSIGNATURE, VerifierKey, is_name

FOLDER = "log/witnessed"


@dataclass(frozen=True)
class Witnessed:
    """A head with the witnesses who cosigned it, and how many the policy of its size wants."""

    size: int
    by: tuple[Cosigned, ...]
    threshold: int

    @property
    def enough(self) -> bool:
        """Whether as many as the policy wants did."""
        return len(self.by) >= self.threshold


def create(name: str) -> VerifierKey:
    """Makes a witness with a key of its own; StorageError where there is one of that name."""
    _check(name)
    key = SigningKey.generate()
    key.save(_key_path(name))
    return VerifierKey(name, key.public.raw, COSIGNATURE)


def public(name: str) -> VerifierKey:
    """The public side of a witness of this machine."""
    return VerifierKey(name, _key(name).public.raw, COSIGNATURE)


def sign(
    home: Home, name: str, *, key: PublicKey | None = None, trust_first: bool = False, wait: float = lock.WAIT
) -> Witnessed:
    """Cosigns the newest head of a home and publishes it, after these steps have all passed.

    1. The head verifies (`heads.check`): signed by the log's key, its events lead to its root.
    2. It is no smaller than the head this witness cosigned last, and the events of that one are its first.
    3. The witness remembers it, durably, before anybody gets to see the cosignature.

    TamperError `rolled-back-head` for an inconsistent head: then nothing is signed.
    """
    signer = _key(name)
    with lock.hold(_folder(name) / "witness.lock", wait), Index.open(home) as index:
        checked = heads.check(home, index, key=key, trust_first=trust_first)  # 1
        state = _state_path(name, home.origin)
        _consistent(_remembered(state, checked), checked)  # 2
        note = verify(checked.row.note, [checked.vkey])
        with durable.storage("remembering a head", state):  # 3
            staged = state.with_name(durable.temporary_name(".head"))
            durable.create(staged, checked.row.note, mode=0o600)
            durable.replace(staged, state)
        line = cosign(note.text, name, signer, int(clocks.time()))
        _publish(home.objects, checked, line.name, str(line))
        return judge(home.objects, checked.trust, checked.head.size)


def judge(objects: Objects, trust: TrustHistory, size: int) -> Witnessed:
    """The cosignatures under a head, counted against the policy in force at its size."""
    role = trust.before(size).role(WITNESS)
    name = f"{FOLDER}/{size}"
    if not objects.exists(name):
        return Witnessed(size, (), role.threshold if role.keys else 0)
    data = objects.read(name, limit=MAX_NOTE)
    head = trust.heads.verify(data)
    if head.size != size:
        raise TamperError("a cosigned head of another size", kind="signature", where=name, expected=size)
    found = cosigned(verify(data, [trust.heads.at(size)]), role.keys)
    return Witnessed(size, found, role.threshold if role.keys else 0)


def _publish(objects: Store, checked: CheckedHead, witness: str, line: str) -> None:
    """Adds a line to the published note of a head; an earlier one of the same witness gives way."""
    name = f"{FOLDER}/{checked.head.size}"
    note = checked.row.note
    if objects.exists(name):
        earlier = objects.read(name, limit=MAX_NOTE)
        if checked.trust.heads.verify(earlier) == checked.head:
            kept = verify(earlier, [checked.vkey])
            note += _lines(kept, witness)
    objects.publish(name, note + line.encode())


def _lines(note: Note, witness: str) -> bytes:
    return "".join(str(line) for line in note.others if line.name != witness).encode()


def _consistent(earlier: TreeHead | None, checked: CheckedHead) -> None:
    if earlier is None:
        return
    advice = "do not trust this log before its operator explains it; the witness keeps the head it signed"
    if earlier.size > checked.head.size:
        raise TamperError(
            "the log is shorter than the head this witness cosigned", kind="rolled-back-head",
            where=checked.head.origin, expected=f"at least {earlier.size} events", got=checked.head.size,
            next_step=advice,
        )  # fmt: skip
    if root(checked.leaves[: earlier.size]) != earlier.root:
        raise TamperError(
            "the log did not grow from the head this witness cosigned", kind="rolled-back-head",
            where=checked.head.origin, next_step=advice,
        )  # fmt: skip


def _remembered(path: Path, checked: CheckedHead) -> TreeHead | None:
    """The head this witness cosigned last; what it remembers is its own, so only the text counts."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_NOTE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise durable.storage_error(error, "reading the witness's memory", path) from error
    try:
        return TreeHead.parse(data.decode().rpartition("\n\n")[0] + "\n")
    except (UnicodeDecodeError, LedgerError) as error:
        raise MalformedError("the witness's memory is damaged", where=path) from error


def _key(name: str) -> SigningKey:
    _check(name)
    path = _key_path(name)
    if not path.is_file():
        raise UsageError(
            f"no witness called {name} on this machine", code="no-witness",
            next_step=f"make one with: ledger witness create {name}",
        )  # fmt: skip
    return SigningKey.load(path)


def _check(name: str) -> None:
    if not is_name(name):
        raise UsageError("not a name for a witness", code="key-name", got=ascii(name[:80]))


def _key_path(name: str) -> Path:
    return pin.config_dir() / "witness" / f"{quote(name, safe='')}.pem"


def _folder(name: str) -> Path:
    folder = pin.config_dir() / "witness" / quote(name, safe="")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot make the witness's folder ({error.strerror})", code="storage", where=folder
        ) from error
    return folder


def _state_path(name: str, origin: str) -> Path:
    return _folder(name) / f"{quote(origin, safe='')}.head"
