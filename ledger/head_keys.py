"""Which key signs the heads of a log at which size: the first one, and those that replaced it."""

from __future__ import annotations

from dataclasses import dataclass

from contracts.errors import UnknownKeyError
from ledger.notes import TreeHead, verify
from ledger.vkey import VerifierKey


@dataclass(frozen=True)
class HeadKeys:
    """The keys of the log `origin`, each with the index of the event that named it, ascending."""

    origin: str
    periods: tuple[tuple[int, VerifierKey], ...]

    @property
    def newest(self) -> VerifierKey:
        """The key that signs from now on."""
        return self.periods[-1][1]

    def at(self, size: int) -> VerifierKey:
        """The key that signs a head of `size` events: the last one an event of that head names."""
        named = [key for event, key in self.periods if event < size]
        return named[-1] if named else self.periods[0][1]

    def named(self, raw: bytes) -> bool:
        """Whether a public key signs, or once signed, the heads of this log."""
        return any(key.public == raw for _, key in self.periods)

    def verify(self, data: bytes) -> TreeHead:
        """The tree head in a note, signed by the key of its size; errors as `notes.verify_head`."""
        note = verify(data, dict.fromkeys(key for _, key in self.periods))
        head = TreeHead.parse(note.text)
        if head.origin != self.origin:
            raise UnknownKeyError(
                "a trusted key signed the head of another log", expected=self.origin,
                got=ascii(head.origin[:80]),
            )  # fmt: skip
        wanted = self.at(head.size)
        if not any((s.name, s.id) == (wanted.name, wanted.id) for s in note.signatures):
            raise UnknownKeyError(
                f"a head of size {head.size} is signed by a key of this log that did not sign there",
                expected=f"a signature by {wanted.name}+{wanted.id.hex()}",
                got=", ".join(f"{s.name}+{s.id.hex()}" for s in note.signatures),
            )  # fmt: skip
        return head
