"""Faces of the shared cohorts as arrays, assembled by polars alone, so that statistics are tested alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from audits.statistics import jev_outcomes, kernel
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Estimate

SHARED = Path(__file__).parents[4] / "shared"


def shared(path: str) -> Path:
    """A file of the shared data, or a skip with the reason."""
    found = SHARED / path
    if not found.exists():
        pytest.skip(f"shared data {path} is not beside this checkout")
    return found


def answers(path: str = "cohort/answers.json") -> Any:
    return json.loads(shared(path).read_text())


@dataclass(frozen=True)
class Faces:
    """Transitions complete in every arm, sorted by trajectory and step."""

    trajectories: list[str]
    cluster: npt.NDArray[np.int32]
    steps: npt.NDArray[np.int64]
    targets: npt.NDArray[np.str_]
    success: npt.NDArray[np.bool_] | None
    margins: list[npt.NDArray[np.int64]]
    transitions: int

    def cohort(self, **options: Any) -> Cohort:
        return Cohort(self.cluster, len(self.trajectories), **options)


def channel(name: str, view_source: str | None = None) -> pl.Expr:
    """The rows of a channel, and of one view source (or of any that starts so)."""
    rows = pl.col("channel") == name
    return rows if view_source is None else rows & pl.col("view_source").str.starts_with(view_source)


def faces(path: str, *arms: pl.Expr) -> Faces:
    """Margins int64[n, 2, L, A] per arm, over the transitions that are whole in all of them."""
    table = pl.read_parquet(shared(path))
    if "status" in table.columns:
        table = table.with_columns(
            energy=pl.when(pl.col("status") == "ok").then(pl.col("energy")).otherwise(None)
        )
    frames, cells, seen = [], [], None
    for arm in arms:
        frame = table.filter(arm)
        acquisitions = sorted(frame["acquisition_id"].unique())
        layouts = frame["layout"].n_unique()
        candidates = sorted(frame["candidate"].unique())
        keys = frame.select("trajectory_id", "step").unique()
        seen = keys if seen is None else pl.concat([seen, keys]).unique()
        frame = frame.filter(pl.col("energy").is_not_null() & pl.col("energy").is_finite())
        frames.append(frame)
        cells.append((layouts, acquisitions, candidates))
    assert seen is not None
    whole: pl.DataFrame | None = None
    for frame, (layouts, acquisitions, candidates) in zip(frames, cells, strict=True):
        size = 2 * layouts * len(acquisitions) * len(candidates)
        full = frame.group_by("trajectory_id", "step").len().filter(pl.col("len") == size).drop("len")
        whole = full if whole is None else whole.join(full, on=["trajectory_id", "step"])
    assert whole is not None
    whole = whole.sort("trajectory_id", "step")
    margins = []
    for frame, (layouts, acquisitions, candidates) in zip(frames, cells, strict=True):
        kept = frame.join(whole, on=["trajectory_id", "step"], how="semi").sort(
            "trajectory_id", "step", pl.col("endpoint") == "after", "layout", "acquisition_id", "candidate"
        )
        energies = kept["energy"].to_numpy().reshape(-1, len(candidates))
        order = pl.Series(candidates)
        targets = kept["target"].to_numpy().reshape(-1, len(candidates))[:, 0]
        place = np.searchsorted(order.to_numpy().astype(str), targets.astype(str))
        margins.append(kernel.margins(energies, place).reshape(-1, 2, layouts, len(acquisitions)))
    first = (
        frames[0]
        .group_by("trajectory_id", "step")
        .agg(pl.col("target").first(), *([pl.col("success").first()] if "success" in table.columns else []))
    )
    facts = whole.join(first, on=["trajectory_id", "step"], how="left", maintain_order="left")
    names = sorted(whole["trajectory_id"].unique())
    codes = {name: i for i, name in enumerate(names)}
    return Faces(
        trajectories=names,
        cluster=np.array([codes[name] for name in whole["trajectory_id"]], dtype=np.int32),
        steps=whole["step"].to_numpy().astype(np.int64),
        targets=facts["target"].to_numpy().astype(str),
        success=facts["success"].to_numpy().astype(bool) if "success" in facts.columns else None,
        margins=margins,
        transitions=len(seen),
    )


def near(got: Any, want: Any, tolerance: float = 1e-9) -> None:
    """Equal within the tolerance; pairs element by element."""
    assert got is not None, f"absent, want {want}"
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


def matches(estimate: Estimate, want: dict[str, Any], *, rate: bool = False) -> None:
    """An estimate against an independent answer: value, intervals and the verdict they give."""
    near(estimate.value, next(want[k] for k in ("mean", "estimate", "value", "diff") if k in want))
    near(estimate.ci95, want["ci95"])
    if estimate.ci90 is not None:
        near(estimate.ci90, want["ci90"])
    low, high = want["ci95"]
    sign = "positive" if low > 0 else "negative" if high < 0 else "unresolved"
    assert estimate.verdict == (None if rate else sign)


def pairs_by_year(path: str) -> dict[int, jev_outcomes.Pairs]:
    """The predictions of a JSON Lines file, by year; labels ordered by their UTF-8 bytes."""
    rows = [json.loads(line) for line in shared(path).read_text().splitlines()]
    years: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        years.setdefault(row["year"], []).append(row)
    return {year: pairs_of(some) for year, some in sorted(years.items())}


def pairs_of(rows: list[dict[str, Any]]) -> jev_outcomes.Pairs:
    """Rows of {query_id, scenario, before, after, positive_labels, variant?} as arrays."""
    queries, scenarios, variants = (
        {name: i for i, name in enumerate(sorted({row.get(key, "") for row in rows}))}
        for key in ("query_id", "scenario", "variant")
    )
    labels = [sorted(row["after"], key=str.encode) for row in rows]
    flat = [
        (row, label, place) for row, own in zip(rows, labels, strict=True) for place, label in enumerate(own)
    ]
    return jev_outcomes.Pairs(
        query=np.array([queries[row["query_id"]] for row in rows], dtype=np.int64),
        scenario=np.array([scenarios[row["scenario"]] for row in rows], dtype=np.int64),
        variant=np.array([variants[row.get("variant", "")] for row in rows], dtype=np.int64),
        start=np.cumsum([0] + [len(own) for own in labels]),
        before=np.array([row["before"].get(label, 0.0) for row, label, _ in flat], dtype=np.float64),
        after=np.array([row["after"][label] for row, label, _ in flat], dtype=np.float64),
        positive=np.array([label in row["positive_labels"] for row, label, _ in flat], dtype=np.bool_),
        order=np.array([place for _, _, place in flat], dtype=np.int64),
        base=np.array([label in row["before"] for row, label, _ in flat], dtype=np.bool_),
    )
