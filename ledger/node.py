"""A thing in the ledger, what is known of it and what it hangs together with: one tree for all readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Node:
    """One thing: its kind, the id that finds it again, its facts, and the nodes below it.

    Facts are JSON values; a fact that is absent is left out, never null with two meanings.
    """

    kind: str
    id: str
    facts: Mapping[str, object] = field(default_factory=dict)
    children: tuple[Node, ...] = ()

    def as_json(self) -> dict[str, object]:
        """The tree as one JSON object: `kind`, `id`, `facts`, `children`."""
        return {
            "kind": self.kind,
            "id": self.id,
            "facts": dict(self.facts),
            "children": [child.as_json() for child in self.children],
        }

    def find(self, kind: str) -> Iterator[Node]:
        """The nodes of a kind below this one, depth first."""
        for child in self.children:
            if child.kind == kind:
                yield child
            yield from child.find(kind)


def present(**facts: object) -> dict[str, object]:
    """The facts that are there."""
    return {name: value for name, value in facts.items() if value is not None}
