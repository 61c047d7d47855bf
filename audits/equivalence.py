"""The equivalence statement of an audit: is its primary estimate within a band that was declared for it?

Never that two things are different: an interval that leaves the band only says that it was not shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from audits.design import Design
from audits.statistics import verdicts
from audits.statistics.estimate import Estimate
from contracts.errors import UsageError

BAND = "band"


def band_options(band: float | None) -> dict[str, Any]:
    """The band d > 0 as an option of a design; nothing where none is declared."""
    if band is None:
        return {}
    if not 0 < band < math.inf:
        raise UsageError("not an equivalence band", expected="a number above 0", got=band, where="--band")
    return {BAND: float(band)}


def band_of(design: Design) -> float | None:
    """The band a design declares."""
    band = design.options.get(BAND)
    return None if band is None else float(band)


def equivalence(found: Mapping[str, Estimate], design: Design) -> dict[str, Any]:
    """The statement as a verdict of the record; nothing where the design declares no band.

    `smallest_band` is known only afterwards, so it is no declaration. A band counts as prespecified only
    by a plan that precedes the scores.
    """
    band = band_of(design)
    if band is None:
        return {}
    estimate = found[design.primary]
    stated = verdicts.equivalence(estimate, band)
    said: dict[str, Any] = {"of": design.primary, "band": band, "prespecified": False}
    if stated is None:
        why = None if estimate.reason is None else estimate.reason.value
        return {"equivalence": said | {"established": None, "smallest_band": None, "reason": why}}
    return {"equivalence": said | {"established": stated.established, "smallest_band": stated.smallest_band}}
