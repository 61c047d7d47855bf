"""Findings written as a build server's test report."""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

from contracts.findings import Findings, Level, shown


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
