"""`ledger report` as readers meet it: what the page says, that it can be checked, and that it looks right."""

from __future__ import annotations

import base64
import html
import json
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from audits.points import pair_points
from cli import main, report_page, text_plot
from cli.report_tables import cell
from contracts.errors import TamperError, UsageError
from ledger.ingest import ingest
from tests.audits.cohorts import Ledger, gains, new_ledger, noisy, rows

PAIR = ("audit", "transport", "--ref", "direct", "--alt", "generated", "--resamples", "100")
HOSTILE = ("<script>alert(1)</script>", "\"><img src=x onerror=alert('1')>", "$\\frac{1}{", "t" * 4_000)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
BROWSER = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--enable-logging=stderr",
    "--virtual-time-budget=2000",
)
DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)


@dataclass(frozen=True)
class Study:
    """A ledger with a logged audit of hostile names, its record and its page."""

    ledger: Ledger
    config: Path
    record: Mapping[str, Any]
    page: str


class Reader(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main.dispatch(list(words))
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def hostile_faces() -> dict[tuple[str, int], Any]:
    """Twelve ordinary trajectories and four whose names are attacks; the last lacks a reading."""
    faces = noisy(12, 2)
    return faces | {(name, 0): gains(0.5, -0.5, target="A") for name in HOSTILE}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Study]:
    config = tmp_path_factory.mktemp("report-config")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(config))
        ledger = new_ledger(tmp_path_factory.mktemp("report"))
        patch.setenv("LEDGER_HOME", str(ledger.home.path))
        made = rows(hostile_faces(), acquisitions={"direct": (HOSTILE[1],), "generated": (HOSTILE[0],)})
        kept = [row for row in made if not (row["trajectory_id"] == HOSTILE[3] and row["layout"] == 1)]
        ledger.ingest(kept)
        file, record = ledger.folder / "audit.html", ledger.folder / "record.json"
        assert main.dispatch([*PAIR, "--report", str(file), "--output", str(record)]) == 0
        payload = json.loads(base64.b64decode(json.loads(record.read_bytes())["payload"]))
        yield Study(ledger, config, payload, file.read_text(encoding="utf-8"))


@pytest.fixture
def at_study(study: Study, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(study.config))
    monkeypatch.setenv("LEDGER_HOME", str(study.ledger.home.path))
    return study


def result(study: Study) -> Mapping[str, Any]:
    found: Mapping[str, Any] = study.record["predicate"]["result"]
    return found


def test_the_page_says_what_the_record_says(study: Study) -> None:
    flow, flips, text = result(study)["flow"], result(study)["tables"]["flips"], html.unescape(study.page)
    assert (flow["transitions"], flow["complete"]) == (28, 27)
    assert "<strong>28</strong> transitions in scope" in text
    assert "<strong>27</strong> complete, in 15 trajectories" in text
    for words, count in (
        ("+ to −", flips["pos_to_neg"]), ("− to +", flips["neg_to_pos"]),
        ("both +", flips["both_pos"]), ("both −", flips["both_neg"]),
    ):  # fmt: skip
        assert f"{words}: {count}<" in text
    changed = flips["pos_to_neg"] + flips["neg_to_pos"]
    assert f"{changed} of 27 change sign" in text
    for limit in (*result(study)["limits"], *result(study)["provenance"]["non_claims"]):
        assert limit["text"] in text
    assert "prompt.<wbr>text" in study.page
    assert "Cohort-weighted" in text
    assert "<td>20260928</td>" in text
    assert "<h3>targets: types</h3>" in text
    assert result(study)["estimates"].keys() <= set(re.sub("<wbr>", "", text).replace("<", ">").split(">"))


