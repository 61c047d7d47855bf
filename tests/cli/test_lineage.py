"""`ledger lineage` from everything that has an id, in every form, and the forms as others read them."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import subprocess
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from prov.model import ProvActivity, ProvAgent, ProvDocument, ProvEntity, ProvRelation

from ledger.index import Index
from ledger.lineage_graph import WRITERS, Graph
from ledger.lineage_prov import LEFT_BEHIND
from ledger.node import Node
from tests.cli.calls import called
from tests.ledger.studies import Study, make

FORMS = ("tree", "json", *WRITERS)
# By kind of start: how it is spelt in the study, and the kinds that lie above and below it.
STARTS = {
    "file": ("{first}", {"segment", "refusal", "audit"}),
    "row": ("{first}#1", {"entry", "source", "segment", "event", "head", "channel", "acquisition", "audit"}),
    "refused row": ("{first}#{refused}", {"refusal", "event", "head", "audit"}),
    "entry": ("{entry}", {"source", "segment", "event", "channel", "acquisition", "inputs", "audit"}),
    "segment": ("{segment}", {"event", "head", "channel", "acquisition", "audit"}),
    "refusal": ("{refusal}", {"event", "head", "audit"}),
    "acquisition": ("a", {"event", "attestation", "channel", "checkpoint", "segment", "audit"}),
    "channel": ("direct", {"event", "checkpoint", "attestation", "acquisition", "segment", "audit"}),
    "checkpoint": ("tiny", {"attestation", "event", "head", "channel", "segment", "audit"}),
    "attested acquisition": ("{attestation}", {"event", "head", "acquisition", "segment", "audit"}),
    "attested weights": ("{weights}", {"event", "head", "checkpoint", "channel", "audit"}),
    "attested stack": ("gpt", {"event", "head"}),
    "audit": ("{both}", {"event", "head", "channel", "checkpoint", "acquisition", "attestation", "segment"}),
    "planned audit": ("{planned}", {"plan", "channel", "acquisition", "segment"}),
    "plan": ("plan:main", {"event", "head", "audit"}),
    "policy": ("event:4", {"head"}),
    "revocation": ("event:20", {"head", "acquisition"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Study, dict[str, str]]]:
    folder = tmp_path_factory.mktemp("lineage")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        made = make(folder)
        with Index.open(made.place.home) as index:
            segment = next(s for s in index.segments() if "a" in s.acquisitions)
            (refusal,) = index.refusals()
            found = {
                **made.ids,
                "segment": segment.root,
                "refusal": refusal.file,
                "entry": f"{segment.root[7:23]}:0",
                "refused": "34",
            }
        yield made, found


@pytest.fixture(autouse=True)
def _there(study: tuple[Study, dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    place = study[0].place
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place.config))
    monkeypatch.setenv("LEDGER_HOME", str(place.home.path))
    monkeypatch.setenv("NO_COLOR", "1")


@cache
def ask(text: str, *words: str) -> str:
    """What the command prints; the home of these tests never changes."""
    done = called("lineage", text, *words)
    assert done.code == 0, done.out + done.err
    return done.out


def tree(text: str, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ask(text, *words, "--format", "json"))
    return found


def kinds(node: dict[str, Any]) -> set[str]:
    return {child["kind"] for child in node["children"]} | {
        kind for child in node["children"] for kind in kinds(child)
    }


def node_of(found: dict[str, Any]) -> Node:
    children = tuple(node_of(child) for child in found["children"])
    return Node(found["kind"], found["id"], found["facts"], children)


@pytest.mark.parametrize("start", STARTS)
def test_every_start_leads_both_ways(study: tuple[Study, dict[str, str]], start: str) -> None:
    spelt, wanted = STARTS[start]
    assert wanted <= kinds(tree(spelt.format(**study[1])))


@pytest.mark.parametrize("start", STARTS)
def test_every_start_has_an_impact(study: tuple[Study, dict[str, str]], start: str) -> None:
    ids = study[1]
    both, planned = ids["both"], ids["planned"]
    wanted = {
        "planned audit": [planned], "plan": [planned], "audit": [both],
        "attested stack": [], "policy": [], "revocation": [],
    }.get(start, [planned, both])  # fmt: skip
    found = tree(STARTS[start][0].format(**ids), "--impact")
    assert [child["id"] for child in found["children"]] == wanted
    assert found["facts"]["audits"] == len(wanted)


def test_an_acquisition_reaches_only_the_audits_that_let_it_in(study: tuple[Study, dict[str, str]]) -> None:
    assert [child["id"] for child in tree("b", "--impact")["children"]] == [study[1]["both"]]


def test_a_checkpoint_is_found_by_its_name_and_by_every_digest(study: tuple[Study, dict[str, str]]) -> None:
    ids = study[1]
    by_name = tree("tiny")
    assert by_name["facts"]["attested"] == 1
    assert by_name["facts"]["dtypes"] == {"F32": 1}
    assert by_name["facts"]["channels"] == ["direct@1"]
    for text in ("checkpoint", "weights_file", "weights_sha256"):
        assert tree(ids[text]) == by_name
        assert tree(ids[text][:23]) == by_name
        assert tree(f"checkpoint:{ids[text]}") == by_name
    assert tree(f"attestation:{ids['weights'][7:]}") == tree(ids["weights"])
    signed = [child for child in by_name["children"] if child["kind"] == "attestation"]
    assert [child["facts"]["signed_by"] for child in signed] == [["omega"]]


def test_show_tells_of_attestations_and_checkpoints(study: tuple[Study, dict[str, str]]) -> None:
    ids = study[1]
    for text, kind, facts in (
        (ids["attestation"], "attestation", {"of": "acquisition", "subject": "a", "signed_by": ["alpha"]}),
        ("gpt", "attestation", {"of": "stack", "subject": "gpt"}),
        ("tiny", "checkpoint", {"name": "tiny", "digest": ids["checkpoint"], "attested": 1}),
    ):
        done = called("show", text, "--json")
        assert done.code == 0, done.out
        found = json.loads(done.out)
        assert found["kind"] == kind
        assert facts.items() <= found["facts"].items()
    claim = json.loads(called("show", ids["attestation"], "--json").out)["facts"]
    assert claim["predicate"]["claims"] == {"gold_isolated": True}
    assert list(claim["digests"]) == ["first.parquet"]
    revoked = json.loads(called("show", "gpt", "--json").out)["facts"]["revoked"]
    assert revoked["reason"] == "another model answered"
    assert json.loads(called("show", "direct", "--json").out)["facts"]["checkpoint"] == ids["weights_file"]


def test_a_channel_that_names_a_checkpoint_nobody_attested_still_leads_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.ledger.homes import new_place

    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    place = new_place(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(place.home.path))
    digest = "sha256:" + "ab" * 32
    spec = tmp_path / "c.toml"
    spec.write_text(
        'name = "c"\n[prompt]\ntext = "x"\n[readout]\nkind = "logits"\n[stack]\nmodel = "m"\n'
        f'checkpoint = "{digest}"\n[view]\nkind = "none"\n[presentation]\nlayouts = 1\n'
    )
    assert called("channel", "add", str(spec)).code == 0
    found = tree(digest)
    assert (found["kind"], found["facts"]["attested"], found["facts"]["channels"]) == (
        "checkpoint",
        0,
        ["c@1"],
    )


def drawn(study: tuple[Study, dict[str, str]], start: str, form: str) -> tuple[Graph, str]:
    """The graph of a start and one form of it, as the command writes it."""
    graph = Graph.of(node_of(tree(STARTS[start][0].format(**study[1]))), "test-log")
    return graph, WRITERS[form](graph)


@pytest.mark.parametrize("form", FORMS)
def test_the_command_writes_every_form(study: tuple[Study, dict[str, str]], form: str) -> None:
    for start in ("row", "audit"):
        text = STARTS[start][0].format(**study[1])
        out = ask(text, "--format", form)
        assert form not in WRITERS or out == drawn(study, start, form)[1] + "\n"
        assert ask(text, "--impact", "--format", form).strip() or form == "openlineage"


def test_a_form_that_there_is_not_is_refused() -> None:
    done = called("lineage", "a", "--format", "yaml")
    assert done.code == 2
    assert "tree | json | prov | openlineage | mermaid | dot" in " ".join(done.err.split())


# PROV-JSON


@pytest.mark.parametrize("start", STARTS)
def test_prov_reads_the_document_and_finds_the_same_in_it(
    study: tuple[Study, dict[str, str]], start: str
) -> None:
    graph, written = drawn(study, start, "prov")
    document = ProvDocument.deserialize(content=written)
    assert document == ProvDocument.deserialize(content=document.serialize())
    things = [*document.get_records(ProvEntity), *document.get_records(ProvActivity)]
    assert len(things) == len({str(record.identifier) for record in things}) == len(graph.things)
    activities = {str(record.identifier) for record in document.get_records(ProvActivity)}
    assert {name.partition("/")[0] for name in activities} <= {"ledger:acquisition"}
    relations = [r for r in document.get_records(ProvRelation) if r.get_type().localpart != "Attribution"]
    assert len(relations) == len(graph.edges)
    known = {str(record.identifier) for record in [*things, *document.get_records(ProvAgent)]}
    for relation in document.get_records(ProvRelation):
        ends = [str(value) for _, value in relation.formal_attributes if value is not None]
        assert len(ends) == 2
        assert set(ends) <= known
        if relation.get_type().localpart == "Generation":
            assert ends[0].removeprefix("ledger:").partition("/")[0] in LEFT_BEHIND
            assert ends[1] in activities
    assert drawn(study, start, "prov")[1] == written


def test_agents_are_the_keys_whose_signatures_were_checked(study: tuple[Study, dict[str, str]]) -> None:
    written = json.loads(ask("tiny", "--format", "prov"))
    agents = {name.partition("/")[2] for name in written["agent"]}
    assert {"omega"} < agents
    stranger = Node("audit", "x", {"signed_by": "eve", "signed_by_this_log": False})
    assert "agent" not in json.loads(WRITERS["prov"](Graph.of(stranger, "log")))


def test_names_of_the_document_survive_whatever_an_id_holds() -> None:
    hostile = Node(
        "acquisition", 'a b/"é}:', {"time": "x\ny", "rows": 3, "ok": True}, (Node("channel", ":@%"),)
    )
    document = ProvDocument.deserialize(content=WRITERS["prov"](Graph.of(hostile, "a log/ü")))
    (activity,) = document.get_records(ProvActivity)
    assert str(activity.identifier) == "ledger:acquisition/a%20b%2F%22%C3%A9%7D%3A"
    values = {str(name): value for name, value in activity.extra_attributes}
    assert (values["ledger:rows"], values["ledger:ok"], values["ledger:time"]) == (3, True, "x\ny")
    (used,) = document.get_records(ProvRelation)
    assert used.get_type().localpart == "Usage"


# OpenLineage, by the fields its specification (2-0-2) requires


def lines(study: tuple[Study, dict[str, str]], start: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in drawn(study, start, "openlineage")[1].splitlines()]


@pytest.mark.parametrize("start", STARTS)
def test_openlineage_events_have_what_their_specification_requires(
    study: tuple[Study, dict[str, str]], start: str
) -> None:
    runs: dict[str, list[str]] = {}
    events = lines(study, start)
    assert events
    for event in events:
        assert datetime.datetime.fromisoformat(event["eventTime"]).tzinfo is not None
        assert re.fullmatch(r"[a-z][a-z0-9+.-]*:\S+", event["producer"])
        base, mark, kind = event["schemaURL"].partition("#/$defs/")
        assert base == "https://openlineage.io/spec/2-0-2/OpenLineage.json"
        assert mark
        if kind == "DatasetEvent":
            assert set(event) == {"eventTime", "producer", "schemaURL", "dataset"}
            sets = [event["dataset"]]
        else:
            assert kind == "RunEvent"
            assert str(uuid.UUID(event["run"]["runId"])) == event["run"]["runId"]
            assert all(isinstance(event["job"][name], str) for name in ("namespace", "name"))
            runs.setdefault(event["run"]["runId"], []).append(event["eventType"])
            sets = [*event["inputs"], *event["outputs"]]
        assert all(set(one) == {"namespace", "name"} and all(one.values()) for one in sets)
    assert all(states == ["START", "COMPLETE"] for states in runs.values())


def test_runs_are_the_ingests_and_the_audits(study: tuple[Study, dict[str, str]]) -> None:
    done = [event for event in lines(study, "planned audit") if event.get("eventType") == "COMPLETE"]
    assert {event["job"]["name"] for event in done} == {"audit/transport", "ingest"}
    for event in done:
        read = {one["name"].partition("/")[0] for one in event["inputs"]}
        made = {one["name"].partition("/")[0] for one in event["outputs"]}
        assert (made, read) in (
            ({"segment"}, {"source", "channel"}),
            ({"audit"}, {"segment", "channel", "plan"}),
        )


# Drawings


def test_graphviz_reads_the_drawings(study: tuple[Study, dict[str, str]]) -> None:
    dot = shutil.which("dot")
    if dot is None:
        pytest.skip("graphviz (dot) is not on this machine")
    for start in STARTS:
        graph, text = drawn(study, start, "dot")
        done = subprocess.run([dot, "-Tplain"], input=text, capture_output=True, text=True, check=True)
        counted = [line.partition(" ")[0] for line in done.stdout.splitlines()]
        assert (counted.count("node"), counted.count("edge")) == (len(graph.things), len(graph.edges))


@pytest.mark.parametrize(
    ("form", "box", "arrow"),
    [
        ("dot", r'  (n\d+) \[label="((?:[^"\\\n]|\\["\\])*)"\];', r"  (n\d+) -> (n\d+);"),
        ("mermaid", r'  (n\d+)\["([^"#;\n]|#\d+;)*"\]', r"  (n\d+) --> (n\d+)"),
    ],
)
def test_drawings_keep_to_the_part_of_their_language_that_they_use(
    study: tuple[Study, dict[str, str]], form: str, box: str, arrow: str
) -> None:
    for start in STARTS:
        graph, text = drawn(study, start, form)
        shown = text.splitlines()
        body = shown[3:-1] if form == "dot" else shown[1:]
        assert shown[0] == {"dot": "digraph lineage {", "mermaid": "flowchart LR"}[form]
        boxes = [found[1] for line in body if (found := re.fullmatch(box, line))]
        arrows = [found.groups() for line in body if (found := re.fullmatch(arrow, line))]
        assert (len(boxes), len(arrows)) == (len(graph.things), len(graph.edges))
        assert len(body) == len(boxes) + len(arrows)
        assert {end for ends in arrows for end in ends} <= set(boxes)
