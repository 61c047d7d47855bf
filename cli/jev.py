"""`ledger jev`: states, requests and pairs of a request-independence study, before anything is scored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import render
from contracts.errors import ContractError, StorageError, UsageError

if TYPE_CHECKING:
    from contracts.jev_files import Routed, StateKey
    from contracts.jev_state import Intervention

app = typer.Typer(
    no_args_is_help=True,
    help="Build the states and requests of a request-independence study, and pair its answers.",
    epilog="Example: ledger jev compile states.jsonl --mode independent -o requests.jsonl",
)
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
FIRST = 3


def _write(path: Path, lines: Iterable[Mapping[str, object]]) -> int:
    """Write JSON Lines whole or not at all; returns how many lines."""
    count = 0
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as file:
            for line in lines:
                file.write(json.dumps(line, ensure_ascii=False, sort_keys=True, allow_nan=False) + "\n")
                count += 1
        partial.replace(path)
    except OSError as error:
        raise StorageError("cannot be written", where=path, got=error.strerror) from error
    finally:
        partial.unlink(missing_ok=True)
    return count


@app.command(
    epilog="Example: ledger jev states --qrels qrels.txt --topics topics.tsv --passages p.tsv --year 2019"
)
def states(
    qrels: Annotated[Path, typer.Option(help="TREC judgements: query_id iteration doc_id relevance.")],
    topics: Annotated[Path, typer.Option(help="Query texts: query_id<TAB>text, or JSON Lines.")],
    passages: Annotated[Path, typer.Option(help="Passage texts: doc_id<TAB>text, or JSON Lines.")],
    year: Annotated[int, typer.Option(help="The year the queries belong to; intervals are per year.")],
    run: Annotated[Path | None, typer.Option(help="Draw only passages that this TREC run retrieved.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, help="Which passages are drawn and where they stand.")
    ] = 20260928,
    intervention: Annotated[str, typer.Option(help="questions, evidence or candidates.")] = "questions",
    positive_grade: Annotated[int, typer.Option(min=1, help="Grades from here on are positive.")] = 2,
    output: Annotated[Path, typer.Option("--output", "-o", help="The gold-free states file.")] = Path(
        "states.jsonl"
    ),
    positives: Annotated[Path, typer.Option(help="The scorer-only file of positive labels.")] = Path(
        "positives.jsonl"
    ),
    as_json: JsonOption = False,
) -> None:
    """Build three-passage states balanced over zero, one and two positives from TREC files."""
    from contracts.jev_balance import balance
    from ledger import trec

    if output.resolve() == positives.resolve():
        raise UsageError("states and positives must be two files: one goes to the collector, one never does")
    judged = trec.judged(qrels, run, positive_grade=positive_grade)
    queries = {item.query_id for item in judged}
    documents = {doc for item in judged for doc in (*item.positives, *item.others)}
    topic_texts, passage_texts = trec.texts(topics, queries), trec.texts(passages, documents)
    known = [
        type(item)(
            item.query_id,
            tuple(d for d in item.positives if d in passage_texts),
            tuple(d for d in item.others if d in passage_texts),
        )
        for item in judged
        if item.query_id in topic_texts
    ]
    made = balance(
        known, topic_texts, passage_texts, year=year, seed=seed, intervention=_intervention(intervention)
    )
    if not made.states:
        raise ContractError(
            "no query has two positive and enough other passages with texts",
            code="jev-no-states",
            got=f"{len(judged)} judged queries, {len(known)} topics, {len(passage_texts)} passage texts",
            next_step="check that the files speak of the same ids",
        )
    _write(output, made.states)
    _write(positives, made.gold)
    without = sorted(queries - set(topic_texts))
    counts = {
        "states": len(made.states),
        "queries": len(made.states) // 3,
        "skipped": list(made.skipped),
        "without_topic": without,
        "output": str(output),
        "positives": str(positives),
    }
    if as_json:
        render.emit_json(counts)
        return
    render.tell(
        f"{render.plural(len(made.states), 'state')} of {counts['queries']} queries in {output}, gold-free"
    )
    render.tell(f"positive labels in {positives}: for the scorer only, keep it from the collector")
    for name, why in (
        (made.skipped, "with too few positive or other passages"),
        (without, "without a topic"),
    ):
        if name:
            render.tell(
                f"left out: {render.plural(len(name), 'query', 'queries')} {why}: {', '.join(name[:FIRST])}"
            )
    render.tell(f"next: ledger jev compile {output} --mode independent -o requests.jsonl")


@app.command(
    "compile", epilog="Example: ledger jev compile states.jsonl --mode independent -o requests.jsonl"
)
def compile_(
    states_file: Annotated[
        Path, typer.Argument(metavar="STATES", help="A gold-free states file (JSON Lines).")
    ],
    mode: Annotated[str, typer.Option(help="independent, visible-schema or joint.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The requests for the collector (JSON Lines).")
    ],
    routing: Annotated[
        Path | None, typer.Option(help="What the ids stand for (default: OUTPUT.routing.jsonl).")
    ] = None,
    intervention: Annotated[str | None, typer.Option(help="For states that do not name theirs.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Compile states to request bytes that see common evidence and the question, and nothing else."""
    from contracts.jev_files import parse_state, request_line, route, routing_line
    from contracts.jev_request import Mode
    from ledger import trec

    try:
        chosen = Mode(mode)
    except ValueError as error:
        raise UsageError("unknown mode", expected=" | ".join(Mode), got=mode) from error
    wanted = None if intervention is None else _intervention(intervention)
    routing = routing or output.with_name(output.name.removesuffix(".jsonl") + ".routing.jsonl")
    routed: list[Routed] = []
    problems: list[ContractError] = []
    seen: set[tuple[StateKey, str]] = set()
    for where, value in trec.json_lines(states_file):
        try:
            key, pair = parse_state(value, where, intervention=wanted)
        except ContractError as error:
            problems.append(error)
            continue
        if (key, pair.intervention) in seen:
            problems.append(
                ContractError("a state occurs twice", where=where, got=f"{key.query_id}/{key.scenario}")
            )
        seen.add((key, pair.intervention))
        routed += route(key, pair, chosen)
    if problems or not routed:
        _refuse(problems, states_file)
    requests = _write(output, map(request_line, routed))
    _write(routing, map(routing_line, routed))
    distinct = len({r.request.digest for r in routed})
    counts = {
        "states": len(seen),
        "requests": requests,
        "distinct": distinct,
        "output": str(output),
        "routing": str(routing),
    }
    if as_json:
        render.emit_json(counts)
        return
    render.tell(
        f"{render.plural(requests, 'request')} ({distinct:,} distinct) of "
        f"{render.plural(len(seen), 'state')} in {output}"
    )
    render.tell(f"what each id stands for: {routing}; keep it from the collector")
    render.say('an answer is one line: {"id": "…", "p": 0.42} or {"id": "…", "p": [0.1, 0.9]}')
    render.tell(
        f"next: ledger jev pair answers.jsonl --routing {routing} "
        "--positives positives.jsonl -o predictions.jsonl"
    )


