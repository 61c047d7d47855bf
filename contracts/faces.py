"""Which transitions of an audit are complete: one whole side per arm and acquisition, same frozen inputs.

A face has two arms, a cube or a bridge more. A transition without a side of one of the acquisitions in
scope is broken, whatever else it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import polars as pl

from contracts.face_models import FACE_CODES, FaceModel
from contracts.pandera_config import failures

TRANSITION = ("trajectory_id", "step")
SIDE = ("arm", "acquisition_id")
_COUNTS = tuple(FaceModel.to_schema().columns)


@dataclass(frozen=True)
class FaceVerdict:
    """`transitions` have trajectory_id and step, sorted (text by its UTF-8 bytes, numbers by size); `codes`
    has the first rule each breaks, None where it breaks none.
    """

    transitions: pl.DataFrame
    codes: npt.NDArray[np.object_]

    @property
    def broken(self) -> dict[str, pl.DataFrame]:
        """The transitions that break a rule first, by its code."""
        found = dict.fromkeys(code for code in self.codes.tolist() if code is not None)
        return {code: self.transitions[np.flatnonzero(self.codes == code)] for code in found}


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
    counts = faces.select(_COUNTS).to_numpy()
    kinds, kind = _kinds(counts)
    codes = np.array([*_codes(tuple(map(tuple, kinds.tolist()))), None], object)[:-1]
    return FaceVerdict(faces.select(TRANSITION), codes[kind])


def _kinds(counts: npt.NDArray[np.uint32]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.intp]]:
    """Every row that occurs, once, and which of them each row is.

    The model judges every row by itself, and transitions have few different counts.
    """
    if len(counts) and (counts == counts[0]).all():
        return counts[:1], np.zeros(len(counts), np.intp)
    kinds, kind = np.unique(counts, axis=0, return_inverse=True)
    return kinds, kind.reshape(-1)


@lru_cache(maxsize=64)
def _codes(rows: tuple[tuple[int, ...], ...]) -> tuple[str | None, ...]:
    """What the model says of some rows; most ranges of an audit ask about the same ones."""
    frame = pl.DataFrame(rows, schema=dict.fromkeys(_COUNTS, pl.UInt32), orient="row")
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
