"""The shared cohorts against answers that were computed independently, and against what mistakes return."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from audits.statistics import auc, clusters, flips, jev, label_mass, sensitivity, vectors, verdicts
from audits.statistics.cohort import Cohort, Statistic
from audits.statistics.estimate import Estimate
from audits.statistics.moments import Mean, TypeMean, Types, share, type_counts
from audits.statistics.order import Median, Ordered, Trimmed
from audits.statistics.repeatability import repeatability
from audits.statistics.vectors import Vector
from tests.audits.statistics.cohorts import (
    Faces,
    answers,
    channel,
    faces,
    matches,
    near,
    pairs_by_year,
    shared,
)

VERTICES = ("A", "B", "C")


class Contrast:
    """Everything one ref/alt pair is asked, on one set of draws."""

    def __init__(self, data: Faces) -> None:
        self.faces = data
        self.cohort = data.cohort()
        self.ref, self.alt = (vectors.gain(m) for m in data.margins[:2])
        self.omega = vectors.interaction(self.ref, self.alt)
        self.diagonal = vectors.diagonal(*data.margins[:2])
        self.layouts = [
            vectors.interaction(a, b)
            for a, b in zip(*(vectors.layout_gains(m) for m in data.margins[:2]), strict=True)
        ]
        names, codes = np.unique(data.targets, return_inverse=True)
        self.types = Types(codes.astype(np.int32), tuple(names.tolist()))
        ordered = Ordered(self.cohort, self.omega)
        three = {"gain.ref": self.ref, "gain.alt": self.alt, "interaction": self.omega}
        statistics: dict[str, Statistic] = {
            **{name: Mean(v) for name, v in three.items()},
            **{f"{name}@equal-target": TypeMean(v, self.types) for name, v in three.items()},
            **{f"interaction.layout.{i}": Mean(v) for i, v in enumerate(self.layouts)},
            "interaction.median": Median(ordered),
            "interaction.trimmed10": Trimmed(ordered),
            "interaction.negative_share": share(self.omega.signs < 0),
            "flip_share": flips.flip_share(self.ref, self.alt),
            "flip_direction_difference": flips.direction_difference(self.ref, self.alt),
            "diagonal": Mean(self.diagonal.diagonal),
            "baseline_shift": Mean(self.diagonal.baseline_shift),
        }
        self.estimates: dict[str, Estimate] = self.cohort.evaluate(statistics)


@pytest.fixture(scope="module")
def main() -> Contrast:
    return Contrast(faces("cohort/scores.parquet", channel("direct"), channel("generated")))


@pytest.fixture(scope="module")
def asv() -> Any:
    return answers()["asv"]


class TestMainCohort:
    def test_who_is_in(self, main: Contrast, asv: Any) -> None:
        data = main.faces
        assert (data.transitions, main.cohort.rows) == (asv["n_transitions"], asv["n_complete"])
        assert (main.cohort.clusters, data.transitions - main.cohort.rows) == (
            asv["n_trajectories"],
            asv["n_excluded"],
        )

    @pytest.mark.parametrize(
        ("name", "key"), [("gain.ref", "g_ref"), ("gain.alt", "g_alt"), ("interaction", "omega")]
    )
    def test_means(self, main: Contrast, asv: Any, name: str, key: str) -> None:
        matches(main.estimates[name], asv[key])
        weighted = main.estimates[f"{name}@equal-target"]
        matches(weighted, asv["equal_target"][key])
        assert weighted.undefined_replicates == asv["equal_target"][key]["undefined_replicates"]
        near(main.estimates[name].ci95_t, asv["extra"]["ci95_t"][name])

    def test_location(self, main: Contrast, asv: Any) -> None:
        omega, found = asv["omega"], main.estimates
        matches(found["interaction.median"], {"value": omega["median"], "ci95": omega["median_ci95"]})
        matches(
            found["interaction.trimmed10"], {"value": omega["trimmed10"], "ci95": omega["trimmed10_ci95"]}
        )
        three = [found[f"interaction{suffix}"] for suffix in ("", ".median", ".trimmed10")]
        assert verdicts.location_agrees(*three) is False

    def test_layouts(self, main: Contrast, asv: Any) -> None:
        found = [main.estimates[f"interaction.layout.{i}"] for i in range(4)]
        for estimate, value, ci in zip(
            found, asv["omega"]["layouts"], asv["omega"]["layouts_ci95"], strict=True
        ):
            matches(estimate, {"value": value, "ci95": ci})
        assert verdicts.agreement(found) == verdicts.Agreement(points_agree=True, intervals_agree=True)
        assert vectors.mean_of(main.layouts).mean == main.omega.mean

    @pytest.mark.parametrize(
        "name", ["flip_share", "flip_direction_difference", "interaction.negative_share"]
    )
    def test_rates(self, main: Contrast, asv: Any, name: str) -> None:
        matches(main.estimates[name], asv["extra"][name], rate="direction" not in name)

    def test_tables(self, main: Contrast, asv: Any) -> None:
        table = flips.table(main.ref, main.alt)
        want = asv["flips"]
        assert table.strict_flips == want.pop("strict_flips")
        assert table.as_dict() == want
        quartiles = flips.by_quartile(main.ref, main.alt)
        assert [q.transitions for q in quartiles] == [251, 251, 251, 251]
        assert sum(q.pos_to_neg for q in quartiles) == want["pos_to_neg"]
        signs = flips.signs(main.omega)
        assert (signs.negative, signs.zero) == (asv["omega"]["n_negative"], asv["omega"]["n_zero"])
        counts = {row.name: row.transitions for row in type_counts(main.cohort, main.types)}
        assert counts == asv["target_counts"]

    def test_leave_one_out(self, main: Contrast, asv: Any) -> None:
        found = clusters.leave_one_out(main.cohort, main.omega)
        assert found is not None
        near([found.min, found.max], asv["omega"]["loo"])
        names = main.faces.trajectories
        assert [names[found.min_without], names[found.max_without]] == [
            asv["extra"]["leave_one_out_without"][end][1] for end in ("min", "max")
        ]
        assert found.sign_kept

    def test_sensitivity(self, main: Contrast, asv: Any) -> None:
        ref, alt = main.ref.mean, main.alt.mean
        assert ref is not None
        assert alt is not None
        threshold = sensitivity.pooled_sign_threshold(ref, alt)
        assert threshold is not None
        near(float(threshold), asv["pooled_sign_threshold"])
        assert sensitivity.recalibration_ratio(ref, alt) is None
        tipping = asv["extra"]["tipping_mean_of_excluded"]
        for name, vector in (("interaction", main.omega), ("gain.ref", main.ref)):
            mean = sensitivity.tipping_mean(vector.total, asv["n_excluded"])
            assert mean is not None
            assert round(float(mean), 3) == tipping[name]
        near(clusters.cr1(main.cohort, main.omega), asv["omega"]["se_cr1"])
        effect = clusters.design_effect(main.cohort, main.omega)
        assert effect is not None
        assert round(effect, 3) == asv["extra"]["design_effect"]

    def test_diagonal(self, main: Contrast, asv: Any) -> None:
        parts, want = main.diagonal, asv["diagonal"]
        for vector, key in (
            (parts.diagonal, "mean"),
            (parts.reference_gain, "reference_gain"),
            (parts.baseline_shift, "baseline_shift"),
            (parts.interaction, "interaction"),
        ):
            assert vector.mean is not None
            near(float(vector.mean), want[key])
        added = vectors.combine((1, parts.reference_gain), (1, parts.baseline_shift), (1, parts.interaction))
        difference = vectors.combine((1, added), (-1, parts.diagonal))
        assert not difference.numerators.any()

    def test_reversal(self, main: Contrast, asv: Any) -> None:
        e, want = main.estimates, asv["strict_mean_reversal"]
        plain = verdicts.strict_mean_reversal(e["gain.ref"], e["gain.alt"])
        weighted = verdicts.strict_mean_reversal(e["gain.ref@equal-target"], e["gain.alt@equal-target"])
        assert (plain.point, plain.supported) == (want["point"], want["supported"])
        assert weighted.supported == want["supported_equal_target"]

    def test_no_mistake_is_returned(self, main: Contrast) -> None:
        wrong = json.loads(shared("cohort/traps.json").read_text())["wrong"]
        right = json.loads(shared("cohort/traps.json").read_text())["right"]
        e, loo = main.estimates, clusters.leave_one_out(main.cohort, main.omega)
        near(e["interaction"].value, right["omega"])
        near(e["interaction.trimmed10"].value, right["trimmed10"])
        assert loo is not None
        stands_for: dict[str, Any] = {
            "mean_of_trajectory_means": e["interaction"].value,
            "row_level_ci95": e["interaction"].ci95,
            "available_case": [main.cohort.rows, e["interaction"].value],
            "margin_of_mean_energies": [e["interaction"].value, flips.signs(main.omega).negative],
            "trim_5pct_each_side": e["interaction.trimmed10"].value,
            "loo_transition": [loo.min, loo.max],
            "ci_of_diff_from_separate_cis": e["interaction"].ci95,
        }
        for name, value in stands_for.items():
            assert not np.any(np.isclose(value, wrong[name], rtol=0, atol=1e-9)), name


def test_retrieval_face() -> None:
    data = faces(
        "cohort/retrieval_face.parquet",
        channel("cube/generated-neutral", "before"),
        channel("cube/generated-neutral", "after"),
    )
    corners = [[vectors.corner(arm, endpoint) for arm in data.margins] for endpoint in (0, 1)]
    face = vectors.shapley(*corners[0], *corners[1])
    found = data.cohort().evaluate(
        {name: Mean(getattr(face, name)) for name in ("state", "view", "diagonal")},
        bands=dict.fromkeys(("state", "view", "diagonal"), 1.0),
    )
    for name, estimate in found.items():
        matches(estimate, answers()["face"][name])
    assert not vectors.combine((1, face.state), (1, face.view), (-1, face.diagonal)).numerators.any()
    paths = vectors.combine((1, face.state_view_before), (1, face.view_state_after), (-1, face.diagonal))
    assert not paths.numerators.any()


def test_cube() -> None:
    want = answers()["cube"]
    cells = [
        f"{view}_{authority}"
        for view in ("empty", "quote", "generated")
        for authority in ("neutral", "evidence")
    ]
    data = faces("cohort/cube.parquet", *(channel(f"cube/{cell.replace('_', '-')}") for cell in cells))
    gain = dict(zip(cells, map(vectors.gain, data.margins), strict=True))
    contrast = {
        f"{short}_{authority}": vectors.interaction(gain[f"{ref}_{authority}"], gain[f"{alt}_{authority}"])
        for authority in ("neutral", "evidence")
        for short, alt, ref in (("gq", "generated", "quote"), ("qe", "quote", "empty"))
    }
    every: dict[str, Vector] = {
        **gain,
        **contrast,
        "authority_change": vectors.interaction(contrast["gq_neutral"], contrast["gq_evidence"]),
        "contrast_difference_neutral": vectors.interaction(contrast["qe_neutral"], contrast["gq_neutral"]),
    }
    band = want["equivalence"]["band"][1]
    banded = [name for name in every if "ci90" in want[name]]
    found = data.cohort().evaluate({n: Mean(v) for n, v in every.items()}, bands=dict.fromkeys(banded, band))
    for name, estimate in found.items():
        matches(estimate, want[name])
    statement = verdicts.equivalence(found["authority_change"], band)
    assert statement is not None
    assert statement.established is want["equivalence"]["established"]
    mirrored = vectors.interaction(gain["generated_neutral"], gain["quote_neutral"])
    assert vectors.combine((1, mirrored), (1, contrast["gq_neutral"])).mean == 0


def test_controls() -> None:
    want = answers()["controls"]
    own = channel("control/generated-neutral", "own")
    for name, ref, alt in (
        ("own_minus_donor", channel("control/generated-neutral", "donor"), own),
        ("order_shift", own, channel("control/generated-viewfirst", "own")),
        ("authority_shift", own, channel("control/generated-evidence", "own")),
    ):
        data = faces("cohort/controls.parquet", ref, alt)
        omega = vectors.interaction(*(vectors.gain(m) for m in data.margins))
        matches(
            data.cohort().evaluate({"interaction": Mean(omega)}, bands={"interaction": 1.0})["interaction"],
            want[name],
        )


def test_bridge() -> None:
    want = answers()["bridge"]
    kinds = [(vertex, kind) for vertex in VERTICES for kind in ("quote", "generated")]
    data = faces("cohort/bridge.parquet", *(channel(f"bridge/{vertex}-{kind}") for vertex, kind in kinds))
    margins = dict(zip(kinds, data.margins, strict=True))
    cohort, fewer = data.cohort(), data.cohort(resamples=2000)
    assert data.success is not None
    statistics: dict[tuple[str, str], Vector] = {}
    gaps: dict[str, auc.Auc] = {}
    for vertex in VERTICES:
        ref, alt = (vectors.gain(margins[vertex, kind]) for kind in ("quote", "generated"))
        statistics |= {
            (vertex, "q"): ref,
            (vertex, "g"): alt,
            (vertex, "omega"): vectors.interaction(ref, alt),
        }
        gaps[vertex] = auc.paired(fewer, ref, alt, data.success.astype(np.int8))
        gap, answer = gaps[vertex], want[vertex]["auc"]
        matches(gap.gap, answer)
        near(
            [gap.ref.value, gap.alt.value, gap.delong_se],
            [answer["auc1"], answer["auc2"], answer["delong_se"]],
        )
        assert gap.gap.undefined_replicates == answer["undefined_replicates"]
        for kind in ("quote", "generated"):
            gains = vectors.acquisition_gains(margins[vertex, kind])
            agreement = repeatability(cohort, gains)
            for name, value in want[vertex][f"repeat_{kind}"].items():
                near(getattr(agreement, name).value, value)
    found = cohort.evaluate(
        {"/".join(key): Mean(v) for key, v in statistics.items()},
        bands={"/".join(k): 1.0 for k in statistics},
    )
    for (vertex, name), _ in statistics.items():
        matches(found[f"{vertex}/{name}"], want[vertex][name])
    joined = verdicts.bridge(
        [
            verdicts.Vertex(found[f"{v}/q"], found[f"{v}/g"], found[f"{v}/omega"], gaps[v].gap)
            for v in VERTICES
        ]
    )
    conjunction = want["conjunction"]
    assert joined == verdicts.Bridge(
        all_interactions_negative=conjunction["all_omega_negative"],
        strict_reversal_everywhere=conjunction["strict_reversal_everywhere"],
        all_auc_gaps_positive=conjunction["all_auc_positive"],
    )


JEV_NAMES = {
    "strict_flip": "strict_flip",
    "tie": "tie",
    "action_change": "action_change",
    **{
        f"{kind}_accuracy_{arm}": f"{kind}_acc_{short}"
        for kind in ("binary", "action")
        for arm, short in (("before", "before"), ("after", "after"), ("difference", "diff"))
    },
}


@pytest.mark.parametrize("uneven", [False, True])
def test_jev(uneven: bool) -> None:
    want = (
        json.loads(shared("cohort/traps.json").read_text())["right"]["jev_uneven"]
        if uneven
        else answers()["jev"]
    )
    wrong = json.loads(shared("cohort/traps.json").read_text())["wrong"]
    path = "cohort/jev_pairs_uneven.jsonl" if uneven else "cohort/jev_pairs.jsonl"
    for year, pairs in pairs_by_year(path).items():
        answer = want[str(year)]
        queries, found = jev.Queries(pairs), jev.answers(pairs)
        cohort = jev.year_cohort(queries.queries, year)
        estimates = jev.evaluate(queries, found, cohort)
        assert (cohort.clusters, len(pairs.query)) == (answer["n_queries"], answer["n_rows"])
        assert set(estimates) == set(JEV_NAMES)
        for name, key in JEV_NAMES.items():
            if key in answer:
                matches(estimates[name], answer[key], rate=name not in jev.DIFFERENCES)
        for name, count in answer.get("counts", {}).items():
            assert found.counts[name] == count
        if uneven:
            pooled = wrong[f"jev_uneven_{year}_targets_pooled_flip"]
            assert abs((estimates["strict_flip"].value or 0) - pooled) > 1e-3
        else:
            uneven_answers = json.loads(shared("cohort/traps.json").read_text())["right"]["jev_uneven"][
                str(year)
            ]
            assert (
                found.actions_changed_without_flip
                == uneven_answers["actions_changed_without_any_flip_in_jev_pairs"]
            )


def test_label_mass() -> None:
    lines = shared("cohort/jev_logits.jsonl").read_text().splitlines()
    for line, want in zip(lines, answers()["label_mass_first3"], strict=False):
        row = json.loads(line)
        found = label_mass.from_logits(row["vocab"], row["allowed"])
        near(found.probabilities, want["cond"])
        near(found.mass, want["mass"])
        near(label_mass.preference_of_logits(row["vocab"][row["A"]], row["vocab"][row["B"]]), want["pref_AB"])


@pytest.mark.parametrize("place", range(3))
def test_other_peoples_judges(place: int) -> None:
    want = answers("real/mtbench/answers.json")[place]
    found = Contrast(faces("real/mtbench/mtbench_scores.parquet", channel(want["ref"]), channel(want["alt"])))
    assert (found.faces.transitions, found.cohort.rows, found.cohort.clusters) == (
        want["n_transitions"],
        want["n_complete"],
        want["n_trajectories"],
    )
    for name, key in (("gain.ref", "g_ref"), ("gain.alt", "g_alt"), ("interaction", "omega")):
        matches(found.estimates[name], want[key])
    near(found.estimates["interaction.median"].value, want["median"])
    near(found.estimates["interaction.trimmed10"].value, want["trimmed10"])
    loo = clusters.leave_one_out(found.cohort, found.omega)
    assert loo is not None
    near([loo.min, loo.max], want["loo"])
    signs = flips.signs(found.omega)
    assert (signs.negative, signs.zero) == (want["n_negative"], want["n_zero"])
    table = flips.table(found.ref, found.alt)
    assert {**table.as_dict(), "strict_flips": table.strict_flips} == want["flips"]
    wrong = json.loads(shared("cohort/traps.json").read_text())["wrong"]
    interval = found.estimates["interaction"].ci95
    assert interval is not None
    assert not np.allclose(
        interval, wrong["omega_bootstrap_numbering_all_trajectories_in_mtbench"], atol=1e-4
    )


@pytest.fixture(scope="module")
def edge() -> Any:
    return json.loads(shared("cohort/edge_cases.json").read_text())


@pytest.fixture(scope="module")
def small(edge: Any) -> tuple[Cohort, Vector, Vector]:
    rows = edge["cohort"]
    names = sorted({row["trajectory"] for row in rows})
    cluster = np.array([names.index(row["trajectory"]) for row in rows], dtype=np.int32)
    grid = [np.array([round(row[k] * 2**40) for row in rows], dtype=np.int64) for k in ("g_ref", "g_alt")]
    ref, alt = (Vector(values, 2**40) for values in grid)
    return Cohort(cluster, len(names), resamples=4), ref, alt


class TestEdgeCases:
    """The six-row cohort and the single functions that can be checked by hand."""

    def test_cohort(self, edge: Any, small: tuple[Cohort, Vector, Vector]) -> None:
        cohort, ref, alt = small
        omega = vectors.interaction(ref, alt)
        assert omega.floats().tolist() == [row["omega"] for row in edge["cohort"]]
        table = flips.table(ref, alt)
        assert {**table.as_dict(), "strict_flips": table.strict_flips} == edge["flips"]
        loo = clusters.leave_one_out(cohort, omega)
        assert loo is not None
        assert [loo.min, loo.max] == edge["loo"]
        assert cohort.point(Mean(omega)) == edge["mean_omega"]
        assert cohort.replicates({"m": Mean(omega)})["m"].values.tolist() == edge["boot_first4"]

    def test_equal_target_with_an_empty_declared_type(
        self, edge: Any, small: tuple[Cohort, Vector, Vector]
    ) -> None:
        cohort, ref, _ = small
        types = Types(np.zeros(6, dtype=np.int32), ("A", "B"))
        assert cohort.point(TypeMean(ref, types)) == edge["equal_target"]

    def test_functions(self, edge: Any) -> None:
        half = Fraction(1, 2)
        threshold = sensitivity.pooled_sign_threshold(Fraction("0.163"), Fraction("-0.16"))
        assert threshold is not None
        near(float(threshold), edge["w_star"][0])
        assert sensitivity.pooled_sign_threshold(half, half) is edge["w_star"][1]
        assert sensitivity.recalibration_ratio(half, Fraction(1)) == Fraction(edge["gain_ratio"][0])
        assert sensitivity.recalibration_ratio(half, -half) is edge["gain_ratio"][1]
