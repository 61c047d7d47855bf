"""The audit of predictions from Python: draws by class, permuted input, several calls, designs read back."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from audits import jev, jev_design
from audits.jev import run
from audits.jev_design import JevDesign
from audits.statistics import jev as statistics
from audits.statistics import query_cohort
from audits.statistics.cohort import Cohort
from audits.statistics.moments import Mean
from audits.statistics.query_cohort import QueryCohort
from audits.statistics.vectors import Vector
from contracts.errors import MalformedError, UsageError
from ledger.snapshot import Level, PredictionScope
from tests.audits.cohorts import Ledger, new_ledger
from tests.audits.predictions import study, take_in

NAMED: dict[str, Any] = {"channel": "direct", "acquisition_id": "main-1"}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return new_ledger(tmp_path)


def design(**parts: Any) -> JevDesign:
    return JevDesign(**{"scope": PredictionScope(), "resamples": 200, **parts})


def means(queries: int) -> dict[str, Mean]:
    draw = np.random.default_rng(5)
    return {
        name: Mean(Vector(draw.integers(-2, 3, queries) * (draw.random(queries) < 0.2), 9))
        for name in ("a", "b", "c")
    }


@pytest.mark.parametrize("workers", [1, 2])
def test_draws_by_class_give_the_same_bits(workers: int) -> None:
    queries = query_cohort.FEWEST + 3
    cluster = np.arange(queries, dtype=np.int32)
    wanted = Cohort(cluster, queries, stream=2019, resamples=120).evaluate(means(queries))
    found = QueryCohort(cluster, queries, stream=2019, resamples=120, workers=workers)
    assert found.evaluate(means(queries)) == wanted


def test_many_classes_fall_back_to_counting_every_query() -> None:
    queries = query_cohort.MOST_CLASSES + 5
    cluster = np.arange(queries, dtype=np.int32)
    unique = {"a": Mean(Vector(np.arange(queries, dtype=np.int64), 7))}
    wanted = Cohort(cluster, queries, resamples=20).evaluate(unique)
    assert QueryCohort(cluster, queries, resamples=20).evaluate(unique) == wanted


def test_small_years_are_drawn_as_they_always_were() -> None:
    cohort = statistics.year_cohort(42, 2019, resamples=100)
    plain = Cohort(np.arange(42, dtype=np.int32), 42, stream=2019, resamples=100)
    assert cohort.evaluate(means(42)) == plain.evaluate(means(42))


def results(ledger: Ledger, **parts: Any) -> bytes:
    return run(ledger.snapshot(), design(**parts)).result_bytes


def test_calls_files_and_orders_change_no_byte_of_the_result(tmp_path: Path) -> None:
    pairs = [
        *study(12, flips=4, mode="joint", **NAMED),
        *study(11, flips=1, year=2020, mode="joint", **NAMED),
        *study(12, flips=2, mode="independent", **NAMED),
    ]
    mixed = list(pairs)
    random.Random(3).shuffle(mixed)
    found = []
    by_mode = [[p for p in mixed if p["mode"] == mode] for mode in ("independent", "joint")]
    for name, calls in (("one", [pairs]), ("two", [mixed]), ("three", by_mode)):
        (tmp_path / name).mkdir()
        ledger = new_ledger(tmp_path / name)
        for number, call in enumerate(calls):
            take_in(ledger, call, f"{number}.jsonl")
        found.append(results(ledger))
    assert found[0] == found[1] == found[2]


def test_variants_weigh_alike_within_a_scenario(ledger: Ledger) -> None:
    take_in(ledger, [*study(10, flips=10, variant="a", **NAMED), *study(10, variant="b", **NAMED)])
    found = run(ledger.snapshot(), design()).result
    assert found["estimates"]["2019.strict_flip"]["value"] == pytest.approx(1 / 3 / 2 / 2)
    assert found["flow"]["by_group"][0]["variants"] == 2


def test_a_scenario_only_one_variant_has_cannot_be_weighed(ledger: Ledger) -> None:
    part = [row for row in study(10, variant="a", **NAMED) if row["scenario"] != "two"]
    take_in(ledger, [*part[:-2], *study(5, variant="b", **NAMED)])
    short = run(ledger.snapshot(), design()).shortfall
    assert short is not None
    assert short.code == "scenarios-uneven"


def test_a_design_reads_back_and_another_is_refused(ledger: Ledger) -> None:
    fingerprint = ledger.snapshot().book.resolve("direct").fingerprint
    made = design(
        scope=PredictionScope(
            channels=(None, fingerprint), modes=("joint",), scenarios=("one",), require=Level.DECLARED
        ),
        label_order=("B", "A"),
        threshold=0.25,
    )
    book = ledger.snapshot().book
    assert jev_design.parse(json.loads(json.dumps(made.as_json())), book) == made
    assert jev_design.parse({**made.as_json(), "method": {}}, book) is None
    for broken in _broken(made.as_json()):
        with pytest.raises(MalformedError):
            jev_design.parse(broken, book)


def _broken(value: dict[str, Any]) -> Iterator[object]:
    yield []
    yield {**value, "threshold": 2}
    yield {**value, "extra": 1}
    yield {**value, "seed": "0"}
    yield {**value, "scope": {**value["scope"], "channels": ["blake3:" + "0" * 64]}}


@pytest.mark.parametrize(
    "parts", [{"threshold": -0.1}, {"resamples": 1}, {"seed": -1}, {"label_order": ("a", "a")}]
)
def test_what_a_design_cannot_be(parts: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        design(**parts)


def test_a_revoked_acquisition_leaves_the_cohort(ledger: Ledger) -> None:
    from ledger import log
    from ledger.event_types import RevocationEvent

    take_in(ledger, study(10, **NAMED))
    log.commit(
        ledger.home,
        ledger.key,
        lambda _: [RevocationEvent("acquisition", "main-1", "wrong prompt")],
        wait=1.0,
    )
    audit = run(ledger.snapshot(), design())
    assert audit.shortfall is not None
    assert audit.result["provenance"]["groups_out"]["acquisition-revoked"] == 1
    assert audit.result["estimates"] == {}


def test_the_audit_is_a_function_with_a_frozen_result(ledger: Ledger) -> None:
    take_in(ledger, [*study(flips=2, mode="joint", **NAMED), *study(mode="independent", **NAMED)])
    snapshot = ledger.snapshot()
    found = jev(snapshot, ["direct"], modes=["joint"], resamples=200)
    assert found.estimates["2019.strict_flip"]["value"] == 2 / 72
    assert "2 of 72" in found.sentence
    with pytest.raises(FrozenInstanceError):
        found.audit = found.audit  # type: ignore[misc]
    book = snapshot.book.resolve("direct")
    asked = design(scope=PredictionScope(channels=(book.fingerprint,), modes=("joint",)))
    assert found.audit.result_bytes == run(snapshot, asked).result_bytes
    assert jev(snapshot, ["undeclared"], resamples=200).audit.shortfall is not None
    with pytest.raises(UsageError):
        jev(snapshot, ["nobody"])


def test_arrow_has_a_row_per_query_with_the_values_behind_the_estimates(ledger: Ledger) -> None:
    take_in(
        ledger, [*study(flips=2, mode="joint", **NAMED), *study(11, flips=1, mode="independent", **NAMED)]
    )
    found = jev(ledger.snapshot(), resamples=200)
    table = found.to_arrow()
    assert table.column_names[:4] == ["series", "year", "query_id", "strict_flip"]
    rows, counts = table.to_pylist(), found.result["tables"]["counts"]
    assert len(rows) == sum(count["queries"] for count in counts.values())
    assert rows == sorted(rows, key=lambda row: (row["series"], row["year"], row["query_id"]))
    for prefix in counts:
        mine = [row for row in rows if f"{row['year']}/{row['series']}" == prefix]
        for name in ("strict_flip", "tie", "action_change", "binary_accuracy_difference"):
            value = found.estimates[f"{prefix}.{name}"]["value"]
            assert sum(row[name] for row in mine) / len(mine) == pytest.approx(value)


def test_an_outcome_of_other_series_is_null_and_nothing_has_no_rows(ledger: Ledger) -> None:
    added = {"after": {"p1": 0.5, "p2": 0.25, "p3": 0.25}, "mode": "joint", **NAMED}
    expanded = [{**row, **added, "intervention": "candidates"} for row in study()]
    take_in(ledger, [*study(intervention="questions", mode="joint", **NAMED), *expanded])
    snapshot = ledger.snapshot()
    rows = jev(snapshot, resamples=200).to_arrow().to_pylist()
    assert {row["series"].split("/")[0]: row["strict_flip"] for row in rows} == {
        "candidates": None, "questions": 0.0,
    }  # fmt: skip
    nothing = jev(snapshot, ["undeclared"], resamples=200)
    assert nothing.to_arrow().num_rows == 0
    assert ElementTree.fromstring(nothing._repr_html_()).find(".//tbody/tr") is None


def test_a_notebook_shows_the_flow_the_sentence_and_every_estimate(ledger: Ledger) -> None:
    take_in(ledger, study(flips=2, mode="joint", **NAMED))
    found = jev(ledger.snapshot(), resamples=200)
    page = ElementTree.fromstring(found._repr_html_())
    assert [row[0].text for row in page.iterfind(".//tbody/tr")] == list(found.estimates)
    text = "".join(page.itertext())
    assert "36 of 36 pairs complete, 12 queries" in text
    assert found.sentence in text


def test_precision_alone_is_its_scope(ledger: Ledger) -> None:
    take_in(ledger, study(flips=3, channel="direct", acquisition_id="low"))
    take_in(ledger, study(flips=1, channel="generated", acquisition_id="high"), "high.jsonl")
    found = jev(ledger.snapshot(), precision=("direct", "generated"), resamples=200)
    assert found.result["tables"]["precision"]["2019/undeclared/undeclared"]["vanish"] == 2
