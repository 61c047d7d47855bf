"""What stands between the flow and the verdict on the first screen of each audit that is no ref/alt pair."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from audits.wording import estimate, named, number, undefined
from cli import family_screens, render
from cli.estimate_table import Fields, estimates, line
from contracts.findings import shown

ID = 24  # characters of an acquisition's or type's name
LISTED = 6  # rows of a table on the first screen
SURVIVAL, CONJUNCTIONS = 7, 2  # verdicts and conjunctions on the first screen of a mixture
DISTANCE = {"energy": "energy", "ks": "Kolmogorov-Smirnov"}


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


def _pool(result: Fields, verbose: bool) -> None:
    """The gain of each component and of the pool, then where mixtures of two turn."""
    shares, mapped = result["tables"]["weights"], result["tables"]["sign_map"]
    labels = {f"gain.{role}": f"{shown(role, ID)} x {share:.3f}" for role, share in shares.items()}
    estimates(result, labels | {"pooled": "pooled"}, what="gain, weight in the pool")
    if mapped is None:
        return
    for edge in _few(mapped["edges"], verbose):
        turns = "" if edge["turns_at"] is None else f", turns at weight {edge['turns_at']:.3f} of the second"
        line(f"{shown(edge['first'], ID)} with {shown(edge['second'], ID)}: {named(edge['sign'])}{turns}")
    _rest(mapped["edges"], verbose, "edge")
    line(f"every mixture: {named(mapped['whole'])}")


def _mixture(result: Fields, verbose: bool) -> None:
    """Each estimate under each weighting, and which verdicts survive."""
    rows = result["tables"]["survival"]
    wanted = ("interaction", "interaction@equal-target", "interaction@user")
    if verbose or wanted[0] in result["estimates"]:
        estimates(result, {name: named(name) for name in (result["estimates"] if verbose else wanted)})
    weightings = list(rows[0]["under"])
    grid = [
        (named(row["of"]), *(_verdict(row["under"][w]) for w in weightings), _survives(row["survives"]))
        for row in rows
    ]
    kept = grid if verbose else grid[:SURVIVAL] + grid[SURVIVAL:][-CONJUNCTIONS:]
    render.console().print(render.table(["verdict of", *weightings, "survives"], kept))
    if len(kept) < len(grid):
        line(f"and {render.plural(len(grid) - len(kept), 'more verdict')}; see --verbose")
    signs = ", ".join(
        f"{named(name)} {named(sign or 'not computed')}"
        for name, sign in result["verdicts"]["every_mixture"].items()
    )
    line(f"in every mixture of targets: {signs}")


def _verdict(value: object) -> str:
    if isinstance(value, bool):
        return "supported" if value else "not supported"
    return "none" if value is None else str(value)


def _survives(value: bool | None) -> str:
    return "nothing to survive" if value is None else "yes" if value else "no"


def _redundancy(result: Fields, verbose: bool) -> None:
    """Both distances at both endpoints with their permutation p, then shifts and AUC."""
    found, said = result["tables"]["redundancy"], result["verdicts"]["redundancy"]
    rows = [
        (
            DISTANCE[name],
            endpoint,
            undefined(tests.get("reason"))
            if tests[name] is None
            else number(tests[name]["value"], signed=False),
            "-" if tests[name] is None else f"{tests[name]['p']:.4f}",
            said[endpoint][name] or "undefined",
        )
        for endpoint, tests in found.items()
        for name in DISTANCE
    ]
    if rows:
        columns = (
            "distance of margins",
            "endpoint",
            ("value", "right"),
            ("p", "right"),
            "against the benchmark",
        )
        render.console().print(render.table(columns, rows))
    labels = {"shift.before": "alt - ref before", "shift.after": "alt - ref after"}
    labels |= {
        "auc.ref": "AUC of success, ref",
        "auc.alt": "AUC of success, alt",
        "auc_gap": "AUC gap ref - alt",
    }
    estimates(result, labels, what="mean margin, AUC")
    if rows and verbose:
        line(f"{found['after']['permutations']:,} swaps of the views of whole trajectories")


SCREENS: Mapping[str, Callable[[Fields, bool], None]] = {
    "repeatability": _repeatability,
    "pool": _pool,
    "mixture": _mixture,
    "redundancy": _redundancy,
    **family_screens.SCREENS,
}
