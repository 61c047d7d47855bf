"""Snapshots of real homes: what is verified before anything is read, and the cohort through ingest."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from audits.faces import assemble
from contracts.errors import TamperError, UsageError, VerificationError
from ledger import home as homes
from ledger.channels import add as add_channels
from ledger.home import Home
from ledger.ingest import ingest
from ledger.keys import SigningKey
from ledger.revocations import revoke_acquisition
from ledger.scope import Arm, Scope
from ledger.snapshot import open_snapshot
from tests.ledger.unjudged_homes import SCOPE, SHOWN, face, ledger, refused_side, same, side, template

__all__ = ["ledger", "template"]  # fixtures

SHARED = Path(__file__).parents[2].parent / "shared"


class TestVerification:
    def test_a_snapshot_says_what_was_signed(self, ledger):
        size = ledger.enter(face())
        snapshot = ledger.snapshot()
        assert snapshot.size == size
        assert snapshot.origin == ledger.home.origin
        assert snapshot.root.removeprefix("sha256:") == snapshot.checked.head.root.hex()
        assert snapshot.origin.encode() in snapshot.note
        assert snapshot.book.names == ("direct", "shown")
        assert snapshot.acquisitions == {"main": "transport"}
        assert not snapshot.has_newer_head

    def test_an_older_head_knows_nothing_of_what_came_later(self, ledger):
        old = ledger.enter(face())
        new = ledger.enter(face("t1"))
        then, now = ledger.snapshot(at=old), ledger.snapshot(at=new)
        assert (then.has_newer_head, now.has_newer_head) == (True, False)
        assert (len(then.segments), len(now.segments)) == (1, 2)
        assert len(assemble(then.select(SCOPE))) == 1
        with pytest.raises(UsageError, match="no head was signed at size"):
            ledger.snapshot(at=old - 1)

    def test_without_a_pin_somebody_has_to_vouch_for_the_log(self, ledger, tmp_path, monkeypatch):
        ledger.enter(face())
        public = ledger.key.public
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "elsewhere"))
        with pytest.raises(VerificationError, match="--trust-first") as error:
            ledger.snapshot()
        assert error.value.exit_code == 4
        assert ledger.snapshot(key=public).size == ledger.snapshot(trust_first=True).size
        with pytest.raises(VerificationError):
            ledger.snapshot(key=SigningKey.generate().public)

    def test_a_backup_older_than_the_pin_is_refused(self, ledger, tmp_path):
        ledger.enter(face())
        backup = tmp_path / "backup"
        shutil.copytree(ledger.home.path, backup)
        ledger.enter(face("t1"))
        with pytest.raises(TamperError) as error:
            open_snapshot(homes.read(backup))
        assert error.value.kind == "rolled-back-head"

    @pytest.mark.parametrize("column", ["data", "leaf_hash"])
    def test_an_event_changed_behind_the_triggers(self, ledger, column):
        ledger.enter(face())
        with sqlite3.connect(ledger.home.catalog) as catalog:
            for (name,) in catalog.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                catalog.execute(f"DROP TRIGGER {name}")
            (value,) = catalog.execute(f"SELECT {column} FROM event WHERE leaf_index = 1").fetchone()
            catalog.execute(f"UPDATE event SET {column} = ? WHERE leaf_index = 1", (value[:-2] + b"x}",))
        with pytest.raises(TamperError) as error:
            ledger.snapshot()
        assert error.value.kind == ("catalog" if column == "data" else "tree")

    def test_what_the_other_tables_of_the_catalog_say_does_not_matter(self, ledger):
        ledger.enter(face(), side(SHOWN, acquisition="bad"))
        revoke_acquisition(ledger.home, ledger.key, "bad", "wrong prompt")
        expected = ledger.faces()
        with sqlite3.connect(ledger.home.catalog) as catalog:
            for (name,) in catalog.execute(
                "SELECT name FROM sqlite_master WHERE type = 'trigger'"
            ).fetchall():
                catalog.execute(f"DROP TRIGGER {name}")
            for table in ("revocation", "segment_scope", "segment", "acquisition", "channel"):
                catalog.execute(f"DELETE FROM {table}")
        assert same(ledger.faces(), expected)

    def test_a_changed_segment_is_named(self, ledger):
        ledger.enter(face())
        (path,) = (ledger.home.path / "objects/segments").glob("*.parquet")
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.chmod(0o600)
        path.write_bytes(data)
        with pytest.raises(TamperError) as error:
            ledger.faces()
        assert error.value.kind == "data"
        assert path.name in str(error.value)

    def test_a_changed_list_of_refused_sides(self, ledger):
        ledger.enter(face())
        ledger.refuse(refused_side(trajectory="t9"))
        (path,) = (ledger.home.path / "objects/refusals").glob("*.json")
        path.chmod(0o600)
        path.write_bytes(path.read_bytes().replace(b"t9", b"t8"))
        with pytest.raises(TamperError):
            ledger.snapshot().select(SCOPE)


@pytest.fixture(scope="module")
def cohort_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (SHARED / "cohort").is_dir():
        pytest.skip("needs the synthetic cohort in ../shared/cohort")
    folder = tmp_path_factory.mktemp("cohort")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        home = homes.init(folder / "home")
        key = homes.signing_key(home)
        add_channels(home, key, sorted((SHARED / "cohort/channels").glob("*.toml")))
        for name in ("scores", "controls", "retrieval_face"):
            ingest(home, [SHARED / f"cohort/{name}.parquet"], key=key)
    return folder


@pytest.fixture
def cohort(cohort_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(cohort_folder / "config"))
    return homes.read(cohort_folder / "home")


def test_the_cohort_through_ingest(cohort: Home):
    snapshot = open_snapshot(cohort)
    ref, alt = (Arm(snapshot.book.resolve(name)) for name in ("direct", "generated"))
    selected = snapshot.select(Scope("transport", (ref, alt)))
    faces = assemble(selected)
    assert (faces.flow.transitions, len(faces), len(faces.trajectories)) == (1100, 1004, 100)
    assert sum(e.count for e in faces.flow.excluded) == 96
    assert {e.reason.partition(":")[0] for e in faces.flow.excluded} == {"absent", "failed"}
    examples = [x.text(("direct", "generated")) for e in faces.flow.excluded for x in e.examples]
    assert "traj000/step05: after, direct, layout 2, candidate A absent" in examples
    assert selected.provenance.entries_out == dict.fromkeys(selected.provenance.entries_out, 0)
    names = [faces.target.names[code] for code in faces.target.codes]
    assert {name: names.count(name) for name in faces.target.names} == {
        "A": 531,
        "B": 175,
        "C": 157,
        "NONE": 141,
    }
    gains = [(m[:, 1] - m[:, 0]).mean() / 2**40 for m in faces.margins]
    assert gains == pytest.approx([0.1630000072022823, -0.1599999920966709], abs=1e-9)


def test_its_donors_and_frozen_views_are_bound(cohort: Home):
    snapshot = open_snapshot(cohort)
    donors = snapshot.book.resolve("control/generated-neutral")
    own = assemble(snapshot.select(Scope("transport", (Arm(donors), Arm(donors, "donor")))))
    assert (len(own), own.flow.transitions) == (96, 96)
    seen = snapshot.book.resolve("cube/generated-neutral")
    frozen = snapshot.select(Scope("transport", (Arm(seen, "before"), Arm(seen, "after"))))
    assert len(assemble(frozen)) == 96
    assert pc.sum(pa.array(frozen.provenance.entries_out.values())).as_py() == 0
