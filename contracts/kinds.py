"""Which kind of rows a file holds, told from its column names."""

from __future__ import annotations

from collections.abc import Collection

from contracts.errors import ContractError, UsageError
from contracts.findings import shown

KINDS = ("transport", "jev")
_JEV = frozenset({"before", "after", "query_id"})
_LISTED = 12


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
    raise ContractError(
        "neither scores nor predictions" + _separator_hint(names),
        code="kind-unclear",
        expected="a column energy (scores) or the columns before, after, query_id (predictions)",
        got=_listed(names),
        where=where,
        next_step="see `ledger ingest --template transport`",
    )


def _listed(names: Collection[str]) -> str:
    first = ", ".join(shown(name, 40) for name in list(names)[:_LISTED])
    return first + (f", … ({len(names)} columns)" if len(names) > _LISTED else "")


def _separator_hint(names: Collection[str]) -> str:
    """A CSV file with another separator reads as one column whose name holds the whole header."""
    (name,) = names if len(names) == 1 else ("",)
    for mark, word in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if mark in name:
            return f", the fields seem to be separated by {word} instead of commas"
    return ""
