"""A checkpoint is digested whole, its headers are read without weights, links are refused unless wanted."""

from __future__ import annotations

import hashlib
import io
import json
import struct
from pathlib import Path
from unittest import mock

import pytest
from blake3 import blake3

from contracts.errors import LedgerError, MalformedError, StorageError, UsageError
from ledger import model_checkpoint, weights
from ledger.attestations import read


def safetensors(dtypes: dict[str, str]) -> bytes:
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    header |= {name: {"dtype": d, "shape": [1], "data_offsets": [0, 4]} for name, d in dtypes.items()}
    data = json.dumps(header).encode()
    data += b" " * (-len(data) % 8)
    return len(data).to_bytes(8, "little") + data + b"\0" * 64


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(kinds: list[int], version: int = 3) -> bytes:
    pairs = [
        text("general.architecture") + struct.pack("<I", 8) + text("llama"),
        text("general.alignment") + struct.pack("<II", 4, 32),
        text("tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("bc"),
        text("scores") + struct.pack("<IIQ", 9, 6, 3) + b"\0" * 12,
    ]
    tensors = [
        text(f"blk.{i}") + struct.pack("<I", 2) + struct.pack("<QQ", 4, 4) + struct.pack("<IQ", kind, 0)
        for i, kind in enumerate(kinds)
    ]
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(pairs))
    return head + b"".join(pairs) + b"".join(tensors) + b"\0" * 32


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    (folder / "part").mkdir(parents=True)
    (folder / "a.safetensors").write_bytes(safetensors({"x": "BF16", "y": "BF16", "z": "F32"}))
    (folder / "part" / "b.gguf").write_bytes(gguf([0, 12, 12]))
    (folder / "config.json").write_text("{}")
    return folder


def test_every_file_is_digested_and_every_header_read(model: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    found = model_checkpoint.digest(model, progress=lambda _, done, total: seen.append((done, total)))
    files = found.files
    assert [file.name for file in files] == ["a.safetensors", "config.json", "part/b.gguf"]
    for file in files:
        data = (model / file.name).read_bytes()
        assert (file.blake3, file.sha256) == (blake3(data).hexdigest(), hashlib.sha256(data).hexdigest())
    total = sum(file.bytes for file in files)
    assert max(seen) == (total, total)
    stated = model_checkpoint.statement("m", found)
    assert stated.predicate["dtypes"] == {"BF16": 2, "F32": 2, "Q4_K": 2}
    assert stated.predicate["tensors"] == 6
    assert {f"sha256:{files[1].sha256}", str(stated.predicate["digest"])} <= read(stated).digests


def test_the_digest_of_all_depends_on_names_and_bytes_alone(model: Path, tmp_path: Path) -> None:
    first = model_checkpoint.statement("m", model_checkpoint.digest(model)).predicate["digest"]
    model.rename(tmp_path / "elsewhere")
    again = model_checkpoint.statement("n", model_checkpoint.digest(tmp_path / "elsewhere"))
    assert again.predicate["digest"] == first
    (tmp_path / "elsewhere" / "config.json").rename(tmp_path / "elsewhere" / "other.json")
    other = model_checkpoint.statement("m", model_checkpoint.digest(tmp_path / "elsewhere"))
    assert other.predicate["digest"] != first


def test_links_are_refused_or_followed(model: Path, tmp_path: Path) -> None:
    (tmp_path / "blob").write_bytes(b"weights")
    (model / "link.bin").symlink_to(tmp_path / "blob")
    with pytest.raises(UsageError) as caught:
        model_checkpoint.digest(model)
    assert caught.value.code == "symlink"
    named = {file.name: file for file in model_checkpoint.digest(model, follow=True).files}
    assert named["link.bin"].sha256 == hashlib.sha256(b"weights").hexdigest()
    (model / "loop").symlink_to(model)
    with pytest.raises(UsageError) as caught:
        model_checkpoint.digest(model, follow=True)
    assert caught.value.code == "link-loop"


def test_what_is_not_there_or_empty_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError):
        model_checkpoint.digest(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError):
        model_checkpoint.digest(tmp_path / "empty")


