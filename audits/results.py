"""What an audit gives to Python: the record's content, the rows behind it, and how both are shown.

Rows are the complete transitions. In Arrow each value is its exact rational rounded once to float64; a
statistic is computed from the rationals, never from these.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from audits.wording import interval, number, undefined

if TYPE_CHECKING:
    import pyarrow as pa

    from audits.faces import Faces
    from audits.record import AuditResult
    from audits.statistics.vectors import Vector


@dataclass(frozen=True)
class Audited:
    """The result of a transport-family audit.

    `audit` is the record's content, `faces` the margins of every complete transition and the flow of all
    others, `vectors` the exact values per complete transition that the estimates summarise, by name.
    """

    audit: AuditResult
    faces: Faces
    vectors: Mapping[str, Vector]

    @property
    def result(self) -> Mapping[str, Any]:
        """The seven parts that a re-run has to give again."""
        return self.audit.result

    @property
    def estimates(self) -> Mapping[str, Any]:
        """Every estimate as the record holds it, by its id."""
        found: Mapping[str, Any] = self.result["estimates"]
        return found

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        from audits.sentence import sentence

        return sentence(self.result, **self.audit.names)

    def to_arrow(self) -> pa.Table:
        """One row per complete transition: trajectory_id, step, target, success, then every vector.

        Sorted by trajectory (UTF-8 bytes) and step. `success` is null where none is stored.
        """
        import numpy as np
        import pyarrow as pa

        faces = self.faces
        names = pa.array(faces.trajectories, pa.string())
        columns: dict[str, pa.Array] = {
            "trajectory_id": names.take(pa.array(faces.cluster)),
            "step": pa.array(faces.step),
            "target": pa.array(faces.target.names, pa.string()).take(pa.array(faces.target.codes)),
        }
        if faces.target_type is not None:
            kinds = pa.array(faces.target_type.names, pa.string())
            columns["target_type"] = kinds.take(pa.array(faces.target_type.codes))
        stored = np.asarray(faces.success)
        columns["success"] = pa.array(stored == 1, mask=stored < 0)
        columns |= {name: pa.array(vector.floats()) for name, vector in self.vectors.items()}
        return pa.table(columns)

    def _repr_html_(self) -> str:
        """A notebook's view: what came in, the sentence, and every estimate."""
        flow = self.result["flow"]
        came = (
            f"{flow['complete']:,} of {flow['transitions']:,} transitions complete, "
            f"{flow['trajectories']:,} trajectories"
        )
        return notebook_view(self.audit.audit, came, self.sentence, self.estimates)


def notebook_view(audit: str, came: str, sentence: str, estimates: Mapping[str, Any]) -> str:
    """An audit as a notebook shows it: what came in, the verdict, and a table of the estimates."""
    rows = "".join(_row(name, fields) for name, fields in estimates.items())
    head = "".join(f"<th>{text}</th>" for text in ("estimate", "value", "95 %", "verdict"))
    return (
        f"<div><p><b>{escape(audit)}</b>: {escape(came)}</p><p>{escape(sentence)}</p>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(name: str, fields: Mapping[str, Any]) -> str:
    """One estimate as a table row; what is undefined says why."""
    code, ends = fields.get("reason"), fields["ci95"]
    marks = [mark for mark in ("fragile", "mc_sensitive") if fields.get(mark)]
    signed = "verdict" in fields
    cells = (
        name,
        undefined(code) if fields["value"] is None else number(fields["value"], signed=signed),
        undefined(code) if ends is None else interval(ends, signed=signed),
        ", ".join([fields.get("verdict", ""), *marks]).strip(", "),
    )
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
