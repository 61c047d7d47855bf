"""Which audits hang on a thing, and lineage in the forms other tools read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from audits import plan, prespecified
from audits.record import AuditResult, statement
from audits.transport import transport
from contracts.digest import blake3_digest
from contracts.errors import UsageError
from ledger import plans
from ledger.impact import impact
from ledger.lineage import lineage
from ledger.lineage_graph import WRITERS, Graph
from ledger.node import Node
from ledger.reading import reading
from ledger.records import log_record
from tests.audits.cohorts import Ledger, new_ledger, noisy, rows

NUMBER = re.compile(r"^\s+n\d+ ", re.MULTILINE)


@dataclass(frozen=True)
class Study:
    """A ledger with a file of two acquisitions, one of an incomplete side, and three audits."""

    ledger: Ledger
    one: str
    both: str
    planned: str
    source: str

    def impact(self, text: str) -> list[str]:
        with reading(self.ledger.home, key=self.ledger.key.public) as opened:
            return [node.id for node in impact(opened, text).children]

    def lineage(self, text: str) -> Node:
        with reading(self.ledger.home, key=self.ledger.key.public) as opened:
            return lineage(opened, text)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    folder = tmp_path_factory.mktemp("impact")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        ledger = new_ledger(folder)
        document = {
            "name": "main", "audit": "transport", "ref": "direct", "alt": "generated", "resamples": 100,
            "estimands": ["gain.ref"], "acquisitions": ["a"],
        }  # fmt: skip
        made = plan.read(document, ledger.snapshot())
        plans.add(ledger.home, ledger.key, made.name, made.as_json())
        whole = rows(noisy(6, 1), acquisitions={"direct": ("a", "b"), "generated": ("a", "b")})
        part = [
            r for r in rows(noisy(1, 1), acquisitions={"direct": ("c",), "generated": ("c",)}) if r["layout"]
        ]
        ledger.ingest([*whole, *part], "all.parquet")
        snapshot = ledger.snapshot()

        def log(audit: AuditResult) -> str:
            stated = statement(audit, versions={}, time="2026-01-01T00:00:00Z")
            return log_record(ledger.home, ledger.key, stated).record

        def audit(*names: str) -> AuditResult:
            chosen = [(None, name) for name in names]
            return transport(snapshot, "direct", "generated", resamples=100, acquisitions=chosen).audit

        yield Study(
            ledger,
            one=log(audit("a")),
            both=log(audit("a", "b", "c")),
            planned=log(prespecified.run(snapshot, snapshot.plans[0])),
            source=blake3_digest((folder / "all.parquet").read_bytes()),
        )


def test_an_acquisition_reaches_the_audits_that_let_it_in(study: Study) -> None:
    assert study.impact("acquisition:b") == [study.both]
    assert study.impact("acquisition:a") == [study.one, study.both, study.planned]


def test_an_acquisition_of_refused_sides_alone_reaches_the_flow_that_counts_them(study: Study) -> None:
    assert study.impact("acquisition:c") == [study.both]


def test_everything_else_that_has_an_id_has_an_impact(study: Study) -> None:
    every = [study.one, study.both, study.planned]
    entries = {name: [] for name in ("a", "b")}  # type: dict[str, list[str]]
    for child in study.lineage(study.source).find("segment"):
        assert study.impact(f"segment:{child.id[7:]}") == every
    for row in range(1, 30):
        for node in study.lineage(f"{study.source}#{row}").children:
            entries[str(node.facts["acquisition_id"])].append(node.id)
            assert node.find("source").__next__().facts["row"] == row
    assert study.impact(entries["a"][0]) == every
    assert study.impact(entries["b"][0]) == [study.both]
    assert study.impact(f"{study.source}#1") in (every, [study.both])
    assert study.impact(study.source) == every
    assert study.impact("channel:direct") == every
    assert study.impact("plan:main") == [study.planned]
    assert study.impact(study.one) == [study.one]
    assert study.impact("event:0") == []
    with pytest.raises(UsageError):
        study.impact("nothing-of-ours")


def test_a_plan_and_its_audit_lead_to_each_other(study: Study) -> None:
    assert [node.id for node in study.lineage("main").find("audit")] == [study.planned]
    assert [node.id for node in study.lineage(study.planned).find("plan")] == ["main"]
    assert list(study.lineage(study.one).find("plan")) == []


def test_drawings_name_each_thing_once_and_cannot_be_broken_out_of(study: Study) -> None:
    graph = Graph.of(study.lineage(study.one), "log")
    for form in ("mermaid", "dot"):
        drawn = WRITERS[form](graph)
        assert len(NUMBER.findall(drawn)) >= len(graph.edges)
        assert sum('"' in line for line in drawn.split("\n")) == len(graph.things)
    hostile = Node("acquisition", 'x"]; click n0 "javascript:x', {}, (Node("channel", "a\\\nb"),))
    mermaid, dot = (WRITERS[form](Graph.of(hostile, "log")) for form in ("mermaid", "dot"))
    assert mermaid.count('"') == 4
    assert '"]; click' not in dot.replace('\\"', "")
    assert len(dot.split("\n")) == len(mermaid.split("\n")) + 3


def test_a_kind_of_a_later_version_is_drawn_too() -> None:
    graph = Graph.of(Node("audit", "x", {}, (Node("omen", "y"),)), "log")
    assert list(graph.edges) == [(("audit", "x"), ("omen", "y"))]
