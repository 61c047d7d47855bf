"""`ledger scores`, `show` and `lineage`: look things up, each read checked on the way."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli import completion, render, state
from cli.words import AtOption, JsonOption, PublicKeyOption, TrustFirstOption
from contracts.errors import StorageError, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from ledger.node import Node
    from ledger.query import Query
    from ledger.reading import Reading

FORMATS = ("table", "jsonl", "csv", "parquet")
PRINTED, DRAWN = ("tree", "json"), ("prov", "openlineage", "mermaid", "dot")  # of a lineage
FIRST = 20  # rows a person is shown where no --limit is given
IdArgument = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="An entry, file, segment, channel, acquisition, checkpoint, attestation, plan, audit or event.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the commands that read entries."""
    app.command(epilog="Example: ledger scores --trajectory traj000 --channel direct --step 0")(scores)
    app.command(epilog="Example: ledger show 4")(show)
    app.command(epilog="Example: ledger lineage 7c1f0a2b9d3e4f55:0; ledger lineage --impact run-1")(lineage)


def scores(
    trajectory: Annotated[list[str] | None, typer.Option(help="Only these trajectories.")] = None,
    step: Annotated[list[int] | None, typer.Option(help="Only these steps.")] = None,
    endpoint: Annotated[list[str] | None, typer.Option(help="before or after.")] = None,
    channel: Annotated[
        list[str] | None, typer.Option(help="Only these channels.", autocompletion=completion.channels)
    ] = None,
    acquisition: Annotated[list[str] | None, typer.Option(help="Only these acquisitions.")] = None,
    candidate: Annotated[list[str] | None, typer.Option(help="Only these candidates.")] = None,
    layout: Annotated[list[int] | None, typer.Option(help="Only these layouts.")] = None,
    view_source: Annotated[list[str] | None, typer.Option(help="own, before, after or donor:….")] = None,
    kind: Annotated[
        Literal["transport", "jev", "jev-positives"],
        typer.Option(help="Scores, predictions, or the labels that only the scorer may see."),
    ] = "transport",
    query: Annotated[list[str] | None, typer.Option(help="Only predictions of these queries.")] = None,
    year: Annotated[list[int] | None, typer.Option(help="Only predictions of these years.")] = None,
    scenario: Annotated[list[str] | None, typer.Option(help="Only these scenarios.")] = None,
    label: Annotated[list[str] | None, typer.Option(help="Only these labels.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The most entries to give.")] = None,
    format_: Annotated[str, typer.Option("--format", help="table, jsonl, csv or parquet.")] = "table",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file.")] = None,
    at: AtOption = None,
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """Query entries, each with its id and channel; CSV cells may begin with =, + or -: import as text."""
    from ledger.query import Query
    from ledger.query import scores as select
    from ledger.reading import reading

    if format_ not in FORMATS:
        raise UsageError("unknown format", expected=" | ".join(FORMATS), got=format_)
    if format_ == "parquet" and output is None:
        raise UsageError("Parquet goes to a file", next_step="name it with --output")
    with reading(state.find_home(), at=at, key=state.public_key(key), trust_first=trust_first) as opened:
        book = opened.index.channels(opened.size)
        shown = FIRST + 1 if format_ == "table" and not as_json and limit is None else limit
        wanted = Query(
            trajectories=tuple(trajectory or query or ()),
            steps=tuple(step or year or ()),
            endpoints=tuple(endpoint or ()),
            view_sources=tuple(view_source or ()),
            channels=tuple(book.resolve(name).fingerprint for name in channel or ()),
            layouts=tuple(layout or ()),
            acquisitions=tuple(acquisition or ()),
            candidates=tuple(candidate or ()),
            scenarios=tuple(scenario or ()),
            labels=tuple(label or ()),
            limit=shown,
        )
        predictions = {"--query": query, "--year": year}
        _require_columns(kind, wanted, predictions, {"--trajectory": trajectory, "--step": step})
        tables = select(opened, wanted, kind)
        if as_json:
            rows = [row for table in tables for row in table.to_pylist()]
            render.emit_json({"size": opened.size, "count": len(rows), "entries": rows})
        elif format_ == "table":
            from cli.entry_tables import show as tables_of

            tables_of(list(tables), None if limit is not None else FIRST)
        else:
            _write(tables, format_, output)


def _require_columns(
    kind: str, wanted: Query, of_predictions: Mapping[str, object], of_scores: Mapping[str, object]
) -> None:
    """UsageError for a filter on what entries of this kind do not have."""
    from contracts.schema import SCHEMAS

    schema = next(schema for schema in SCHEMAS.values() if schema.kind == kind)
    strange = [
        f"--{name.removesuffix('_id')}" for name, _ in wanted.parts(schema) if name not in schema.names
    ]
    others = of_predictions if kind == "transport" else of_scores
    strange += [option for option, given in others.items() if given]
    if strange:
        raise UsageError(
            f"entries of kind {kind} have no such column", got=strange[0], next_step="see --kind"
        )


def _write(tables: Iterator[pa.Table], format_: str, output: Path | None) -> None:
    """Write the rows as they come; a file appears whole or not at all."""
    if output is None:
        stream(tables, format_, sys.stdout.buffer)
        return
    partial = output.with_name(output.name + ".partial")
    try:
        with partial.open("wb") as file:
            count = stream(tables, format_, file)
        partial.replace(output)
    except OSError as error:
        raise StorageError("cannot be written", where=output, got=error.strerror) from error
    finally:
        partial.unlink(missing_ok=True)
    render.say(f"{render.plural(count, 'entry', 'entries')} in {output}", stderr=True)


def stream(tables: Iterator[pa.Table], format_: str, file: Any) -> int:
    import json

    count, writer = 0, None
    for table in tables:
        count += table.num_rows
        if format_ == "jsonl":
            for row in table.to_pylist():
                present = {name: value for name, value in row.items() if value is not None}
                file.write(json.dumps(present, ensure_ascii=False).encode() + b"\n")
            continue
        plain = _plain(table)
        if writer is None:
            writer = _writer(format_, file, plain.schema)
        writer.write_table(plain)
    if writer is not None:
        writer.close()
    return count


def _writer(format_: str, file: Any, schema: pa.Schema) -> Any:
    if format_ == "csv":
        from pyarrow import csv

        return csv.CSVWriter(file, schema)
    import pyarrow.parquet as pq

    return pq.ParquetWriter(file, schema, compression="zstd")


def _plain(table: pa.Table) -> pa.Table:
    """Dictionaries decoded: CSV has none, and one Parquet schema must hold for every part."""
    import pyarrow as pa

    fields = [
        pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
        for f in table.schema
    ]
    return table.cast(pa.schema(fields))


def show(
    identifier: IdArgument,
    at: AtOption = None,
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """Show one thing of the ledger itself, checked against the signed head."""
    from ledger.reading import reading
    from ledger.show import show as look

    with reading(state.find_home(), at=at, key=state.public_key(key), trust_first=trust_first) as opened:
        node = look(opened, identifier)
    _emit(node, as_json)


def lineage(
    identifier: IdArgument,
    source: Annotated[
        Path | None, typer.Option(help="Check whether this file of yours is the one the entry came from.")
    ] = None,
    proof: Annotated[
        Path | None,
        typer.Option(help="Write the proof of one entry here (C2SP tlog-proof), to check offline."),
    ] = None,
    impact: Annotated[
        bool, typer.Option("--impact", help="Only the audits that would change if this thing were wrong.")
    ] = False,
    format_: Annotated[
        str, typer.Option("--format", help="tree, json, prov, openlineage, mermaid or dot.")
    ] = "tree",
    at: AtOption = None,
    key: PublicKeyOption = None,
    trust_first: TrustFirstOption = False,
    as_json: JsonOption = False,
) -> None:
    """Trace a thing: an entry up to its file, row and inputs; a file, channel or plan down to its audits."""
    from ledger.reading import reading

    if format_ not in (*PRINTED, *DRAWN):
        expected = " | ".join((*PRINTED, *DRAWN))
        raise UsageError("unknown format", where="--format", expected=expected, got=format_[:40])
    if impact and source is not None:
        raise UsageError("a file is checked against a lineage, not an impact", where="--source")
    with reading(state.find_home(), at=at, key=state.public_key(key), trust_first=trust_first) as opened:
        node = _traced(opened, identifier, source, impact)
        origin = opened.head.head.origin
        if proof is not None:
            _prove(opened, identifier, proof)
    if format_ in DRAWN:
        from ledger.lineage_graph import WRITERS, Graph

        render.say(WRITERS[format_](Graph.of(node, origin)))
        return
    as_json = as_json or format_ == "json"
    _emit(node, as_json)
    if source is not None and not as_json:
        render.say("", f"{source} is the file these came from: its digest agrees")
    if proof is not None and not as_json:
        render.say("", f"{proof} proves this entry: ledger verify {proof} --key KEY.pem")


def _traced(opened: Reading, identifier: str, source: Path | None, impact: bool) -> Node:
    if impact:
        from ledger.impact import impact as affected

        return affected(opened, identifier)
    from ledger.lineage import lineage as trace

    return trace(opened, identifier, source)


def _prove(opened: Reading, identifier: str, path: Path) -> None:
    from ledger import durable
    from ledger.entry_proof import prove
    from ledger.identify import EntryFound, identify

    found = identify(opened.index, identifier, opened.size)
    if not isinstance(found, EntryFound):
        raise UsageError(
            "only an entry has a proof", code="not-an-entry", got=identifier[:80], where="--proof"
        )
    data = prove(opened, found)
    with durable.storage("writing the proof", path):
        staged = path.with_name(durable.temporary_name(".part"))
        durable.create(staged, data)
        durable.replace(staged, path)


def _emit(node: Node, as_json: bool) -> None:
    if as_json:
        render.emit_json(node.as_json())
        return
    for line in render.tree(node):
        render.say(line)
