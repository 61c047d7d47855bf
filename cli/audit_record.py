"""What becomes of an audit: signed and logged, or printed as it is where that cannot be.

Nothing is signed with `--no-record`, without a signing key, or in a home that cannot be written; the
result is the same and says so.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from audits.record import AuditResult, statement
from cli import state
from cli.output_file import write_whole
from contracts.errors import StorageError, UsageError
from ledger import clock
from ledger.engines import Means
from ledger.home import Home, signing_key
from ledger.keys import SigningKey
from ledger.records import Logged, log_record, logged_records
from ledger.snapshot import Snapshot, open_snapshot
from ledger.statement import Statement

SHOWN = len("sha256:") + 16  # a record's id as far as people need it
REPEATABILITY = "repeatability"
LINKED = ("transport", "contrast")  # audits that are read beside the repeatability of their arms
PACKAGES = ("evaluator-ledger", "numpy", "pyarrow")


@dataclass(frozen=True)
class Recorded:
    """A statement and its place in the log; `logged` is None where `unsigned` says why."""

    statement: Statement
    logged: Logged | None
    unsigned: str | None

    def as_json(self) -> dict[str, Any]:
        """The statement with its record id and event index, both null where it is unsigned."""
        made: dict[str, Any] = json.loads(self.statement.to_bytes())
        logged = self.logged
        return made | {
            "record": None if logged is None else logged.record,
            "event": None if logged is None else logged.event,
            "existed": logged is not None and logged.existed,
        }

    @property
    def text(self) -> str:
        """What a person is told: the record's id and event, or why there is none."""
        if self.logged is None:
            return f"unsigned, not logged ({self.unsigned})"
        seen = "logged before as" if self.logged.existed else "signed and logged as"
        return f"{seen} {self.logged.record[:SHOWN]}, event {self.logged.event}"


@dataclass(frozen=True)
class Recorder:
    """Signs and logs audits of one home; `key` is None where `unsigned` says why nothing is signed."""

    home: Home
    key: SigningKey | None
    unsigned: str | None
    output: Path | None
    wait: float

    def snapshot(self, at: int | None, *, trust_first: bool, means: Means) -> Snapshot:
        """The home at a head, verified; a key that signs must be the one that signs its heads."""
        public = None if self.key is None else self.key.public
        return open_snapshot(self.home, at=at, key=public, trust_first=trust_first, means=means)

    def record(self, audit: AuditResult) -> Recorded:
        """Sign, log, and write the envelope where it was asked for."""
        made = self._statement(audit)
        if self.key is None:
            return Recorded(made, None, self.unsigned)
        logged = log_record(self.home, self.key, made, auditors=state.auditors(), wait=self.wait)
        if self.output is not None:
            write_whole(self.output, logged.envelope, "writing the envelope")
        return Recorded(made, logged, None)

    def unlogged(self, audit: AuditResult, why: str) -> Recorded:
        """The statement of an audit that is not signed, for this reason."""
        return Recorded(self._statement(audit), None, why)

    def _statement(self, audit: AuditResult) -> Statement:
        versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
        return statement(audit, versions=versions, time=clock.now(), links=self._links(audit))

    def _links(self, audit: AuditResult) -> dict[str, dict[str, list[str]]]:
        """The repeatability records of the arms of an audit whose flips may be noise, by role."""
        if audit.audit not in LINKED:
            return {}
        arms = {(arm["channel"], arm["view_source"]): arm["role"] for arm in audit.result["design"]["arms"]}
        found: dict[str, list[str]] = {}
        for record, logged in logged_records(self.home, REPEATABILITY, at=audit.head.size):
            stated: Any = logged.predicate["result"]
            (arm,) = stated["design"]["arms"]
            role = arms.get((arm["channel"], arm["view_source"]))
            if role is not None:
                found.setdefault(role, []).append(record)
        return {REPEATABILITY: found}


def recorder(home: Home, key: str | None, *, no_record: bool, output: Path | None, wait: float) -> Recorder:
    """Decide before any work whether the result can be signed; UsageError when `--output` then has no use."""
    signer, why = None, "--no-record"
    if not no_record:
        signer, why = _signer(home, key)
    if output is not None and signer is None:
        raise UsageError(
            "nothing to write: the result would be unsigned",
            got=why,
            where="--output",
            next_step="name a signing key with --key, or leave --output out",
        )
    if output is not None and not output.parent.is_dir():
        raise StorageError(
            "no such folder to write the envelope in", code="missing-file", where=output.parent
        )
    return Recorder(home, signer, why, output, wait)


def _signer(home: Home, key: str | None) -> tuple[SigningKey | None, str]:
    if not os.access(home.path, os.W_OK):
        return None, "the home is read-only"
    try:
        return signing_key(home, key), ""
    except UsageError as error:
        if key is not None or error.code != "no-key":
            raise
        return None, "no signing key"
