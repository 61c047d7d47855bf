"""Telling the kind of a file from its column names."""

from __future__ import annotations

import pytest

from contracts.errors import ContractError, UsageError
from contracts.kinds import decide


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["energy"], "transport"),
        (["energy", "before", "after"], "transport"),
        (["before", "after", "query_id", "year"], "jev"),
    ],
)
def test_columns_tell_the_kind(names: list[str], kind: str) -> None:
    assert decide(names) == kind


@pytest.mark.parametrize("names", [[], ["before", "after"], ["energy", "before", "after", "query_id"]])
def test_both_and_neither_are_refused_unless_the_kind_is_given(names: list[str]) -> None:
    with pytest.raises(ContractError) as error:
        decide(names, where="a.csv")
    assert (error.value.code, error.value.where) == ("kind-unclear", "a.csv")
    assert decide(names, "jev") == "jev"


@pytest.mark.parametrize(("name", "hint"), [("energy;step", "semicolons"), ("a\tb", "tabs"), ("a|b", "bars")])
def test_another_separator_is_guessed(name: str, hint: str) -> None:
    with pytest.raises(ContractError, match=hint):
        decide([name])


def test_an_unknown_kind_lists_the_known() -> None:
    with pytest.raises(UsageError, match="transport or jev"):
        decide(["energy"], "scores")
