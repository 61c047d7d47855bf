"""What a whole side and a consistent transition are: pandera models over one row per side or transition.

The frames hold counts and ranks only, never text or digests of entries: a failing check renders its rows,
and polars panics on a Binary column there. Each check is named by the code of the finding it leads to.
"""

from __future__ import annotations

import pandera.polars as pp
import polars as pl
from pandera.api.polars.types import PolarsData

from contracts.pandera_config import N_FAILURE_CASES

CELL_MISSING = "cell-missing"
CELL_DUPLICATED = "cell-duplicated"
CELL_UNKNOWN = "cell-unknown"
READING_FAILED = "reading-failed"
CELL_CODES = (CELL_MISSING, CELL_DUPLICATED, CELL_UNKNOWN, READING_FAILED)

CANDIDATES_LABELS = "candidates-not-labels"
DONOR_SELF = "donor-self"
DONOR_VIEW = "donor-view"
SIDE_CODES = (CANDIDATES_LABELS, DONOR_SELF, DONOR_VIEW)

TWO_TARGETS = "two-targets"
TARGET_UNKNOWN = "target-no-candidate"
TWO_TARGET_TYPES = "two-target-types"
TWO_STEP_KINDS = "two-step-kinds"
TWO_SUCCESSES = "two-successes"
CANDIDATES_FEW = "candidates-too-few"
CANDIDATES_DIFFER = "candidates-differ"
CANDIDATES_REBOUND = "candidates-rebound"
TRANSITION_CODES = (
    TWO_TARGETS,
    TARGET_UNKNOWN,
    TWO_TARGET_TYPES,
    TWO_STEP_KINDS,
    TWO_SUCCESSES,
    CANDIDATES_FEW,
    CANDIDATES_DIFFER,
    CANDIDATES_REBOUND,
)


class SideModel(pp.DataFrameModel):
    """A side holds each expected cell once, every reading scored, and shows its own donor to nobody.

    `expected` cells, `distinct` of them present, `repeated` rows beyond the first of a cell, `unknown`
    rows outside the expected cells, `failed` rows with a status other than ok; `candidates` of the
    transition and `labels` the channel scores (null where it does not say).
    """

    expected: pl.Int64
    distinct: pl.Int64
    repeated: pl.Int64
    unknown: pl.Int64
    failed: pl.Int64
    candidates: pl.Int64
    labels: pl.Int64 = pp.Field(nullable=True)
    donor_self: pl.Boolean
    donor_view: pl.Boolean

    @pp.dataframe_check(error=CELL_MISSING, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def every_cell_present(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("distinct") == pl.col("expected"))

    @pp.check("repeated", error=CELL_DUPLICATED, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def no_cell_twice(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key) == 0)

    @pp.check("unknown", error=CELL_UNKNOWN, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def no_cell_beyond(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key) == 0)

    @pp.check("failed", error=READING_FAILED, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def every_reading_scored(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key) == 0)

    @pp.dataframe_check(error=CANDIDATES_LABELS, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def candidates_fill_labels(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("labels").is_null() | (pl.col("labels") == pl.col("candidates")))

    @pp.check("donor_self", error=DONOR_SELF, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def donor_is_another(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(~pl.col(data.key))

    @pp.check("donor_view", error=DONOR_VIEW, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def view_is_the_donors(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(~pl.col(data.key))

    class Config:
        strict = True


class TransitionModel(pp.DataFrameModel):
    """A transition has one target among one set of candidates, and one value of what is said of it once.

    `*_low` and `*_high` are the smallest and greatest rank of a column within the transition (of
    `success` within its trajectory), equal iff there is one value; both -1 where the column is absent.
    """

    target_low: pl.Int32
    target_high: pl.Int32
    target_type_low: pl.Int32
    target_type_high: pl.Int32
    step_kind_low: pl.Int32
    step_kind_high: pl.Int32
    success_low: pl.Int32
    success_high: pl.Int32
    target_known: pl.Boolean
    candidates: pl.Int64
    stray: pl.Boolean
    rebound: pl.Boolean

    @pp.dataframe_check(error=TWO_TARGETS, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def one_target(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("target_low") == pl.col("target_high"))

    @pp.dataframe_check(error=TWO_TARGET_TYPES, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def one_target_type(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("target_type_low") == pl.col("target_type_high"))

    @pp.dataframe_check(error=TWO_STEP_KINDS, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def one_step_kind(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("step_kind_low") == pl.col("step_kind_high"))

    @pp.dataframe_check(error=TWO_SUCCESSES, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def one_success(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col("success_low") == pl.col("success_high"))

    @pp.check("target_known", error=TARGET_UNKNOWN, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def target_among_candidates(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key))

    @pp.check("candidates", error=CANDIDATES_FEW, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def two_candidates_or_more(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(pl.col(data.key) >= 2)

    @pp.check("stray", error=CANDIDATES_DIFFER, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def same_candidates_everywhere(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(~pl.col(data.key))

    @pp.check("rebound", error=CANDIDATES_REBOUND, n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def one_set_for_one_digest(cls, data: PolarsData) -> pl.LazyFrame:
        return data.lazyframe.select(~pl.col(data.key))

    class Config:
        strict = True
