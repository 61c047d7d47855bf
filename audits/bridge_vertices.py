"""The vertices of a bridge: as people write them, as a design holds them, and which of them were observed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from audits.design import Design
from contracts.channel import Channel
from contracts.errors import MalformedError, UsageError
from ledger.snapshot import Arm, Scope, Snapshot

VERTICES = "vertices"
SIDES = ("ref", "alt")
NO_CHANNELS = "no channels named"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}", re.ASCII)
# A fingerprint holds a colon itself.
_CHANNEL = r"(blake3:[^:]*|[^:]*)"
_PAIR = re.compile(rf"(?P<ref>{_CHANNEL}):(?P<alt>{_CHANNEL})", re.DOTALL)


@dataclass(frozen=True)
class Vertex:
    """One evaluator of a bridge with its two channels; both None where it was never scored."""

    name: str
    ref: Channel | None = None
    alt: Channel | None = None

    @property
    def sides(self) -> Iterator[tuple[str, Channel]]:
        """The channels with their sides; none of an unobserved vertex."""
        if self.ref is not None and self.alt is not None:
            yield from zip(SIDES, (self.ref, self.alt), strict=True)


@dataclass(frozen=True)
class Observed:
    """The vertices that take part, in order, with the part of the scope that is theirs.

    `unobserved` are the others, each with the reason. `complete` is false where no vertex has scores: the
    scope is then that of all of them, so that the flow can say what is missing.
    """

    names: tuple[str, ...]
    scope: Scope
    unobserved: tuple[tuple[str, str], ...]
    complete: bool

    @property
    def roles(self) -> tuple[str, ...]:
        """The arms of the scope."""
        return tuple(role(name, side) for name in self.names for side in SIDES)

    @property
    def same_view(self) -> list[int | None]:
        """References have to show one view, and so have alternatives, wherever they show any."""
        return [place % 2 if arm.channel.needs_view else None for place, arm in enumerate(self.scope.arms)]


def role(vertex: str, side: str) -> str:
    """The name of an arm: `<vertex>.ref` or `<vertex>.alt`."""
    return f"{vertex}.{side}"


def parse_vertices(given: Sequence[str | Vertex], snapshot: Snapshot) -> list[Vertex]:
    """`NAME=REF:ALT` texts, or `NAME=` for a vertex nobody scored; UsageError for anything else."""
    found = [v if isinstance(v, Vertex) else _parse(v, snapshot) for v in given]
    names = [vertex.name for vertex in found]
    if len(set(names)) != len(names):
        raise UsageError("a vertex is named twice", got=", ".join(names), where="--vertex")
    if not any(list(vertex.sides) for vertex in found):
        raise UsageError(
            "a bridge needs a vertex with channels", expected="NAME=REF:ALT at least once", where="--vertex"
        )
    return found


def _parse(text: str, snapshot: Snapshot) -> Vertex:
    name, sign, named = text.partition("=")
    pair = _PAIR.fullmatch(named)
    if not sign or not _NAME.fullmatch(name) or (named and pair is None):
        raise UsageError(
            "not a vertex",
            expected="NAME=REF:ALT, or NAME= for one nobody scored",
            got=ascii(text[:120]),
            where="--vertex",
        )
    if pair is None:
        return Vertex(name)
    return Vertex(name, snapshot.book.resolve(pair["ref"]), snapshot.book.resolve(pair["alt"]))


def vertices_of(design: Design) -> dict[str, tuple[Arm, ...]]:
    """The arms of every vertex of a design, none or two."""
    names = design.option(VERTICES, list)
    arms = dict(zip(design.roles, design.scope.arms, strict=True))
    wanted = [role(str(name), side) for name in names for side in SIDES]
    if [name for name in wanted if name in arms] != list(design.roles) or len(set(names)) != len(names):
        raise MalformedError("the arms of the design are not those of its vertices", where="design")
    return {
        str(name): tuple(arms[r] for side in SIDES if (r := role(str(name), side)) in arms) for name in names
    }


def observe(snapshot: Snapshot, design: Design, vertices: dict[str, tuple[Arm, ...]]) -> Observed:
    """Tell the vertices with scores of both channels in scope from the others."""
    acquisitions = snapshot.select(design.scope).acquisitions
    seen: list[str] = []
    unseen: list[tuple[str, str]] = []
    for name, arms in vertices.items():
        empty = [side for side, arm in zip(SIDES, arms, strict=False) if not acquisitions[arm]]
        if arms and not empty:
            seen.append(name)
        else:
            unseen.append((name, f"no scores of {' and '.join(empty)} in scope" if arms else NO_CHANNELS))
    taking_part = seen or [name for name, arms in vertices.items() if arms]
    kept = tuple(arm for name in taking_part for arm in vertices[name])
    return Observed(tuple(taking_part), replace(design.scope, arms=kept), tuple(unseen), bool(seen))