def test_the_same_record_gives_the_same_bytes(at_study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    again = at_study.ledger.folder / "again.html"
    code, out, _ = call(capsys, "report", f"{record_event(at_study)}", "--output", str(again))
    assert code == 0
    assert "wrote" in out
    assert again.read_text(encoding="utf-8") == at_study.page


def test_nothing_of_the_data_becomes_markup(study: Study) -> None:
    found = Reader(study.page).found
    assert "script" not in {tag for tag, _ in found}
    assert "img" not in {tag for tag, _ in found}
    attributes = [(name, value) for _, attrs in found for name, value in attrs.items()]
    assert not [name for name, _ in attrs_starting(attributes, "on")]
    links = [value for name, value in attributes if name in ("src", "href", "action", "srcset")]
    assert all(value is not None and value.startswith(("#", "data:,")) for value in links)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in study.page
    assert HOSTILE[3] not in study.page
    assert len(cell("t" * 10_000)) <= 160
    ids = [value for name, value in attributes if name == "id"]
    assert len(ids) == len(set(ids))


def attrs_starting(attributes: list[tuple[str, str | None]], start: str) -> list[tuple[str, str | None]]:
    return [pair for pair in attributes if pair[0].startswith(start)]


def test_every_figure_says_in_words_what_it_shows(study: Study) -> None:
    drawings = DRAWING.findall(study.page)
    assert len(drawings) == 4
    for drawing in drawings:
        root = ET.fromstring(drawing)
        named = {child.get("id"): child.text or "" for child in root}
        assert root.get("role") == "img"
        assert all(len(named[name]) > 10 for name in (root.get("aria-labelledby") or "").split())
        assert "#0102" not in drawing
        assert "<dc:date>" not in drawing


def test_the_record_in_the_page_verifies_as_the_page_says(at_study: Study, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text(at_study.page, encoding="utf-8")
    (tmp_path / "ledger.pub.pem").write_bytes(at_study.ledger.key.public.to_pem())
    blocks = [html.unescape(block) for block in re.findall(r"<pre>(.*?)</pre>", at_study.page, re.DOTALL)]
    extract, digest, signature = blocks[:3]

    def run(text: str) -> subprocess.CompletedProcess[str]:
        command = text.replace("python3", sys.executable, 1)
        return subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert run(extract).returncode == 0
    command, expected = digest.split("\n")
    assert run(command).stdout.strip() == expected
    assert run(signature).stdout == "signed by this key\n"
    file = tmp_path / "record.dsse.json"
    signed = json.loads(file.read_bytes())
    signed["payload"] = base64.b64encode(base64.b64decode(signed["payload"]) + b" ").decode()
    file.write_text(json.dumps(signed))
    assert run(signature).returncode != 0


def test_rows_that_give_another_result_are_no_figure(at_study: Study) -> None:
    snapshot = at_study.ledger.snapshot()
    stated = json.loads(json.dumps(result(at_study)))
    assert pair_points(snapshot, stated) is not None
    stated["tables"]["flips"]["pos_to_neg"] += 1
    with pytest.raises(TamperError, match="another result"):
        pair_points(snapshot, stated)


def test_a_record_whose_entries_are_gone_is_still_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
    ledger.ingest(rows(noisy(12, 1)))
    assert call(capsys, *PAIR)[0] == 0
    for segment in (ledger.home.path / "objects" / "segments").glob("*.parquet"):
        segment.unlink()
    code, _, err = call(capsys, "report", "5", "-o", str(tmp_path / "r.html"))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert code == 0
    assert "rows could not be read" in err
    assert "The rows behind this record could not be read" in page
    assert 'id="forest-title"' in page
    assert 'id="scatter-title"' not in page


def test_an_unsigned_result_says_so(at_study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    file = at_study.ledger.folder / "unsigned.html"
    assert call(capsys, *PAIR, "--no-record", "--report", str(file))[0] == 0
    page = file.read_text(encoding="utf-8")
    assert "unsigned and not logged" in page
    assert 'id="envelope"' not in page


def test_a_cohort_without_transitions_is_drawn_as_far_as_it_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
    ledger.ingest(rows({("t", 0): gains(0.5, 0.25)}, bound=False))
    code, out, _ = call(capsys, *PAIR, "--report", str(tmp_path / "r.html"), "--plot")
    assert code == 5
    assert "nothing to plot: estimates are undefined" in out
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "nothing to draw" in page
    assert "undefined (no complete transition)" in page


def test_predictions_have_charts_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(ledger.home.path))
    lines = [
        {
            "year": year, "query_id": f"q{q:02d}", "scenario": f"<b>{s}</b>",
            "before": {"a": 0.25, "b": 0.75}, "after": {"a": 0.75 if q < 3 else 0.25, "b": 0.75},
            "positive_labels": ["b"],
        }
        for year in (2019, 2020)
        for q in range(12)
        for s in ("one", "two")
    ]  # fmt: skip
    file = tmp_path / "p.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    ingest(ledger.home, [file], key=ledger.key)
    where = str(tmp_path / "r.html")
    words = ("audit", "jev", "--require", "declared", "--resamples", "100", "--report", where, "--plot")
    code, out, err = call(capsys, *words)
    assert code == 0, err
    assert "strict flip" in out
    page = html.unescape((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "2019: <b>one</b> 3 of 24, <b>two</b> 3 of 24; 2020:" in page
    assert "with lines at 0.5. 6 flip: 6 from below to above, 0 from above to below" in page
    for name in ("flips", "actions", "plane0", "plane1", "shares"):
        assert f'id="{name}-desc"' in page


def test_the_plot_of_text_fits_a_terminal(at_study: Study) -> None:
    names = {"ref": "direct", "alt": "x" * 300}
    lines = list(text_plot.lines(result(at_study), names))
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in "".join(lines)
    (omega,) = [line for line in lines if line.startswith("*mean Ω")]
    value = result(at_study)["estimates"]["interaction"]["value"]
    assert omega.endswith(f"{value:+.3f}")
    assert omega.index("o", 22) < omega.index("|") if value < 0 else omega.index("o", 22) > omega.index("|")


def test_without_the_extra_the_command_says_how_to_get_it(
    at_study: Study, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "matplotlib" else object())
    with pytest.raises(UsageError, match="matplotlib"):
        report_page.require_extra()
    code, _, err = call(capsys, *PAIR, "--report", str(at_study.ledger.folder / "no.html"))
    assert code == 2
    assert "pip install 'evaluator-ledger[report]'" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("report", "0", "-o", "r.html"), "not an audit"),
        (("report", "feedfacefeedface", "-o", "r.html"), "nothing in this ledger"),
        (("report", "0"), "nowhere to show the report"),
        (("report", "0", "-o", "no/such/folder.html"), "no such folder"),
        ((*PAIR, "--plot", "--json"), "a plot is for people"),
    ],
)
def test_what_cannot_be_shown_is_refused(
    at_study: Study, words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = call(capsys, *words)
    assert code in (2, 3)
    assert said in out + err


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium here to look at the page with")
def test_a_browser_shows_the_page_without_errors_or_overflow(study: Study, tmp_path: Path) -> None:
    """The page as it is must log nothing; a copy that may run a script says how wide it came out."""
    page = tmp_path / "page.html"
    page.write_text(study.page, encoding="utf-8")
    measure = (
        "<script>onload = () => { document.querySelectorAll('details').forEach(d => d.open = true);"
        "const root = document.documentElement, wide = root.scrollWidth - root.clientWidth;"
        "const cut = [...document.querySelectorAll('svg text')].filter(text => {"
        "const own = text.getBoundingClientRect(), box = text.ownerSVGElement.getBoundingClientRect();"
        "return own.left < box.left - 1 || own.right > box.right + 1; }).length;"
        "const colour = getComputedStyle(document.body).backgroundColor;"
        "parent.postMessage(`${innerWidth}:${wide}:${cut}:${colour}`, '*'); }</script></body>"
    )
    copy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", study.page)
    (tmp_path / "copy.html").write_text(copy.replace("</body>", measure), encoding="utf-8")
    frames = "".join(f'<iframe src="copy.html" width="{w}" height="900"></iframe>' for w in (1280, 390))
    (tmp_path / "frames.html").write_text(
        "<body><script>onmessage = e => { document.body.append(`[${e.data}]`); }</script>"
        f"<style>iframe {{ border: 0 }}</style>{frames}</body>",
        encoding="utf-8",
    )
    assert "CONSOLE" not in browse(page, tmp_path, "1").stderr
    for scheme, background in (("0", "rgb(20, 24, 29)"), ("1", "rgb(255, 255, 255)")):
        seen = browse(tmp_path / "frames.html", tmp_path, scheme)
        assert "CONSOLE" not in seen.stderr
        measured = sorted(re.findall(r"\[(\d+:-?\d+:\d+:[^\]]*)\]", seen.stdout))
        assert measured == [f"1280:0:0:{background}", f"390:0:0:{background}"]


def browse(page: Path, folder: Path, scheme: str) -> subprocess.CompletedProcess[str]:
    """The page's elements after its scripts ran, and what the browser logged; scheme 0 is dark, 1 light."""
    words = (
        *BROWSER,
        f"--blink-settings=preferredColorScheme={scheme}",
        f"--user-data-dir={folder / 'profile'}",
    )
    return subprocess.run(
        [str(CHROMIUM), *words, "--dump-dom", page.as_uri()],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip


def test_a_revoked_or_foreign_record_is_marked(at_study: Study) -> None:
    from cli.report_record import logged

    found = logged(at_study.ledger.home, f"{record_event(at_study)}", key=None, trust_first=False)
    assert found.signed is not None
    assert found.signed.trusted
    revoked = replace(
        found.signed, revoked={"event": 9, "time": "2026", "reason": "<i>wrong</i>"}, trusted=False
    )
    page = report_page.page(replace(found, signed=revoked, pair=None)).decode()
    assert "revoked by event 9 (2026): &lt;i&gt;wrong&lt;/i&gt;" in page
    assert "did not sign this record" in page


def test_rows_of_an_unknown_method_are_said_to_be_missing(at_study: Study) -> None:
    from cli.report_record import subject
    from ledger.statement import parse

    changed = json.loads(json.dumps(at_study.record))
    changed["predicate"]["result"]["design"]["method"]["trim"] = "of a later version"
    found = subject(at_study.ledger.snapshot(), parse(json.dumps(changed).encode()), None)
    assert found.pair is None
    assert "another version" in (found.missing or "")
    assert "another version" in report_page.page(found).decode()


def record_event(study: Study) -> int:
    from ledger.index import Index

    with Index.open(study.ledger.home) as index:
        return index.records()[0].event


def test_a_million_transitions_are_drawn_as_counts() -> None:
    import numpy as np

    from audits.points import PairPoints
    from cli.report_pair_figures import distribution, scatter

    ref = np.linspace(-1, 1, 20_001)
    alt = -ref
    points = PairPoints(ref, alt, alt - ref, ref * alt < 0)
    drawn = scatter(points, {"ref": "a", "alt": "b"})
    assert len(drawn.svg) < 60_000
    assert "20,000 change sign: 10,000 from positive to negative" in drawn.text
    assert "1 have a zero" in drawn.text
    assert drawn == scatter(points, {"ref": "a", "alt": "b"})
    assert "10,000 below 0, 10,000 above" in distribution(points, {}).text


@pytest.mark.parametrize(
    "words",
    [
        ("repeatability", "--channel", "direct"),
        ("redundancy", "--ref", "direct", "--alt", "generated"),
        pytest.param(("pool", "--channels", "direct,generated"), marks=pytest.mark.sweep),
        pytest.param(("mixture", "--ref", "direct", "--alt", "generated"), marks=pytest.mark.sweep),
        pytest.param(("contrast", "--ref", "generated", "--alt", "direct"), marks=pytest.mark.sweep),
    ],
    ids=lambda words: words[0],
)
def test_every_kind_of_audit_has_a_page(
    words: tuple[str, ...], at_study: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    file = at_study.ledger.folder / f"{words[0]}.html"
    code, out, err = call(capsys, "audit", *words, "--resamples", "100", "--report", str(file), "--plot")
    assert code in (0, 5), err
    page = file.read_text(encoding="utf-8")
    assert f"<h1>{words[0]} audit" in page
    assert 'id="forest-desc"' in page or "nothing to draw" in page or 'id="shares-desc"' in page
    assert max(map(len, out.splitlines())) <= 80
    assert "sha256sum record.dsse.json" in page


SHARED = Path(__file__).parents[2].parent / "shared" / "cohort"
CUBE = (
    "cube", "--channels", "cube/*", "--factors", "view.kind,presentation.authority",
    "--levels", "empty,quote,generated", "--levels", "neutral,evidence-primary",
)  # fmt: skip
BRIDGE = (
    "bridge", "--vertex", "A=bridge/A-quote:bridge/A-generated",
    "--vertex", "B=bridge/B-quote:bridge/B-generated",
)  # fmt: skip


@pytest.mark.sweep
@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared cohort is not beside the repository")
@pytest.mark.parametrize(
    ("file", "words", "rows_drawn"),
    [
        ("cube.parquet", CUBE, "generated/neutral"),
        ("retrieval_face.parquet", ("face", "--channel", "cube/generated-neutral"), "view.state_after"),
        ("bridge.parquet", BRIDGE, "A.auc_gap"),
    ],
    ids=["cube", "face", "bridge"],
)
def test_audits_of_other_faces_have_a_page(
    file: str, words: tuple[str, ...], rows_drawn: str, tmp_path: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    specs = sorted(str(path) for path in (SHARED / "channels").glob("*.toml"))
    assert call(capsys, "init")[0] == 0
    assert call(capsys, "channel", "add", *specs)[0] == 0
    assert call(capsys, "ingest", str(SHARED / file))[0] == 0
    code, _, err = call(capsys, "audit", *words, "--resamples", "100", "--report", "r.html")
    assert code == 0, err
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert 'id="forest-desc"' in page
    assert rows_drawn in page.replace("<wbr>", "")
