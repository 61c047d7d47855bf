"""Running a pandera model so that nothing outside the program can switch its checks off.

pandera reads PANDERA_VALIDATION_ENABLED, PANDERA_VALIDATION_DEPTH and PANDERA_USE_NARWHALS_BACKEND when it
is imported, and checks only the column types of a LazyFrame. A contract that an environment variable can
disarm is none, so every model of this package is run through `failures`.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import numpy as np
import pandera.polars as pp
import polars as pl
from numpy.typing import NDArray
from pandera.config import ValidationDepth, config_context, get_config_global, set_config
from pandera.errors import SchemaError, SchemaErrors


def _without_strategies() -> None:
    """Imports what pandera would at its first use, but without hypothesis.

    It looks for it to offer strategies for tests, and would import all of it wherever it happens to be
    installed; nothing here asks for strategies.
    """
    hidden = "hypothesis" not in sys.modules
    if hidden:
        sys.modules["hypothesis"] = None  # type: ignore[assignment]
    try:
        importlib.import_module("pandera.strategies.base_strategies")
    finally:
        if hidden:
            del sys.modules["hypothesis"]


_without_strategies()
# pandera renders failure cases one Python object each; the rows come from the check's mask instead.
N_FAILURE_CASES = 3
_ONE_AT_A_TIME = Lock()  # what `forced` sets is set for the whole process


@contextmanager
def forced() -> Iterator[None]:
    """Full validation by pandera's own polars engine inside this block, whatever the environment says.

    The engine is a registry of the process, so asking for another one is undone for good.
    """
    if get_config_global().use_narwhals_backend:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            set_config(use_narwhals_backend=False)
    with config_context(validation_enabled=True, validation_depth=ValidationDepth.SCHEMA_AND_DATA):
        yield


@dataclass(frozen=True)
class Failure:
    """One check of a model that failed: its name, its column (None for a check of the frame), its rows.

    `rows` are positions in the frame, ascending. A check is named by its `error` text where it has one,
    else by its function; a wrong or absent column by pandera's own reason, with no rows.
    """

    check: str
    column: str | None
    rows: NDArray[np.int64]


def failures(model: type[pp.DataFrameModel], frame: pl.DataFrame) -> tuple[Failure, ...]:
    """All failing checks of `model` on `frame`, every check run, all failing rows found.

    The frame must be eager and free of Binary columns: a failing check of the frame panics in polars
    when pandera renders such a row, past every `except Exception`.
    """
    assert isinstance(frame, pl.DataFrame), "a LazyFrame would have its data checks skipped"
    assert pl.Binary not in frame.dtypes, "judge a projection without Binary columns"
    try:
        with _ONE_AT_A_TIME, forced():
            model.validate(frame, lazy=True)
    except SchemaErrors as error:
        return tuple(_failure(each, frame.height) for each in error.schema_errors)
    return ()


def _failure(error: SchemaError, height: int) -> Failure:
    check = error.check
    name = (
        check if isinstance(check, str) else (getattr(check, "error", None) or getattr(check, "name", None))
    )
    on_frame = isinstance(error.schema, pp.DataFrameSchema)
    rows = np.empty(0, dtype=np.int64)
    output = error.check_output
    if isinstance(output, pl.DataFrame) and output.height == height:
        rows = np.flatnonzero(~output.to_series().fill_null(value=False).to_numpy())
    reason = "unknown" if error.reason_code is None else error.reason_code.name
    return Failure(str(name or reason), None if on_frame else error.schema.name, rows)
