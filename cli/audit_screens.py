"""What stands between the flow and the verdict on the first screen of each audit that is no ref/alt pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from audits.wording import estimate
from cli import render
from cli.estimate_table import Fields, estimates, line
from contracts.findings import shown

ID = 24  # characters of an acquisition's or type's name
LISTED = 6  # rows of a table on the first screen


def _repeatability(result: Fields, verbose: bool) -> None:
    """The three numbers, then what each acquisition gives on its own."""
    own = result["design"]["options"]["name"]
    labels = {f"{own}.within_sd": "within SD", f"{own}.icc1": "ICC(1)"}
    labels[f"{own}.sign_agreement"] = "one strict sign in all"
    unsigned = (f"{own}.within_sd", f"{own}.sign_agreement")
    estimates(result, labels, what="over acquisitions", unsigned=unsigned)
    rows = result["tables"]["acquisitions"]
    for row in _few(rows, verbose):
        signs = row["signs"]
        gain = "" if row["gain"] is None else f", mean gain {estimate(row['gain'])}"
        line(
            f"{shown(row['acquisition'], ID)}: {signs['positive']:,} positive, {signs['zero']:,} zero, "
            f"{signs['negative']:,} negative{gain}"
        )
    _rest(rows, verbose, "acquisition")
    pairs = result["tables"]["pairs"]
    if pairs:
        worst = max(pairs, key=lambda pair: pair["share"])
        line(
            f"opposite signs between two acquisitions: at most {worst['opposite_signs']:,} transitions "
            f"({worst['share']:.3f}), {shown(worst['first'], ID)} and {shown(worst['second'], ID)}"
        )


def _few(rows: list[Fields], verbose: bool) -> list[Fields]:
    return rows if verbose else rows[:LISTED]


def _rest(rows: list[Fields], verbose: bool, what: str) -> None:
    if not verbose and len(rows) > LISTED:
        line(f"and {render.plural(len(rows) - LISTED, 'more ' + what)}; see --verbose")


SCREENS: Mapping[str, Callable[[Fields, bool], None]] = {"repeatability": _repeatability}
