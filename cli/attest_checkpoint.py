"""What `ledger attest checkpoint` does with a model signature, and what it tells people."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cli import render
from contracts.errors import UsageError

if TYPE_CHECKING:
    from ledger.model_checkpoint import Digested
    from ledger.oms_accept import Accepted
    from ledger.statement import Statement


def signed(path: Path, signature: Path | None, key: Path | None, *, follow: bool, as_json: bool) -> Accepted:
    """A checkpoint with its model signature; where the files differ, people get a line for each first."""
    from ledger.ec_keys import EcPublicKey
    from ledger.oms_accept import accept
    from ledger.oms_kept import FilesDifferError

    if signature is None or key is None:
        raise UsageError(
            "a signature is checked against a key",
            code="signature",
            expected="--signature and --signature-key",
        )
    try:
        with render.progress() as progress:
            return accept(path, signature, EcPublicKey.load(key), follow=follow, progress=progress)
    except FilesDifferError as error:
        for kind, names in ({} if as_json else error.faults).items():
            for listed in names:
                render.say(f"{kind.ljust(10)} {render.printable(listed)}", stderr=True)
        raise


def tell(statement: Statement, found: Digested, accepted: Accepted | None) -> None:
    """The digests a channel may name, the types of the tensors, and whose signature was accepted."""
    said = statement.predicate
    dtypes = said["dtypes"]
    assert isinstance(dtypes, dict), "the statement was made here"
    types = ", ".join(f"{count:,} {dtype}" for dtype, count in dtypes.items()) or "no weights header"
    render.say(f"digest    {said['digest']}", f"tensors   {types}")
    if accepted is not None:
        kept = accepted.signature
        render.say(f"subject   {kept.digest}", f"signed    by the key with id {kept.key.id[:16]}")
        if found.ignored:
            render.say(f"left out  {', '.join(map(render.printable, found.ignored))}, as the signature does")
    others = "that digest, the subject" if accepted else "that digest"
    render.say(f"a channel names it by {others}, or a file's: [stack] checkpoint = …")
