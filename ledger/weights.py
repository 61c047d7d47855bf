"""What the header of a weights file says, without loading any weights: tensors, and how many of each type.

safetensors: an 8-byte length, then that much JSON. GGUF: counts, then keys and values, then one record a
tensor. Both are read from the beginning of the file only, within bounds.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from contracts.canonical import parse
from contracts.errors import MalformedError

MAX_HEADER = 100 * 1000 * 1000  # the bound of the safetensors format itself
MAX_TENSORS = 1_000_000
MAX_TEXT = 64 * 1024 * 1024
MAGIC = b"GGUF"
LFS = b"version "  # how a pointer begins, https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md
# ggml/include/ggml.h, enum ggml_type
GGML = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K",
    11: "Q3_K", 12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS",
    19: "IQ1_S", 20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32",
    27: "I64", 28: "F64", 29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4",
}  # fmt: skip
_FIXED = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}  # widths of GGUF values
_TEXT, _LIST = 8, 9


@dataclass(frozen=True)
class Weights:
    """The format of a weights file and how many tensors it has of each type."""

    format: str
    tensors: int
    dtypes: Mapping[str, int]

    def as_json(self) -> dict[str, object]:
        """The three as JSON."""
        return {"format": self.format, "tensors": self.tensors, "dtypes": dict(self.dtypes)}


def read(path: Path) -> Weights | None:
    """The header of a safetensors or GGUF file, None for any other file; MalformedError for a broken one."""
    with path.open("rb") as file:
        if path.suffix == ".safetensors":
            return _safetensors(file, str(path))
        if file.read(4) == MAGIC:
            return _gguf(_Reader(file, str(path)))
    return None


def _safetensors(file: BinaryIO, where: str) -> Weights:
    start = file.read(8)
    if start == LFS:
        raise MalformedError(
            "a pointer of Git LFS instead of the weights", where=where, next_step="fetch them: git lfs pull"
        )
    size = int.from_bytes(start, "little") if len(start) == 8 else -1
    if not 0 <= size <= MAX_HEADER:
        raise MalformedError("not a safetensors file", where=where, expected="a header length", got=size)
    data = file.read(size)
    if len(data) < size:
        raise MalformedError("safetensors header cut off", where=where, expected=size, got=len(data))
    header = parse(data.rstrip(b" "), limit=MAX_HEADER)
    if not isinstance(header, dict):
        raise MalformedError("safetensors header is not an object", where=where)
    found: Counter[str] = Counter()
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        dtype = tensor.get("dtype") if isinstance(tensor, dict) else None
        if not isinstance(dtype, str):
            raise MalformedError("a tensor without a type", where=where, got=ascii(name[:80]))
        found[dtype] += 1
    return Weights("safetensors", sum(found.values()), dict(sorted(found.items())))


def _gguf(file: _Reader) -> Weights:
    version = file.number("<I")
    if version not in (2, 3):
        raise MalformedError("GGUF of another version", where=file.where, expected="2 or 3", got=version)
    tensors, pairs = file.number("<Q"), file.number("<Q")
    if tensors > MAX_TENSORS or pairs > MAX_TENSORS:
        raise MalformedError("GGUF with too many tensors or keys", where=file.where, got=max(tensors, pairs))
    for _ in range(pairs):
        file.text()
        file.value(file.number("<I"))
    found: Counter[str] = Counter()
    for _ in range(tensors):
        file.text()
        file.skip(8 * file.number("<I"))
        kind = file.number("<I")
        found[GGML.get(kind, f"type {kind}")] += 1
        file.skip(8)
    return Weights("gguf", tensors, dict(sorted(found.items())))


class _Reader:
    """The bytes of a GGUF header in order; whatever is not there is a MalformedError."""

    def __init__(self, file: BinaryIO, where: str) -> None:
        self.file, self.where = file, where

    def take(self, count: int) -> bytes:
        data = self.file.read(count) if 0 <= count <= MAX_TEXT else b""
        if len(data) != count:
            raise MalformedError("GGUF header cut off", where=self.where, expected=count, got=len(data))
        return data

    def skip(self, count: int) -> None:
        while count > 0:
            count -= len(self.take(min(count, 1 << 20)))

    def number(self, form: str) -> int:
        (value,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return int(value)

    def text(self) -> None:
        self.skip(self._bounded(self.number("<Q")))

    def value(self, kind: int, depth: int = 0) -> None:
        """Passes over one value of a type; lists of texts are walked, lists of numbers skipped."""
        if kind in _FIXED:
            self.skip(_FIXED[kind])
        elif kind == _TEXT:
            self.text()
        elif kind == _LIST and depth < 4:
            inner, count = self.number("<I"), self._bounded(self.number("<Q"))
            if inner in _FIXED:
                self.skip(self._bounded(count * _FIXED[inner]))
                return
            for _ in range(count):
                self.value(inner, depth + 1)
        else:
            raise MalformedError("GGUF value of an unknown type", where=self.where, got=kind)

    def _bounded(self, count: int) -> int:
        if count > MAX_TEXT:
            raise MalformedError("GGUF value too long", where=self.where, expected=MAX_TEXT, got=count)
        return count
