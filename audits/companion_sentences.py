"""The verdicts of the audits that go beside a transport audit, in one sentence each.

As in `audits.sentence`: read off the `result` of a record, and claiming no more than its intervals do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from audits.wording import estimate, undefined

Fields = Mapping[str, Any]
Names = Mapping[str, str]


def _repeatability(result: Fields, names: Names) -> str:
    own = result["design"]["options"]["name"]
    parts = ("within_sd", "icc1", "sign_agreement")
    within, icc, agree = (result["estimates"][f"{own}.{part}"] for part in parts)
    if agree["value"] is None:
        return f"The repeatability of {names['channel']} is {undefined(agree['reason'])}."
    times = len(result["tables"]["acquisitions"])
    return (
        f"Over {times} acquisitions {names['channel']} gives one strict sign for a share of "
        f"{estimate(agree, signed=False)} of the transitions, within SD {estimate(within, signed=False)}, "
        f"ICC(1) {estimate(icc)}; this is no evidence of transport."
    )


SENTENCES: Mapping[str, Callable[[Fields, Names], str]] = {"repeatability": _repeatability}
