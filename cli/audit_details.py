"""The tables of an audit that do not fit its first screen, for `--verbose`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from audits.wording import estimate, number, undefined
from cli import render
from contracts.findings import shown

Fields = Mapping[str, Any]
Rows = Sequence[Sequence[object]]
Columns = Sequence[str | tuple[str, str]]
R = "right"
REPEATS = ("within_sd", "icc1", "sign_agreement")
PAIR: Columns = ("what", "value")
LONG = 400  # characters of a value: a digest is never cut, it is folded
ID = 32  # characters of a user's id or type in a cell


def details(result: Fields) -> None:
    """Print every further table that the result has."""
    out = render.console()
    for title, columns, rows in _tables(result):
        if rows:
            out.print(f"\n{title}")
            out.print(render.table(columns, rows))


def _tables(result: Fields) -> Iterator[tuple[str, Columns, Rows]]:
    tables = result["tables"]
    yield "flow by acquisition", ("arm", "acquisition", ("lacking", R), ("removed alone", R)), [
        (a["arm"], shown(a["acquisition"], ID), f"{a['lacking']:,}", f"{a['removed_alone']:,}")
        for a in result["flow"]["by_acquisition"]
    ]  # fmt: skip
    yield "why left out, with examples", (("n", R), "example"), [
        (f"{row['transitions']:,}" if place == 0 else "", text)
        for row in result["flow"]["excluded"]
        for place, text in enumerate(row["examples"])
    ]  # fmt: skip
    yield (
        "provenance rules",
        ("rule", ("entries out", R), ("transitions touched", R)),
        _rules(result["provenance"]),
    )
    yield "entries by level", ("level", ("entries", R)), [
        (level, f"{count:,}") for level, count in result["provenance"]["entries_by_level"].items()
    ]  # fmt: skip
    yield from _cohort(tables)
    yield from _optional(tables)
    yield "sensitivity", PAIR, _flat(tables.get("sensitivity", {}))
    yield (
        "diagnostics: what clustering costs, how many trajectories would do",
        PAIR,
        _flat(tables.get("diagnostics", {})),
    )
    yield "verdicts", PAIR, _flat(result["verdicts"])
    yield "design", PAIR, _flat(result["design"])


def _cohort(tables: Fields) -> Iterator[tuple[str, Columns, Rows]]:
    """Tables of a cohort that has transitions."""
    quartiles = tables.get("flips_by_quartile", [])
    yield (
        "flips by quartile of the smaller gain",
        (("quartile", R), ("up to", R), ("transitions", R), ("(+,-)", R), ("(-,+)", R)),
        [
            (
                q["quartile"],
                number(q["upto"], signed=False),
                f"{q['transitions']:,}",
                f"{q['pos_to_neg']:,}",
                f"{q['neg_to_pos']:,}",
            )
            for q in quartiles
        ],
    )  # fmt: skip
    targets = tables.get("targets", {})
    yield f"target types ({targets.get('column')})", ("type", ("transitions", R), ("clusters", R), ""), [
        (shown(t["type"], ID), f"{t['transitions']:,}", f"{t['clusters']:,}", "few" if t["few"] else "")
        for t in targets.get("types") or ()
    ]  # fmt: skip


def _optional(tables: Fields) -> Iterator[tuple[str, Columns, Rows]]:
    """Tables that need repeats, stored success or label masses."""
    columns = ("arm", ("acquisitions", R), "within sd", "icc1", "sign agreement")
    yield "repeatability (no evidence of transport)", columns, [
        (role, v["acquisitions"], *(estimate(v[name], signed=False) for name in REPEATS))
        for role, v in tables.get("repeatability", {}).items()
    ]  # fmt: skip
    yield "stored success", PAIR, _flat(tables.get("auc", {}))
    masses = tables.get("label_mass", {})
    names = ("n", "unavailable", "lower_bounds", "min", "median", "share_below_half")
    yield "label mass", ("arm", *((name, R) for name in names)), [
        (role, *(_text(row[name]) for name in names)) for role, row in masses.items()
    ]  # fmt: skip


def _rules(provenance: Fields) -> Rows:
    touched = provenance["transitions_touched"]
    return [(rule, f"{n:,}", f"{touched[rule]:,}") for rule, n in provenance["entries_out"].items()]


def _flat(value: Fields, path: str = "") -> list[tuple[str, str]]:
    """Nested names and values as lines; a null shows its reason."""
    reasons = value.get("reasons", {})
    lines: list[tuple[str, str]] = []
    for name, part in value.items():
        if name == "reasons":
            continue
        at = f"{path}.{name}" if path else name
        if isinstance(part, Mapping):
            lines += _flat(part, at)
        elif isinstance(part, list) and part and isinstance(part[0], Mapping):
            lines += [line for place, row in enumerate(part) for line in _flat(row, f"{at}.{place}")]
        elif part is None and name in reasons:
            lines.append((at, undefined(reasons[name])))
        else:
            lines.append((at, _text(part)))
    return lines


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return number(value, signed=False)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return shown(", ".join(_text(part) for part in value) or "none", LONG)
    return shown(value, LONG)
