"""Every error a person or a program can meet, with its exit code.

One line each: what happened, what was expected, what was found, where, and the next step.
Third-party exceptions do not cross a module that reads bytes: they are re-raised as one of these.
"""

from __future__ import annotations

from collections.abc import Mapping


class LedgerError(Exception):
    """The root of all expected failures; anything else that escapes is a bug.

    `code` is a stable, kebab-case identifier for programs. `where` names a file, key, row or entry.
    """

    exit_code = 3
    default_code = "internal"

    def __init__(
        self,
        what: str,
        *,
        code: str | None = None,
        expected: object = None,
        got: object = None,
        where: object = None,
        next_step: str | None = None,
    ) -> None:
        self.what = what
        self.code = code or self.default_code
        self.expected = None if expected is None else str(expected)
        self.got = None if got is None else str(got)
        self.where = None if where is None else str(where)
        self.next_step = next_step
        super().__init__(what)

    def __reduce__(self) -> tuple[object, ...]:
        """An error that is met in another process comes back with all its parts."""
        return _again, (type(self), self.args, self.__dict__)

    def __str__(self) -> str:
        line = f"{self.where}: {self.what}" if self.where else self.what
        if self.expected is not None and self.got is not None:
            line += f"; expected {self.expected}, got {self.got}"
        elif self.expected is not None:
            line += f"; expected {self.expected}"
        elif self.got is not None:
            line += f"; got {self.got}"
        if self.next_step:
            line += f"; {self.next_step}"
        return line

    def as_dict(self) -> Mapping[str, str | int]:
        """The error as a flat object for `--json`; absent parts are left out."""
        parts = {
            "code": self.code,
            "what": self.what,
            "expected": self.expected,
            "got": self.got,
            "where": self.where,
            "next": self.next_step,
        }
        return {"exit": self.exit_code, **{k: v for k, v in parts.items() if v is not None}}


class ContractError(LedgerError):
    """Input that a contract refuses; nothing of it was written (exit 1)."""

    exit_code = 1
    default_code = "refused"


class UsageError(LedgerError):
    """An unknown option, name or id, or no home (exit 2)."""

    exit_code = 2
    default_code = "usage"


class StorageError(LedgerError):
    """A file or database that is missing, unreadable, locked or full (exit 3)."""

    exit_code = 3
    default_code = "storage"


class VerificationError(LedgerError):
    """Something stored is not what was signed (exit 4)."""

    exit_code = 4
    default_code = "not-verified"


class MalformedError(VerificationError):
    """Bytes that do not parse as what they claim to be; no signature was looked at."""

    default_code = "malformed"


class UnknownKeyError(VerificationError):
    """Well-formed and signed, but by no key that is trusted for this role."""

    default_code = "unknown-key"


class SignatureError(VerificationError):
    """A signature by a known key that does not match the bytes."""

    default_code = "bad-signature"


class TamperError(VerificationError):
    """Stored state that contradicts the log: `kind` says which.

    Kinds: data, tree, catalog, signature, rolled-back-head, unsigned-tail, record.
    """

    def __init__(self, what: str, *, kind: str, **parts: object) -> None:
        super().__init__(what, code=kind, **parts)  # type: ignore[arg-type]
        self.kind = kind


class CannotAnswerError(LedgerError):
    """The entries cannot answer the question, or a gate was not passed (exit 5)."""

    exit_code = 5
    default_code = "cannot-answer"


def _again(kind: type[LedgerError], args: tuple[object, ...], parts: Mapping[str, object]) -> LedgerError:
    """The error of a kind with these parts, whatever its constructor asks for."""
    error = kind.__new__(kind, *args)
    error.__dict__.update(parts)
    return error
