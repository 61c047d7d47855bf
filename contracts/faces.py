"""Which transitions of an audit are complete: one whole side per arm and acquisition, same frozen inputs.

A face has two arms, a cube or a bridge more. A transition without a side of one of the acquisitions in
scope is broken, whatever else it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from contracts.face_models import FACE_CODES, FaceModel
from contracts.pandera_config import failures

TRANSITION = ("trajectory_id", "step")
SIDE = ("arm", "acquisition_id")


@dataclass(frozen=True)
class FaceVerdict:
    """`complete` has trajectory_id and step; `broken` also the code of the first rule broken.

    Both are sorted by transition, text by its UTF-8 bytes, numbers by size.
    """

    complete: pl.DataFrame
    broken: pl.DataFrame


def judge_faces(
    summary: pl.DataFrame, arms: int, acquisitions: Sequence[Sequence[str]] | None = None
) -> FaceVerdict:
    """Judge the transitions of a summary with one row per side, refused sides too.

    Columns: trajectory_id (text or a number), step, arm (0 to arms - 1), acquisition_id, complete (bool), and
    state_before, state_after, candidates (any type that compares: codes, text or digests; null where the
    entries carry no digest). Where arms have to show the same view, also view_group (a number shared by
    those arms, null for the others), view_before and view_after. `acquisitions` are those in scope of each
    arm, by default all that occur in the summary; where it is a part of a scope they must be given. An arm
    without any breaks every transition.
    """
    if acquisitions is None:
        found = summary.select(SIDE).unique()
        wanted = found.height + arms - found["arm"].n_unique()
    else:
        assert len(acquisitions) == arms, "one list of acquisitions for each arm"
        wanted = sum(max(len(names), 1) for names in acquisitions)
    faces = (
        summary.lazy()
        .group_by(TRANSITION)
        .agg(
            wanted=pl.lit(wanted, dtype=pl.UInt32),
            pairs=pl.struct(SIDE).n_unique(),
            sides=pl.len(),
            incomplete=(~pl.col("complete")).sum(),
            states_before=pl.col("state_before").drop_nulls().n_unique(),
            states_after=pl.col("state_after").drop_nulls().n_unique(),
            candidate_sets=pl.col("candidates").drop_nulls().n_unique(),
        )
        .join(_views(summary), on=TRANSITION, how="left")
        .with_columns(pl.col("views").fill_null(0))
        .sort(TRANSITION)
        .collect()
    )
    judged = faces.join(
        _kinds(faces.drop(TRANSITION)),
        on=list(FaceModel.to_schema().columns),
        how="left",
        maintain_order="left",
    )
    return FaceVerdict(
        complete=judged.filter(pl.col("code").is_null()).select(TRANSITION),
        broken=judged.filter(pl.col("code").is_not_null()).select(*TRANSITION, "code"),
    )


def _kinds(counts: pl.DataFrame) -> pl.DataFrame:
    """Every row that occurs, once, and the code of the first rule it breaks, null where it breaks none.

    The model judges every row by itself, and transitions have few different counts.
    """
    kinds = counts.unique().sort(counts.columns)
    return kinds.with_columns(pl.Series("code", _codes(tuple(kinds.rows())), dtype=pl.String))


@lru_cache(maxsize=64)
def _codes(rows: tuple[tuple[int, ...], ...]) -> tuple[str | None, ...]:
    """What the model says of some rows; most ranges of an audit ask about the same ones."""
    names = list(FaceModel.to_schema().columns)
    frame = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.UInt32), orient="row")
    codes: list[str | None] = [None] * len(rows)
    broken = failures(FaceModel, frame)
    for failure in sorted(broken, key=lambda failure: FACE_CODES.index(failure.check), reverse=True):
        for row in failure.rows.tolist():
            codes[row] = failure.check
    return tuple(codes)


def _views(summary: pl.DataFrame) -> pl.LazyFrame:
    """The most different views at one endpoint that any group of arms shows, by transition."""
    grouped = summary.lazy()
    if "view_group" not in summary.columns:
        return grouped.select(TRANSITION, views=pl.lit(0, dtype=pl.UInt32)).unique()
    shown = [pl.col(f"view_{endpoint}").drop_nulls().n_unique() for endpoint in ("before", "after")]
    return (
        grouped.filter(pl.col("view_group").is_not_null())
        .group_by(*TRANSITION, "view_group")
        .agg(views=pl.max_horizontal(*shown))
        .group_by(TRANSITION)
        .agg(pl.col("views").max())
    )
