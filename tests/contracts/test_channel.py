"""Channels: what a specification may hold, what its fingerprint binds, and how a reference is resolved."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from blake3 import blake3

from contracts.channel import Channel, ChannelBook, Reference, differences, fingerprint, parse_reference
from contracts.channel_file import load_spec
from contracts.errors import ContractError, StorageError, UsageError

COHORT = Path(__file__).parents[2].parent / "shared" / "cohort" / "channels"
MINIMAL: dict[str, object] = {
    "prompt": {"id": "p"},
    "readout": {"kind": "joint-label"},
    "stack": {},
    "view": {"kind": "none"},
    "presentation": {"layouts": 4},
}
TOML = """
name = "direct"
[prompt]
text = { file = "prompts/x.txt" }
[readout]
kind = "joint-label"
labels = ["A", "B"]
dtype = "float32"
[stack]
checkpoint = { file = "model.bin" }
hosted = false
[view]
kind = "generated"
[presentation]
layouts = 4
temperature = 0.0
"""


def spec_of(**tables: object) -> dict[str, object]:
    return {**MINIMAL, **tables}


def channel(name: str, version: int = 1, **tables: object) -> Channel:
    spec = spec_of(**tables)
    return Channel(name, version, spec, fingerprint(spec))  # type: ignore[arg-type]


def write(folder: Path, text: str, name: str = "c.toml") -> Path:
    (folder / "prompts").mkdir(exist_ok=True)
    (folder / "prompts" / "x.txt").write_bytes(b"judge this")
    (folder / "model.bin").write_bytes(b"weights")
    path = folder / name
    path.write_text(text)
    return path


def refusal(folder: Path, text: str, name: str = "c.toml") -> str:
    with pytest.raises(ContractError) as caught:
        load_spec(write(folder, text, name))
    assert caught.value.code == "channel-spec"
    assert "\n" not in str(caught.value)
    return str(caught.value)


# Reading


def test_a_toml_file_with_references_becomes_digests(tmp_path: Path) -> None:
    name, spec = load_spec(write(tmp_path, TOML))
    assert name == "direct"
    assert "name" not in spec
    assert spec["prompt"] == {"text": {"digest": "blake3:" + blake3(b"judge this").hexdigest(), "bytes": 10}}
    found = Channel(name, 1, spec, fingerprint(spec))  # type: ignore[arg-type]
    assert found.checkpoint == "blake3:" + blake3(b"weights").hexdigest()
    assert (found.layouts, found.readout_kind, found.labels, found.float32) == (
        4,
        "joint-label",
        ("A", "B"),
        True,
    )
    assert (found.view_kind, found.needs_view, found.hosted) == ("generated", True, False)


def test_json_and_toml_of_one_content_have_one_fingerprint(tmp_path: Path) -> None:
    _, from_toml = load_spec(write(tmp_path, TOML))
    reordered = {"presentation": {"temperature": 0, "layouts": 4}, **from_toml, "name": "other"}
    reordered["presentation"] = {"temperature": 0, "layouts": 4}
    _, from_json = load_spec(write(tmp_path, json.dumps(reordered), "c.json"))
    _, from_unnamed_suffix = load_spec(write(tmp_path, json.dumps(reordered), "c.spec"))
    assert fingerprint(from_toml) == fingerprint(from_json) == fingerprint(from_unnamed_suffix)


def test_the_fingerprint_is_the_documented_one() -> None:
    text = (
        b'{"presentation":{"layouts":4},"prompt":{"id":"p"},"readout":{"kind":"joint-label"},'
        b'"stack":{},"view":{"kind":"none"}}'
    )
    assert fingerprint(MINIMAL) == "blake3:" + blake3(b"ledger.channel.v1\n" + text).hexdigest()


def test_changing_a_referenced_file_changes_the_fingerprint(tmp_path: Path) -> None:
    path = write(tmp_path, TOML)
    before = fingerprint(load_spec(path)[1])
    (tmp_path / "prompts" / "x.txt").write_bytes(b"judge that")
    assert fingerprint(load_spec(path)[1]) != before


def test_a_file_reference_works_deep_inside_lists(tmp_path: Path) -> None:
    body = TOML.replace("temperature = 0.0", 'shots = [{ at = { file = "prompts/x.txt" } }]')
    _, spec = load_spec(write(tmp_path, body))
    assert spec["presentation"]["shots"][0]["at"]["bytes"] == 10  # type: ignore[index]


@pytest.mark.skipif(not COHORT.is_dir(), reason="the shared cohort is not beside the checkout")
def test_the_cohorts_specifications_load_and_differ() -> None:
    loaded = [load_spec(path) for path in sorted(COHORT.glob("*.toml"))]
    assert len({fingerprint(spec) for _, spec in loaded}) == len(loaded) == 17


# Refusals


def test_every_fault_is_reported_at_once(tmp_path: Path) -> None:
    message = refusal(
        tmp_path,
        """
        name = "-x"
        extra = 1
        [prompt]
        made = 2026-01-01
        at = 10:00:00
        big = 9007199254740992
        [readout]
        labels = ["A", "A"]
        [stack]
        hosted = "yes"
        heat = [1.0, inf]
        [presentation]
        layouts = 65
        """,
    )
    for part in (
        "name: must be",
        "extra: unknown key, the tables are prompt, readout, stack, view, presentation",
        "prompt.made: dates and times",
        "prompt.at: dates and times",
        "prompt.big: integer too large",
        "readout.kind: must be text without outer spaces, is missing",
        "readout.labels: a label occurs twice",
        "stack.hosted: must be true or false",
        "stack.heat[1]: number is not finite",
        "view: table is missing",
        "presentation.layouts: must be a whole number from 1 to 64, got 65",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "direct"', "", "name: must be 1 to 128 of A-Z"),
        ('name = "direct"', 'name = "a b"', "is not one"),
        ('name = "direct"', 'name = "blake3:00"', "name: must be"),
        ('name = "direct"', 'name = ""', "name: must be"),
        ("layouts = 4", "layouts = 0", "got 0"),
        ("layouts = 4", "layouts = 4.0", "got 4.0"),
        ("layouts = 4", "layouts = true", "got true"),
        ("layouts = 4", "layouts = 2026-01-01", "presentation.layouts: must be"),
        ('labels = ["A", "B"]', 'labels = ["A"]', "at least two texts"),
        ('labels = ["A", "B"]', 'labels = "AB"', "at least two texts"),
        ('kind = "generated"', 'kind = " "', "view.kind: must be text"),
        ('kind = "generated"', "kind = 3", "view.kind: must be text"),
        ("[stack]", '[stack]\n"" = 1', 'stack."": a key must be printable'),
        ("[stack]", '[stack]\n" a" = 1', "outer spaces"),
        ("[stack]", '[stack]\n"a\\nb" = 1', "must be printable"),
        ("[view]", "[[view]]", "view: must be a table"),
        ("temperature = 0.0", "temperature = nan", "presentation.temperature: number is not finite"),
        ("temperature = 0.0", f"x = {'[' * 40}{']' * 40}", "nested too deeply"),
        ("temperature = 0.0", f"x = {'1' * 5000}", "not toml"),
        ("temperature = 0.0", "temperature = 1\ntemperature = 2", "not toml"),
        (
            "prompts/x.txt",
            "prompts/absent.txt",
            "prompt.text.file: cannot use 'prompts/absent.txt' (No such file",
        ),
        ("prompts/x.txt", "prompts", "cannot use 'prompts' (Is a directory)"),
        ("prompts/x.txt", "../c.toml", "must be relative and stay"),
        ("prompts/x.txt", "prompts/../prompts/x.txt", "must be relative and stay"),
        ("prompts/x.txt", "/etc/hosts", "must be relative and stay"),
        ("prompts/x.txt", "\\u0000", "cannot use"),
        ("prompts/x.txt", "", "must be the path of a file"),
        (
            'text = { file = "prompts/x.txt" }',
            'file = "prompts/x.txt"\nid = "v1"',
            "a file reference stands alone",
        ),
    ],
)
def test_one_fault_is_named_with_its_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in TOML
    assert message in refusal(tmp_path, TOML.replace(old, new))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"name":"a","name":"b"}', "repeated key"),
        ('{"prompt":{"n":9007199254740993}}', "prompt.n: integer too large"),
        ('{"prompt":{"n":[NaN]}}', "prompt.n[0]: number is not finite"),
        ('{"prompt":{"n":"\\ud800"}}', "prompt.n: text holds a lone surrogate"),
        ("[1]", "a specification is a table"),
        ("{", "not json"),
        ("[" * 50_000, "nested too deeply"),
        (" " * (1024 * 1024) + "{}", "longer than"),
    ],
)
def test_json_without_one_meaning_is_refused(tmp_path: Path, text: str, message: str) -> None:
    assert message in refusal(tmp_path, text, "c.json")


def test_a_thousand_faults_stay_one_short_line(tmp_path: Path) -> None:
    message = refusal(tmp_path, "\n".join(f"k{i} = 2026-01-01" for i in range(1000)))
    assert "more" in message
    assert len(message) < 4000


def test_links_may_not_leave_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "spec"
    inside.mkdir()
    path = write(inside, TOML)
    (tmp_path / "secret").write_text("secret")
    (inside / "prompts" / "x.txt").unlink()
    (inside / "prompts" / "x.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(ContractError, match="a link leads out of the folder"):
        load_spec(path)
    (inside / "prompts" / "real.txt").write_bytes(b"judge this")
    (inside / "prompts" / "x.txt").unlink()
    (inside / "prompts" / "x.txt").symlink_to("real.txt")
    assert load_spec(path)[1]["prompt"]["text"]["bytes"] == 10  # type: ignore[index]


def test_a_named_pipe_does_not_hang(tmp_path: Path) -> None:
    path = write(tmp_path, TOML)
    (tmp_path / "prompts" / "x.txt").unlink()
    os.mkfifo(tmp_path / "prompts" / "x.txt")
    with pytest.raises(ContractError, match="not a regular file"):
        load_spec(path)


def test_an_absent_or_unreadable_specification_is_a_storage_error(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.toml", tmp_path):
        with pytest.raises(StorageError, match="cannot read the channel specification"):
            load_spec(path)


def test_bytes_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(ContractError, match="not utf-8"):
        load_spec(path)


# What a channel says of itself


def test_optional_facts_are_none_where_the_specification_is_silent() -> None:
    bare = channel("a", presentation={}, view={"kind": "empty"}, stack={"checkpoint": "step 4"})
    assert (bare.layouts, bare.labels, bare.hosted, bare.checkpoint) == (None, None, None, None)
    assert not bare.needs_view
    assert not bare.float32
    assert channel("a", stack={"checkpoint": "sha256:" + "0" * 64}).checkpoint == "sha256:" + "0" * 64


def test_differences_are_grouped_by_part_and_name_both_sides() -> None:
    a = channel("a", prompt={"id": "p", "more": {"x": 1}}, view={"kind": "none"})
    b = channel("b", prompt={"id": "q", "more": {"x": 1}}, view={"kind": "quote", "by": "q"}, presentation={})
    found = differences(a, b)
    assert [(d.part, d.path, d.a, d.b) for d in found] == [
        ("prompt", "prompt.id", '"p"', '"q"'),
        ("view", "view.by", None, '"q"'),
        ("view", "view.kind", '"none"', '"quote"'),
        ("presentation", "presentation", None, "{}"),
        ("presentation", "presentation.layouts", "4", None),
    ]
    assert differences(a, a) == ()


# References


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("direct", Reference(name="direct")),
        ("bridge/A-quote.v1@12", Reference(name="bridge/A-quote.v1", version=12)),
        ("blake3:" + "a" * 12, Reference(fingerprint_prefix="blake3:" + "a" * 12)),
        ("blake3:" + "a" * 64, Reference(fingerprint_prefix="blake3:" + "a" * 64)),
    ],
)
def test_references(text: str, wanted: Reference) -> None:
    assert parse_reference(text) == wanted


NO_REFERENCES = """
|a b|@1|a@0|a@01|a@|a@1@2|-a|ä|a\n|a@\u0661|blake3:aaaaaaaaaaa|blake3:AAAAAAAAAAAA|sha256:aaaaaaaaaaaa
""".strip("\n").split("|")


@pytest.mark.parametrize("text", [*NO_REFERENCES, "a" * 129, "blake3:" + "a" * 65])
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_reference(text)
    assert caught.value.code == "channel-reference"
    assert "\n" not in str(caught.value)


def test_a_name_with_one_version_a_version_and_a_prefix_resolve() -> None:
    first, second = channel("direct"), channel("generated", view={"kind": "generated"})
    book = ChannelBook((first, second))
    assert book.resolve("direct") is first
    assert book.resolve("generated@1") is second
    assert book.resolve(second.short) is second
    assert book.resolve(second.fingerprint) is second
    assert book.by_fingerprint(first.fingerprint) is first
    assert book.by_fingerprint("blake3:00") is None
    assert book.names == ("direct", "generated")


def test_a_bare_name_with_two_versions_is_refused_listing_them() -> None:
    first, second = channel("direct"), channel("direct", 2, prompt={"id": "q"})
    book = ChannelBook((second, first))
    with pytest.raises(UsageError) as caught:
        book.resolve("direct")
    assert caught.value.code == "ambiguous-channel"
    assert f"direct@1 ({first.short}), direct@2 ({second.short})" in str(caught.value)
    assert book.resolve("direct@2") is second


def test_two_names_may_alias_one_fingerprint() -> None:
    first, alias = channel("direct"), channel("plain")
    book = ChannelBook((first, alias))
    assert book.resolve("plain") is alias
    assert book.resolve(first.fingerprint) is first
    assert book.by_fingerprint(alias.fingerprint) is first


def test_an_unknown_channel_says_what_to_do() -> None:
    book = ChannelBook((channel("direct"), channel("direct", 2, prompt={"id": "q"}), channel("generated")))
    for text, hint in (
        ("generatd", "did you mean generated? otherwise register it with `ledger channel add FILE`"),
        ("direct@3", "did you mean direct@1 or direct@2?"),
        ("zzz", "register it with `ledger channel add FILE`"),
        ("blake3:" + "0" * 12, "register it with"),
    ):
        with pytest.raises(UsageError) as caught:
            book.resolve(text)
        assert caught.value.code == "unknown-channel"
        assert hint in str(caught.value)
    with pytest.raises(UsageError, match="none is yet"):
        ChannelBook(()).resolve("direct")


def test_a_dotted_key_of_thousands_of_parts_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text(".".join(["a"] * 20_000) + " = 1\n")
    with pytest.raises(ContractError, match="dotted key of more than 64 parts"):
        load_spec(path)