@app.command(
    epilog="Example: ledger jev pair answers.jsonl --routing requests.routing.jsonl -o predictions.jsonl"
)
def pair(
    answers: Annotated[
        Path, typer.Argument(metavar="ANSWERS", help="One answer per request id (JSON Lines).")
    ],
    routing: Annotated[Path, typer.Option(help="The routing file that `jev compile` wrote.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The predictions file for `ledger ingest`.")],
    positives: Annotated[Path | None, typer.Option(help="The scorer-only file of positive labels.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Pair a collector's answers with the states they answer, as a predictions file."""
    from contracts.jev_pairing import pair_answers
    from ledger import trec

    gold: dict[tuple[int, str, str], list[str]] | None = None
    if positives is not None:
        gold = {}
        for where, value in trec.json_lines(positives):
            try:
                line: Any = value
                gold[line["year"], line["query_id"], line["scenario"]] = [
                    str(label) for label in line["positive_labels"]
                ]
            except (KeyError, TypeError) as error:
                raise ContractError(
                    "not a line of a scorer-only file", code="jev-positives", where=where
                ) from error
    lines = pair_answers(list(trec.json_lines(routing)), trec.json_lines(answers), gold)
    count = _write(output, lines)
    if as_json:
        render.emit_json({"pairs": count, "output": str(output)})
        return
    render.tell(f"{render.plural(count, 'before/after pair')} in {output}")
    if gold is None:
        render.say("no positive labels yet: give --positives before ingest")
    render.tell(f"next: ledger ingest {output} --channel NAME --acquisition ID")


def _intervention(text: str) -> Intervention:
    from contracts.jev_state import Intervention

    try:
        return Intervention(text)
    except ValueError as error:
        raise UsageError("unknown intervention", expected=" | ".join(Intervention), got=text) from error


def _refuse(problems: list[ContractError], path: Path) -> None:
    if not problems:
        raise ContractError("no state in the file", code="jev-no-states", where=path.name)
    rest = f" (and {len(problems) - FIRST} more)" if len(problems) > FIRST else ""
    raise ContractError("; ".join(str(p) for p in problems[:FIRST]) + rest, code=problems[0].code)
