"""Which kind of rows a file holds, told from its column names."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

from contracts.errors import ContractError, UsageError
from contracts.findings import shown
from contracts.source_table import INCOMING

KINDS = ("transport", "jev")
_JEV = frozenset({"before", "after", "query_id"})
_LISTED = 12
_SURE = 3  # columns of scores that no other file has by chance
_TEMPLATE = "`ledger ingest --template transport` prints a file that has all columns"


def decide(names: Collection[str], kind: str | None = None, where: str | None = None) -> str:
    """The kind asked for, else `jev` iff the pair columns are there, `transport` iff `energy` is.

    UsageError for a kind that does not exist; ContractError `kind-unclear` when the names say both or
    neither.
    """
    if kind is not None:
        if kind not in KINDS:
            raise UsageError(
                "unknown kind", code="unknown-kind", expected=" or ".join(KINDS), got=shown(kind)
            )
        return kind
    transport, jev = "energy" in names, _JEV.issubset(names)
    if transport != jev:
        return "transport" if transport else "jev"
    if transport:
        raise ContractError(
            "columns of both kinds in one file",
            code="kind-unclear",
            expected="energy (scores) or before, after, query_id (predictions)",
            where=where,
            next_step="say which with --kind transport or --kind jev",
        )
    missing = [name for name, column in INCOMING.items() if column.required and name not in names]
    if len(INCOMING.keys() & names) >= _SURE:
        raise ContractError(
            f"scores without {', '.join(missing)}",
            code="kind-unclear",
            expected="a column energy and the other required columns of scores",
            got=_listed(names),
            where=where,
            next_step=_meant(missing, names) + _TEMPLATE,
        )
    raise ContractError(
        "neither scores nor predictions" + _separator_hint(names),
        code="kind-unclear",
        expected="a column energy (scores) or the columns before, after, query_id (predictions)",
        got=_listed(names),
        where=where,
        next_step=_meant(missing, names) + _TEMPLATE,
    )


def _listed(names: Collection[str]) -> str:
    first = ", ".join(shown(name, 40) for name in list(names)[:_LISTED])
    return first + (f", … ({len(names)} columns)" if len(names) > _LISTED else "")


def _meant(missing: Collection[str], names: Collection[str]) -> str:
    """`did you mean energy by enrgy? ` for columns whose names are close to missing ones."""
    others = [name for name in names if name not in INCOMING]
    close = [(name, found[0]) for name in missing if (found := get_close_matches(name, others, 1, 0.7))]
    told = ", ".join(f"{name} by {shown(other, 40)}" for name, other in close)
    return f"did you mean {told}? " if told else ""


def _separator_hint(names: Collection[str]) -> str:
    """A CSV file with another separator reads as one column whose name holds the whole header."""
    (name,) = names if len(names) == 1 else ("",)
    for mark, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if mark in name:
            return f", the fields seem to be separated by {word} instead of commas"
    return ""
