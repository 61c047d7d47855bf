"""An attested checkpoint as a model signature that other tools verify: the attested list, signed anew."""

from __future__ import annotations

from contracts.errors import UsageError
from ledger import oms
from ledger.attestations import MODEL, Attestation
from ledger.ec_keys import EcSigningKey
from ledger.model_checkpoint import FILE, LINKED_FOLDERS, NO_LINKS
from ledger.oms import Resource, SignedModel

# What model signing leaves out of every folder unless told otherwise, when it signs and when it verifies.
GIT = (".git", ".gitattributes", ".github", ".gitignore")


def signed_model(said: Attestation) -> SignedModel:
    """The list of an attested checkpoint as model signing would make it of the same files.

    UsageError for an attestation of something else, or of files it could not find: those in linked folders.
    """
    if said.kind != MODEL:
        raise UsageError("only a checkpoint's attestation has a model to sign", code="kind", got=said.kind)
    predicate = said.statement.predicate
    symlinks = predicate.get("symlinks", NO_LINKS)
    if symlinks == LINKED_FOLDERS:
        raise UsageError(
            "the checkpoint has files in linked folders, where model signing does not look",
            code="linked-folders", expected="files, or links to files",
            next_step="attest a copy without links to folders, and export that",
        )  # fmt: skip
    kept = said.signature
    ignored = tuple(sorted({*GIT, *(() if kept is None else kept.ignored)}))
    model = SignedModel(said.subject, "sha256", (), ignored, symlinks != NO_LINKS)
    files = said.statement.subjects[1 if kept is None else 2 :]
    if predicate.get("of") == FILE:
        (file,) = files
        resources = [Resource(oms.WHOLE, file.digest["sha256"])]
    else:
        resources = [Resource(f.name, f.digest["sha256"]) for f in files if not model.leaves_out(f.name)]
    if not resources:
        raise UsageError("model signing leaves out every file of the checkpoint", code="empty-checkpoint")
    return SignedModel(model.name, model.hash, oms.in_order(resources), ignored, model.symlinks)


def export(said: Attestation, key: EcSigningKey) -> bytes:
    """The bundle of an attested checkpoint, signed by a key."""
    return oms.sign(signed_model(said), key)
