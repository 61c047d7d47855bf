"""`ledger audit face|cube|bridge|contrast` as people and programs meet them: screens, JSON, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli import main
from tests.audits import test_bridge, test_contrast, test_face
from tests.audits.cohorts import Ledger, Row
from tests.audits.family import cube_rows, cube_specs, family, side

FEW = ("--resamples", "200")
FACE = ("audit", "face", "--channel", "frozen", *FEW)
CUBE = (
    "audit", "cube", "--channels", "cube/*", "--factors", "view.kind,presentation.authority",
    "--levels", "empty,quote,generated", "--levels", "neutral,evidence", *FEW,
)  # fmt: skip
BRIDGE = ("audit", "bridge", "--vertex", test_bridge.A, "--vertex", test_bridge.B, *FEW)
CONTRAST = ("audit", "contrast", "--ref", "own:donor", "--alt", "own", *FEW)
FROZEN = {"frozen": {"view": "generated"}}
Kind = tuple[dict[str, dict[str, str]], Callable[[], list[Row]], tuple[str, ...]]
KINDS: dict[str, Kind] = {
    "face": (FROZEN, test_face.rows, FACE),
    "cube": (cube_specs(), cube_rows, CUBE),
    "bridge": (test_bridge.SPECS, lambda: test_bridge.rows("ab"), BRIDGE),
    "contrast": (test_contrast.SPECS, lambda: test_contrast.rows(24, 1.0), CONTRAST),
}


@dataclass(frozen=True)
class Answer:
    """What a call printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def text(self) -> str:
        """What was printed, unwrapped."""
        return " ".join(self.out.split())

    @property
    def result(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["predicate"]["result"]
        return found


@dataclass(frozen=True)
class Command:
    """The program on ledgers of a test."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    def on(self, specs: dict[str, dict[str, str]], rows: Sequence[Row]) -> Ledger:
        """Work on a new ledger with these channels and rows."""
        made = family(self.folder, specs)
        self.monkeypatch.setenv("LEDGER_HOME", str(made.home.path))
        made.ingest(rows)
        return made

    def __call__(self, *words: str) -> Answer:
        self.capsys.readouterr()
        code = main.dispatch(list(words))
        printed = self.capsys.readouterr()
        return Answer(code, printed.out, printed.err)


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setenv("NO_COLOR", "1")
    return Command(tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_screen_fits_and_the_record_is_logged_once_and_computed_again(
    command: Command, kind: str
) -> None:
    specs, rows, words = KINDS[kind]
    command.on(specs, rows())
    found = command(*words)
    lines = found.out.splitlines()
    assert found.code == 0, found.err
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert lines[0].startswith(f"{kind}: ")
    assert any(line.startswith("Verdict: ") for line in lines)
    assert lines[-1].startswith("signed and logged as sha256:")
    again = command(*words, "--json")
    assert again.json["existed"] is True
    assert command("lineage", again.json["record"]).code == 0
    checked = command("verify", "--full", "--json")
    assert checked.code == 0, checked.out
    assert "layout_balance.status" in command(*words, "--verbose", "--no-record").out


def test_json_is_the_statement_with_record_event_and_sentence(command: Command) -> None:
    command.on(FROZEN, test_face.rows())
    found = command(*FACE, "--json").json
    assert set(found) == {
        "_type",
        "subject",
        "predicateType",
        "predicate",
        "record",
        "event",
        "existed",
        "sentence",
    }
    assert found["predicate"]["schema"] == "ledger.audit.face.v1"
    assert set(found["predicate"]["result"]) == {
        "design", "flow", "provenance", "estimates", "tables", "verdicts", "limits",
    }  # fmt: skip
    unsigned = command(*FACE, "--no-record", "--json").json
    assert (unsigned["record"], unsigned["event"]) == (None, None)
    assert unsigned["predicate"]["result"] == found["predicate"]["result"]


def test_a_missing_corner_ends_with_5_and_is_recorded(command: Command) -> None:
    command.on(
        FROZEN, [r for r in test_face.rows() if (r["endpoint"], r["view_source"]) != ("before", "after")]
    )
    found = command(*FACE)
    assert found.code == 5
    assert "the split is not identified" in found.err
    assert "(state before, view after)" in found.text
    assert "signed and logged as" in found.out
    assert "0.000" not in found.out
    told = command(*FACE, "--json")
    assert (told.code, told.json["error"]["code"], told.json["existed"]) == (5, "not_identified", True)


def test_acquisitions_and_filters_narrow_a_face(command: Command) -> None:
    again = [
        r | {"acquisition_id": "again", "request_hash": f"sha256:{r['request_hash'][7:][::-1]}"}
        for r in test_face.rows()
    ]
    command.on(FROZEN, test_face.rows() + again)
    assert command(*FACE, "--acquisition", "frozen@again", "--json").result["flow"]["complete"] == 12
    few = command(*FACE, "--where", "trajectory_id=t001", "--where", "trajectory_id=t002", "--json").result
    assert few["flow"]["transitions"] == 2
    refused = command(*FACE, "--acquisition", "nope")
    assert refused.code == 2
    assert "nope" in refused.err


def test_an_extra_difference_between_cells_is_named_and_ends_with_5(command: Command) -> None:
    specs = cube_specs()
    specs["cube/3"]["order"] = "view-first"
    ledger = command.on(specs, cube_rows())
    size = ledger.snapshot().size
    found = command(*CUBE)
    assert found.code == 5
    assert "presentation.order" in found.err
    assert "view-first" in found.err
    assert "cube/3" in found.err
    assert found.out == ""
    assert command(*CUBE, "--json").json["error"]["code"] == "channels-differ"
    assert ledger.snapshot().size == size


def test_a_cube_needs_a_channel_for_every_cell(command: Command) -> None:
    command.on(cube_specs(), cube_rows())
    found = command(*CUBE[:3], "cube/0,cube/1", *CUBE[4:])
    assert found.code == 2
    assert "no channel for 4 of 6 cells" in found.err


def test_a_band_is_judged_and_must_be_positive(command: Command) -> None:
    command.on(cube_specs(), cube_rows())
    found = command(*CUBE, "--band", "25")
    assert "lies within ±25 is established" in found.text
    assert command(*CUBE, "--band", "0").code == 2


def test_magnitudes_across_vertices_are_refused_with_the_reason(command: Command) -> None:
    ledger = command.on(test_bridge.SPECS, test_bridge.rows("ab"))
    size = ledger.snapshot().size
    found = command(*BRIDGE, "--magnitude")
    assert found.code == 5
    assert "not comparable" in found.err
    assert command(*BRIDGE, "--magnitude", "--json").json["error"]["code"] == "direction-only"
    assert ledger.snapshot().size == size


def test_an_unobserved_vertex_is_listed(command: Command) -> None:
    command.on(test_bridge.SPECS, test_bridge.rows("ab"))
    found = command(*BRIDGE, "--vertex", test_bridge.C, "--vertex", "D=")
    text = found.text
    assert found.code == 0
    assert "vertex C not observed: no scores of ref and alt in scope" in text
    assert "vertex D not observed: no channels named" in text
    assert "the compound endpoint is not decomposed" in text
    assert len(found.out.splitlines()) <= 24


def test_a_bridge_without_scores_ends_with_5(command: Command) -> None:
    command.on(test_bridge.SPECS, list(side("c-quote", "t000", (0.0, 1.0))))
    found = command(*BRIDGE)
    assert found.code == 5
    assert "no transition is in scope: nothing was signed" in found.err


def test_a_vertex_of_an_unknown_channel_ends_with_2(command: Command) -> None:
    command.on(test_bridge.SPECS, test_bridge.rows("a"))
    found = command(*BRIDGE, "--vertex", "D=nope:c-quote")
    assert found.code == 2
    assert "unknown channel nope" in found.err


def test_a_level_nothing_reaches_ends_with_5_and_the_option_to_use(command: Command) -> None:
    bare = [r | {"request_hash": None} for r in test_contrast.rows()]
    command.on(test_contrast.SPECS, bare)
    found = command(*CONTRAST)
    assert found.code == 5
    assert "--require declared" in found.err
    assert command(*CONTRAST, "--require", "declared").code == 0


def test_an_earlier_head_gives_what_was_known_then(command: Command) -> None:
    ledger = command.on(test_contrast.SPECS, test_contrast.rows()[:-16])
    size = ledger.snapshot().size
    ledger.ingest(test_contrast.rows(), "all.parquet")
    assert command(*CONTRAST, "--at", str(size), "--json").result["flow"]["complete"] == 11
    assert command(*CONTRAST, "--json").result["flow"]["complete"] == 12


def test_the_envelope_is_written_where_it_was_asked_for(command: Command, tmp_path: Path) -> None:
    command.on(test_contrast.SPECS, test_contrast.rows())
    assert command(*CONTRAST, "--output", str(tmp_path / "audit.dsse.json")).code == 0
    assert "payloadType" in json.loads((tmp_path / "audit.dsse.json").read_text())
