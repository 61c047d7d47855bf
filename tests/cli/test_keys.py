"""`ledger key` as people use it: generate, add, list, set a policy, rotate, and go on with the new key."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.calls import called


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("LEDGER_KEY", raising=False)
    monkeypatch.chdir(tmp_path)
    assert called("init").code == 0
    return tmp_path


def roles() -> dict[str, object]:
    found = json.loads(called("key", "policy", "show", "--json").out)["roles"]
    assert isinstance(found, dict)
    return found


def test_keys_come_and_go(home: Path) -> None:
    made = json.loads(called("key", "generate", "alpha.pem", "--json").out)
    assert called("key", "add", "collector", made["vkey"]).code == 0
    assert "already" in called("key", "add", "collector", made["vkey"]).out
    assert "alpha" in called("key", "list").out
    assert set(roles()) == {"head", "collector"}
    assert called("key", "retire", "collector", "alpha").code == 0
    assert set(roles()) == {"head"}
    assert "collector" in called("key", "list", "--all").out
    assert called("key", "add", "king", made["vkey"]).code == 2


def test_the_heads_get_a_new_key_and_the_log_goes_on(home: Path) -> None:
    first = json.loads(called("key", "show", "--json").out)["vkey"]
    done = called("key", "rotate", "head")
    assert done.code == 0, done.out + done.err
    assert json.loads(called("key", "show", "--json").out)["vkey"] != first
    made = json.loads(called("key", "generate", "alpha.pem", "--json").out)
    assert called("key", "add", "collector", made["vkey"]).code == 0
    assert called("verify", "--full").code == 0
    (home / "old.pem").write_text(json.loads(called("key", "show", "--json").out)["pem"])
    assert called("verify", "--key", "old.pem").code == 0
    assert "rotated to" in called("log").out


def test_a_policy_says_who_may_change_it(home: Path) -> None:
    keys = [json.loads(called("key", "generate", f"{n}.pem", "--json").out)["vkey"] for n in ("a", "b", "w")]
    Path("policy.toml").write_text(f"[policy]\nkeys = {keys[:2]}\nthreshold = 2\n", encoding="utf-8")
    assert called("key", "policy", "set", "policy.toml").code == 0
    refused = called("key", "add", "collector", keys[2])
    assert refused.code == 4
    assert "--signer" in refused.err
    assert called("key", "add", "collector", keys[2], "--signer", "a.pem", "--signer", "b.pem").code == 0
    assert called("verify").code == 0


@pytest.mark.parametrize("text", ["", "# all of it\n# is said in comments\n"])
def test_a_policy_without_any_role_changes_nothing(home: Path, text: str) -> None:
    made = json.loads(called("key", "generate", "alpha.pem", "--json").out)
    assert called("key", "add", "collector", made["vkey"]).code == 0
    Path("policy.toml").write_text(text, encoding="utf-8")
    refused = called("key", "policy", "set", "policy.toml")
    assert refused.code == 2
    assert "a policy without any role" in refused.err
    assert "[ROLE] tables with keys" in refused.err
    assert set(roles()) == {"head", "collector"}


def test_a_policy_tells_which_roles_it_takes_away(home: Path) -> None:
    made = json.loads(called("key", "generate", "alpha.pem", "--json").out)["vkey"]
    for role in ("collector", "checkpoint", "auditor"):
        assert called("key", "add", role, made).code == 0
    Path("policy.toml").write_text(f'[auditor]\nkeys = ["{made}"]\n', encoding="utf-8")
    assert "took away: collector, checkpoint\n" in called("key", "policy", "set", "policy.toml").out
    assert "took away" not in called("key", "policy", "set", "policy.toml").out
    Path("policy.toml").write_text(f'[policy]\nkeys = ["{made}"]\n', encoding="utf-8")
    told = json.loads(called("key", "policy", "set", "policy.toml", "--json").out)
    assert (told["new"], told["took_away"]) == (True, ["auditor"])


def test_a_private_key_is_no_public_one_and_the_next_step_makes_it_one(home: Path) -> None:
    assert "next: ledger key add ROLE KEY" in called("key", "generate", "alpha.pem").out
    refused = called("key", "add", "checkpoint", "alpha.pem")
    assert refused.code == 2
    assert "not a public key but a private one" in refused.err
    assert "openssl pkey -in alpha.pem -pubout" in " ".join(refused.err.split())


def test_only_auditors_sign_audits_once_there_are_any(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contracts.errors import UnknownKeyError
    from ledger.home import find, signing_key
    from ledger.keys import SigningKey
    from ledger.records import log_record
    from ledger.statement import AUDIT, Statement, Subject

    made = json.loads(called("key", "generate", "auditor.pem", "--json").out)
    assert called("key", "add", "auditor", made["vkey"]).code == 0
    result = {"design": {"audit": "later"}}
    statement = Statement(
        (Subject("x@2", {"sha256": "00" * 32}),), AUDIT, {"audit": "later", "result": result}
    )
    found = find()
    with pytest.raises(UnknownKeyError, match="other keys to sign audits"):
        log_record(found, signing_key(found), statement)
    log_record(found, signing_key(found), statement, auditors=[SigningKey.load("auditor.pem")])
    assert called("key", "retire", "auditor", "auditor").code == 0
    assert called("verify").code == 0


def test_a_witness_is_made_named_and_counted(home: Path) -> None:
    made = json.loads(called("witness", "create", "desk", "--json").out)
    assert called("key", "add", "witness", made["vkey"]).code == 0
    assert "not cosigned" in called("verify").err
    done = called("witness", "sign", "desk")
    assert "desk; the policy wants 1" in done.out
    assert "not cosigned" not in called("verify").err
    assert called("witness", "sign", "nobody").code == 2
