"""The synthetic cohort that ships with the product, written as the files a person would have.

No evaluator produced these energies: they are calibrated so that the point values of a published
transport study come out after rounding. The texts behind the digests are invented here too.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

CHANNELS = ("direct", "generated")


def cohort() -> pa.Table:
    """The shipped scores: 69,656 rows of 1,100 transitions, with the text columns a collector would add."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    with as_file(files("cli") / "demo_data" / "cohort.parquet") as path:
        table = pq.read_table(path)

    def text(*parts: object) -> pa.ChunkedArray:
        cast = [p if isinstance(p, str) else table[p[0]].cast(pa.string()) for p in parts]  # type: ignore[index]
        return pc.binary_join_element_wise(*cast, "")

    state = text("synthetic state: ", ["trajectory_id"], " step ", ["step"], " ", ["endpoint"])
    generated = pc.equal(table["channel"], "generated")
    view = pc.if_else(
        generated, pc.binary_join_element_wise("view of ", state, ""), pa.scalar(None, pa.string())
    )
    request = pc.binary_join_element_wise(
        text("request by ", ["channel"], ", layout ", ["layout"], ": "), state, ""
    )
    columns = {
        **{
            name: table[name]
            for name in ("trajectory_id", "step", "step_kind", "endpoint", "channel", "layout")
        },
        "acquisition_id": pa.repeat("main-1", len(table)),
        "candidate": table["candidate"],
        "energy": table["energy"].cast(pa.float64()),
        "status": table["status"],
        "target": table["target"],
        "state": state,
        "candidates": text("candidates of ", ["trajectory_id"]),
        "view": view,
        "request": request,
    }
    return pa.table(columns)


def write(folder: Path) -> tuple[Path, ...]:
    """Write scores.parquet and channels/*.toml into a folder; a file that is already there is refused."""
    import pyarrow.parquet as pq

    from contracts.errors import StorageError

    written = [folder / "scores.parquet", *(folder / "channels" / f"{name}.toml" for name in CHANNELS)]
    taken = [path for path in written if path.exists()]
    if taken:
        raise StorageError("a file is already there", where=taken[0], next_step="name an empty folder")
    try:
        (folder / "channels").mkdir(parents=True, exist_ok=True)
        pq.write_table(cohort(), written[0], compression="zstd")
        for name in CHANNELS:
            spec = files("cli") / "demo_data" / "channels" / f"{name}.toml"
            (folder / "channels" / f"{name}.toml").write_bytes(spec.read_bytes())
    except OSError as error:
        raise StorageError("the demo files cannot be written", where=folder, got=error.strerror) from error
    return tuple(written)
