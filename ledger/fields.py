"""Strict reading of a JSON object: every key asked for once, of the right type, and none left over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from contracts.digest import is_digest
from contracts.errors import MalformedError

T = TypeVar("T")


@dataclass
class Fields:
    """The keys of one object that were not read yet; every refusal names the object and the key."""

    name: str
    left: dict[str, object] = field(default_factory=dict)

    @classmethod
    def of(cls, value: object, name: str) -> Fields:
        """The fields of a JSON object; anything else is a MalformedError."""
        if not isinstance(value, dict):
            raise MalformedError(f"{name} is not an object", got=type(value).__name__)
        return cls(name, dict(value))

    def take(self, key: str) -> object:
        """The value of a key, whatever it is."""
        if key not in self.left:
            raise MalformedError(f"{self.name} without `{key}`")
        return self.left.pop(key)

    def text(self, key: str) -> str:
        """A text that is not empty."""
        value = self.take(key)
        if not isinstance(value, str) or not value:
            raise self.wrong(key, "text", value)
        return value

    def whole(self, key: str) -> int:
        """An integer that is not negative."""
        value = self.take(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.wrong(key, "a whole number from 0", value)
        return value

    def digest(self, key: str, algorithm: str) -> str:
        """A digest in text form by one algorithm."""
        value = self.take(key)
        if not isinstance(value, str) or not is_digest(value) or not value.startswith(algorithm + ":"):
            raise self.wrong(key, f"a {algorithm} digest", value)
        return value

    def list(self, key: str, read: Callable[[object], T]) -> tuple[T, ...]:
        """A list, each item through `read`."""
        value = self.take(key)
        if not isinstance(value, list):
            raise self.wrong(key, "a list", value)
        return tuple(read(item) for item in value)

    def inside(self, key: str) -> Fields:
        """The fields of an object that is the value of a key."""
        return Fields.of(self.take(key), f"{self.name} `{key}`")

    def rest(self) -> Mapping[str, object]:
        """Everything not read yet, as it is."""
        rest, self.left = self.left, {}
        return rest

    def close(self) -> None:
        """Refuses keys that nobody asked for."""
        if self.left:
            raise MalformedError(f"{self.name} with an unknown key", got=sorted(self.left)[0][:80])

    def wrong(self, key: str, expected: str, value: object) -> MalformedError:
        """The refusal of one value."""
        return MalformedError(
            f"{self.name} `{key}` is not right", expected=expected, got=type(value).__name__
        )
