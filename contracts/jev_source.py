"""A predictions file on its way in: its pairs, their probabilities and its positives, as columns.

One line is one before/after pair. A value that is not what its place allows is null here and listed in
`unread`, so a bad value is a finding with its line and not the end of the reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa

TEXT = pa.dictionary(pa.int32(), pa.string())
ARMS = ("before", "after")
# Text of a pair, as files spell it; absent is null.
NAMES = (
    "query_id",
    "scenario",
    "intervention",
    "mode",
    "variant",
    "channel",
    "acquisition_id",
    "evidence_hash",
)
REQUIRED = ("year", "query_id", "scenario", "before", "after", "positive_labels")
OPTIONAL = (
    *("intervention", "mode", "channel", "acquisition_id", "variant", "evidence_hash", "label_order"),
    *("before_request_hash", "after_request_hash", "before_label_mass", "after_label_mass"),
    *("before_logits", "after_logits"),
)
KNOWN = frozenset((*REQUIRED, *OPTIONAL))
# How a label mass is known: from the whole vocabulary, as a bound from the best k, or as the file claims it.
MASS_KINDS = ("exact", "lower_bound", "given")

PAIRS = pa.schema(
    [
        pa.field("line", pa.int64()),
        pa.field("year", pa.int64()),
        *(pa.field(name, TEXT) for name in NAMES),
        *(pa.field(f"{arm}_label_mass", pa.float64()) for arm in ARMS),
        *(pa.field(f"{arm}_mass_kind", TEXT) for arm in ARMS),
    ]
)
CELLS = pa.schema(
    [
        pa.field("pair", pa.int64()),
        pa.field("arm", pa.int8()),
        pa.field("label", TEXT),
        pa.field("probability", pa.float64()),
        pa.field("request_hash", TEXT),
        pa.field("label_position", pa.int16()),
    ]
)
POSITIVES = pa.schema([pa.field("pair", pa.int64()), pa.field("label", TEXT)])


class Readout(Protocol):
    """What a readout of labels gives: conditional probabilities and label mass, None where undefined."""

    @property
    def probabilities(self) -> tuple[float, ...] | None: ...
    @property
    def mass(self) -> float | None: ...


class LabelReader(Protocol):
    """The arithmetic that reads labels out of logits; whoever decodes a file is given it."""

    def from_logits(self, vocabulary: Sequence[float], labels: Sequence[int], /) -> Readout: ...
    def from_top(self, logprobs: Sequence[float | None], /) -> Readout: ...


@dataclass(frozen=True)
class BadValue:
    """One value of one line that cannot be read as what its place allows."""

    line: int
    column: str
    code: str
    wanted: str
    got: str


@dataclass(frozen=True)
class SourcePredictions:
    """One decoded predictions file. `cells.pair` and `positives.pair` are positions in `pairs`."""

    name: str
    digest: str
    pairs: pa.Table
    cells: pa.Table
    positives: pa.Table
    unread: tuple[BadValue, ...] = ()
    ignored: tuple[str, ...] = ()

    @classmethod
    def named(cls, name: str, digest: str = "") -> SourcePredictions:
        """Nothing but the name of where pairs stand."""
        return cls(name, digest, PAIRS.empty_table(), CELLS.empty_table(), POSITIVES.empty_table())

    def without_rows(self) -> SourcePredictions:
        """The same file once its rows are gathered, which are then held there alone."""
        return replace(self.named(self.name, self.digest), unread=self.unread, ignored=self.ignored)
