"""From TREC files to a predictions file, through the command line, without the answers ever leaking."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.jev import app
from contracts.errors import ContractError, StorageError, UsageError

QUERIES, DOCUMENTS = 6, 20


def run(*words: str) -> str:
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def trec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twenty judged passages per query with grades 0-3; the last query has no positive."""
    monkeypatch.chdir(tmp_path)
    qrels, passages = [], []
    for q in range(QUERIES):
        for d in range(DOCUMENTS):
            grade = 0 if q == QUERIES - 1 else d % 4
            qrels.append(f"{q}\t0\tD{q}_{d} {grade}")
            passages.append(f"D{q}_{d}\tpassage text {q} {d}")
    (tmp_path / "qrels.txt").write_text("\n".join(qrels))
    (tmp_path / "passages.tsv").write_text("\n".join(passages))
    (tmp_path / "topics.tsv").write_text("\n".join(f"{q}\tquestion {q}" for q in range(QUERIES)))
    return tmp_path


def make_states(*more: str) -> list[dict]:
    run(
        "states",
        "--qrels",
        "qrels.txt",
        "--topics",
        "topics.tsv",
        "--passages",
        "passages.tsv",
        "--year",
        "2019",
        *more,
    )
    return [json.loads(line) for line in Path("states.jsonl").read_text().splitlines()]


def gold() -> list[dict]:
    return [json.loads(line) for line in Path("positives.jsonl").read_text().splitlines()]


def test_states_are_balanced_and_gold_free(trec: Path) -> None:
    states = make_states()
    assert len(states) == 3 * (QUERIES - 1)
    assert [len(g["positive_labels"]) for g in gold()] == [0, 1, 2] * (QUERIES - 1)
    text = Path("states.jsonl").read_text()
    assert "positive" not in text
    assert not any(f"D{q}_{d}" in text for q in range(QUERIES) for d in range(DOCUMENTS))
    for state, line in zip(states, gold(), strict=True):
        shown = [
            line["documents"][label].replace("D", "passage text ").replace("_", " ")
            for label in ("p1", "p2", "p3")
        ]
        assert state["evidence"] == shown
        grades = [int(line["documents"][label].split("_")[1]) % 4 for label in ("p1", "p2", "p3")]
        assert [label for label, g in zip(("p1", "p2", "p3"), grades, strict=True) if g >= 2] == line[
            "positive_labels"
        ]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(trec: Path) -> None:
    make_states()
    first = Path("states.jsonl").read_bytes()
    lines = Path("qrels.txt").read_text().splitlines()
    Path("qrels.txt").write_text("\n".join(reversed(lines)))
    make_states()
    assert Path("states.jsonl").read_bytes() == first
    make_states("--seed", "7")
    assert Path("states.jsonl").read_bytes() != first


def test_a_run_restricts_what_is_drawn(trec: Path) -> None:
    retrieved = [f"{q} Q0 D{q}_{d} {d} 1.0 tag" for q in range(3) for d in range(DOCUMENTS)]
    Path("run.txt").write_text("\n".join(retrieved))
    states = make_states("--run", "run.txt")
    assert {s["query_id"] for s in states} == {"0", "1", "2"}


@pytest.mark.parametrize("intervention", ["questions", "evidence", "candidates"])
@pytest.mark.parametrize("mode", ["independent", "visible-schema", "joint"])
def test_compiled_requests_pair_back_to_predictions(trec: Path, intervention: str, mode: str) -> None:
    make_states("--intervention", intervention)
    run("compile", "states.jsonl", "--mode", mode, "-o", "requests.jsonl")
    requests = [json.loads(line) for line in Path("requests.jsonl").read_text().splitlines()]
    assert len({r["id"] for r in requests}) == len(requests)
    assert all("zero" not in r["request"] and "one" not in json.loads(r["request"]) for r in requests)
    answers = [{"id": r["id"], "p": [0.25] * r["answers"], "label_mass": 0.5} for r in reversed(requests)]
    Path("answers.jsonl").write_text("\n".join(map(json.dumps, answers)))
    run(
        "pair",
        "answers.jsonl",
        "--routing",
        "requests.routing.jsonl",
        "--positives",
        "positives.jsonl",
        "-o",
        "p.jsonl",
    )
    pairs = [json.loads(line) for line in Path("p.jsonl").read_text().splitlines()]
    assert [(p["query_id"], p["scenario"], p["positive_labels"]) for p in pairs] == [
        (g["query_id"], g["scenario"], g["positive_labels"]) for g in gold()
    ]
    for pair in pairs:
        added = set(pair["after"]) - set(pair["before"])
        assert added == ({"p3"} if intervention == "candidates" else set())
        same = pair["before_request_hash"] == pair["after_request_hash"]
        assert same == (intervention == "questions" and mode == "independent")
        assert pair["mode"] == mode
        assert pair["before_label_mass"] == 0.5


