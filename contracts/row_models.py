"""The row level of the contract as pandera models: what one value, and one row, may be.

Text is judged label by label (a frame of distinct values), rows on a frame of numbers and flags, so no
frame here holds a Binary column or a payload. Each check is named by the code of the finding it becomes;
null passes except where a check is about null.
"""

from __future__ import annotations

import pandera.polars as pp
import polars as pl
from pandera.api.polars.types import PolarsData

from contracts.pandera_config import N_FAILURE_CASES

MAX_LABEL_BYTES = 4096  # two ids of a segment's range must fit an event of 64 KiB
MAX_ENERGY = 2.0**20
MAX_INT32 = 2**31 - 1
MAX_INT16 = 2**15 - 1
STATUSES = ("ok", "refused", "parse_error", "timeout", "error")
ENDPOINTS = ("after", "before")
REQUIRED_TEXT = ("trajectory_id", "endpoint", "channel", "acquisition_id", "candidate", "target")
# A donor step is written as integers are: no sign, no leading zero.
DONOR = r"donor:(?P<trajectory>.+?)(?:/(?P<step>0|[1-9][0-9]{0,9}))?"
# Format characters, code points a renderer drops, and spaces that pass for the usual one.
UNSEEN = r"[\p{Cf}\p{Default_Ignorable_Code_Point}\p{Zs}--\x20]"
CONTROL = r"[\p{Cc}\p{Zl}\p{Zp}]"


def _holds(data: PolarsData, expression: pl.Expr) -> pl.LazyFrame:
    return data.lazyframe.select(expression)


class Label(pp.DataFrameModel):
    """A name people chose: an id, a candidate, an acquisition, a type."""

    value: pl.String = pp.Field(nullable=True)

    @pp.check("value", error="empty", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _not_empty(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("value") != "")

    @pp.check("value", error="too-long", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _short(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("value").str.len_bytes() <= MAX_LABEL_BYTES)

    @pp.check("value", error="control-character", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _no_control(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("value").str.contains(CONTROL))

    @pp.check("value", error="outer-space", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _trimmed(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~(pl.col("value").str.starts_with(" ") | pl.col("value").str.ends_with(" ")))

    @pp.check("value", error="look-alike", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _all_seen(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("value").str.contains(UNSEEN))

    @pp.check("value", error="not-nfc", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _normal(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("value").str.normalize("NFC") == pl.col("value"))


class ViewSource(Label):
    """Whose view was shown: `own`, `before`, `after`, or `donor:<trajectory>[/<step>]`."""

    @pp.check("value", error="view-source-syntax", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _known(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("value").str.contains(rf"\A(?:own|before|after|(?s:{DONOR}))\z"))


class Endpoint(pp.DataFrameModel):
    """Which end of the transition."""

    value: pl.String = pp.Field(nullable=True)

    @pp.check("value", error="endpoint-unknown", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _known(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("value").is_in(ENDPOINTS))


class Status(pp.DataFrameModel):
    """How the reading went."""

    value: pl.String = pp.Field(nullable=True)

    @pp.check("value", error="status-unknown", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _known(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("value").is_in(STATUSES))


class DigestText(pp.DataFrameModel):
    """A digest as people write it, whole and nothing else."""

    value: pl.String = pp.Field(nullable=True)

    @pp.check("value", error="bad-digest", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _whole(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("value").str.contains(r"\A(?:blake3|sha256):[0-9a-f]{64}\z"))


class ScoreRow(pp.DataFrameModel):
    """One score: its numbers, and what its channel and its status ask of it.

    Text columns stand as label codes, -1 where the row has none. `layouts` is L of the row's channel; a
    row of unknown status is neither `ok` nor `failed`; `in_single` marks an energy that came as float32
    from a channel that does not read in float32.
    """

    trajectory_id: pl.Int32
    endpoint: pl.Int32
    channel: pl.Int32
    acquisition_id: pl.Int32
    candidate: pl.Int32
    target: pl.Int32
    step: pl.Int64 = pp.Field(nullable=True)
    layout: pl.Int64 = pp.Field(nullable=True)
    layouts: pl.Int64 = pp.Field(nullable=True)
    position: pl.Int64 = pp.Field(nullable=True)
    energy: pl.Float64 = pp.Field(nullable=True)
    label_mass: pl.Float64 = pp.Field(nullable=True)
    ok: pl.Boolean
    failed: pl.Boolean
    in_single: pl.Boolean

    @pp.check(*REQUIRED_TEXT, error="null", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _named(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col(data.key) >= 0)

    @pp.check("step", "layout", error="null", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _numbered(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col(data.key).is_not_null())

    @pp.check("step", error="step-range", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _step(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("step").is_between(0, MAX_INT32))

    @pp.check("position", error="position-range", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _position(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, pl.col("position").is_between(0, MAX_INT16))

    @pp.check("label_mass", error="label-mass-range", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _mass(cls, data: PolarsData) -> pl.LazyFrame:
        # NaN compares above every number in polars, so the upper bound refuses it too.
        return _holds(data, (pl.col("label_mass") >= 0) & (pl.col("label_mass") <= 1))

    @pp.check("energy", error="nan", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _number(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("energy").is_nan())

    @pp.check("energy", error="infinite", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _finite(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("energy").is_infinite())

    @pp.check("energy", error="energy-too-large", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _bounded(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("energy").is_finite() | (pl.col("energy").abs() <= MAX_ENERGY))

    @pp.dataframe_check(error="null-energy", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _scored(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("ok") | pl.col("energy").is_not_null())

    @pp.dataframe_check(error="energy-with-status", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _failed(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("failed") | pl.col("energy").is_null() | ~pl.col("energy").is_finite())

    @pp.dataframe_check(error="float32-energy", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _double(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(data, ~pl.col("in_single"))

    @pp.dataframe_check(error="layout-out-of-range", n_failure_cases=N_FAILURE_CASES)
    @classmethod
    def _layout(cls, data: PolarsData) -> pl.LazyFrame:
        return _holds(
            data, (pl.col("layout") >= 0) & (pl.col("layout") < pl.col("layouts")).fill_null(value=True)
        )

    class Config:
        strict = True
