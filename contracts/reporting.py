"""Findings written for people, for programs and for a build server's test report."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from contracts.findings import Finding, Findings, Level, shown

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


def to_junit(findings: Findings, suite: str = "ledger contracts") -> str:
    """Findings as JUnit XML: one failed test per example, and one per code whose examples fell short.

    Where nothing was found the suite holds one passed test, so a build server sees that it ran.
    """
    cases = [_case(f.level, f.code, f.message, f.message, f.file) for f in findings.examples]
    left = dict(findings.by_code)
    for finding in findings.examples:
        left[finding.code] -= finding.count
    for code, count in left.items():
        if count > 0:
            cases.append(_case(findings.level(code), code, f"{count:,} more {code}", "see --rejects", None))
    failed = len(cases)
    if not cases:
        cases.append(f"    <testcase classname={_attribute(suite)} name={_attribute('all rows and sides')}/>")
    counts = f'tests="{len(cases)}" failures="{failed}" errors="0"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f"<testsuites {counts}>",
            f"  <testsuite name={_attribute(suite)} {counts}>",
            *cases,
            "  </testsuite>",
            "</testsuites>",
            "",
        ]
    )


def _case(level: Level, code: str, name: str, text: str, file: str | None) -> str:
    where = f" file={_attribute(file)}" if file else ""
    return (
        f"    <testcase classname={_attribute(f'{level}.{code}')} name={_attribute(name)}{where}>\n"
        f"      <failure type={_attribute(code)} message={_attribute(name)}>{escape(_xml(text))}</failure>\n"
        f"    </testcase>"
    )


def _attribute(text: str) -> str:
    return quoteattr(_xml(text))


def _xml(text: str) -> str:
    """Text that XML 1.0 can hold: its control characters and lone surrogates cannot be escaped there."""
    return shown(text, limit=2000)