def test_permuting_the_gold_changes_no_request_byte(trec: Path) -> None:
    make_states()
    run("compile", "states.jsonl", "--mode", "joint", "-o", "a.jsonl")
    flipped = [{**g, "positive_labels": ["p3"]} for g in gold()]
    Path("positives.jsonl").write_text("\n".join(map(json.dumps, flipped)))
    run("compile", "states.jsonl", "--mode", "joint", "-o", "b.jsonl")
    assert Path("a.jsonl").read_bytes() == Path("b.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"positive_labels": ["p1"]}, "gold-free"),
        ({"doc_ids": ["D1"]}, "gold-free"),
        ({"add": {}}, "must hold"),
        ({"intervention": "other"}, "unknown intervention"),
        ({"evidence": "text"}, "must be a list"),
        ({"year": "2019"}, "year must be an integer"),
        ({"add": {"questions": [{"label": "p1", "text": "again"}]}}, "occurs twice"),
    ],
)
def test_a_state_that_may_not_be_compiled_is_named(trec: Path, change: dict, message: str) -> None:
    states = make_states()
    states[1] |= change
    Path("states.jsonl").write_text("\n".join(map(json.dumps, states)))
    with pytest.raises(ContractError, match=message) as caught:
        run("compile", "states.jsonl", "--mode", "joint", "-o", "r.jsonl")
    assert "line 2" in str(caught.value)
    assert not Path("r.jsonl").exists()


def test_answers_that_cannot_be_paired_are_all_named(trec: Path) -> None:
    make_states()
    run("compile", "states.jsonl", "--mode", "independent", "-o", "requests.jsonl")
    requests = [json.loads(line) for line in Path("requests.jsonl").read_text().splitlines()]
    answers = [{"id": r["id"], "p": 0.5} for r in requests[1:]]
    answers += [
        {"id": "stranger", "p": 0.5},
        {"id": requests[2]["id"], "p": 0.5},
        {"id": requests[3]["id"], "p": "0.5"},
    ]
    Path("answers.jsonl").write_text("\n".join(map(json.dumps, answers)))
    with pytest.raises(ContractError, match=r"answered twice.*must be numbers.*no answer.*1 more"):
        run("pair", "answers.jsonl", "--routing", "requests.routing.jsonl", "-o", "p.jsonl")


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("qrels.txt", "1 0 D1", ContractError),
        ("qrels.txt", "1 0 D1 high", ContractError),
        ("qrels.txt", "0 0 D0_1 0\n0 0 D0_1 3", ContractError),
        ("topics.tsv", "no tab", ContractError),
        ("topics.tsv", '{"id": "0"}', ContractError),
        ("passages.tsv", "", ContractError),
    ],
)
def test_a_trec_file_with_a_fault_is_named(trec: Path, name: str, text: str, error: type[Exception]) -> None:
    Path(name).write_text(text)
    with pytest.raises(error):
        make_states()


def test_missing_files_and_wrong_words(trec: Path) -> None:
    Path("qrels.txt").unlink()
    with pytest.raises(StorageError, match="cannot be read"):
        make_states()
    with pytest.raises(UsageError, match="two files"):
        make_states("--output", "x.jsonl", "--positives", "x.jsonl")
    with pytest.raises(UsageError, match="unknown mode"):
        run("compile", "x.jsonl", "--mode", "other", "-o", "r.jsonl")


def test_what_is_said_of_a_study_fits_the_screen(trec: Path) -> None:
    """Words, and so paths, stay whole; nothing else is wider than 80 columns."""
    states, requests = (f"{name}-of-the-second-collection-of-2019.jsonl" for name in ("states", "requests"))
    said = run(
        "states", "--qrels", "qrels.txt", "--topics", "topics.tsv", "--passages", "passages.tsv",
        "--year", "2019", "-o", states,
    )  # fmt: skip
    said += run("compile", states, "--mode", "independent", "-o", requests)
    assert [line for line in said.splitlines() if len(line) > 80] == []
    assert f"--routing {requests.removesuffix('.jsonl')}.routing.jsonl" in " ".join(said.split())
