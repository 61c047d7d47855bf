"""Statements about several estimates: reversal, agreement, equivalence, bridges, simultaneous bands."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from audits.statistics import verdicts
from audits.statistics.cohort import Cohort
from audits.statistics.estimate import Estimate, Interval, Reason, Verdict
from audits.statistics.exact import Replicates
from audits.statistics.moments import Mean
from audits.statistics.vectors import Vector

ONE = 1 << 40
POSITIVE, NEGATIVE, UNRESOLVED = Verdict.POSITIVE, Verdict.NEGATIVE, Verdict.UNRESOLVED


def estimate(value: float | None, verdict: Verdict | None, **parts: Interval) -> Estimate:
    return Estimate(value, 100, 20, verdict=verdict, **parts)  # type: ignore[arg-type]


class TestValidation:
    @pytest.mark.parametrize("band", [0.0, -1.0, float("nan")])
    def test_bands_are_positive(self, band: float) -> None:
        with pytest.raises(ValueError, match="positive"):
            verdicts.equivalence(estimate(0.0, UNRESOLVED), band)

    def test_a_bridge_has_vertices(self) -> None:
        with pytest.raises(ValueError, match="vertex"):
            verdicts.bridge([])


class TestTheory:
    @pytest.mark.parametrize(
        ("ref", "alt", "point", "supported"),
        [
            ((1.0, POSITIVE), (-1.0, NEGATIVE), True, True),
            ((-1.0, NEGATIVE), (1.0, POSITIVE), True, True),
            ((1.0, POSITIVE), (-1.0, UNRESOLVED), True, False),
            ((1.0, POSITIVE), (1.0, POSITIVE), False, False),
            ((0.0, UNRESOLVED), (-1.0, NEGATIVE), False, False),
            ((1.0, None), (-1.0, None), True, False),
            ((None, None), (-1.0, NEGATIVE), False, False),
        ],
    )
    def test_reversal(
        self,
        ref: tuple[float | None, Verdict | None],
        alt: tuple[float | None, Verdict | None],
        point: bool,
        supported: bool,
    ) -> None:
        found = verdicts.strict_mean_reversal(estimate(*ref), estimate(*alt))
        assert found == verdicts.Reversal(point, supported)

    def test_a_denormal_mean_has_a_sign(self) -> None:
        found = verdicts.strict_mean_reversal(estimate(1e-300, POSITIVE), estimate(-1e-300, NEGATIVE))
        assert found.point

    def test_agreement(self) -> None:
        for parts, points, intervals in (
            ([(-1.0, NEGATIVE), (-2.0, NEGATIVE)], True, True),
            ([(-1.0, NEGATIVE), (-2.0, UNRESOLVED)], True, False),
            ([(-1.0, UNRESOLVED), (-2.0, UNRESOLVED)], True, False),
            ([(-1.0, NEGATIVE), (2.0, POSITIVE)], False, False),
            ([(0.0, UNRESOLVED), (0.0, UNRESOLVED)], False, False),
            ([(1.0, None), (1.0, None)], True, False),
        ):
            found = verdicts.agreement([estimate(*part) for part in parts])
            assert found == verdicts.Agreement(points, intervals)

    def test_location(self) -> None:
        mean = estimate(-1.0, NEGATIVE)
        assert verdicts.location_agrees(mean, mean, mean) is True
        assert verdicts.location_agrees(mean, estimate(0.1, UNRESOLVED), mean) is False
        assert verdicts.location_agrees(mean, estimate(0.1, None), mean) is None

    def test_equivalence_needs_both_intervals_strictly_inside(self) -> None:
        found = estimate(0.05, UNRESOLVED, ci90=(-0.1, 0.2), ci90_t=(-0.25, 0.15))
        for band, established in ((0.26, True), (0.25, False), (0.2, False)):
            statement = verdicts.equivalence(found, band)
            assert statement is not None
            assert (statement.established, statement.smallest_band) == (established, 0.25)

    def test_bridge(self) -> None:
        good = verdicts.Vertex(
            estimate(1.0, POSITIVE),
            estimate(-1.0, NEGATIVE),
            estimate(-2.0, NEGATIVE),
            estimate(0.1, POSITIVE),
        )
        weak = verdicts.Vertex(
            estimate(1.0, POSITIVE),
            estimate(-1.0, UNRESOLVED),
            estimate(-2.0, NEGATIVE),
            estimate(0.1, UNRESOLVED),
        )
        blind = verdicts.Vertex(good.ref, good.alt, good.interaction)
        assert verdicts.bridge([good, good]) == verdicts.Bridge(True, True, True)
        assert verdicts.bridge([good, weak]) == verdicts.Bridge(True, False, False)
        assert verdicts.bridge([good, blind]) == verdicts.Bridge(True, True, None)


class TestScipy:
    def test_the_band_of_independent_estimands_is_sidaks(self) -> None:
        rng = np.random.default_rng(1)
        everything = np.ones(200_000, dtype=np.bool_)
        replicates = {str(i): Replicates(rng.normal(size=200_000), everything) for i in range(4)}
        found = verdicts.max_t_band(dict.fromkeys(replicates, 0.0), replicates)
        assert found is not None
        reach = float(stats.norm.ppf((1 + 0.95**0.25) / 2))
        for low, high in found.values():
            assert (low, high) == pytest.approx((-reach, reach), abs=0.03)


class TestItself:
    def test_the_band_is_wider_than_each_interval_and_not_than_bonferronis(self) -> None:
        rng = np.random.default_rng(2)
        cohort = Cohort(np.arange(80, dtype=np.int32), 80, resamples=2000)
        statistics = {
            str(i): Mean(Vector(np.rint(rng.normal(size=80) * ONE).astype(np.int64), ONE)) for i in range(3)
        }
        points = {name: cohort.point(s) or 0.0 for name, s in statistics.items()}
        replicates = cohort.replicates(statistics)
        band = verdicts.max_t_band(points, replicates)
        assert band is not None
        for name, (low, high) in band.items():
            spread = float(replicates[name].values.std(ddof=1))
            assert low + high == pytest.approx(2 * points[name], abs=1e-12)
            assert 1.96 < (high - low) / 2 / spread < float(stats.norm.ppf(1 - 0.025 / 3)) + 0.1

    def test_one_estimand_alone(self) -> None:
        values = np.linspace(-1, 1, 101)
        found = verdicts.max_t_band({"a": 0.0}, {"a": Replicates(values, np.ones(101, dtype=np.bool_))})
        assert found is not None
        assert found["a"] == pytest.approx((-0.95, 0.95), abs=0.011)


class TestDegenerate:
    def test_no_ninety_percent_interval(self) -> None:
        absent = Estimate(None, 0, 0, reason=Reason.EMPTY_COHORT)
        assert verdicts.equivalence(absent, 1.0) is None

    def test_a_constant_gets_its_point(self) -> None:
        everything = np.ones(50, dtype=np.bool_)
        found = verdicts.max_t_band(
            {"flat": 2.0, "wide": 0.0},
            {
                "flat": Replicates(np.full(50, 2.0), everything),
                "wide": Replicates(np.linspace(-1, 1, 50), everything),
            },
        )
        assert found is not None
        assert found["flat"] == (2.0, 2.0)

    def test_too_many_undefined_replicates(self) -> None:
        defined = np.ones(100, dtype=np.bool_)
        defined[:2] = False
        values = Replicates(np.arange(100.0), defined)
        assert verdicts.max_t_band({"a": 50.0}, {"a": values}) is None
        defined[1] = True
        assert verdicts.max_t_band({"a": 50.0}, {"a": values}) is not None
