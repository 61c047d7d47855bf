"""What a complete transition of an audit is: a pandera model over one row per transition.

Counts only: a failing check renders its rows, and polars panics on a Binary column there.
"""

from __future__ import annotations

import pandera.polars as pp
import polars as pl
from pandera.api.polars.types import PolarsData

from contracts.pandera_config import N_FAILURE_CASES

ACQUISITION_MISSING = "acquisition-missing"
SIDE_TWICE = "side-twice"
SIDE_INCOMPLETE = "side-incomplete"
STATE_NOT_FROZEN = "state-not-frozen"
CANDIDATES_NOT_FROZEN = "candidates-not-frozen"
VIEW_NOT_FROZEN = "view-not-frozen"
# In the order in which a transition's first reason is looked for.
FACE_CODES = (
    ACQUISITION_MISSING,
    SIDE_INCOMPLETE,
    SIDE_TWICE,
    STATE_NOT_FROZEN,
    CANDIDATES_NOT_FROZEN,
    VIEW_NOT_FROZEN,
)


class FaceModel(pp.DataFrameModel):
    """Every arm and acquisition in scope once, each side complete, all over the same frozen inputs.

    `wanted` (arm, acquisition) pairs are in scope and `pairs` of them are here, in `sides` rows;
    `incomplete` sides, and the number of different digests of each input (absent ones not counted); of
    views, the most that arms which must show the same one show at one endpoint.
    """

    wanted: pl.UInt32
    pairs: pl.UInt32
    sides: pl.UInt32
    incomplete: pl.UInt32
    states_before: pl.UInt32
    states_after: pl.UInt32
    candidate_sets: pl.UInt32
    views: pl.UInt32

    @pp.dataframe_check(error=ACQUISITION_MISSING, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def every_acquisition(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("pairs") == pl.col("wanted"))

    @pp.dataframe_check(error=SIDE_TWICE, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def each_side_once(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("pairs") == pl.col("sides"))

    @pp.check("incomplete", error=SIDE_INCOMPLETE, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def every_side_complete(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key) == 0)

    @pp.check("states_before", "states_after", error=STATE_NOT_FROZEN, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def one_state(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key) <= 1)

    @pp.check("candidate_sets", error=CANDIDATES_NOT_FROZEN, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def one_candidate_set(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key) <= 1)

    @pp.check("views", error=VIEW_NOT_FROZEN, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def one_view(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key) <= 1)

    class Config:
        strict = True
