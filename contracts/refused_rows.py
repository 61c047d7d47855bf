"""What is said and kept of the sides of a call that are refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from contracts.findings import Findings
from contracts.labels import Mask
from contracts.order import Ints
from contracts.ordered import Ordered
from contracts.schema import REFUSED
from contracts.side_faults import row_faults, side_faults
from contracts.side_findings import reject, report
from contracts.side_sentences import Scene
from contracts.side_table import side_table
from contracts.sides import Rows, Sides

Verdicts = Mapping[str, Mask]


class Refusing:
    """The sides of a call and what is known about them; `names`, `layouts`, `labels` by rank of channel."""

    def __init__(
        self, ordered: Ordered, rows: Rows, sides: Sides, names: Sequence[str], layouts: Ints, labels: Ints
    ) -> None:
        self.ordered = ordered
        self.kind = row_faults(rows, sides)
        self.scene = Scene(
            rows, sides, self.kind, ordered.status, tuple(names), layouts, labels, ordered.origin
        )

    def tell(self, findings: Findings, of_side: Verdicts, of_transition: Verdicts) -> None:
        """Findings and rejects of everything that a side or a transition breaks."""
        report(findings, self.scene, self.ordered.said, of_side, of_transition)
        reject(findings, self.scene, self.ordered.said, of_side, of_transition)

    def tables(self, refused: Mask, of_side: Verdicts, of_transition: Verdicts) -> tuple[pa.Table, pa.Table]:
        """The fresh rows of the `refused` sides as REFUSED in canonical order, and these sides as SIDES."""
        rows, sides = self.scene.rows, self.scene.sides
        at = self.ordered.by_content(np.flatnonzero(rows.fresh & refused[sides.side]))
        table = self.ordered.take(at, REFUSED.names)
        faults = side_faults(rows, sides, np.flatnonzero(refused), self.kind)
        number = (np.cumsum(refused) - 1)[sides.side[at]]
        return table, side_table(self.scene, faults, table, number, of_side, of_transition)
