"""The verdict sentence over the truth table of verdicts: what it may claim and what it has to add."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from audits.sentence import sentence
from audits.statistics.estimate import Reason
from audits.wording import REASONS

POSITIVE, NEGATIVE, ZERO = (0.2, [0.1, 0.3]), (-0.2, [-0.3, -0.1]), (-0.05, [-0.2, 0.1])
ENDS = {"positive": POSITIVE, "negative": NEGATIVE, "unresolved": ZERO}


def fields(verdict: str | None, **more: Any) -> dict[str, Any]:
    value, ends = ENDS[verdict or "negative"]
    made = {"value": value, "ci95": ends, "n": 1004, "clusters": 100, "role": "secondary", **more}
    if verdict:
        made["verdict"] = verdict
    return made


def result(
    ref: str | None = "positive",
    alt: str | None = "negative",
    interaction: str | None = "negative",
    *,
    point: bool = True,
    supported: bool = True,
    equal_supported: bool | None = True,
    equal: str | None = "negative",
    median: str | None = "negative",
    trimmed: str | None = "negative",
    quoted: str = "cohort",
    fragile: tuple[str, ...] = (),
    sensitive: tuple[str, ...] = (),
    reason: str | None = None,
) -> dict[str, Any]:
    verdicts = {"gain.ref": ref, "gain.alt": alt, "interaction": interaction}
    estimates = {}
    for name, verdict in verdicts.items():
        more: dict[str, Any] = {"reason": reason} if reason else {}
        estimates[name] = fields(verdict, fragile=name in fragile, mc_sensitive=name in sensitive, **more)
        estimates[name + "@equal-target"] = fields(verdict, **more)
    estimates["interaction@equal-target"] = fields(equal)
    estimates["interaction.median"] = fields(median)
    estimates["interaction.trimmed10"] = fields(trimmed)
    return {
        "design": {"weights": {"quoted": quoted}},
        "estimates": estimates,
        "verdicts": {
            "strict_mean_reversal": {
                "point": point,
                "point@equal-target": point,
                "supported": supported,
                "supported@equal-target": equal_supported,
            }
        },
    }


def said(**parts: Any) -> str:
    text = sentence(result(**parts), ref="direct", alt="generated")
    assert text.endswith(".")
    assert text.count(". ") == 0, "one sentence"
    return text


def test_supported_reversal_with_everything_agreeing_has_no_reservation() -> None:
    text = said()
    assert "a strict reversal of the mean gain is supported" in text
    assert "the mean interaction is negative, -0.200 [-0.300, -0.100]" in text
    for word in ("fragile", "not share", "not supported", "resamples", "with equal target weights"):
        assert word not in text


@pytest.mark.parametrize(("point", "supported"), [(True, True), (True, False), (False, False)])
def test_a_reversal_is_claimed_only_when_both_intervals_carry_it(point: bool, supported: bool) -> None:
    text = said(point=point, supported=supported, equal_supported=supported)
    assert ("a strict reversal of the mean gain is supported" in text) is supported
    assert ("as points only, no reversal is supported" in text) is (point and not supported)
    assert ("no reversal is shown" in text) is not point


@pytest.mark.parametrize("verdict", ["positive", "negative", "unresolved"])
def test_the_interaction_reads_as_its_verdict(verdict: str) -> None:
    text = said(interaction=verdict, equal=verdict, median=verdict, trimmed=verdict)
    claimed = [word for word in ("positive", "negative") if f"the mean interaction is {word}" in text]
    assert claimed == ([] if verdict == "unresolved" else [verdict])
    assert ("sign of the mean interaction is unresolved" in text) is (verdict == "unresolved")


@pytest.mark.parametrize(
    ("mean", "median", "trimmed"), list(product(["positive", "negative", "unresolved"], repeat=3))
)
def test_a_location_that_disagrees_is_named_and_no_other(mean: str, median: str, trimmed: str) -> None:
    text = said(interaction=mean, median=median, trimmed=trimmed, equal=mean)
    assert ("the median" in text) is (median != mean)
    assert ("the trimmed mean" in text) is (trimmed != mean)
    assert ("not share" in text) is (median != mean or trimmed != mean)
    for verdict in {median, trimmed} - {mean}:
        assert f"({verdict})" in text or f"(both {verdict})" in text


def test_fragile_names_the_estimate_whose_intervals_disagree() -> None:
    assert "fragile: the t interval gives another verdict for gain.alt" in said(fragile=("gain.alt",))
    both = said(fragile=("gain.ref", "interaction"))
    assert "another verdict for gain.ref and interaction" in both


def test_monte_carlo_sensitivity_is_said() -> None:
    assert "more resamples could turn the verdict for interaction" in said(sensitive=("interaction",))


def test_too_few_clusters_gives_numbers_and_no_verdict() -> None:
    text = said(
        ref=None, alt=None, interaction=None, equal=None, median=None, trimmed=None,
        supported=False, equal_supported=False, reason="too_few_clusters",
    )  # fmt: skip
    assert "without a verdict (fewer than 10 trajectories)" in text
    assert "is supported" not in text.replace("no reversal is supported", "")
    for word in ("interaction is negative", "interaction is positive", "unresolved"):
        assert word not in text


def test_one_cluster_keeps_the_point_and_says_why_there_is_no_interval() -> None:
    made = result(supported=False, equal_supported=None)
    for name in made["estimates"].values():
        name.update(ci95=None, reason="one_cluster", clusters=1)
        name.pop("verdict", None)
    text = sentence(made, ref="a", alt="b")
    assert "-0.200 [interval undefined (one trajectory has no spread to resample)]" in text


def test_empty_cohort_has_no_number() -> None:
    made = result()
    made["estimates"]["interaction"] = {"value": None, "ci95": None, "reason": "empty_cohort"}
    assert sentence(made, ref="a", alt="b") == (
        "Cohort-weighted, the interaction is undefined (no complete transition)."
    )


def test_the_other_weighting_is_named_when_it_supports_something_else() -> None:
    assert "with equal target weights the reversal is not supported" in said(equal_supported=False)
    assert "with equal target weights the interaction is unresolved" in said(equal="unresolved")
    assert "equal target weights" not in said(equal_supported=None, equal=None)


def test_equal_target_quoted_takes_its_own_numbers_and_verdict() -> None:
    text = said(quoted="equal-target", equal="unresolved", equal_supported=False)
    assert text.startswith("With equal target weights, the sign")
    assert "sign of the mean interaction is unresolved, -0.050" in text
    assert "no reversal is supported" in text
    assert "cohort-weighted the reversal is supported" in text
    assert "which the median and the trimmed mean (both negative) do not share" in text


def test_a_missing_corner_has_no_number_and_a_declared_range_only_its_interval() -> None:
    made = result()
    made["verdicts"]["identification"] = {"missing": [["alt", "after"]]}
    text = sentence(made, ref="direct", alt="generated")
    assert text == "The interaction is not identified: no complete scores of the corner (generated, after)."
    made["verdicts"]["identification"] |= {"range": [0.0, 3.0], "interval": [-2.5, 0.5]}
    text = sentence(made, ref="direct", alt="generated")
    assert "not identified" in text
    assert "would lie in [-2.500, +0.500]" in text
    made["verdicts"]["identification"] |= {"interval": None, "reason": "empty_cohort"}
    text = sentence(made, ref="direct", alt="generated")
    assert "no interval follows from the declared range (no complete transition)" in text


def test_every_reason_for_an_absent_number_has_words() -> None:
    assert {code.value for code in Reason} <= set(REASONS)


def test_rounding_never_hides_a_sign() -> None:
    made = result()
    made["estimates"]["interaction"].update(value=-0.0004, ci95=[-0.0009, -0.00001])
    text = sentence(made, ref="a", alt="b")
    assert "-4.0e-04 [-0.001, -1.0e-05]" in text
