"""The first screens of face, cube and bridge: what stands between the flow and the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise, product

from audits.wording import estimate, number
from cli import render
from cli.estimate_table import Fields, estimates, line
from contracts.findings import shown

ROWS = 14  # estimates on the first screen
LEVEL = 26  # characters of a user's level or vertex in a label
WIDE = 2  # columns of estimates with their intervals that fit a line
FACE = {
    "view": "view, its share",
    "view.state_before": " under state before",
    "view.state_after": " under state after",
    "state": "state, its share",
    "state.view_before": " under view before",
    "state.view_after": " under view after",
    "diagonal": "diagonal, their sum",
}
BRIDGE = {
    "gain.ref": "gain ref",
    "gain.alt": "gain alt",
    "interaction": "interaction",
    "auc_gap": "auc gap",
}


def _face(result: Fields, verbose: bool) -> None:
    del verbose  # everything there is fits
    estimates(result, FACE)
    split = result["tables"].get("split")
    if split is not None:
        line(f"shares add up to the diagonal exactly in {split['shares_add_up_in']:,} of them")


def _cube(result: Fields, verbose: bool) -> None:
    if verbose:
        estimates(result, {name: name for name in result["estimates"]})
        cells = [(row["cell"], row["channel"]) for row in result["tables"]["cells"]]
        render.console().print(render.table(["cell", "channel"], [(c, render.short(f)) for c, f in cells]))
    else:
        labels = dict(_cube_labels(result))
        estimates(result, dict(list(labels.items())[:ROWS]))
        _more(len(labels) - ROWS)
        _gains(result)


def _cube_labels(result: Fields) -> Iterator[tuple[str, str]]:
    """Changes, then contrasts of neighbouring levels."""
    first, second = result["design"]["options"]["levels"]
    pairs = [(later, earlier) for earlier, later in pairwise(first)][::-1]
    for later, earlier in pairs:
        yield f"change.{later}-{earlier}", _text(f"change {later}-{earlier}")
    for later, earlier in pairs:
        for level in second:
            yield f"contrast.{later}-{earlier}/{level}", _text(f"{later}-{earlier}/{level}")


def _gains(result: Fields) -> None:
    """The gains of the cells, one line for each level of the first factor; none of an empty cohort."""
    first, second = result["design"]["options"]["levels"]
    found = {cell: result["estimates"][f"gain.{cell[0]}/{cell[1]}"] for cell in product(first, second)}
    if any(fields["value"] is None for fields in found.values()):
        return
    wide = len(second) <= WIDE
    rows = [
        [shown(level, LEVEL), *(_gain(found[level, other], wide) for other in second)]
        for level in first[:ROWS]
    ]
    render.console().print(render.table(["gain", *(shown(other, LEVEL) for other in second)], rows))


def _gain(fields: Fields, wide: bool) -> str:
    return estimate(fields) if wide else number(fields["value"])


def _bridge(result: Fields, verbose: bool) -> None:
    vertices = result["verdicts"]["bridge"]["observed"]
    labels = {
        f"{v}.{part}": _text(f"{v} {part.replace('.', ' ').replace('_', ' ')}")
        for v in vertices
        for part in BRIDGE
    }
    if verbose:
        labels = {name: name for name in result["estimates"]}
    shown_rows = labels if verbose else dict(list(labels.items())[:ROWS])
    if vertices:
        estimates(result, shown_rows)
    _more(len(labels) - len(shown_rows))
    for row in result["verdicts"]["bridge"]["unobserved"]:
        line(f"vertex {shown(row['vertex'], LEVEL)} not observed: {row['reason']}")


def _more(rows: int) -> None:
    if rows > 0:
        line(f"and {render.plural(rows, 'more estimate')}; see --verbose")


def _text(label: str) -> str:
    return shown(label, LEVEL)


SCREENS: Mapping[str, Callable[[Fields, bool], None]] = {"face": _face, "cube": _cube, "bridge": _bridge}