def test_a_file_that_changes_meanwhile_is_refused(model: Path) -> None:
    def grow(_: str, done: int, total: int | None) -> None:
        with (model / "config.json").open("a") as file:
            file.write(" ")

    with pytest.raises(StorageError, match="changed while"):
        model_checkpoint.digest(model, progress=grow)


@pytest.mark.parametrize("whole", [safetensors({"x": "F16"}), gguf([1, 2])], ids=["safetensors", "gguf"])
def test_a_header_cut_anywhere_is_malformed(tmp_path: Path, whole: bytes) -> None:
    path = tmp_path / ("x.safetensors" if whole[:4] != b"GGUF" else "x.gguf")
    path.write_bytes(whole)
    assert weights.read(path) is not None
    body = len(whole) - (64 if path.suffix == ".safetensors" else 32)
    for size in range(4, body, 3):
        path.write_bytes(whole[:size])
        with pytest.raises(MalformedError):
            weights.read(path)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("x.safetensors", b"\xff" * 16), ("x.safetensors", (2).to_bytes(8, "little") + b"[]"),
        ("x.safetensors", (7).to_bytes(8, "little") + b'{"x":1}'),
        ("x.safetensors", (4).to_bytes(8, "little") + b"nope"),
        ("x.gguf", gguf([1], version=9)), ("x.gguf", b"GGUF" + struct.pack("<IQQ", 3, 1 << 60, 0)),
        ("x.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("k") + struct.pack("<I", 99)),
        ("x.gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 62)),
    ],
)  # fmt: skip
def test_hostile_headers_are_refused(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(LedgerError):
        weights.read(tmp_path / name)


def test_a_pointer_instead_of_weights_is_told(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_text(f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 5\n")
    with pytest.raises(MalformedError, match="git lfs pull"):
        weights.read(path)


def test_no_weights_are_loaded_for_a_header(model: Path) -> None:
    class Counting(io.BytesIO):
        taken = 0

        def read(self, size: int | None = -1, /) -> bytes:
            data = super().read(size)
            self.taken += len(data)
            return data

    for name, behind in (("a.safetensors", 64), ("part/b.gguf", 32)):
        data = (model / name).read_bytes()
        large = Counting(data + b"\0" * (1 << 20))
        opened = mock.patch.object(Path, "open", return_value=large)
        with opened:
            assert weights.read(model / name) is not None
        assert large.taken == len(data) - behind


def test_what_was_followed_and_left_out_is_told(model: Path, tmp_path: Path) -> None:
    assert model_checkpoint.digest(model).of == "folder"
    assert model_checkpoint.digest(model / "config.json").of == "file"
    found = model_checkpoint.digest(model, leave_out=lambda name: name == "part")
    assert (found.ignored, [file.name for file in found.files]) == (
        ("part",), ["a.safetensors", "config.json"],
    )  # fmt: skip
    (tmp_path / "blob").write_bytes(b"weights")
    for target, far in ((tmp_path / "blob", "files"), (tmp_path / "elsewhere", "folders")):
        (tmp_path / "elsewhere").mkdir(exist_ok=True)
        (model / f"link-{far}").symlink_to(target)
        assert model_checkpoint.digest(model, follow=True).symlinks == far


def test_a_hosted_model_is_a_claim() -> None:
    period = ("2026-09-01T00:00:00Z", "2026-09-02T00:00:00Z")
    stated = model_checkpoint.stack(
        "gpt", provider="p", model="m", revision=None, system_fingerprint="fp_1", period=period
    )
    assert read(stated).kind == "stack"
    assert "no weights were seen" in str(stated.predicate["claim"])
    with pytest.raises(LedgerError):
        model_checkpoint.stack(
            "gpt", provider="p", model="m", revision=None, system_fingerprint=None, period=period[::-1]
        )
