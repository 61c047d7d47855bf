"""Small ledgers for faces, cubes, bridges and controls: channels of one family and sides with known margins.

With one competitor at energy 0 a margin is the target's energy.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from pathlib import Path

from ledger import channels
from ledger.home import init, signing_key
from tests.audits.cohorts import ENDPOINTS, Ledger, Row, digest

SPEC = """name = "{name}"
[prompt]
text = "judge"
[readout]
kind = "joint-label"
[stack]
model = "{model}"
[view]
kind = "{view}"
[presentation]
authority = "{authority}"
order = "{order}"
layouts = 2
"""
LEVELS = (("empty", "quote", "generated"), ("neutral", "evidence"))
Margins = tuple[float, float]


def family(folder: Path, specs: Mapping[str, Mapping[str, str]]) -> Ledger:
    """A home with a channel for each name; its specification is that of the others but for what is given."""
    home = init(folder / ".ledger", origin=f"log-{hashlib.sha256(str(folder).encode()).hexdigest()[:8]}")
    key = signing_key(home)
    files = []
    for place, (name, given) in enumerate(specs.items()):
        spec = {"model": "m", "view": "quote", "authority": "neutral", "order": "state-first"} | dict(given)
        extra = spec.pop("extra", "")
        files.append(folder / f"{place}.toml")
        files[-1].write_text(SPEC.format(name=name, **spec) + extra)
    channels.add(home, key, files)
    return Ledger(home, key, folder)


def cube_specs() -> dict[str, dict[str, str]]:
    """One channel for each cell of LEVELS, named so that the name says nothing."""
    return {
        f"cube/{place}": {"view": view, "authority": authority}
        for place, (view, authority) in enumerate(product(*LEVELS))
    }


def side(
    channel: str,
    trajectory: str,
    margins: Margins,
    *,
    step: int = 0,
    source: str = "own",
    view: Callable[[str], object] = lambda endpoint: endpoint,
    shown: bool = True,
    acquisition: str = "main-1",
    **extra: object,
) -> Iterator[Row]:
    """Every reading of a side: F(before) and F(after) in both layouts; `view` says what was shown where."""
    for margin, endpoint in zip(margins, ENDPOINTS, strict=True):
        at = (trajectory, step, endpoint)
        for layout in (0, 1):
            for candidate in ("A", "B"):
                row: Row = {
                    "trajectory_id": trajectory, "step": step, "endpoint": endpoint, "view_source": source,
                    "channel": channel, "layout": layout, "acquisition_id": acquisition,
                    "candidate": candidate, "target": "A", "energy": margin if candidate == "A" else 0.0,
                    "state_hash": digest("state", at),
                    "candidates_hash": digest("candidates", trajectory, step),
                    "request_hash": digest("request", at, channel, source, layout, acquisition),
                    "view_hash": digest("view", trajectory, step, view(endpoint)) if shown else None,
                }  # fmt: skip
                yield row | extra


def cube_rows(trajectories: int = 12) -> list[Row]:
    """A cube whose gains differ by cell and trajectory in eighths; cells of one view kind share its view."""
    made: list[Row] = []
    for place, (view, _) in enumerate(product(*LEVELS)):
        for t in range(trajectories):
            gain = ((t * (place + 2)) % 9 - 3) / 8 - place / 4
            made += side(
                f"cube/{place}", f"t{t:03d}", (0.5, 0.5 + gain),
                view=lambda endpoint, kind=view: (kind, endpoint), shown=view != "empty",
            )  # fmt: skip
    return made


def shuffled(rows: list[Row], seed: int = 7) -> list[Row]:
    """The same rows in another order."""
    made = list(rows)
    random.Random(seed).shuffle(made)
    return made
