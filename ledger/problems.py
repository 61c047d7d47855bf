"""What verification finds: problems in the order they were met, each with the place to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from contracts.errors import LedgerError, SignatureError, StorageError, TamperError, UnknownKeyError

KINDS = ("data", "tree", "catalog", "signature", "rolled-back-head", "unsigned-tail", "record")
LISTED = 1000
NO_PIN = "no-pin"


@dataclass(frozen=True)
class Problem:
    """Something stored that is not what was signed.

    `kind` is one of KINDS, `where` a file below the home, the pin, or the option that named a key, and
    `entry` the first entry, event or row hit.
    """

    kind: str
    where: str
    entry: str | None
    message: str

    def __str__(self) -> str:
        place = self.where if self.entry is None else f"{self.where} {self.entry}"
        return f"{place}: {self.message} ({self.kind})"


def folded(findings: Sequence[Problem]) -> list[tuple[Problem, tuple[Problem, ...]]]:
    """The first problem of every place with what else was found there: one damage is often met twice."""
    found: dict[str, list[Problem]] = {}
    for problem in findings:
        found.setdefault(problem.where, []).append(problem)
    return [(first, tuple(others)) for first, *others in found.values()]


@dataclass
class Problems:
    """Collects problems and notices; past LISTED of them only their number grows.

    `catalog` is what the catalog is called as a place.
    """

    listed: list[Problem] = field(default_factory=list)
    total: int = 0
    notices: list[str] = field(default_factory=list)
    catalog: str = "catalog.sqlite"

    def add(self, kind: str, where: str, message: str, entry: str | None = None) -> None:
        """Notes one problem."""
        assert kind in KINDS, "verification knows a fixed set of kinds"
        self.total += 1
        if len(self.listed) < LISTED:
            self.listed.append(Problem(kind, where, entry, message))

    def merge(self, later: Problems) -> None:
        """Notes what was found elsewhere."""
        self.total += later.total
        self.listed += later.listed[: LISTED - len(self.listed)]
        self.notices += later.notices

    def add_error(self, error: LedgerError, kind: str, where: str, entry: str | None = None) -> None:
        """Notes what an error says.

        A failing disk or a locked file is nobody's forgery, and where nothing says whom to trust there is
        nothing to verify: those are raised.
        """
        if error.code == NO_PIN or (isinstance(error, StorageError) and error.code != "missing-object"):
            raise error
        if isinstance(error, TamperError) and error.kind in KINDS:
            kind = error.kind
        elif isinstance(error, SignatureError | UnknownKeyError):
            kind = "signature"
        details = [f"expected {error.expected}" if error.expected is not None else ""]
        details.append(f"got {error.got}" if error.got is not None else "")
        told = ", ".join(detail for detail in details if detail)
        self.add(kind, where, f"{error.what}; {told}" if told else error.what, entry)

    @contextmanager
    def guard(self, kind: str, where: str, entry: str | None = None) -> Iterator[None]:
        """Turns an error inside the block into a problem, so that verification goes on behind it."""
        try:
            yield
        except LedgerError as error:
            self.add_error(error, kind, where, entry)
