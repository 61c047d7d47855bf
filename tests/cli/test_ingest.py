"""What `ledger ingest` says to people and programs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from contracts.template import template
from tests.cli.calls import Called, called

CHANNELS = Path(__file__).parents[2] / "examples" / "channels"


@pytest.fixture
def scores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The template beside a home with the example channels."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "scores.csv"
    path.write_text(template("transport"))
    for words in (("init",), ("channel", "add", *map(str, sorted(CHANNELS.glob("*.toml"))))):
        assert called(*words).code == 0
    return path


def refused(*words: str) -> Called:
    done = called("ingest", *words)
    assert done.code == 1
    return done


def test_the_template_goes_from_the_screen_to_an_audit(scores: Path) -> None:
    planned = called("ingest", str(scores), "--dry-run")
    assert "64 entries, root would be sha256:" in planned.out
    assert "next:" not in planned.out
    done = called("ingest", str(scores))
    assert "next: ledger audit transport --ref direct --alt generated" in done.out


def test_a_correction_ends_with_the_revocation_of_what_it_supersedes(scores: Path) -> None:
    called("ingest", str(scores))
    scores.write_text(scores.read_text().replace(",run-1,", ",run-2,"))
    done = called("ingest", str(scores), "--supersedes", "run-1")
    assert "next: ledger revoke acquisition run-1 --reason TEXT" in done.out
    assert "several acquisitions now (run-1, run-2)" in " ".join(done.err.split())


def test_another_energy_names_the_way_to_correct_it(scores: Path) -> None:
    called("ingest", str(scores))
    scores.write_text(scores.read_text().replace(",-0.25,", ",-0.5,"))
    told = " ".join(refused(str(scores)).err.split())
    assert "under a new acquisition_id with --supersedes run-1" in told


def test_a_refused_side_is_told_below_what_was_admitted_with_a_path_that_opens(scores: Path) -> None:
    lines = scores.read_text().splitlines(keepends=True)
    scores.write_text("".join(lines[:3] + lines[4:]))
    out = called("ingest", str(scores), "--rejects", "found.csv").out
    told = out.splitlines()
    at = next(i for i, line in enumerate(told) if line.startswith("admitted"))
    assert told[at + 1] == "refused   1 side of 31 rows, kept in"
    assert Path(told[at + 2].strip()).is_file()
    rows = len(Path("found.csv").read_text().splitlines()) - 1
    assert f"findings written to found.csv ({rows} row{'' if rows == 1 else 's'})" in told
    assert max(len(line) for i, line in enumerate(told) if i != at + 2) <= 80
    assert told.index(next(line for line in told if line.startswith("next:"))) > at + 2


def test_the_way_to_all_findings_is_not_told_to_who_went_it(scores: Path) -> None:
    rows = scores.read_text().splitlines(keepends=True)
    at = rows[0].split(",").index("energy")
    cells = [row.split(",") for row in rows[1:]]
    scores.write_text(rows[0] + "".join(",".join([*c[:at], "nan", *c[at + 1 :]]) for c in cells))
    assert "--rejects FILE.csv writes" in " ".join(refused(str(scores)).err.split())
    told = refused(str(scores), "--rejects", "found.csv").err
    assert "--rejects" not in told
    assert "findings written to found.csv (64 rows)" in told
    assert not told.rstrip().endswith(";")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda text: text.replace(b"energy", b"enrgy"), "kind-unclear"),
        (lambda text: text.replace(b",layout,", b",layuot,"), "missing-column"),
        (lambda text: text.replace(b"-1.5,ok", b"nan,ok"), "nan"),
        (lambda text: text.replace(b"north", b"n\xf6rth"), "not-utf-8"),
    ],
)
def test_every_refusal_has_one_shape(scores: Path, change: object, code: str) -> None:
    assert callable(change)
    scores.write_bytes(change(scores.read_bytes()))
    told = json.loads(refused(str(scores), "--json").out)
    assert told["error"]["code"] == code
    assert {"what", "expected", "where", "next"} <= told["error"].keys()
    assert told["findings"]["codes"][code]["count"] >= 1
    assert told["findings"]["findings"][0]["code"] == code


def test_a_column_without_a_name_is_named_as_such(scores: Path) -> None:
    scores.write_text("".join(f",{line}\n" for line in scores.read_text().splitlines()))
    assert "one without a name (pandas: index=False)" in called("ingest", str(scores), "--dry-run").out


def test_a_missing_digest_names_its_text_too(scores: Path) -> None:
    scores.write_text(scores.read_text().replace(",request\n", ",asked\n", 1))
    assert "request_hash (or request, its text) is missing" in called("ingest", str(scores), "--dry-run").out


CUT = "scores.csv row 64, the last, has no line end: its last value may be cut off"


def without_texts(scores: Path, last: str) -> str:
    """The template with another column at the end of its rows, and without its texts."""
    names, *lines = (line.split(",") for line in scores.read_text().splitlines())
    kept = [name for name in names[:10] if name != last]
    order = [names.index(name) for name in (*kept, last)]
    return "".join(",".join(line[at] for at in order) + "\n" for line in (names, *lines))


@pytest.mark.parametrize("last", ["energy", "target", "trajectory_id"])
def test_a_last_row_that_may_be_cut_is_named_however_much_is_gone(scores: Path, last: str) -> None:
    whole = without_texts(scores, last)
    value = whole.rstrip("\n").rpartition(",")[2]
    scores.write_text(whole)
    assert "may be cut" not in called("ingest", str(scores), "--dry-run").err
    for gone in range(1, len(value) + 1):
        scores.write_text(whole[:-gone])
        told = called("ingest", str(scores), "--dry-run")
        assert CUT in " ".join(told.err.split())
        found = json.loads(called("ingest", str(scores), "--dry-run", "--json").out)
        assert found["warnings"][0].startswith(CUT)


def test_a_quote_or_any_line_end_closes_the_last_row(scores: Path) -> None:
    whole = without_texts(scores, "target")
    for text in (whole.replace("\n", "\r\n"), whole.replace(",north\n", ',"north"\n')[:-1]):
        scores.write_bytes(text.encode())
        done = called("ingest", str(scores), "--dry-run")
        assert (done.code, "may be cut" in done.err) == (0, False)


@pytest.mark.parametrize("option", ["acquisition", "channel"])
def test_an_option_that_the_rows_overrule_is_said(scores: Path, option: str) -> None:
    column = {"acquisition": "acquisition_id", "channel": "channel"}[option]
    words = ("ingest", "scores.csv", "--dry-run", f"--{option}", "direct", "--json")
    found = json.loads(called(*words).out)["warnings"]
    assert f"--{option} direct is not used for scores.csv: what the column {column} says was taken" in found
    names, *lines = (line.split(",") for line in scores.read_text().splitlines()[:33])
    at = names.index(column)
    scores.write_text("".join(",".join([*row[:at], *row[at + 1 :]]) + "\n" for row in (names, *lines)))
    found = json.loads(called(*words).out)
    assert not any("is not used" in warning for warning in found["warnings"])
    assert found["admitted"] == 32


@pytest.mark.parametrize("kind", ["transport", "jev"])
def test_a_dry_run_knows_how_many_entries_each_segment_has(scores: Path, kind: str) -> None:
    file = scores.with_suffix(".txt")
    file.write_text(template(kind))
    words = ("ingest", str(file), "--json") + (("--acquisition", "a") if kind == "jev" else ())
    planned, done = (json.loads(called(*words, *more).out)["segments"] for more in (("--dry-run",), ()))
    assert planned == [{**each, "file": None, "event": None} for each in done]
    assert all(each["rows"] for each in planned)


def test_a_misspelt_candidate_is_told_by_how_many_cells_have_it_and_what_it_may_mean(scores: Path) -> None:
    lines = scores.read_text().splitlines(keepends=True)
    assert ",west," in lines[4]
    scores.write_text("".join([*lines[:4], lines[4].replace(",west,", ",wst,"), *lines[5:]]))
    told = " ".join(called("ingest", str(scores), "--dry-run").out.split())
    assert "found wst in 1 of 16 cells, first in layout 0 of (before, direct); is it west misspelt?" in told


def test_a_status_that_is_none_is_told_with_its_cell(scores: Path) -> None:
    scores.write_text(scores.read_text().replace(",ok,", ",failed,", 1))
    told = " ".join(refused(str(scores)).err.split())
    assert "scores.csv row 1 (example-1/step00 before direct layout 0 run-1 north): status 'failed'" in told


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("ingest", "none.csv"), ("no such file", "expected a file", "--template")),
        (("ingest", "."), ("a folder cannot be read", "expected a file", "name the files in it")),
        (("channel", "add", "."), ("Is a directory", "expected a TOML or JSON file", "name the files in it")),
        (("channel", "add", "none.toml"), ("No such file", "expected a TOML", "ledger channel add")),
        (
            ("audit", "jev", "--precision", "direct:direct"),
            ("compared with itself", "expected two channels, A:B", "got blake3:", "ledger channel list"),
        ),
    ],
    ids=" ".join,
)
def test_errors_say_what_was_expected_and_what_is_next(
    scores: Path, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    done = called(*words)
    assert done.code in (2, 3)
    assert all(part in done.err for part in parts), done.err


@pytest.mark.parametrize("change", ["flip", "remove"])
def test_an_audit_that_meets_damage_says_how_to_see_the_rest(scores: Path, change: str) -> None:
    assert called("ingest", str(scores)).code == 0
    (segment,) = Path(".ledger/objects/segments").glob("*.parquet")
    segment.chmod(0o644)
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data) if change == "flip" else segment.unlink()
    done = called("audit", "transport", "--ref", "direct", "--alt", "generated", "--no-record")
    assert done.code in (3, 4)
    assert done.err.rstrip().endswith("ledger verify")


def recorded() -> int:
    size: int = json.loads(called("status", "--json").out)["size"]
    return size


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("found.txt", 2, "expected .csv, .jsonl, .parquet"),
        ("found", 2, "expected .csv, .jsonl, .parquet"),
        (".csv", 2, "expected .csv, .jsonl, .parquet"),
        ("nofolder/found.csv", 3, "no such folder"),
        ("scores.csv/found.csv", 3, "no such folder"),
        ("folder.csv", 3, "it is a folder"),
        ("scores.csv", 2, "one of the files that are read"),
        ("link.csv", 2, "one of the files that are read"),
        ("shut/found.csv", 3, "no permission"),
        ("shut.csv", 3, "no permission"),
    ],
)
def test_a_rejects_file_that_cannot_be_written_is_refused_before_any_work(
    scores: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: int, says: str
) -> None:
    Path("folder.csv").mkdir()
    Path("shut").mkdir()
    Path("shut.csv").touch()
    Path("link.csv").symlink_to("scores.csv")
    may, shut = os.access, {Path("shut"), Path("shut.csv")}
    monkeypatch.setattr(
        os, "access", lambda path, mode: (mode != os.W_OK or Path(path) not in shut) and may(path, mode)
    )
    before, text = recorded(), scores.read_text()
    done = called("ingest", "scores.csv", "--rejects", name)
    assert (done.code, done.out) == (code, "")
    assert says in " ".join(done.err.split())
    assert (recorded(), scores.read_text()) == (before, text)


@pytest.mark.parametrize("name", ["found.csv", "found.jsonl", "found.parquet", "made/found.csv"])
def test_a_rejects_file_is_written_over(scores: Path, name: str) -> None:
    Path("made").mkdir()
    for _ in range(2):
        assert called("ingest", "scores.csv", "--rejects", name).code == 0
        assert Path(name).is_file()
