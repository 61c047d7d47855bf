"""What an object may be called: by the digest of its bytes, or in the published log by its position.

    segments/<hex>.parquet|.leaves|.rows    refusals/<hex>.parquet|.leaves|.rows|.json    lists/<hex>.json
    records/<hex>.dsse.json    attestations/<hex>.dsse.json    signatures/<hex>.sigstore.json
                                                                (these three SHA-256; all others BLAKE3)
    log/checkpoint    log/heads/<size>    log/witnessed/<size>    log/tile/...     (named by position)

Names are relative POSIX paths of exactly these forms, the same in a folder, a bucket and a bundle.
"""

from __future__ import annotations

import re

from contracts.digest import PATTERN
from contracts.errors import MalformedError

ADDRESSED = re.compile(
    r"(?:segments/(?P<segment>[0-9a-f]{64})\.(?:parquet|leaves|rows)"
    r"|refusals/(?P<refusal>[0-9a-f]{64})\.(?:parquet|leaves|rows|json)"
    r"|lists/(?P<list>[0-9a-f]{64})\.json"
    r"|records/(?P<record>[0-9a-f]{64})\.dsse\.json"
    r"|attestations/(?P<attestation>[0-9a-f]{64})\.dsse\.json"
    r"|signatures/(?P<signature>[0-9a-f]{64})\.sigstore\.json)",
    re.ASCII,
)
SIGNED = ("record", "attestation", "signature")  # named by SHA-256, as other tools name envelopes
PUBLISHED = re.compile(
    r"log/(?:checkpoint|(?:heads|witnessed)/[1-9][0-9]{0,18}"
    r"|tile/(?:entries|0|[1-9][0-9]?)/(?:x[0-9]{3}/)*[0-9]{3}(?:\.p/[1-9][0-9]{0,2})?)",
    re.ASCII,
)


def _hex(digest: str, algorithm: str) -> str:
    match = PATTERN.fullmatch(digest)
    if match is None or match[1] != algorithm:
        raise MalformedError(
            "not the digest of an object", expected=f"a {algorithm}: digest", got=digest[:80]
        )
    return match[2]


def segment_name(digest: str) -> str:
    """The Parquet file of a segment, by the digest of that file."""
    return f"segments/{_hex(digest, 'blake3')}.parquet"


def leaves_name(digest: str) -> str:
    """The leaf hashes of a segment, by the digest of the leaf file itself."""
    return f"segments/{_hex(digest, 'blake3')}.leaves"


def rows_name(digest: str) -> str:
    """The source rows of a segment, by the digest of the row file itself."""
    return f"segments/{_hex(digest, 'blake3')}.rows"


def refusal_rows_name(digest: str) -> str:
    """The Parquet file with the rows of refused sides."""
    return f"refusals/{_hex(digest, 'blake3')}.parquet"


def refusal_leaves_name(digest: str) -> str:
    """The leaf hashes of refused rows, by the digest of the leaf file itself."""
    return f"refusals/{_hex(digest, 'blake3')}.leaves"


def refusal_source_rows_name(digest: str) -> str:
    """Where refused rows stood in their source files, by the digest of this list itself."""
    return f"refusals/{_hex(digest, 'blake3')}.rows"


def refusal_index_name(digest: str) -> str:
    """The list of refused sides of one refusal."""
    return f"refusals/{_hex(digest, 'blake3')}.json"


def list_name(digest: str) -> str:
    """A list that was too long for its event."""
    return f"lists/{_hex(digest, 'blake3')}.json"


def record_name(digest: str) -> str:
    """The signed envelope of an audit."""
    return f"records/{_hex(digest, 'sha256')}.dsse.json"


def attestation_name(digest: str) -> str:
    """The signed envelope of an attestation."""
    return f"attestations/{_hex(digest, 'sha256')}.dsse.json"


def signature_name(digest: str) -> str:
    """The bundle of a model signature, as it came."""
    return f"signatures/{_hex(digest, 'sha256')}.sigstore.json"


def digest_in(name: str) -> str | None:
    """The digest an object's name claims for its bytes; None for the published log."""
    match = ADDRESSED.fullmatch(name)
    if match is None:
        return None
    kind = match.lastgroup or ""
    return f"{'sha256' if kind in SIGNED else 'blake3'}:{match[kind]}"
