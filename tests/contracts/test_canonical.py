"""Canonical JSON: what it writes, what it refuses, and that reading and writing are inverse."""

from __future__ import annotations

import json
import math
from enum import StrEnum

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from contracts.canonical import MAX_BYTES, MAX_DEPTH, MAX_INTEGER, at_key, canonical, parse, parse_canonical
from contracts.errors import MalformedError

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers(-MAX_INTEGER, MAX_INTEGER) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def nested(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


@given(values)
def test_what_is_written_reads_back_equal_and_canonical(value: object) -> None:
    data = canonical(value)
    assert parse_canonical(data) == value
    assert canonical(parse_canonical(data)) == data
    assert json.loads(data, parse_int=float) == value


@given(values)
def test_both_serialisers_write_one_form(value: object) -> None:
    assert canonical(value) == rfc8785.dumps(value)  # type: ignore[arg-type]


def test_every_character_is_written_as_the_standard_does() -> None:
    every = "".join(chr(i) for i in [*range(0x2100), 0xFFFF, 0x10FFFF])
    assert canonical([every]) == rfc8785.dumps([every])


@given(values)
def test_spelling_does_not_matter_to_the_canonical_form(value: object) -> None:
    respelt = json.dumps(value, indent=3, ensure_ascii=True).encode()
    assert canonical(parse(respelt, whole_floats=True)) == canonical(value)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        value = parse(data)
    except MalformedError:
        return
    assert json.loads(data, parse_int=float) == value


def test_keys_are_ordered_by_utf16_and_tuples_are_lists() -> None:
    assert canonical({"￿": 1, "\U0001f600": (2, 3), "a": None}) == (
        '{"a":null,"\U0001f600":[2,3],"￿":1}'.encode()
    )


def test_a_string_enum_is_its_text() -> None:
    class Kind(StrEnum):
        ROW = "row"

    assert canonical({Kind.ROW: Kind.ROW}) == b'{"row":"row"}'


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (MAX_INTEGER + 1, "integer too large"),
        (-MAX_INTEGER - 1, "integer too large"),
        ({"a": [0, {"b c": math.nan}]}, 'a[1]."b c": number is not finite'),
        (math.inf, "not finite"),
        ({"a": "\ud800"}, "a: text holds a lone surrogate"),
        ({"\udc00": 1}, "lone surrogate"),
        ({1: 2}, "key is not a string"),
        ({"a": {1, 2}}, "a: not a json value; got set"),
        ({"a": b"x"}, "got bytes"),
        (nested(MAX_DEPTH + 1), "nested too deeply"),
        (nested(100_000), "nested too deeply"),
    ],
)
def test_values_without_one_meaning_are_refused(value: object, message: str) -> None:
    with pytest.raises(MalformedError) as caught:
        canonical(value)
    assert message in str(caught.value)


def test_limits_are_inclusive() -> None:
    assert canonical(MAX_INTEGER) == b"9007199254740991"
    assert parse(b"-9007199254740991") == -MAX_INTEGER
    assert parse(canonical(nested(MAX_DEPTH))) == nested(MAX_DEPTH)
    with pytest.raises(MalformedError, match="nested"):
        parse(b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1))
    padded = b"1" + b" " * (MAX_BYTES - 1)
    assert parse(padded) == 1
    with pytest.raises(MalformedError, match="too long"):
        parse(padded + b" ")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"a":1,"b":2,"a":1}', "repeated key in a json object; got a"),
        (b'{"x":{"a":1,"\\u0061":2}}', "repeated key"),
        (b"NaN", "not finite"),
        (b'{"a":[-Infinity]}', "a[0]: number is not finite"),
        (b'{"a":1e999}', "a: number is not finite"),
        (b'{"a":9007199254740993}', "a: integer too large"),
        (b"9007199254740992", "integer too large"),
        (b"1" * 5000, "integer too large"),
        (b"-" + b"1" * 5000, "integer too large"),
        (b'"\\ud800"', "lone surrogate"),
        (b'{"\\ud800":1}', "lone surrogate"),
        (b'"\xff"', "not utf-8 (byte 1)"),
        (b'"\xed\xa0\x80"', "not utf-8"),
        (b"\xef\xbb\xbf1", "not json"),
        (b"", "not json"),
        (b"1 2", "line 1 column 3"),
        (b"{'a':1}", "not json"),
        (b"[1,]", "not json"),
        (b"01", "not json"),
        (b'"a\nb"', "not json"),
        (b"[" * 60_000, "nested too deeply"),
    ],
)
def test_bytes_without_one_meaning_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(MalformedError) as caught:
        parse(data)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "data", [b'{"a": 1}', b'{"b":1,"a":2}', b"1.0", b"-0", b"1e2", b'"\\u0061"', b"1\n", b"9007199254740993"]
)
def test_only_the_canonical_spelling_passes_as_canonical(data: bytes) -> None:
    with pytest.raises(MalformedError):
        parse_canonical(data)


def test_a_large_double_survives_its_own_spelling() -> None:
    for value in (2.0**53, 1e20, -295147905179352830000.0, 1e21, 5e-324):
        assert parse_canonical(canonical(value)) == value
        assert parse(canonical(value), whole_floats=True) == value
    with pytest.raises(MalformedError, match="too large"):
        parse(b"9007199254740993", whole_floats=True)


def test_a_path_quotes_what_is_not_a_name() -> None:
    assert at_key(at_key(at_key("", "a"), 0), "b.c") == 'a[0]."b.c"'
