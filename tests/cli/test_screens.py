"""How lines fit 80 columns: where names break, what a diff shows, and that nothing ends in spaces."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from cli import audit_flow, main, render
from cli.commands import COMMANDS
from cli.folding import folded
from contracts.errors import UsageError
from tests.cli.calls import called

CHANNEL = """name = "{name}"
[prompt]
text = '''{text}'''
rubric = "{rubric}"
[readout]
kind = "label"
[stack]
model = "m"
[view]
kind = "none"
[presentation]
layouts = 4
"""


class Terminal(io.StringIO):
    """A stream that somebody watches."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("line", "width", "lines"),
    [
        ("2019/questions/joint/judge", 15, ["2019/questions/", "joint/judge"]),
        ("acquisition repetition-2", 14, ["acquisition", "repetition-2"]),
        ("claude-opus@2, qwen_large", 9, ["claude-", "opus@2,", "qwen_", "large"]),
        ("a short one", 11, ["a short one"]),
        ("abcdefghij", 4, ["abcdefghij"]),
    ],
)
def test_names_break_where_they_are_joined(line: str, width: int, lines: list[str]) -> None:
    assert list(folded(line, width)) == lines


def test_a_narrow_table_breaks_no_name_in_a_word_and_ends_no_line_in_spaces(
    capsys: pytest.CaptureFixture[str],
) -> None:
    names = "claude-sonnet-generated@1, claude-sonnet-direct@1, qwen-large-generated@1, qwen-large-direct@1"
    row = ("acquisition-of-a-very-long-name/repetition-2", names, "transport", None)
    render.console().print(render.table(["acquisition", "channels", "kind", "revoked"], [row, row]))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert not any(line.endswith(" ") for line in lines)
    pieces = {piece for line in lines for piece in line.split()}
    assert all(
        piece[-1] in "/-@_,0123456789" or piece in {"-", *lines[0].split(), "transport"} for piece in pieces
    )


@pytest.mark.parametrize(
    ("example", "name"),
    [
        ("mtbench:106/step00: after, direct, layout 2 absent", "mtbench:106/step00"),
        ("a: b/step100: target is none of the candidates", "a: b/step100"),
        ("mtbench: 106: success is stored as true and as false", "mtbench: 106"),
    ],
)
def test_an_example_is_named_whole(example: str, name: str) -> None:
    row = {"reason": "absent", "transitions": 15, "examples": [example]}
    flow = {
        "transitions": 20, "complete": 5, "trajectories": 2, "excluded": [row], "by_acquisition": [],
    }  # fmt: skip
    counts = {"entries_out": {}, "entries_in": 9, "entries_by_level": {"bound": 9}, "level": "bound"}
    told = list(audit_flow.lines({"flow": flow, "provenance": counts}))
    assert told[1] == f"left out: 15 absent ({name})"


def test_an_error_is_one_line_in_a_pipe_and_fits_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    error = UsageError("nothing is " + "called that " * 12, next_step="look again")
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        main.report(error, as_json=False)
        lines = stream.getvalue().splitlines()
        assert (len(lines) > 1) == stream.isatty()
        assert " ".join(" ".join(lines).split()) == f"ledger: {error}"
        assert not stream.isatty() or max(map(len, lines)) <= 80


def test_channels_are_compared_line_by_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    called("init", "--origin", "a-log-with-a-name")
    long = "one two three four five six seven eight nine ten eleven twelve " * 4
    for name, last in (("first", "Answer A."), ("second", "Answer B.")):
        text = f"Read the question.\nThink.\n{last}\n"
        path = tmp_path / f"{name}.toml"
        path.write_text(CHANNEL.format(name=name, text=text, rubric=long + last + " and more of it" * 8))
        assert called("channel", "add", str(path)).code == 0
    lines = called("channel", "diff", "first", "second").out.splitlines()
    assert max(map(len, lines)) <= 80
    at = lines.index("prompt.text")
    assert lines[at + 1 : at + 5] == ["  --- first@1", "  +++ second@1", "  -Answer A.", "  +Answer B."]
    at = lines.index("prompt.rubric")
    assert "Answer A." in lines[at + 1]
    assert "Answer B." in lines[at + 2]
    assert lines[at + 1].startswith('  first@1   "one two three four')
    assert lines[at + 1].count("…") == 2
    logged = called("log").out.splitlines()
    assert max(map(len, logged)) <= 80


def test_what_is_made_is_told_in_80_columns_with_paths_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    folder = tmp_path / ("a-folder-with-a-name-as-long-as-people-give-" * 2)
    folder.mkdir()
    monkeypatch.chdir(folder)
    for words in (("init", "--origin", "one"), ("witness", "create", "my-desk-on-the-second-floor")):
        out = called(*words).out
        assert [line for line in out.splitlines() if len(line) > 80 and " " in line.strip()] == []
        wanted = str(tmp_path / "config" / "ledger" / "one.pem") if words[0] == "init" else "key add witness"
        assert wanted in " ".join(out.split())


@pytest.mark.parametrize("group", [name for name, told in COMMANDS.items() if told.group])
def test_the_help_of_a_group_has_an_example_that_fits(group: str) -> None:
    lines = called(group, "--help").out.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.strip().startswith("Example: ledger ") for line in lines)
