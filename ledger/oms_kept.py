"""A model signature that a checkpoint's attestation accepts: what it says of it, and whether that holds.

The attestation is the claim of a ledger; the bundle is evidence beside it. The claim names the bundle by
digest and carries the key it was checked with, so that anybody can check it again from the two.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from contracts.digest import sha256_digest
from contracts.errors import MalformedError, TamperError, VerificationError
from ledger import oms
from ledger.ec_keys import EcPublicKey
from ledger.fields import Fields
from ledger.oms import SignedModel
from ledger.statement import Statement, Subject
from ledger.vkey import decode_base64

MEMBER = "signature"  # of the predicate
SHOWN = 3
Digests = Mapping[str, str]  # algorithm to hex


class FilesDifferError(VerificationError):
    """A model whose files are not those that were signed; every one of them is named, by kind of fault."""

    default_code = "files-differ"

    def __init__(self, missing: list[str], additional: list[str], changed: list[str]) -> None:
        self.faults = {"missing": missing, "additional": additional, "changed": changed}
        told = "; ".join(
            f"{len(names)} {kind}: {_first(names)}" for kind, names in self.faults.items() if names
        )
        super().__init__("the files are not those that were signed", got=told)

    def as_dict(self) -> Mapping[str, Any]:
        """The error with every name under its kind of fault."""
        return {**super().as_dict(), **{kind: names for kind, names in self.faults.items() if names}}


@dataclass(frozen=True)
class KeptSignature:
    """A verified bundle as an attestation names it: by digest, with the key and what it says of the model.

    `subject` and `digest` are those of the bundle's model; `ignored` are the paths below the checkpoint that
    neither the bundle nor the attestation covers.
    """

    bundle: str
    key: EcPublicKey
    subject: str
    digest: str
    ignored: tuple[str, ...]

    @classmethod
    def of(cls, data: bytes, key: EcPublicKey, model: SignedModel, ignored: tuple[str, ...]) -> KeptSignature:
        """The bundle whose bytes, verified with a key, say this of a model."""
        return cls(sha256_digest(data), key, model.name, model.digest, ignored)

    @classmethod
    def read(cls, predicate: Mapping[str, object]) -> KeptSignature | None:
        """The signature a predicate names, None where it names none."""
        value = predicate.get(MEMBER)
        if value is None:
            return None
        fields = Fields.of(value, "attestation `signature`")
        format_ = fields.text("format")
        if format_ != oms.PREDICATE:
            raise MalformedError("a model signature of another format", expected=oms.PREDICATE)
        found = cls(
            fields.digest("bundle", "sha256"),
            EcPublicKey.from_der(decode_base64(fields.text("key"))),
            fields.text("subject"),
            fields.digest("digest", "sha256"),
            fields.list("ignored", _text),
        )
        if fields.text("signer") != found.key.id:
            raise MalformedError("the id of a signer is not that of its key", expected=found.key.id)
        fields.close()
        return found

    @property
    def as_subject(self) -> Subject:
        """The bundle's model as a subject of the attestation."""
        return Subject(self.subject, {"sha256": self.digest.removeprefix("sha256:")})

    def as_json(self) -> dict[str, object]:
        """The member of the predicate; `read` reads it back."""
        return {
            "format": oms.PREDICATE,
            "bundle": self.bundle,
            "signer": self.key.id,
            "key": base64.b64encode(self.key.der).decode(),
            "subject": self.subject,
            "digest": self.digest,
            "ignored": list(self.ignored),
        }

    def check(self, stated: Statement, data: bytes) -> None:
        """Returns when a bundle's bytes are the ones named, and say what the statement says.

        1. The bytes have the digest.
        2. The bundle verifies with the key, and is about the model and digest named.
        3. The statement has that model as its second subject, and exactly the listed files behind it.
        """
        if sha256_digest(data) != self.bundle:  # 1
            raise TamperError(
                "not the bundle that was accepted",
                kind="record",
                expected=self.bundle,
                got=sha256_digest(data),
            )
        model = oms.verify(data, self.key)  # 2
        if (model.name, model.digest) != (self.subject, self.digest):
            raise TamperError(
                "the bundle is about another model", kind="record", expected=self.digest, got=model.digest
            )
        subjects = [(subject.name, dict(subject.digest)) for subject in stated.subjects[1:]]
        own = self.as_subject
        if subjects[:1] != [(own.name, dict(own.digest))]:  # 3
            raise TamperError("the signed model is no subject of its attestation", kind="record")
        files = dict(subjects[1:])
        if len(files) < len(subjects) - 1:
            raise MalformedError("an attestation names a file twice")
        compare(model, files)


def compare(model: SignedModel, files: Mapping[str, Digests]) -> None:
    """Returns when these are the files of a signed model; FilesDifferError names those that are not.

    A model that is one file has no name in the list: it is whatever the only file is called.
    """
    listed = {resource.name: resource.digest for resource in model.resources}
    if oms.WHOLE in listed and len(files) == 1:
        listed = {next(iter(files)): listed[oms.WHOLE]}
    missing = sorted(listed.keys() - files.keys())
    additional = sorted(files.keys() - listed.keys())
    changed = sorted(
        name for name in listed.keys() & files.keys() if files[name].get(model.hash) != listed[name]
    )
    if missing or additional or changed:
        raise FilesDifferError(missing, additional, changed)


def _first(names: list[str]) -> str:
    more = f", … ({len(names) - SHOWN} more)" if len(names) > SHOWN else ""
    return ", ".join(n if n.isprintable() else ascii(n) for n in names[:SHOWN]) + more


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise MalformedError("ignored path is not text", got=type(value).__name__)
    return value
