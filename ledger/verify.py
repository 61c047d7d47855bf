"""Verification: whether everything stored is what was signed, from the head down to the last byte.

The quick form reads every byte and decodes none of the entries; the full form decodes, judges and
recomputes all of it. Both go on behind a problem, so that one look tells everything that is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from contracts.errors import LedgerError, StorageError, VerificationError
from ledger import durable, heads, lock, pin
from ledger import trust as trusts
from ledger.engines import INLINE, Engine, Progress, silent
from ledger.event_types import AuditEvent
from ledger.head_keys import HeadKeys
from ledger.heads import CheckedHead
from ledger.home import Home
from ledger.index import Index
from ledger.keys import PublicKey
from ledger.notes import TreeHead
from ledger.pin import Pin
from ledger.problems import Problem, Problems
from ledger.verify_catalog import Named, check_file, check_rows, reading
from ledger.verify_log import Log, check_heads, check_published
from ledger.verify_objects import check_objects, check_strays
from ledger.verify_records import check_attestations, check_records, check_witnesses, standings
from ledger.vkey import parse_vkey

ATTEMPTS = 4
MISSING = 10_000  # events told as missing; else one event stored far out would be walked to for ever
__all__ = ["Problem", "Progress", "Recompute", "Report", "verify"]

# From the payload of an audit's envelope to the canonical bytes of its result, computed again from the
# entries; None where this version cannot compute that kind of audit.
Recompute = Callable[[bytes], bytes | None]


@dataclass(frozen=True)
class Report:
    """What verification found. `findings` are in the order of its steps; `total` also counts unlisted ones.

    `head` is the newest verified head, None where there is none. `counts` says how much was checked.
    `notices` are no problems: strays, what a crash left unpublished, audits that cannot be recomputed.
    `pin` is what happened to the pin of this user: created, moved, kept, or left (not touched).
    """

    origin: str
    full: bool
    head: TreeHead | None
    findings: tuple[Problem, ...]
    total: int
    notices: tuple[str, ...]
    counts: dict[str, int] = field(hash=False)
    pin: str = "left"

    @property
    def ok(self) -> bool:
        """Whether everything is as it was signed."""
        return self.total == 0

    def error(self) -> VerificationError | None:
        """The first problem, with the number of the others, as the error to end with."""
        if self.ok:
            return None
        first = self.findings[0]
        more = f" (and {self.total - 1} more)" if self.total > 1 else ""
        place = first.where if first.entry is None else f"{first.where} {first.entry}"
        return VerificationError(f"{first.message}{more}", code=first.kind, where=place)


def verify(
    home: Home,
    *,
    key: PublicKey | None = None,
    trust_first: bool = False,
    full: bool = False,
    recompute: Recompute | None = None,
    progress: Progress = silent,
    engine: Engine = INLINE,
) -> Report:
    """Check a home, in this order, and keep the pin of a verified head.

    1. The catalog is one, sound in SQLite's own terms, and the file that was sealed.
    2. The newest head is signed by the key of its size, which the pinned one (else `key`, else with
       `trust_first` the log's first) leads to by rotations that old and new key signed; the events lead to
       its root, none follow it, and the pin is a prefix of it.
    3. So is every older head in the catalog.
    4. Every event is the leaf it stands at, every derived row is what its event says, all triggers stand.
    5. The published files (checkpoint, heads, tiles, entry bundles) hold the same log.
    6. Every object that an event names is there with its digest.
    7. Every change of keys and policy was signed by those who could make it then. Every record is signed by
       those who could sign audits then, and holds the result and design its event says; every attestation
       is signed by those who could sign it then, and is about what its event says, and the model signature
       it accepts holds for the files it names;
       every cosigned head is of this log, and its witnesses are counted against the policy.
    8. Full only: every segment decodes, its pages lead to its root, its rows are in order, each once,
       as the event describes them, and meet the contract that admitted them.
    9. Full only: every audit gives the same result, byte for byte, when it is computed again.
    10. What no event accounts for is listed.
    11. When nothing was found, the pin is created or moved to the head.

    Step 8 is done by `engine`. Raises only where it cannot look: StorageError for a failing disk,
    VerificationError `no-pin` where nothing says whom to trust. Everything else is in the report.
    """
    for _ in range(ATTEMPTS):
        run = _Run(home, progress)
        with reading(run.found, home):
            check_file(run.found, home)  # 1
            with Index.open(home) as index:
                run.check(index, key, trust_first)
                if full:
                    run.check_full(index, recompute, engine)
                run.overtaken = index.head().size != index.size
        check_strays(run.found, home, run.named if run.checked else None)  # 10
        if run.found.total == 0 or not run.overtaken:
            break  # else somebody committed meanwhile, and what looked wrong may have been half of that
    return run.report(full)  # 11


class _Run:
    """One verification on its way through the steps."""

    def __init__(self, home: Home, progress: Progress) -> None:
        self.home = home
        self.progress = progress
        self.found = Problems(catalog=home.catalog_name)
        self.named = Named()
        self.checked: CheckedHead | None = None
        self.audits: list[tuple[int, AuditEvent]] = []
        self.sizes: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.overtaken = False

    def check(self, index: Index, key: PublicKey | None, trust_first: bool) -> None:
        """The quick steps on an open catalog; each goes on behind what stopped the one before."""
        found, objects = self.found, self.home.objects
        with reading(found, self.home):
            self._check_head(index, key, trust_first)  # 2
        size = min(index.size, index.event_count())
        leaves = index.leaves(size)
        size = min(size, len(leaves) + MISSING)
        keys = self._head_keys(index)
        log = None if keys is None else Log(keys, leaves)
        notes: dict[int, bytes] = {}
        with reading(found, self.home):
            notes = {} if log is None else check_heads(found, index, log)  # 3
        with reading(found, self.home):
            self.named = check_rows(found, index, objects, size, self._phase("events", size))  # 4
        if log is not None:
            check_published(found, objects, log, notes, self._phase("published log", size))  # 5
        named = self.named
        self.sizes = check_objects(found, objects, named, self._phase("objects", len(named.objects)))  # 6
        with found.guard("signature", found.catalog):
            trust = trusts.history(named.trust)  # 7
            check_witnesses(found, objects, trust, [] if log is None else log.leaves, sorted(notes))
            check_attestations(found, objects, named, self.sizes, trust)
            self.audits = check_records(found, objects, named, self.sizes, trust)
        with reading(found, self.home):
            found.notices += standings(objects, index, size, self.audits)
        self.counts = {
            "events": size,
            "heads": len(notes),
            "segments": sum(event.type == "segment" for _, event in named.stored),
            "entries": sum(event.rows for _, event in named.stored if event.type == "segment"),
            "records": len(named.audits),
            "attestations": len(named.attestations),
            "objects": len(named.objects),
            "bytes": sum(self.sizes.values()),
        }

    def _check_head(self, index: Index, key: PublicKey | None, trust_first: bool) -> None:
        try:
            self.checked = heads.check(self.home, index, key=key, trust_first=trust_first)
        except LedgerError as error:
            told = error.where or ""
            outside = told.startswith("/") or told.startswith("-")  # the pin, or the key that was given
            where, entry = (told, None) if outside else (self.found.catalog, error.where)
            self.found.add_error(error, "signature", where, entry)

    def _head_keys(self, index: Index) -> HeadKeys | None:
        """The keys of the heads; where the log does not tell them, the pinned one, to look further with."""
        with suppress(LedgerError):
            return heads.history(index).heads
        with suppress(LedgerError):
            known = pin.load(self.home.origin)
            if known is not None:
                return HeadKeys(self.home.origin, ((0, parse_vkey(known.vkey)),))
        return None

    def check_full(self, index: Index, recompute: Recompute | None, engine: Engine) -> None:
        """The steps that decode entries and compute audits again."""
        from ledger.verify_full import check_stored
        from ledger.verify_records import recompute_records

        rows = sum(event.rows for _, event in self.named.stored)
        phase = self._phase("rows", rows)
        check_stored(self.found, index, self.home.objects, self.sizes, phase, engine)  # 8
        if recompute is not None:
            phase = self._phase("audits", len(self.audits))
            self.counts["recomputed"] = recompute_records(
                self.found, self.home.objects, self.audits, recompute, phase
            )  # 9

    def report(self, full: bool) -> Report:
        """What was found, with the pin kept or moved."""
        found = self.found
        moved = self._keep_pin() if self.checked is not None and found.total == 0 else "left"
        head = None if self.checked is None else self.checked.head
        return Report(
            self.home.origin,
            full,
            head,
            tuple(found.listed),
            found.total,
            tuple(found.notices),
            self.counts,
            moved,
        )

    def _keep_pin(self) -> str:
        """Pins the checked head, unless a writer has pinned a later one meanwhile."""
        assert self.checked is not None, "only a checked head is pinned"
        known, row = self.checked.pin, self.checked.row
        if known is not None and known.head.size == row.size:
            return "kept"
        shared = pin.config_file(self.home.origin, ".lock")
        try:
            with durable.storage("writing the pin", shared):
                shared.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with lock.hold(shared):
                latest = pin.load(self.home.origin)
                if latest is not None and latest.head.size > row.size:
                    return "kept"
                pin.store(Pin(self.home.origin, str(self.checked.vkey), row.note))
        except StorageError as error:
            self.found.notices.append(f"the pin could not be written: {error}")
            return "left"
        return "created" if known is None else "moved"

    def _phase(self, name: str, total: int) -> Callable[[int], None]:
        return lambda done: self.progress(name, done, total)
