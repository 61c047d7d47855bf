"""`ledger attest` as a collector and an operator use it, up to an audit that requires it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ledger.keys import SigningKey
from tests.audits.cohorts import Ledger, gains, new_ledger, rows
from tests.cli.calls import Called, called

PAIR = ("audit", "transport", "--ref", "direct", "--alt", "generated", "--resamples", "100")
FACES = {(f"t{t:03d}", 0): gains(0.5 + t / 64, -0.25) for t in range(12)}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LEDGER_KEY", raising=False)
    made = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(made.home.path))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    scores()
    return made


def scores(name: str = "scores.parquet", acquisition: str = "main-1", shift: float = 0.0) -> None:
    made = rows(
        FACES, acquisitions=dict.fromkeys(("direct", "generated"), (acquisition,)), shift=lambda *_: shift
    )
    pq.write_table(pa.Table.from_pylist(made), name)


def collector(name: str = "alpha") -> None:
    made = right("key", "generate", f"{name}.pem")
    right("key", "add", "collector", made["vkey"])


def right(*words: str) -> dict[str, Any]:
    done = called(*words, "--json")
    assert done.code == 0, done.out + done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def sign(
    *more: str, name: str = "main-1", files: tuple[str, ...] = ("scores.parquet",), by: str = "alpha"
) -> Called:
    return called(
        "attest", "acquisition", name, *files, "--sign-with", f"{by}.pem", "-o", f"{name}.json", *more
    )


def levels(required: str) -> tuple[int, dict[str, int]]:
    done = called(*PAIR, "--require", required, "--json")
    found = json.loads(done.out)
    return done.code, found["predicate"]["result"]["provenance"]["entries_by_level"]


def test_an_attested_acquisition_reaches_the_audit(ledger: Ledger) -> None:
    collector()
    done = sign("--tool", "vllm=0.11", "--gold-isolated", "--start", "2026-09-01T00:00:00Z",
                "--end", "2026-09-02T00:00:00Z")  # fmt: skip
    assert done.code == 0, done.err
    receipt = right("ingest", "scores.parquet", "--attestation", "main-1.json")
    assert receipt["attestations"][0]["acquisition"] == "main-1"
    assert levels("attested") == (0, {"declared": 0, "bound": 0, "attested": 192})
    screen = called(*PAIR, "--require", "attested", "--no-record").out
    assert "attested" in screen.splitlines()[0]
    assert "192" in "".join(screen.splitlines()[:3])
    assert called("verify", "--full").code == 0
    (row,) = right("attest", "list")["attestations"]
    said = right("attest", "show", row["statement"][:20])
    assert (said["signed_by"], said["predicate"]["tools"]) == (["alpha"], {"vllm": "0.11"})
    assert "gold_isolated" in called("attest", "show", row["statement"]).out
    assert right("show", "acquisition:main-1")["facts"]["attested"][0]["statement"] == row["statement"]
    right("revoke", "attestation", row["statement"], "--reason", "the key was lost")
    assert levels("attested")[0] == 5
    assert levels("bound") == (0, {"declared": 0, "bound": 192, "attested": 0})
    assert called("verify", "--full").code == 0


def test_an_attestation_may_come_after_the_entries(ledger: Ledger) -> None:
    collector()
    right("ingest", "scores.parquet")
    assert levels("attested")[0] == 5
    sign()
    assert right("attest", "add", "main-1.json")["new"]
    assert not right("attest", "add", "main-1.json")["new"]
    assert levels("attested")[0] == 0


def test_a_file_nobody_signed_takes_the_level_away(ledger: Ledger) -> None:
    collector()
    sign()
    right("ingest", "scores.parquet", "--attestation", "main-1.json")
    more = rows({("t900", 0): gains(0.5, -0.25)})
    pq.write_table(pa.Table.from_pylist(more), "more.parquet")
    right("ingest", "more.parquet")
    code, found = levels("attested")
    assert (code, found["attested"]) == (5, 0)


def test_files_of_two_collectors_in_one_call_are_told_apart(ledger: Ledger) -> None:
    collector()
    scores("second.parquet", "main-2")
    sign()
    right("ingest", "scores.parquet", "second.parquet", "--attestation", "main-1.json")
    done = called(*PAIR, "--acquisition", "main-1", "--require", "attested", "--no-record")
    assert done.code == 0, done.out
    done = called(*PAIR, "--acquisition", "main-2", "--require", "attested", "--no-record")
    assert done.code == 5


def test_what_nobody_may_sign_yet_is_told_before_any_file_is_read(ledger: Ledger) -> None:
    right("key", "generate", "alpha.pem")
    assert called("attest", "list").out == "no attestation\n"
    size = right("status")["size"]
    sign()
    for words in (
        ("ingest", "scores.parquet", "--attestation", "main-1.json"),
        ("attest", "add", "main-1.json"),
        ("attest", "acquisition", "main-1", "absent.parquet"),
    ):
        done = called(*words)
        assert done.code == 2, words
        assert "no key has the role collector" in done.err
    assert right("status")["size"] == size


def test_an_attestation_that_does_not_fit_is_refused_and_nothing_is_written(ledger: Ledger) -> None:
    collector()
    right("key", "generate", "eve.pem")
    size = right("status")["size"]
    sign(by="eve")
    assert called("ingest", "scores.parquet", "--attestation", "main-1.json").code == 4
    sign()
    scores("other.parquet", shift=1.0)
    refused = called("ingest", "other.parquet", "--attestation", "main-1.json")
    assert refused.code == 1
    assert "attested" in refused.err
    text = Path("main-1.json").read_text(encoding="utf-8")
    Path("main-1.json").write_text(text.replace('"payload":"e', '"payload":"f'), encoding="utf-8")
    assert called("ingest", "scores.parquet", "--attestation", "main-1.json").code == 4
    assert sign(name="main-9").code == 2
    assert right("status")["size"] == size
    assert not list((ledger.home.path / "objects").glob("attestations/*"))


def test_a_retired_collector_signs_no_more_but_what_it_signed_stays(ledger: Ledger) -> None:
    collector()
    sign()
    right("ingest", "scores.parquet", "--attestation", "main-1.json")
    right("key", "retire", "collector", "alpha")
    assert levels("attested")[0] == 0
    assert called("verify").code == 0
    scores("second.parquet", "main-2")
    sign(name="main-2", files=("second.parquet",))
    assert called("ingest", "second.parquet", "--attestation", "main-2.json").code == 2  # nobody has it now
    right("key", "add", "collector", right("key", "generate", "two.pem")["vkey"])
    assert called("ingest", "second.parquet", "--attestation", "main-2.json").code == 4


def test_several_collectors_have_to_agree_where_the_policy_wants_it(ledger: Ledger) -> None:
    keys = [right("key", "generate", f"{name}.pem")["vkey"] for name in ("alpha", "two")]
    Path("policy.toml").write_text(f"[collector]\nkeys = {keys}\nthreshold = 2\n", encoding="utf-8")
    right("key", "policy", "set", "policy.toml")
    sign()
    assert called("ingest", "scores.parquet", "--attestation", "main-1.json").code == 4
    sign("--sign-with", "two.pem")
    right("ingest", "scores.parquet", "--attestation", "main-1.json")


def test_a_changed_attestation_in_the_home_is_found(ledger: Ledger) -> None:
    collector()
    sign()
    right("ingest", "scores.parquet", "--attestation", "main-1.json")
    (file,) = (ledger.home.path / "objects" / "attestations").iterdir()
    file.write_bytes(file.read_bytes().replace(b"payload", b"paylord", 1))
    done = called("verify")
    assert done.code == 4
    assert file.name in done.out


def test_what_is_signed_names_requests_and_claims(ledger: Ledger) -> None:
    from ledger.attestations import receive

    SigningKey.generate().save(Path("alpha.pem"))
    assert sign("--gold-visible").code == 0
    said = receive(Path("main-1.json").read_bytes()).said
    assert said.requests is not None
    assert said.requests.count == 96
    assert said.responses is None
    assert said.statement.predicate["claims"] == {"gold_isolated": False}
    assert sign("--start", "2026-09-01T00:00:00Z").code == 2
    assert sign("--tool", "vllm").code == 2


def test_an_older_audit_says_what_was_revoked_since(ledger: Ledger) -> None:
    right("ingest", "scores.parquet")
    record = right(*PAIR)["record"]
    scores("second.parquet", "main-2")
    right("ingest", "second.parquet", "--supersedes", "main-1")
    right("revoke", "acquisition", "main-1", "--reason", "wrong prompt")
    phrase = "reproduces at its head; inputs revoked since: acquisition main-1"
    assert phrase in right("show", record)["facts"]["standing"]
    verified = called("verify", "--full", "--json")
    assert verified.code == 0
    assert phrase in " ".join(json.loads(verified.out)["notices"])
    later = right(*PAIR)
    assert later["predicate"]["result"]["provenance"]["entries_out"]["acquisition-revoked"] == 192
    assert "standing" not in right("show", later["record"])["facts"]
    assert right("show", "acquisition:main-2")["facts"]["supersedes"] == "main-1"
    assert right("show", "acquisition:main-1")["facts"]["superseded_by"] == ["main-2"]


def test_a_revoked_channel_leaves_and_is_counted(ledger: Ledger) -> None:
    right("ingest", "scores.parquet")
    right("revoke", "channel", "direct", "--reason", "a typo in the template")
    assert not right("revoke", "channel", "direct", "--reason", "again")["new"]
    done = called(*PAIR, "--json")
    assert done.code == 5
    assert json.loads(done.out)["predicate"]["result"]["provenance"]["entries_out"]["channel-revoked"] == 96
    assert called("revoke", "channel", "nobody", "--reason", "x").code == 2
    assert called("revoke", "attestation", "00000000", "--reason", "x").code == 2


def test_a_correction_is_a_new_acquisition(ledger: Ledger) -> None:
    right("ingest", "scores.parquet")
    assert called("ingest", "scores.parquet", "--supersedes", "main-1").code == 2
    scores("second.parquet", "main-2")
    assert called("ingest", "second.parquet", "--supersedes", "main-9").code == 2


def test_a_channel_that_names_weights_needs_them_attested(ledger: Ledger) -> None:
    collector()
    made = right("key", "generate", "gamma.pem")
    Path("model").mkdir()
    Path("model/model.bin").write_bytes(b"weights")
    nobody = called("attest", "checkpoint", "model", "--sign-with", "gamma.pem")
    assert nobody.code == 2
    assert "no key has the role checkpoint; name who signs: ledger key add checkpoint KEY" in nobody.err
    assert "digest" not in nobody.out
    right("key", "add", "checkpoint", made["vkey"])
    assert called("attest", "checkpoint", "model", "--sign-with", "alpha.pem").code == 4
    digest = "sha256:" + hashlib.sha256(b"weights").hexdigest()
    for name in ("direct", "generated"):
        text = Path(f"{name}.toml").read_text(encoding="utf-8")
        text = text.replace(f'name = "{name}"', f'name = "{name}-w"')
        text = text.replace('model = "m"', f'model = "m"\ncheckpoint = "{digest}"')
        Path("w.toml").write_text(text, encoding="utf-8")
        right("channel", "add", "w.toml")
    table = pq.read_table("scores.parquet").to_pylist()
    named = [row | {"channel": row["channel"] + "-w"} for row in table]
    pq.write_table(pa.Table.from_pylist(named), "scores.parquet")
    sign()
    right("ingest", "scores.parquet", "--attestation", "main-1.json")
    pair = (
        "audit",
        "transport",
        "--ref",
        "direct-w",
        "--alt",
        "generated-w",
        "--resamples",
        "100",
        "--no-record",
    )
    assert called(*pair, "--require", "attested").code == 5
    right("attest", "checkpoint", "model", "--name", "m", "--sign-with", "gamma.pem")
    assert called(*pair, "--require", "attested").code == 0
    assert called("verify").code == 0
    claim = ("attest", "stack", "gpt", "--provider", "p", "--model", "m", "--sign-with", "alpha.pem")
    right(*claim, "--start", "2026-09-01T00:00:00Z", "--end", "2026-09-02T00:00:00Z")
    assert {row["kind"] for row in right("attest", "list")["attestations"]} == {
        "acquisition",
        "checkpoint",
        "stack",
    }
