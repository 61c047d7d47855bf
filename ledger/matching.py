"""Which rows belong to a scope: channel and view source, then `where`, then acquisitions.

Text is judged once per distinct value and the verdicts spread over the rows by their codes; no condition
is handed to the Parquet reader, so nothing is judged before it is verified.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from contracts.digest import pack
from contracts.errors import UsageError
from contracts.labels import Labels
from ledger.coded import coded, numbers
from ledger.refusals import RefusedRow
from ledger.scope import Scope

OUTSIDE = -1
Arms = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class Matcher:
    """The conditions of a scope, ready to be applied to tables of entries and to refused sides."""

    scope: Scope

    @cached_property
    def conditions(self) -> tuple[tuple[str, frozenset[object]], ...]:
        """The columns to filter by with their accepted values, typed as in the column."""
        return tuple(
            (column, frozenset(_typed(column, value) for value in values))
            for column, values in self.scope.where
        )

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """What `arms` and `narrowed` read of a table."""
        named = [
            "trajectory_id",
            "view_source",
            "channel",
            "acquisition_id",
            *(c for c, _ in self.scope.where),
        ]
        return tuple(dict.fromkeys(named))

    def arms(self, table: pa.Table) -> Arms:
        """The arm of every row by channel and view source alone, OUTSIDE where it has none."""
        channel, source = coded(table["channel"]), coded(table["view_source"])
        arm = np.full(table.num_rows, OUTSIDE, np.int8)
        for index, wanted in enumerate(self.scope.arms):
            rows = spread(channel, pack(wanted.channel.fingerprint).__eq__)
            if rows.any():
                arm[rows & spread(source, wanted.takes)] = index
        return arm

    def narrowed(self, table: pa.Table, arm: Arms) -> Arms:
        """The same arms with the rows that `where` or `acquisitions` exclude put OUTSIDE."""
        arm = arm.copy()
        for column, accepted in self.conditions:
            arm[~_accepted(table, column, accepted)] = OUTSIDE
        acquisition = coded(table["acquisition_id"])
        for index, wanted in enumerate(self.scope.arms):
            named = self.scope.named(wanted)
            if named is not None:
                arm[(arm == index) & ~spread(acquisition, named.__contains__)] = OUTSIDE
        return arm

    def arm_of(self, side: RefusedRow) -> int | None:
        """The arm of a refused side by the whole scope, None where it is outside."""
        for index, arm in enumerate(self.scope.arms):
            if side.channel == arm.channel.fingerprint and arm.takes(side.view_source):
                named = self.scope.named(arm)
                inside = named is None or side.acquisition_id in named
                holds = all(getattr(side, column) in accepted for column, accepted in self.conditions)
                return index if inside and holds else None
        return None

    @property
    def trajectories(self) -> tuple[str, str] | None:
        """The first and last trajectory that `where` lets in by UTF-8 bytes, None where it lets in all."""
        named = [
            str(value)
            for column, accepted in self.conditions
            if column == "trajectory_id"
            for value in accepted
        ]
        return (min(named, key=str.encode), max(named, key=str.encode)) if named else None


def _typed(column: str, text: str) -> object:
    """A value given as text, as the column holds it; UsageError where it cannot be one."""
    if column == "step":
        if text.isascii() and text.isdigit():
            return int(text)
        raise UsageError("not a step", expected="a whole number", got=text[:80], where="--where step")
    if column == "success":
        if text in _TRUTH:
            return _TRUTH[text]
        raise UsageError(
            "not a stored success", expected="true or false", got=text[:80], where="--where success"
        )
    return text


def _accepted(table: pa.Table, column: str, accepted: frozenset[object]) -> Mask:
    """The rows whose value is one of the accepted; an absent value never is."""
    values = table[column]
    if column == "step":
        return np.isin(numbers(values), [int(str(value)) for value in accepted])
    return spread(coded(values), accepted.__contains__)


def spread(column: Labels, accepts: Callable[[Any], bool]) -> Mask:
    """A condition on values as a mask of rows; false where the value is absent."""
    verdicts = [value is not None and accepts(value) for value in column.values.to_pylist()]
    return np.array([*verdicts, False], bool)[column.codes]
