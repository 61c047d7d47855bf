"""Checkpoints with a model signature: accepted, kept, named by a channel, checked again, and written anew."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from ledger import oms
from ledger.attestations import TYPES
from ledger.ec_keys import EcPublicKey
from ledger.envelope import sign
from ledger.keys import SigningKey
from ledger.oms_kept import KeptSignature
from ledger.statement import PAYLOAD_TYPE, Statement, Subject
from tests.audits.cohorts import Ledger, gains, new_ledger, rows
from tests.cli.calls import Called, called
from tests.ledger.oms_bundles import bundle, new_key, save

FILES = {"config.json": b"{}", "part/a.bin": b"weights", "part-b.bin": b"more"}
KEY = new_key()
FACES = {(f"t{t:03d}", 0): gains(0.5 + t / 64, -0.25) for t in range(12)}
PAIR = (
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


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LEDGER_KEY", raising=False)
    made = new_ledger(tmp_path)
    monkeypatch.setenv("LEDGER_HOME", str(made.home.path))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    vkey = right("key", "generate", "gamma.pem")["vkey"]
    right("key", "add", "checkpoint", vkey)
    write(FILES)
    save(tmp_path, "ec", KEY)
    Path("model.sig").write_bytes(bundle(FILES, KEY))
    return made


def right(*words: str) -> dict[str, Any]:
    done = called(*words, "--json")
    assert done.code == 0, done.out + done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def write(files: dict[str, bytes], folder: str = "model") -> None:
    for name, data in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def attest(*more: str, path: str = "model", signature: str = "model.sig", key: str = "ec.pub") -> Called:
    words = ("attest", "checkpoint", path, "--signature", signature, "--signature-key", key)
    return called(*words, "--sign-with", "gamma.pem", *more)


def attested(*more: str, **named: str) -> dict[str, Any]:
    done = attest("--json", *more, **named)
    assert done.code == 0, done.out + done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def stored(ledger: Ledger, kind: str) -> Path:
    (file,) = (ledger.home.path / "objects" / kind).iterdir()
    return file


def test_a_signature_is_verified_kept_and_told(ledger: Ledger) -> None:
    found = attested()
    assert (found["files"], found["new"]) == (3, True)
    digest = hashlib.sha256(Path("model.sig").read_bytes()).hexdigest()
    assert found["signature"] == f"sha256:{digest}"
    kept = stored(ledger, "signatures")
    assert kept.name == f"{digest}.sigstore.json"
    assert kept.read_bytes() == Path("model.sig").read_bytes()
    predicate = right("attest", "show", found["statement"])["predicate"]
    assert predicate["signature"]["digest"] == found["subject_digest"]
    assert predicate["signature"]["signer"] == EcPublicKey.load("ec.pub").id
    assert (predicate["files"], predicate["of"], predicate["symlinks"]) == (3, "folder", "none")
    assert not attested()["new"]
    assert right("lineage", found["subject_digest"])["kind"] == "checkpoint"
    facts = right("show", found["statement"])["facts"]
    assert facts["digests"]["model"] == [predicate["digest"], found["subject_digest"]]
    assert (facts["files"], facts["accepts"]) == (3, found["signature"])
    done = called("verify", "--full")
    assert done.code == 0, done.out
    assert "no event" not in done.out
    assert called("repair").code == 0
    assert kept.exists()
    screen = attest("--name", "again").out
    assert found["subject_digest"] in screen
    assert max(map(len, screen.splitlines())) <= 84


def test_a_channel_may_name_the_subject_of_the_signature(ledger: Ledger, tmp_path: Path) -> None:
    model = oms.verify(Path("model.sig").read_bytes(), EcPublicKey.load("ec.pub"))
    for name in ("direct", "generated"):
        text = (
            Path(f"{name}.toml").read_text(encoding="utf-8").replace(f'name = "{name}"', f'name = "{name}-w"')
        )
        Path("w.toml").write_text(text.replace('model = "m"', f'model = "m"\ncheckpoint = "{model.digest}"'))
        right("channel", "add", "w.toml")
    right("key", "add", "collector", right("key", "generate", "alpha.pem")["vkey"])
    made = rows(FACES, acquisitions=dict.fromkeys(("direct", "generated"), ("main-1",)))
    table = pa.Table.from_pylist([row | {"channel": row["channel"] + "-w"} for row in made])
    pq.write_table(table, "scores.parquet")
    assert called(
        "attest", "acquisition", "main-1", "scores.parquet", "--sign-with", "alpha.pem", "-o", "a.json"
    ).code == 0  # fmt: skip
    right("ingest", "scores.parquet", "--attestation", "a.json")
    assert called(*PAIR, "--require", "attested").code == 5
    found = attested()
    assert called(*PAIR, "--require", "attested").code == 0
    record = right(*PAIR[:-1], "--require", "attested")["record"]
    assert called("bundle", record, "-o", "audit.bundle").code == 0
    checked = called("verify", "audit.bundle", "--trust-first")
    assert checked.code == 0, checked.out + checked.err
    stored(ledger, "signatures").write_bytes(b"{}")
    assert called(*PAIR, "--require", "attested").code == 4
    done = called("verify")
    assert (done.code, done.out.count("sigstore.json")) == (4, 1), done.out
    for words in (("attest", "show"), ("show",), ("lineage",)):
        told = called(*words, found["statement"])
        assert (told.code, "sigstore.json" in told.err) == (4, True), words
    stored(ledger, "signatures").unlink()
    assert "sigstore.json" in called("verify").out


@pytest.mark.parametrize("fault", ["missing", "additional", "changed"])
def test_files_that_differ_are_each_named_and_nothing_is_written(ledger: Ledger, fault: str) -> None:
    names = {"missing": "part/a.bin", "additional": "part/\x1bnew", "changed": "config.json"}
    if fault == "missing":
        Path("model", names[fault]).unlink()
    else:
        Path("model", names[fault]).write_bytes(b"other")
    size = right("status")["size"]
    done = attest("--json")
    error = json.loads(done.out)["error"]
    assert (done.code, error["code"], error[fault]) == (4, "files-differ", [names[fault]])
    lines = attest().err.splitlines()
    assert lines[0] == f"{fault:10} " + names[fault].replace("\x1b", "\\x1b")
    assert "\x1b" not in "".join(lines)
    assert right("status")["size"] == size
    assert not (ledger.home.path / "objects" / "signatures").exists()


def test_a_signature_that_does_not_hold_is_refused_before_anything_is_digested(ledger: Ledger) -> None:
    save(Path(), "other", new_key())
    assert attest(key="other.pub").code == 4
    data = Path("model.sig").read_text(encoding="utf-8")
    Path("broken.sig").write_text(data.replace('"sig": "M', '"sig": "N'), encoding="utf-8")
    done = attest(signature="broken.sig", path="nowhere")
    assert done.code == 4
    assert "broken.sig" in done.err
    assert attest(path="nowhere").code == 3
    assert attest(signature="nowhere.sig").code == 3
    certified = json.loads(data)
    certified["verificationMaterial"] = {"certificate": {"rawBytes": "AA=="}}
    Path("cert.sig").write_text(json.dumps(certified), encoding="utf-8")
    done = attest(signature="cert.sig")
    assert (done.code, "by certificate" in done.err) == (2, True)
    done = attest(key="gamma.pem")
    assert done.code == 2
    lone = called("attest", "checkpoint", "model", "--signature", "model.sig", "--sign-with", "gamma.pem")
    assert (lone.code, "--signature-key" in lone.err) == (2, True)
    assert not (ledger.home.path / "objects" / "signatures").exists()


def test_links_are_refused_or_followed(ledger: Ledger) -> None:
    Path("blob").write_bytes(FILES["config.json"])
    Path("model/config.json").unlink()
    Path("model/config.json").symlink_to(Path("blob").absolute())
    done = attest()
    assert (done.code, "symbolic link" in done.err) == (2, True)
    found = attested("--follow-symlinks")
    assert right("attest", "show", found["statement"])["predicate"]["symlinks"] == "files"
    # a link that leads out of the model and is not in the list is one file too many
    Path("model/passwd").symlink_to("/etc/passwd")
    assert json.loads(attest("--follow-symlinks", "--json").out)["error"]["additional"] == ["passwd"]


def test_what_the_signature_ignores_is_left_out_and_told(ledger: Ledger) -> None:
    write({".git/config": b"x", "notes/today.md": b"y"})
    Path("model/link").symlink_to("/etc")
    ignored = [".git", "notes", "link"]
    Path("model/model.sig").write_bytes(bundle(FILES, KEY, ignore_paths=ignored))
    done = attest(signature="model/model.sig")
    assert "left out  .git, link, model.sig, notes, as the signature does" in done.out
    found = attested(signature="model/model.sig")
    predicate = right("attest", "show", found["statement"])["predicate"]
    assert predicate["signature"]["ignored"] == [".git", "link", "model.sig", "notes"]
    assert predicate["files"] == 3


def test_a_model_of_one_file(ledger: Ledger) -> None:
    Path("one.gguf").write_bytes(b"weights")
    Path("one.sig").write_bytes(bundle({".": b"weights"}, KEY))
    found = attested(path="one.gguf", signature="one.sig")
    assert found["files"] == 1
    called("export", "--format", "oms", found["statement"], "--key", "ec.pem", "-o", "new.sig")
    model = oms.verify(Path("new.sig").read_bytes(), EcPublicKey.load("ec.pub"))
    assert [resource.name for resource in model.resources] == ["."]
    assert attest(path="model", signature="one.sig").code == 2
    assert attest(path="one.gguf").code == 2
    assert called("verify").code == 0


def test_an_attestation_travels_with_its_signature(ledger: Ledger) -> None:
    done = attest("-o", "claim.json")
    assert "--signature FILE" in done.out
    missing = called("attest", "add", "claim.json")
    assert (missing.code, "model signature" in missing.err) == (2, True)
    Path("other.sig").write_bytes(bundle(FILES, KEY))
    assert called("attest", "add", "claim.json", "--signature", "other.sig").code == 4
    assert not (ledger.home.path / "objects" / "attestations").exists()
    assert right("attest", "add", "claim.json", "--signature", "model.sig")["new"]
    assert called("attest", "checkpoint", "model", "--sign-with", "gamma.pem", "-o", "plain.json").code == 0
    assert called("attest", "add", "plain.json", "--signature", "model.sig").code == 2
    assert right("attest", "add", "plain.json")["files"] == 3


def claim(files: dict[str, bytes], *, second: Subject | None = None, **changes: object) -> bytes:
    """A claim by the checkpoint keeper about a bundle, which says what it likes."""
    data = Path("model.sig").read_bytes()
    key = EcPublicKey.load("ec.pub")
    kept = KeptSignature.of(data, key, oms.verify(data, key), ())
    subjects = (
        Subject("m", {"blake3": "0" * 64}),
        second or kept.as_subject,
        *(Subject(name, {"sha256": hashlib.sha256(d).hexdigest()}) for name, d in files.items()),
    )
    predicate = {"name": "m", "digest": "blake3:" + "0" * 64, "signature": kept.as_json() | changes}
    stated = Statement(subjects, TYPES["checkpoint"], predicate)
    return sign(stated.to_bytes(), PAYLOAD_TYPE, [SigningKey.load("gamma.pem")]).to_bytes()


# Files a claim states, and what it states else, of a bundle that says otherwise.
FALSE: tuple[tuple[dict[str, bytes], dict[str, Any]], ...] = (
    (FILES | {"more": b"x"}, {}),
    ({"config.json": b"{}"}, {}),
    (FILES | {"config.json": b"other"}, {}),
    (FILES, {"digest": "sha256:" + "0" * 64}),
    (FILES, {"bundle": "sha256:" + "0" * 64}),
    (FILES, {"signer": "0" * 64}),
    (FILES, {"subject": "another"}),
    (FILES, {"format": "x"}),
    (FILES, {"odd": 1}),
    (FILES, {"second": Subject("model", {"sha256": "0" * 64})}),
    (FILES, {"second": Subject("config.json", {"sha256": hashlib.sha256(b"{}").hexdigest()})}),
)


def test_a_claim_that_its_bundle_does_not_hold_is_never_logged(ledger: Ledger) -> None:
    for files, changes in FALSE:
        Path("false.json").write_bytes(claim(files, **changes))
        done = called("attest", "add", "false.json", "--signature", "model.sig")
        assert done.code == 4, (changes, done.out + done.err)
    assert not (ledger.home.path / "objects" / "signatures").exists()
    Path("claim.json").write_bytes(claim(FILES))
    assert called("attest", "add", "claim.json", "--signature", "model.sig").code == 0


def test_a_claim_logged_around_the_command_is_found_by_verify(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("false.json").write_bytes(claim(FILES | {"config.json": b"other"}))
    with monkeypatch.context() as patched:
        patched.setattr(KeptSignature, "check", lambda *_: None)
        assert called("attest", "add", "false.json", "--signature", "model.sig").code == 0
    done = called("verify")
    assert done.code == 4
    assert "1 changed: config.json" in done.out


def test_an_attested_checkpoint_is_exported(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    write({".git/config": b"x", ".gitignore": b"y"})
    found = right("attest", "checkpoint", "model", "--sign-with", "gamma.pem")
    assert found["files"] == 5
    words = ("export", "--format", "oms", found["statement"])
    done = called(*words, "--key", "file:ec.pem", "-o", "out.sig")
    assert done.code == 0, done.err
    model = oms.verify(Path("out.sig").read_bytes(), EcPublicKey.load("ec.pub"))
    assert [resource.name for resource in model.resources] == ["config.json", "part/a.bin", "part-b.bin"]
    assert model.digest == oms.verify(Path("model.sig").read_bytes(), EcPublicKey.load("ec.pub")).digest
    monkeypatch.setenv("EC", Path("ec.pem").read_text(encoding="utf-8"))
    printed = called(*words, "--key", "env:EC")
    assert oms.verify(printed.out.strip().encode(), EcPublicKey.load("ec.pub")) == model
    assert attested(signature="out.sig")["files"] == 3
    done = called(*words, "--key", "gamma.pem")
    assert (done.code, "ed25519" in done.err) == (2, True)
    Path("ec.pem").chmod(0o644)
    assert called(*words, "--key", "ec.pem").code == 3
    Path("ec.pem").chmod(0o600)
    assert (
        called("export", "checkpoint", found["statement"], "--key", "ec.pem", "--format", "eval-result").code
        == 2
    )
    right("revoke", "attestation", found["statement"], "--reason", "wrong weights")
    assert called(*words, "--key", "ec.pem").code == 5


def test_linked_folders_and_other_attestations_are_not_exported(ledger: Ledger) -> None:
    write({"x.bin": b"x"}, "elsewhere")
    Path("model/linked").symlink_to(Path("elsewhere").absolute())
    found = right("attest", "checkpoint", "model", "--sign-with", "gamma.pem", "--follow-symlinks")
    done = called("export", "--format", "oms", found["statement"], "--key", "ec.pem")
    assert (done.code, "linked folders" in done.err) == (2, True)
    right("key", "add", "collector", right("key", "generate", "alpha.pem")["vkey"])
    times = ("--start", "2026-09-01T00:00:00Z", "--end", "2026-09-02T00:00:00Z")
    stack = right(
        "attest", "stack", "gpt", "--provider", "p", "--model", "m", *times, "--sign-with", "alpha.pem"
    )
    assert stack["files"] == 0
    assert called("export", "--format", "oms", stack["statement"], "--key", "ec.pem").code == 2


# The tool itself, where it is on the PATH


def model_signing(*words: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which("model_signing")
    if program is None:
        pytest.skip("model_signing is not installed (pip install model-signing pyopenssl)")
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([program, *words], capture_output=True, text=True, check=False, env=inherited)


@pytest.mark.parametrize("curve", [ec.SECP256R1(), ec.SECP384R1(), ec.SECP521R1()], ids=lambda c: c.name)
def test_model_signing_signs_and_the_ledger_accepts(ledger: Ledger, curve: ec.EllipticCurve) -> None:
    save(Path(), "theirs", new_key(curve))
    write({".git/config": b"x"})
    done = model_signing(
        "sign", "key", "model", "--signature", "model/model.sig", "--private_key", "theirs.pem"
    )
    assert done.returncode == 0, done.stderr
    assert attested(signature="model/model.sig", key="theirs.pub")["files"] == 3
    assert called("verify").code == 0
    Path("model/config.json").write_bytes(b"changed")
    assert attest(signature="model/model.sig", key="theirs.pub").code == 4


@pytest.mark.parametrize("links", [False, True], ids=["plain", "links"])
def test_the_ledger_writes_and_model_signing_verifies(ledger: Ledger, links: bool) -> None:
    more, follow = ((), ()) if not links else (("--follow-symlinks",), ("--allow_symlinks",))
    if links:
        Path("blob").write_bytes(b"linked")
        Path("model/linked.bin").symlink_to(Path("blob").absolute())
    write({".gitattributes": b"x", ".hidden": b"y", "ünïcode €.bin": b"z", "part/deep/er.bin": b""})
    found = right("attest", "checkpoint", "model", "--sign-with", "gamma.pem", *more)
    assert (
        called("export", "--format", "oms", found["statement"], "--key", "ec.pem", "-o", "out.sig").code == 0
    )
    check = ("verify", "key", "model", "--signature", "out.sig", "--public_key", "ec.pub", *follow)
    done = model_signing(*check)
    assert done.returncode == 0, done.stdout + done.stderr
    model_signing("sign", "key", "model", "--signature", "their.sig", "--private_key", "ec.pem", *follow)
    ours, theirs = (
        oms.verify(Path(name).read_bytes(), EcPublicKey.load("ec.pub")) for name in ("out.sig", "their.sig")
    )
    assert (ours.resources, ours.digest, ours.name) == (theirs.resources, theirs.digest, theirs.name)
    assert (set(ours.ignored), ours.symlinks) == (set(theirs.ignored), theirs.symlinks)
    save(Path(), "other", new_key())
    assert model_signing(*check[: -1 - len(follow)], "other.pub", *follow).returncode != 0
    Path("model/part/a.bin").write_bytes(b"changed")
    assert model_signing(*check).returncode != 0
    Path("model/part/a.bin").write_bytes(FILES["part/a.bin"])
    Path("model/additional").write_bytes(b"")
    assert model_signing(*check).returncode != 0


def test_a_model_of_one_file_goes_both_ways(ledger: Ledger) -> None:
    Path("one.gguf").write_bytes(b"weights")
    done = model_signing("sign", "key", "one.gguf", "--signature", "one.sig", "--private_key", "ec.pem")
    assert done.returncode == 0, done.stderr
    found = attested(path="one.gguf", signature="one.sig")
    assert (
        called("export", "--format", "oms", found["statement"], "--key", "ec.pem", "-o", "out.sig").code == 0
    )
    done = model_signing("verify", "key", "one.gguf", "--signature", "out.sig", "--public_key", "ec.pub")
    assert done.returncode == 0, done.stderr


def test_model_signing_takes_no_ed25519_key(ledger: Ledger) -> None:
    done = model_signing("sign", "key", "model", "--signature", "x.sig", "--private_key", "gamma.pem")
    assert done.returncode != 0
    assert not Path("x.sig").exists()
