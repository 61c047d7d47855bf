"""A lineage as a graph: things once each, and which was made from which, for tools that draw or store it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from ledger.node import Node

# Later kinds are made from earlier ones: of two things that hang together the later points at the earlier.
ORDER = (
    "file", "source", "inputs", "checkpoint", "attestation", "channel", "plan", "acquisition", "segment",
    "refusal", "entry", "audit", "event", "head", "impact",
)  # fmt: skip
PREFIX = "urn:evaluator-ledger:"
OPENLINEAGE = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
LABEL = 40


@dataclass(frozen=True)
class Thing:
    """A node of the graph: its kind, its id, and the facts that are plain values."""

    kind: str
    id: str
    facts: Mapping[str, str | int | bool] = field(default_factory=dict, hash=False, compare=False)

    @property
    def label(self) -> str:
        """What it is called where there is little room."""
        name = self.id if len(self.id) <= LABEL else f"{self.id[: LABEL - 1]}…"
        return f"{self.kind} {name}"


@dataclass
class Graph:
    """Things in the order they were met, and pairs (made, from), each once."""

    origin: str
    things: dict[tuple[str, str], Thing] = field(default_factory=dict)
    edges: dict[tuple[tuple[str, str], tuple[str, str]], None] = field(default_factory=dict)

    @classmethod
    def of(cls, node: Node, origin: str) -> Graph:
        """The graph of a lineage tree."""
        graph = cls(origin)
        graph._take(node)
        return graph

    def _take(self, node: Node) -> tuple[str, str]:
        key = node.kind, node.id
        plain = {n: v for n, v in node.facts.items() if isinstance(v, str | int | bool)}
        known = self.things.get(key)
        self.things[key] = Thing(*key, plain if known is None else {**known.facts, **plain})
        sources = node.facts.get("sources")
        for item in sources if isinstance(sources, list) else ():
            self._join(key, self._take(Node("source", item["digest"], item)))
        for child in node.children:
            self._join(key, self._take(child))
        return key

    def _join(self, one: tuple[str, str], other: tuple[str, str]) -> None:
        later, earlier = sorted((one, other), key=_rank, reverse=True)
        self.edges.setdefault((later, earlier))


def to_prov(graph: Graph) -> str:
    """W3C PROV-JSON: acquisitions are activities, keys are agents, everything else is an entity."""
    made: dict[str, dict[str, Any]] = {
        part: {} for part in ("entity", "activity", "agent", "wasDerivedFrom", "wasGeneratedBy", "used",
                              "wasAttributedTo")
    }  # fmt: skip
    for thing in graph.things.values():
        facts = {f"ledger:{name}": value for name, value in thing.facts.items()}
        part = "activity" if thing.kind == "acquisition" else "entity"
        made[part][_qualified(thing.kind, thing.id)] = {"prov:type": f"ledger:{thing.kind}", **facts}
        signer = thing.facts.get("signed_by")
        if isinstance(signer, str):
            agent = _qualified("key", signer)
            made["agent"][agent] = {"prov:type": "ledger:key"}
            _relate(
                made["wasAttributedTo"],
                {"prov:entity": _qualified(thing.kind, thing.id), "prov:agent": agent},
            )
    for later, earlier in graph.edges:
        one, other = _qualified(*later), _qualified(*earlier)
        if earlier[0] == "acquisition":
            _relate(made["wasGeneratedBy"], {"prov:entity": one, "prov:activity": other})
        elif later[0] == "acquisition":
            _relate(made["used"], {"prov:activity": one, "prov:entity": other})
        else:
            _relate(made["wasDerivedFrom"], {"prov:generatedEntity": one, "prov:usedEntity": other})
    prefix = {"ledger": f"{PREFIX}{quote(graph.origin, safe='')}:"}
    return _dump({"prefix": prefix, **{part: items for part, items in made.items() if items}})


def to_openlineage(graph: Graph) -> str:
    """OpenLineage run events, one JSON object a line: an ingest for each segment, a run for each audit."""
    lines = []
    for thing in graph.things.values():
        if thing.kind not in ("segment", "audit"):
            continue
        key = thing.kind, thing.id
        inputs = [e for later, e in graph.edges if later == key and e[0] in ("source", "segment", "entry")]
        job = f"audit/{thing.facts.get('audit', 'unknown')}" if thing.kind == "audit" else "ingest"
        event = {
            "eventType": "COMPLETE",
            "eventTime": thing.facts.get("time"),
            "run": {"runId": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{PREFIX}{graph.origin}:{thing.id}"))},
            "job": {"namespace": graph.origin, "name": job},
            "inputs": [{"namespace": graph.origin, "name": f"{kind}/{name}"} for kind, name in inputs],
            "outputs": [{"namespace": graph.origin, "name": f"{thing.kind}/{thing.id}"}],
            "producer": f"{PREFIX}ledger",
            "schemaURL": OPENLINEAGE,
        }
        lines.append(json.dumps(event, ensure_ascii=False))
    return "\n".join(lines)


def to_mermaid(graph: Graph) -> str:
    """A Mermaid flowchart, from what was there first to what was made of it."""
    return "\n".join(["flowchart LR", *_drawn(graph, '  {0}["{1}"]', "  {0} --> {1}", _mermaid_text)])


def to_dot(graph: Graph) -> str:
    """A Graphviz digraph, from what was there first to what was made of it."""
    lines = _drawn(graph, '  {0} [label="{1}"];', "  {0} -> {1};", _dot_text)
    return "\n".join(["digraph lineage {", "  rankdir=LR;", "  node [shape=box];", *lines, "}"])


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


def _qualified(kind: str, name: str) -> str:
    return f"ledger:{kind}/{quote(name, safe='')}"


def _relate(relations: dict[str, Any], relation: dict[str, str]) -> None:
    relations[f"_:r{len(relations)}"] = relation


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)
