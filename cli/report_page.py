"""A record as one HTML page that needs nothing else: no network, no script, nothing of the data unescaped."""

from __future__ import annotations

import base64
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from audits import jev_sentence
from audits.points import is_pair
from audits.sentence import sentence
from cli import report_forest, report_jev_figures, report_pair_figures
from cli.report_record import JEV, Subject
from cli.report_svg import Drawing
from cli.report_tables import Grid, cell, grids, lines, settings
from contracts.channel import Channel, differences
from contracts.errors import UsageError
from contracts.findings import shown

TEMPLATES = Path(__file__).with_name("report_templates")
NAME = 64  # characters of a channel's name or an origin
VALUE = 400  # characters of a differing value
DIFFERENCES = 100
COLUMNS = 76
LISTED = 20  # acquisitions that lack something, records to read beside this one
ENVIRONMENT = ("head", "channels", "versions", "time")  # what is no link to another record
MARGIN_UNITS = "change of the target's log-odds"
SIGNS = (("positive", "+"), ("zero", "0"), ("negative", "−"))
INSTALL = "pip install 'evaluator-ledger[report]'"


def require_extra() -> None:
    """UsageError `missing-extra` where the packages that draw a report are not installed."""
    from importlib.util import find_spec

    lacking = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if lacking:
        raise UsageError(
            f"reports need {' and '.join(lacking)}", code="missing-extra",
            expected="the extra `report` of evaluator-ledger", next_step=f"run {INSTALL}",
        )  # fmt: skip


def page(subject: Subject) -> bytes:
    """The page of a record; the same record and rows give the same bytes."""
    require_extra()
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["cell"] = cell
    environment.filters["shown"] = shown
    environment.filters["breakable"] = _breakable
    # Only what report_svg wrote through an XML writer, and our own style sheet, go in as markup.
    style = Markup((TEMPLATES / "report.css").read_text(encoding="utf-8"))  # noqa: S704
    figures = [(drawing, Markup(drawing.svg)) for drawing in _figures(subject)]  # noqa: S704
    template = environment.get_template("report.html")
    return template.render(style=style, figures=figures, **_parts(subject)).encode()


def said(subject: Subject) -> str:
    """The verdict in one sentence, as the audit printed it."""
    if subject.audit == JEV:
        return jev_sentence.sentence(subject.result)
    return sentence(subject.result, **{role: shown(name, NAME) for role, name in subject.names.items()})


def _parts(subject: Subject) -> dict[str, Any]:
    result, environment, signed = subject.result, subject.environment, subject.signed
    head = environment["head"]
    names = {role: shown(name, NAME) for role, name in subject.names.items()}
    return {
        "audit": shown(subject.audit, NAME),
        "names": names,
        "said": said(subject),
        "signed": signed,
        "missing": subject.missing,
        "environment": environment,
        "head": {"origin": shown(head["origin"], NAME), "size": head["size"], "root": head["root"]},
        "flow": result["flow"],
        "lacking": [row for row in result["flow"].get("by_acquisition", ()) if row["lacking"]][:LISTED],
        "provenance": result["provenance"],
        "limits": result["limits"],
        "sign_rows": _sign_rows(result["tables"]),
        "lines": lines(result["estimates"]),
        "channels": _channels(subject),
        "differing": list(_differing(subject.channels)),
        "compared": len(subject.channels) > 1,
        "tables": [*grids(result["tables"]), *_verdicts(result["verdicts"])],
        "design": [settings("design", result["design"])],
        "links": list(_links(environment)),
        "segments": [s.name for s in subject.statement.subjects[1:]][:DIFFERENCES],
        "more_segments": max(0, len(subject.statement.subjects) - 1 - DIFFERENCES),
        "envelope": None if signed is None else _base64(signed.envelope),
    }


def _figures(subject: Subject) -> Iterator[Drawing]:
    result, names = subject.result, subject.names
    estimates = result["estimates"]
    if subject.pair is not None:
        yield report_pair_figures.scatter(subject.pair, names)
        yield report_pair_figures.distribution(subject.pair, estimates)
    if subject.series:
        yield report_jev_figures.flips_by_scenario(subject.series)
    if subject.audit == JEV:
        changes = report_jev_figures.action_changes(result["tables"].get("counts", {}))
        if changes is not None:
            yield changes
    for place, part in enumerate((subject.series or ())[: report_jev_figures.PLANES]):
        yield report_jev_figures.plane(part, place)
    yield from _forests(subject)


def _forests(subject: Subject) -> Iterator[Drawing]:
    estimates = subject.result["estimates"]
    if is_pair(subject.result):
        groups = report_forest.pair_groups(subject.result, subject.names)
    else:
        groups = report_forest.plain_groups(estimates, shares=False)
    shares = report_forest.plain_groups(estimates, shares=True)
    for found, name, title, unit in (
        (groups, "forest", "Estimates with their intervals", MARGIN_UNITS),
        (shares, "shares", "Shares with their intervals", "share"),
    ):
        drawn = report_forest.forest(found, name, title, unit)
        if drawn is not None:
            yield drawn


def _sign_rows(tables: Mapping[str, Any]) -> list[tuple[str, list[int]]] | None:
    """The 3 x 3 table of signs, reference down and alternative across, positive first."""
    table = tables.get("sign_table")
    if table is None:
        return None
    places = {name: place for place, name in enumerate(table["order"])}
    rows = table["ref_by_alt"]
    order = [places[name] for name, _ in SIGNS]
    return [(f"ref {sign}", [rows[places[name]][at] for at in order]) for name, sign in SIGNS]


def _channels(subject: Subject) -> list[tuple[str, str, str]]:
    """Role, name with version, and fingerprint of every channel."""
    return [
        (shown(role, NAME), f"{shown(c['name'], NAME)}@{c['version']}", str(c["fingerprint"]))
        for role, c in subject.named.items()
    ]


def _differing(channels: Mapping[str, Channel]) -> Iterator[Grid]:
    """What separates each further channel from the first."""
    roles = list(channels)
    for role in roles[1:]:
        first, one, other = roles[0], channels[roles[0]], channels[role]
        found = differences(one, other)
        rows = tuple(
            (shown(d.path, NAME), *("absent" if side is None else shown(side, VALUE) for side in (d.a, d.b)))
            for d in found[:DIFFERENCES]
        )
        columns = ("path", shown(first, NAME), shown(role, NAME))
        yield Grid(f"{first} and {role}", columns, rows, len(found) - len(rows))


def _links(environment: Mapping[str, Any]) -> Iterator[tuple[str, str, list[str]]]:
    """Other records to read beside this one: of which audit, for which role, their ids."""
    for audit, roles in environment.items():
        if audit not in ENVIRONMENT and isinstance(roles, Mapping):
            for role, records in roles.items():
                yield (
                    shown(audit, NAME),
                    shown(role, NAME),
                    [shown(record, NAME) for record in records[:LISTED]],
                )


def _verdicts(verdicts: Mapping[str, Any]) -> list[Grid]:
    return grids({"verdicts": verdicts}) if verdicts else []


def _breakable(text: str) -> str:
    """An id that may wrap behind its dots and underscores; everything of it is escaped."""
    from markupsafe import Markup, escape

    rest = Markup("<wbr>")
    return escape(text).replace(".", "." + rest).replace("_", "_" + rest).replace("/", "/" + rest)


def _base64(data: bytes) -> str:
    return "\n".join(textwrap.wrap(base64.b64encode(data).decode(), COLUMNS))
