"""Signed notes and tree heads: one spelling, three kinds of failure, strangers ignored."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import LedgerError, MalformedError, SignatureError, UnknownKeyError, VerificationError
from ledger.keys import SigningKey
from ledger.notes import (
    MAX_NOTE,
    MAX_SIGNATURES,
    Signature,
    TreeHead,
    UnverifiedNoteError,
    sign,
    sign_head,
    verify,
    verify_head,
)
from ledger.tree import EMPTY_ROOT, leaf_hash
from ledger.vkey import VerifierKey, is_name, is_vkey, parse_vkey

KEY, OTHER = SigningKey(b"1" * 32), SigningKey(b"2" * 32)  # fixed, so that the ids of test cases are
VKEY = VerifierKey("example.org/log", KEY.public.raw)
HEAD = TreeHead("example.org/log", 7, leaf_hash(b"x"))
NOTE = sign("one\n\ntwo\n", VKEY.name, KEY)

lines = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)
texts = st.lists(lines, min_size=1, max_size=5).map(lambda parts: "".join(f"{part}\n" for part in parts))
names = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20).filter(is_name)


def witness(name: str = "witness.example", key: SigningKey = OTHER, text: str = "one\n\ntwo\n") -> bytes:
    signer = VerifierKey(name, key.public.raw)
    return str(Signature(name, signer.id, key.sign(text.encode()))).encode()


@given(texts, names)
def test_a_signed_text_comes_back(text: str, name: str) -> None:
    note = verify(sign(text, name, KEY), [str(VerifierKey(name, KEY.public.raw))])
    assert note.text == text
    assert sign(note.text, note.signatures[0].name, KEY) == sign(text, name, KEY)


@given(
    st.integers(0, 10**19 - 1),
    st.binary(min_size=32, max_size=32),
    names,
    st.lists(lines.filter(bool), max_size=2),
)
def test_a_tree_head_comes_back(size: int, root: bytes, origin: str, extensions: list[str]) -> None:
    head = TreeHead(origin, size, root, tuple(extensions))
    assert TreeHead.parse(str(head)) == head
    assert verify_head(sign_head(head, KEY), [VerifierKey(origin, KEY.public.raw)], origin) == head


@given(names, st.binary(min_size=32, max_size=32))
def test_a_verifier_key_comes_back(name: str, raw: bytes) -> None:
    key = VerifierKey(name, raw)
    assert parse_vkey(str(key)) == key
    assert str(parse_vkey(str(key))) == str(key)
    assert is_vkey(str(key))


@given(st.binary(max_size=80) | texts.map(str.encode))
def test_arbitrary_bytes_never_pass_and_never_crash(data: bytes) -> None:
    with pytest.raises(VerificationError):
        verify(data, [VKEY])


def test_every_flipped_bit_is_refused() -> None:
    data = sign_head(HEAD, KEY)
    for i in range(len(data) * 8):
        changed = bytearray(data)
        changed[i // 8] ^= 1 << i % 8
        with pytest.raises((MalformedError, SignatureError, UnknownKeyError)):
            verify(bytes(changed), [VKEY])


def test_unknown_bad_and_malformed_are_three_failures() -> None:
    with pytest.raises(UnverifiedNoteError, match="signed by no trusted key; got signatures by example"):
        verify(NOTE, [VerifierKey(VKEY.name, OTHER.public.raw)])
    with pytest.raises(UnverifiedNoteError):
        verify(NOTE, [VerifierKey("example.org/other", KEY.public.raw)])
    with pytest.raises(UnverifiedNoteError):
        verify(NOTE, [])
    with pytest.raises(SignatureError, match=r"signature by example\.org/log does not match"):
        verify(NOTE.replace(b"two", b"tow"), [VKEY])
    with pytest.raises(MalformedError):
        verify(NOTE[:-1], [VKEY])


def test_an_unverified_text_is_reachable_only_from_the_error() -> None:
    with pytest.raises(UnverifiedNoteError) as caught:
        verify(NOTE, [])
    assert caught.value.unverified.text == "one\n\ntwo\n"
    assert caught.value.unverified.signatures == ()
    assert "one" not in str(caught.value)


def test_strangers_signatures_are_kept_apart_and_mean_nothing() -> None:
    odd = "— witness/\u200dé " + base64.b64encode(b"1234" + bytes(4900)).decode() + "\n"
    same_name_other_key = witness(VKEY.name)
    note = verify(NOTE + witness() + odd.encode() + same_name_other_key, [VKEY])
    assert [s.name for s in note.signatures] == [VKEY.name]
    assert len(note.others) == 3
    both = verify(NOTE + witness(), [VKEY, VerifierKey("witness.example", OTHER.public.raw)])
    assert len(both.signatures) == 2


def test_one_bad_signature_of_a_trusted_key_spoils_the_note() -> None:
    bad = witness(text="three\n")
    with pytest.raises(SignatureError, match=r"witness\.example"):
        verify(NOTE + bad, [VKEY, VerifierKey("witness.example", OTHER.public.raw)])
    assert verify(NOTE + bad, [VKEY]).text == "one\n\ntwo\n"


def test_a_colliding_id_is_only_a_hint() -> None:
    forged = Signature(VKEY.name, VKEY.id, OTHER.sign(b"one\n\ntwo\n"))
    with pytest.raises(SignatureError):
        verify(f"one\n\ntwo\n\n{forged}".encode(), [VKEY])


GOOD = NOTE.decode().rpartition(" ")[2].strip()


@pytest.mark.parametrize(
    "tail",
    [
        f"— a {GOOD}",
        f"— a {GOOD}\n\n",
        f"— a {GOOD} \n",
        f"—  a {GOOD}\n",
        f"- a {GOOD}\n",
        f"—a {GOOD}\n",
        f" — a {GOOD}\n",
        f"— a+b {GOOD}\n",
        f"— a\u00a0b {GOOD}\n",
        f"— {GOOD}\n",
        "— a \n",
        "— a AAAA\n",
        "— a AAAAAA==\n",
        "— a AAAAAAB=\n",
        f"— a {GOOD.replace('=', '')}\n",
        "— a AAAA-_AAAAAA\n",
        f"— a {GOOD}\r\n",
    ],
)
def test_malformed_signature_lines_spoil_the_note(tail: str) -> None:
    with pytest.raises(MalformedError):
        verify(NOTE + tail.encode(), [VKEY])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\n\n",
        b"a\n",
        b"a\n\n",
        b"\xff\n\n",
        NOTE.replace(b"one", b"o\x07e"),
        NOTE[: NOTE.rindex("—".encode())],
    ],
)
def test_what_is_no_note(data: bytes) -> None:
    with pytest.raises(MalformedError):
        verify(data, [VKEY])


def test_sizes_are_bounded() -> None:
    assert verify(NOTE + witness() * (MAX_SIGNATURES - 1), [VKEY]).text
    with pytest.raises(MalformedError, match="too many signatures"):
        verify(NOTE + witness() * MAX_SIGNATURES, [VKEY])
    with pytest.raises(MalformedError, match="note too long"):
        verify(b"x" * MAX_NOTE + NOTE, [VKEY])


@pytest.mark.parametrize("text", ["", "a", "a\r\n", "a\x00\n", "a\tb\n"])
def test_texts_that_cannot_be_signed(text: str) -> None:
    with pytest.raises(MalformedError):
        sign(text, "a", KEY)


@pytest.mark.parametrize("name", ["", "a b", "a+b", "a\u00a0b", "a\nb", "a\x7f", "a" * 256, "\ud800"])
def test_names_that_cannot_sign(name: str) -> None:
    assert not is_name(name)
    with pytest.raises(MalformedError):
        sign("a\n", name, KEY)


@pytest.mark.parametrize(
    "text",
    [
        "", "a\n1\n", "a\n1\nAAAA\n", str(HEAD)[:-1], str(HEAD) + "\n", "\n" + str(HEAD),
        str(HEAD).replace("\n7\n", "\n07\n"), str(HEAD).replace("\n7\n", "\n-7\n"),
        str(HEAD).replace("\n7\n", "\n٧\n"), str(HEAD).replace("\n7\n", "\n7 \n"),
        str(HEAD).replace("\n7\n", "\n" + "9" * 20 + "\n"), str(HEAD).replace("=", ""),
    ],
)  # fmt: skip
def test_what_is_no_tree_head(text: str) -> None:
    with pytest.raises(MalformedError):
        TreeHead.parse(text)


def test_a_head_of_another_log_is_refused_even_under_a_trusted_key() -> None:
    moved = sign(str(TreeHead("example.org/other", 7, EMPTY_ROOT)), VKEY.name, KEY)
    with pytest.raises(UnknownKeyError, match=r"head of another log; expected example\.org/log"):
        verify_head(moved, [VKEY], "example.org/log")
    with pytest.raises(MalformedError):
        verify_head(NOTE, [VKEY], "example.org/log")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "not a verifier key"),
        (str(VKEY).replace("+", "-"), "not a verifier key"),
        (f"{VKEY.name}+00000000+" + str(VKEY).split("+", 2)[2], "not its own"),
        (f"a+{VKEY.id.hex()}+" + str(VKEY).split("+", 2)[2], "not its own"),
        ("a+00000000+" + base64.b64encode(b"\x02" + KEY.public.raw).decode(), "another type"),
        ("a+00000000+" + base64.b64encode(b"\x01short").decode(), "32 bytes"),
        ("a+00000000+AA", "not base64"),
    ],
)
def test_what_is_no_verifier_key(text: str, message: str) -> None:
    with pytest.raises(LedgerError, match=message):
        parse_vkey(text)
