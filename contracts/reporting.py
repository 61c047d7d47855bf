"""Findings written for people and for programs."""

from __future__ import annotations

from contracts.findings import Finding, Findings

FIRST = 3  # findings a person is shown before the rest is a number
# Faults of whole columns are few and mended in one go, so all of them are shown.
_OF_COLUMNS = ("missing-column", "wrong-type")
_COLUMNS = 20


def to_lines(findings: Findings, limit: int = FIRST) -> list[str]:
    """The first `limit` findings as one line each, then how many more there are of which codes.

    A finding that refuses the whole call comes before one that refuses a side; a column that is missing
    or of the wrong type comes first of all, and takes no place from the others.
    """
    columns = [f for f in findings.examples if f.code in _OF_COLUMNS][:_COLUMNS]
    rest_of = [f for f in findings.examples if f.code not in _OF_COLUMNS]
    refusing = [f for f in rest_of if f.level in ("row", "file")]
    others = [f for f in rest_of if f.level not in ("row", "file")]
    first = columns + (refusing + others)[:limit]
    lines = [finding.message for finding in first]
    left = dict(findings.by_code)
    for finding in first:
        left[finding.code] -= finding.count
    rest = {code: count for code, count in left.items() if count > 0}
    if rest:
        codes = ", ".join(f"{code} {count:,}" for code, count in rest.items())
        lines.append(f"… and {sum(rest.values()):,} more ({codes})")
    return lines


def to_json(findings: Findings) -> dict[str, object]:
    """Findings as one JSON object: exact counts by code, and the examples with all their parts.

    Absent parts are left out. `total` and `codes` count everything, `findings` holds the examples.
    """
    return {
        "total": findings.total,
        "codes": {
            code: {"level": findings.level(code), "count": count} for code, count in findings.by_code.items()
        },
        "findings": [_as_object(finding) for finding in findings.examples],
    }


def _as_object(finding: Finding) -> dict[str, object]:
    parts: dict[str, object] = {
        "code": finding.code,
        "level": finding.level,
        "message": finding.message,
        "column": finding.column,
        "key": None if finding.key is None else dict(finding.key),
        "file": finding.file,
        "rows": list(finding.rows) or None,
        "count": finding.count,
        "wanted": finding.wanted,
        "got": finding.got,
    }
    return {name: value for name, value in parts.items() if value is not None}
