"""Digests of text columns, so that states, requests and views are hashed on arrival and never kept."""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from blake3 import blake3

from contracts.digest import CODES, WIDTH
from contracts.labels import encode

_SHA256 = "sha256:"


def digest_texts(texts: pa.Array, given: pa.Array | None = None) -> pa.DictionaryArray:
    """The packed digest of each text's UTF-8 bytes, each distinct text digested once; null stays null.

    `given` are the digests in text form that stand beside the texts: where one is SHA-256 the text is
    digested with SHA-256 too, so that the two can be compared. Everywhere else the digest is BLAKE3.
    """
    coded = encode(texts)
    places = pc.fill_null(coded.indices.cast(pa.int64()), -1).to_numpy(zero_copy_only=False)
    as_sha = np.zeros(len(places), np.bool_)
    if given is not None:
        is_sha = pc.starts_with(encode(given).dictionary_decode(), _SHA256)
        as_sha = pc.fill_null(is_sha, False).to_numpy(zero_copy_only=False)
    pairs, codes = np.unique(places * 2 + as_sha, return_inverse=True)
    labels = coded.dictionary.cast(pa.large_binary()).to_pylist()
    packed = bytearray()
    absent = np.zeros(len(pairs), np.bool_)
    for index, pair in enumerate(pairs.tolist()):
        label = labels[pair >> 1] if pair >= 0 else None
        absent[index] = label is None
        packed += _packed(label or b"", sha=bool(pair & 1))
    values = pa.Array.from_buffers(pa.binary(WIDTH), len(pairs), [None, pa.py_buffer(bytes(packed))])
    indices = pa.array(codes.astype(np.int32), mask=absent[codes])
    return pa.DictionaryArray.from_arrays(indices, values)


def _packed(data: bytes, *, sha: bool) -> bytes:
    if sha:
        return bytes([CODES["sha256"]]) + sha256(data).digest()
    return bytes([CODES["blake3"]]) + blake3(data).digest()
