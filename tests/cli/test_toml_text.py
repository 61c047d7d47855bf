"""`channel show` prints a file that registers the same channel."""

from __future__ import annotations

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from cli.toml_text import specification
from contracts.canonical import canonical

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LEAF = st.one_of(TEXT, st.booleans(), st.integers(-(2**53) + 1, 2**53 - 1), st.floats(-1e6, 1e6))
VALUE = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=6
)


@given(tables=st.dictionaries(st.sampled_from(["prompt", "view"]), st.dictionaries(TEXT, VALUE, max_size=4)))
def test_what_is_printed_reads_back_as_the_same_specification(tables: dict[str, dict[str, object]]) -> None:
    text = "\n".join(specification("a/b", tables))
    found = tomllib.loads(text)
    assert found.pop("name") == "a/b"
    assert canonical(found) == canonical(tables)


def test_a_text_of_several_lines_stays_one() -> None:
    tables = {"prompt": {"text": 'first "quoted" \\ line\n\nlast\x7f line\n'}}
    text = "\n".join(specification("a", tables))
    assert text.count("\n") > 4
    assert tomllib.loads(text)["prompt"] == tables["prompt"]


def test_a_null_is_said_and_left_out() -> None:
    text = "\n".join(specification("a", {"prompt": {"seed": None, "id": "x"}}))
    assert tomllib.loads(text)["prompt"] == {"id": "x"}
    assert "null" in text
