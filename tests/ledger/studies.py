"""A small home that holds one of everything: what lineage is traced through and tampering is tried on.

Two ingests (one with a side refused), predictions, keys of every role, a policy, a plan that an audit
followed, attestations of an acquisition, a checkpoint and a hosted model, revocations, a cosigned head.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from audits import plan, prespecified
from audits.record import AuditResult, statement
from audits.transport import transport
from contracts.digest import blake3_digest
from ledger import (
    attest_log,
    attestations,
    channels,
    envelope,
    key_changes,
    model_checkpoint,
    plans,
    revocations,
    seal,
    witness,
)
from ledger.event_types import RolePolicy
from ledger.ingest import ingest
from ledger.keys import SigningKey
from ledger.records import log_record
from ledger.snapshot import open_snapshot
from ledger.statement import PAYLOAD_TYPE, Statement, Subject
from ledger.trust import CHECKPOINT, COLLECTOR, WITNESS
from ledger.vkey import VerifierKey
from tests.audits.cohorts import noisy, rows
from tests.ledger.homes import Place, new_place

TIME = "2026-01-01T00:00:00Z"
SPEC = """name = "{name}"
[prompt]
text = "judge {name}"
[readout]
kind = "joint-label"
[stack]
model = "m"
{checkpoint}[view]
kind = "none"
[presentation]
layouts = 2
"""


@dataclass(frozen=True)
class Study:
    """The home, the files beside it, the keys of the roles, and the ids of what is in it by a short name.

    `folder/backup` is the home as it was after the ingests.
    """

    place: Place
    folder: Path
    keys: Mapping[str, SigningKey]
    ids: Mapping[str, str]


def make(folder: Path) -> Study:
    """The study in an empty folder, whose configuration the process then sees."""
    place = new_place(folder)
    home, key = place.home, place.key
    keys = {name: SigningKey(hashlib.sha256(name.encode()).digest()) for name in ("alpha", "omega")}
    weights = _weights(folder / "m.safetensors")
    files = []
    for name in ("direct", "generated"):
        named = f'checkpoint = "{blake3_digest(weights)}"\n' if name == "direct" else ""
        files.append(folder / f"{name}.toml")
        files[-1].write_text(SPEC.format(name=name, checkpoint=named))
    channels.add(home, key, files)
    key_changes.add(home, key, COLLECTOR, VerifierKey("alpha", keys["alpha"].public.raw))
    desk = witness.create("desk")
    roles = [
        RolePolicy(COLLECTOR, (str(VerifierKey("alpha", keys["alpha"].public.raw)),), 1),
        RolePolicy(CHECKPOINT, (str(VerifierKey("omega", keys["omega"].public.raw)),), 1),
        RolePolicy(WITNESS, (str(desk),), 1),
    ]
    key_changes.set_policy(home, key, roles)
    document = {
        "name": "main", "audit": "transport", "ref": "direct", "alt": "generated", "resamples": 100,
        "estimands": ["gain.ref"], "acquisitions": ["a"],
    }  # fmt: skip
    declared = plan.read(document, open_snapshot(home))
    plans.add(home, key, declared.name, declared.as_json())
    first, second = folder / "first.parquet", folder / "second.parquet"
    one = rows(noisy(3, 1), acquisitions={"direct": ("a",), "generated": ("a",)})
    cut = [r for r in one if (r["trajectory_id"], r["channel"], r["layout"]) != ("t002", "direct", 1)]
    pq.write_table(pa.Table.from_pylist(cut), first)
    two = rows(noisy(3, 1), acquisitions={"direct": ("b",), "generated": ("b",)})
    pq.write_table(pa.Table.from_pylist(two), second)
    for file in (first, second):
        ingest(home, [file], key=key)
    (folder / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in _pairs()))
    ingest(home, [folder / "pairs.jsonl"], key=key)
    (folder / "backup").mkdir()
    place.copy(folder / "backup")
    told = {
        "attestation": attestations.of_acquisition(
            "a",
            (Subject("first.parquet", {"blake3": blake3_digest(first.read_bytes())[7:]}),),
            rows=len(cut), requests=None, responses=None, tools={"eval": "1"}, window=None,
            gold_isolated=True,
        ),
        "weights": model_checkpoint.statement("tiny", model_checkpoint.digest(folder / "m.safetensors")),
        "stack": model_checkpoint.stack(
            "gpt", provider="p", model="gpt-9", revision=None, system_fingerprint=None, period=(TIME, TIME)
        ),
    }  # fmt: skip
    ids = {
        name: _attest(place, said, keys["omega" if name == "weights" else "alpha"])
        for name, said in told.items()
    }
    snapshot = open_snapshot(home)
    ids["planned"] = _log(place, prespecified.run(snapshot, snapshot.plans[0]))
    both = transport(snapshot, "direct", "generated", resamples=100, acquisitions=[(None, "a"), (None, "b")])
    ids["both"] = _log(place, both.audit)
    revocations.revoke(home, key, "attestation", ids["stack"], "another model answered")
    revocations.revoke_acquisition(home, key, "b", "the server was swapped")
    witness.sign(home, "desk")
    seal.write(home)
    ids |= {
        "checkpoint": str(told["weights"].predicate["digest"]),
        "weights_file": blake3_digest(weights),
        "weights_sha256": "sha256:" + hashlib.sha256(weights).hexdigest(),
        "first": blake3_digest(first.read_bytes()),
        "second": blake3_digest(second.read_bytes()),
    }
    return Study(place, folder, keys, ids)


def _attest(place: Place, said: Statement, key: SigningKey) -> str:
    data = envelope.sign(said.to_bytes(), PAYLOAD_TYPE, [key]).to_bytes()
    return attest_log.log_attestation(place.home, place.key, attestations.receive(data)).statement


def _log(place: Place, audit: AuditResult) -> str:
    return log_record(place.home, place.key, statement(audit, versions={}, time=TIME)).record


def _weights(path: Path) -> bytes:
    """The smallest file of weights: one tensor of two numbers."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(8))
    return path.read_bytes()


def _pairs() -> list[dict[str, object]]:
    return [
        {
            "year": 2026, "query_id": f"q{n}", "scenario": scenario, "before": {"x": 0.5, "y": 0.25},
            "after": {"x": 0.25, "y": 0.5}, "positive_labels": ["x"],
        }
        for n in range(2) for scenario in ("s", "t")
    ]  # fmt: skip
