"""TREC files as people have them: qrels, topics, runs and passages, read line by line.

qrels: `query_id iteration doc_id relevance`; run: `query_id Q0 doc_id rank score tag`; both separated by
white space. topics and passages: `id<TAB>text` per line, or JSON Lines with an id (`query_id`, `doc_id`,
`docid`, `id` or `_id`) and `text`. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path

from contracts.canonical import parse
from contracts.errors import ContractError, MalformedError, StorageError
from contracts.jev_balance import Judged

IDS = ("query_id", "doc_id", "docid", "id", "_id")
LONGEST_LINE = 1 << 20


def lines(path: Path) -> Iterator[tuple[str, str]]:
    """(where, line) of every non-empty line; StorageError for an unreadable file or a line over 1 MiB."""
    try:
        with path.open("r", encoding="utf-8-sig", newline=None) as file:
            number = 0
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise StorageError(
                        "a line is too long", where=f"{path.name} line {number}", expected="at most 1 MiB"
                    )
                if line.strip():
                    yield f"{path.name} line {number}", line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise StorageError("not UTF-8 text", where=path.name) from error
    except OSError as error:
        raise StorageError("cannot be read", where=path, got=error.strerror) from error


def json_lines(path: Path) -> Iterator[tuple[str, object]]:
    """(where, value) of every line of a JSON Lines file; ContractError names a line that is not JSON."""
    for where, line in lines(path):
        try:
            yield where, parse(line.encode(), limit=4 * LONGEST_LINE)
        except MalformedError as error:
            raise ContractError(f"not a JSON value: {error.what}", code="json", where=where) from error


def _fields(where: str, line: str, count: int, what: str) -> list[str]:
    found = line.split()
    if len(found) != count:
        raise ContractError(
            f"not a line of a {what} file",
            code="trec",
            where=where,
            expected=f"{count} fields",
            got=len(found),
        )
    return found


def texts(path: Path, wanted: Collection[str] | None = None) -> dict[str, str]:
    """Texts by id; `wanted` keeps memory to the ids a study needs."""
    found: dict[str, str] = {}
    for where, line in lines(path):
        name, text = _json_text(where, line) if line.startswith("{") else _tab_text(where, line)
        if wanted is not None and name not in wanted:
            continue
        if found.setdefault(name, text) != text:
            raise ContractError("an id has two texts", code="trec", where=where, got=name[:80])
    return found


def _tab_text(where: str, line: str) -> tuple[str, str]:
    name, tab, text = line.partition("\t")
    if not tab or not name.strip() or not text.strip():
        raise ContractError("not an id, a tab and a text", code="trec", where=where)
    return name.strip(), text.strip()


def _json_text(where: str, line: str) -> tuple[str, str]:
    try:
        value = parse(line.encode(), limit=4 * LONGEST_LINE)
    except MalformedError as error:
        raise ContractError(f"not a JSON value: {error.what}", code="json", where=where) from error
    name = next((value[key] for key in IDS if key in value), None) if isinstance(value, dict) else None
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(name, (str, int)) or not isinstance(text, str) or not text.strip():
        raise ContractError(
            "not an object of an id and a text", code="trec", where=where, expected=" | ".join(IDS)
        )
    return str(name), text.strip()


def judged(qrels: Path, run: Path | None, *, positive_grade: int) -> list[Judged]:
    """The judged passages of every query, restricted to retrieved ones where a run is given.

    A passage is positive from `positive_grade` on; grade 0 and below is no positive, and a grade in
    between (related, not an answer) is drawn as neither.
    """
    retrieved: dict[str, set[str]] | None = None
    if run is not None:
        retrieved = {}
        for where, line in lines(run):
            query, _, doc, *_ = _fields(where, line, 6, "run")
            retrieved.setdefault(query, set()).add(doc)
    grades: dict[str, dict[str, int]] = {}
    for where, line in lines(qrels):
        query, _, doc, grade = _fields(where, line, 4, "qrels")
        try:
            value = int(grade)
        except ValueError as error:
            raise ContractError(
                "a relevance grade must be an integer", code="trec", where=where, got=grade[:20]
            ) from error
        if grades.setdefault(query, {}).setdefault(doc, value) != value:
            raise ContractError(
                "a passage is judged twice with two grades", code="trec", where=where, got=doc[:80]
            )
    found = []
    for query, docs in grades.items():
        kept = {d: g for d, g in docs.items() if retrieved is None or d in retrieved.get(query, ())}
        positives = tuple(sorted(d for d, g in kept.items() if g >= positive_grade))
        found.append(Judged(query, positives, tuple(sorted(d for d, g in kept.items() if g <= 0))))
    return found
