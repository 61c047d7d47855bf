"""A lineage as a graph: things once each, and which was made from which, for tools that draw or store it.

PROV-JSON stands in `lineage_prov`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from ledger.node import Node

# Later kinds are made from earlier ones: of two things that hang together the later points at the earlier.
ORDER = (
    "file", "source", "inputs", "checkpoint", "channel", "plan", "acquisition", "attestation", "segment",
    "refusal", "entry", "audit", "event", "head", "impact",
)  # fmt: skip
PREFIX = "urn:evaluator-ledger:"
PRODUCER = f"{PREFIX}ledger"
OPENLINEAGE = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/"
RUNS = ("segment", "refusal", "audit")  # what a run of a job left behind
READ = ("source", "segment", "refusal", "entry", "channel", "plan")  # what such a run may have read
UNTOLD = ("event", "head", "impact")  # what is no data set, unless nothing else is asked for
LABEL = 40


@dataclass(frozen=True)
class Thing:
    """A node of the graph: its kind, its id, the facts that are plain values, and the keys that signed it."""

    kind: str
    id: str
    facts: Mapping[str, str | int | bool] = field(default_factory=dict, hash=False, compare=False)
    signed_by: tuple[str, ...] = field(default=(), compare=False)

    @property
    def label(self) -> str:
        """What it is called where there is little room."""
        name = self.id if len(self.id) <= LABEL else f"{self.id[: LABEL - 1]}…"
        return f"{self.kind} {name}"


@dataclass
class Graph:
    """Things in the order they were met, and pairs (made, from), each once.

    `named` are the channels and acquisitions that a segment tells of: edges where they are in view.
    """

    origin: str
    things: dict[tuple[str, str], Thing] = field(default_factory=dict)
    edges: dict[tuple[tuple[str, str], tuple[str, str]], None] = field(default_factory=dict)
    named: dict[tuple[str, str], tuple[tuple[str, str], ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node, origin: str) -> Graph:
        """The graph of a lineage tree."""
        graph = cls(origin)
        graph._take(node)
        for made, named in graph.named.items():
            for other in named:
                if other in graph.things:
                    graph._join(made, other)
        return graph

    @property
    def time(self) -> str | None:
        """When the first thing that has a time was logged; it stands for those that have none."""
        return next(
            (str(thing.facts["time"]) for thing in self.things.values() if "time" in thing.facts), None
        )

    def _take(self, node: Node) -> tuple[str, str]:
        key = node.kind, node.id
        plain = {n: v for n, v in node.facts.items() if isinstance(v, str | int | bool)}
        known = self.things.get(key, Thing(*key))
        self.things[key] = Thing(
            *key, {**known.facts, **plain}, tuple(dict.fromkeys((*known.signed_by, *_signers(node))))
        )
        if node.kind == "segment":
            self.named[key] = tuple(
                (kind, name)
                for kind in ("channel", "acquisition")
                for name in cast("list[str]", node.facts.get(f"{kind}s", []))
            )
        sources = node.facts.get("sources")
        for item in sources if isinstance(sources, list) else ():
            self._join(key, self._take(Node("source", item["digest"], item)))
        for child in node.children:
            self._join(key, self._take(child))
        return key

    def _join(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        later, earlier = sorted((one, other), key=_rank, reverse=True)
        self.edges.setdefault((later, earlier))


def to_openlineage(graph: Graph) -> str:
    """OpenLineage events, one JSON object a line: a START and a COMPLETE for every run of a job.

    Runs are the ingest behind each segment or refusal, and each audit; both events of a run carry the time it
    was logged, the only one the log knows. What no run in view read or left is told by a dataset event.
    """
    lines: list[dict[str, Any]] = []
    told: set[tuple[str, str]] = set()
    start = next(iter(graph.things), None)
    for key, thing in graph.things.items():
        if thing.kind not in RUNS:
            continue
        inputs = [e for later, e in graph.edges if later == key and e[0] in READ]
        told |= {key, *inputs}
        job = f"audit/{thing.facts.get('audit', 'unknown')}" if thing.kind == "audit" else "ingest"
        lines += [
            {
                "eventType": state,
                "eventTime": thing.facts.get("time", graph.time),
                "run": {"runId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{PREFIX}{graph.origin}:{thing.id}"))},
                "job": {"namespace": graph.origin, "name": job},
                "inputs": [_dataset(graph, one) for one in inputs],
                "outputs": [_dataset(graph, key)],
                "producer": PRODUCER,
                "schemaURL": f"{OPENLINEAGE}RunEvent",
            }
            for state in ("START", "COMPLETE")
        ]
    lines += [
        {
            "eventTime": thing.facts.get("time", graph.time),
            "dataset": _dataset(graph, key),
            "producer": PRODUCER,
            "schemaURL": f"{OPENLINEAGE}DatasetEvent",
        }
        for key, thing in graph.things.items()
        if graph.time is not None and key not in told and (key == start or thing.kind not in UNTOLD)
    ]
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)


def _dataset(graph: Graph, key: tuple[str, str]) -> dict[str, str]:
    return {"namespace": graph.origin, "name": "/".join(key)}


def to_mermaid(graph: Graph) -> str:
    """A Mermaid flowchart, from what was there first to what was made of it."""
    return "\n".join(["flowchart LR", *_drawn(graph, '  {0}["{1}"]', "  {0} --> {1}", _mermaid_text)])


def to_dot(graph: Graph) -> str:
    """A Graphviz digraph, from what was there first to what was made of it."""
    lines = _drawn(graph, '  {0} [label="{1}"];', "  {0} -> {1};", _dot_text)
    return "\n".join(["digraph lineage {", "  rankdir=LR;", "  node [shape=box];", *lines, "}"])


def to_prov(graph: Graph) -> str:
    """W3C PROV-JSON, see `lineage_prov`."""
    from ledger.lineage_prov import to_prov as write

    return write(graph)


WRITERS: Mapping[str, Callable[[Graph], str]] = {
    "prov": to_prov,
    "openlineage": to_openlineage,
    "mermaid": to_mermaid,
    "dot": to_dot,
}


def _rank(key: tuple[str, str]) -> int:
    """The place of a thing in the order of making; a kind of a later version comes first."""
    return ORDER.index(key[0]) if key[0] in ORDER else -1


def _drawn(graph: Graph, box: str, arrow: str, text: Callable[[str], str]) -> Iterator[str]:
    names = {key: f"n{number}" for number, key in enumerate(graph.things)}
    for key, thing in graph.things.items():
        yield box.format(names[key], text(thing.label))
    for later, earlier in graph.edges:
        yield arrow.format(names[earlier], names[later])


def _mermaid_text(text: str) -> str:
    """Text inside a quoted label: what could end it or be markup becomes an entity."""
    return "".join(c if c.isalnum() or c in " .:/@_-…" else f"#{ord(c)};" for c in text)


def _dot_text(text: str) -> str:
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown.replace("\\", "\\\\").replace('"', '\\"')


def _signers(node: Node) -> tuple[str, ...]:
    """The keys that a node says signed it: one text, or a list of them."""
    told = node.facts.get("signed_by")
    found = told if isinstance(told, list) else [told]
    return tuple(signer for signer in found if isinstance(signer, str))
