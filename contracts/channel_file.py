"""Reading a channel specification from TOML or JSON, with every file it refers to digested.

A table `{ file = "prompts/x.txt" }` stands for the bytes of that file and becomes
`{ digest = "blake3:…", bytes = n }`. The path is relative to the specification and must lead, links
resolved, to a regular file inside its folder. All faults of a specification are reported at once.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterator
from datetime import date, time
from pathlib import Path, PurePosixPath

from contracts.canonical import MAX_DEPTH, at_key, canonical, decode
from contracts.channel import NAME, spec_faults
from contracts.digest import blake3_stream
from contracts.errors import ContractError, LedgerError, MalformedError, StorageError

MAX_SPEC = 1024 * 1024
MAX_DOTS = 64
# The parser's time grows with the square of a dotted key, so one of thousands of parts never reaches it.
_DOTTED = re.compile(rb"(?:(?:[A-Za-z0-9_-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*){%d}" % MAX_DOTS)
CHUNK = 1024 * 1024
LISTED = 20


def load_spec(path: Path) -> tuple[str, dict[str, object]]:
    """The name and the specification (without it) in a file; file references replaced by digests.

    StorageError when the file cannot be read, ContractError with all faults when it is refused.
    """
    spec = _read(path)
    if not isinstance(spec, dict):
        raise _refused(path, ["a specification is a table"])
    faults: list[str] = []
    folder = path.parent.resolve()
    resolved = {key: _resolve(item, at_key("", key), folder, faults, 1) for key, item in spec.items()}
    faults.extend(_key_fault(key, "") for key in spec if _odd(key))
    name = resolved.pop("name", None)
    if not (isinstance(name, str) and NAME.fullmatch(name)):
        problem = "is missing" if name is None else "is not one"
        faults.append(
            f"name: must be 1 to 128 of A-Z a-z 0-9 . _ / - beginning with a letter or digit, {problem}"
        )
    faults.extend(spec_faults(resolved))
    if faults:
        raise _refused(path, faults)
    return str(name), resolved


def _refused(path: Path, faults: list[str]) -> ContractError:
    more = f"; and {len(faults) - LISTED} more" if len(faults) > LISTED else ""
    return ContractError(
        f"channel specification refused: {'; '.join(faults[:LISTED])}{more}",
        code="channel-spec",
        where=path,
    )


def _read(path: Path) -> object:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_SPEC + 1)
    except OSError as error:
        step = (
            "name the files in it"
            if isinstance(error, IsADirectoryError)
            else "see whether the path is right"
        )
        raise StorageError(
            f"cannot read the channel specification ({error.strerror})", where=path,
            expected="a TOML or JSON file", next_step=f"{step}: ledger channel add CHANNEL.toml",
        ) from error  # fmt: skip
    if len(data) > MAX_SPEC:
        raise _refused(path, [f"longer than {MAX_SPEC} bytes; move texts to files and refer to them"])
    is_json = path.suffix == ".json" or (path.suffix != ".toml" and data.lstrip().startswith(b"{"))
    if not is_json and _DOTTED.search(data):
        raise _refused(path, [f"a dotted key of more than {MAX_DOTS} parts"])
    try:
        return decode(data, limit=MAX_SPEC) if is_json else tomllib.loads(data.decode("utf-8"))
    except MalformedError as error:
        raise _refused(path, [str(error)]) from error
    except RecursionError as error:
        raise _refused(path, ["nested too deeply"]) from error
    except UnicodeDecodeError as error:
        raise _refused(path, [f"not utf-8 (byte {error.start})"]) from error
    except ValueError as error:  # TOMLDecodeError, and int() on thousands of digits
        raise _refused(path, [f"not toml: {str(error)[:120].lower()}"]) from error


def _resolve(value: object, path: str, folder: Path, faults: list[str], depth: int) -> object:
    """The value with file references replaced; what JSON cannot hold is added to `faults`."""
    if depth > MAX_DEPTH // 2:
        faults.append(f"{path}: nested too deeply")
        return value
    if isinstance(value, dict):
        faults.extend(_key_fault(key, path) for key in value if _odd(key))
        if "file" in value:
            return _reference(value, path, folder, faults)
        return {
            key: _resolve(item, at_key(path, key), folder, faults, depth + 1) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_resolve(item, at_key(path, i), folder, faults, depth + 1) for i, item in enumerate(value)]
    try:
        canonical(value)
    except MalformedError as error:
        when = isinstance(value, date | time)
        reason = (
            "dates and times have no single spelling, write it as text"
            if when
            else str(error).replace("; ", ", ")
        )
        faults.append(f"{path}: {reason}")
    return value


def _reference(table: dict[str, object], path: str, folder: Path, faults: list[str]) -> object:
    given = table["file"]
    if len(table) > 1:
        faults.append(f'{path}.file: a file reference stands alone, write {path}.text = {{ file = "…" }}')
        return None
    if not isinstance(given, str) or not given:
        faults.append(f"{path}.file: must be the path of a file")
        return None
    try:
        return _digested(given, folder)
    except (LedgerError, OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        faults.append(f"{path}.file: cannot use {given[:120]!a} ({reason})")
        return None


def _digested(given: str, folder: Path) -> dict[str, object]:
    """Digest and size of a file inside `folder`, read once through one descriptor."""
    relative = PurePosixPath(given)
    if relative.is_absolute() or ".." in relative.parts:
        raise ContractError("must be relative and stay in the folder of the specification")
    target = (folder / relative).resolve(strict=True)
    if not target.is_relative_to(folder):
        raise ContractError("a link leads out of the folder of the specification")
    with open(target, "rb", opener=_open) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ContractError("not a regular file")
        size = 0

        def chunks() -> Iterator[bytes]:
            nonlocal size
            while chunk := file.read(CHUNK):
                size += len(chunk)
                yield chunk

        return {"digest": blake3_stream(chunks()), "bytes": size}


def _open(path: str, flags: int) -> int:
    """Open without following a last link; a named pipe must not wait for somebody to write to it."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _odd(key: str) -> bool:
    return not key or key != key.strip() or not key.isprintable()


def _key_fault(key: str, path: str) -> str:
    return f"{at_key(path, key)}: a key must be printable and have no outer spaces"
