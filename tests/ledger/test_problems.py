"""Problems that are told together because one damage is met more than once."""

from ledger.problems import Problem, folded


def test_findings_of_one_place_are_one_problem_with_its_consequences() -> None:
    first = Problem("catalog", "catalog.sqlite", None, "a fault")
    other = Problem("data", "objects/segments/a.parquet", "a:0", "changed")
    second = Problem("catalog", "catalog.sqlite", "event 3", "not its leaf")
    assert folded([first, other, second]) == [(first, (second,)), (other, ())]
    assert folded([]) == []
