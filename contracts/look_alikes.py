"""Two labels of one column that a reader cannot tell apart.

An id in Cyrillic is as good as one in Latin; `traj1` beside a `trаj1` with a Cyrillic а would silently be
two trajectories. So no script is refused, only the twin. Which letters pass for which is the part of
Unicode TR 39 that turns up in practice, and the width and font variants of the character database.
"""

from __future__ import annotations

import unicodedata

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_TWINS = {
    "АВЕЅІЈКМНОРСТУХаеорсухѕіјһӏԁԛԝ": "ABESIJKMHOPCTYXaeopcyxsijhldqw",
    "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονι": "ABEZHIKMNOPTYXovi",
    "‐‑‒–—−˗": "-------",
    "‘’ʼ′": "''''",
    "“”″": '"""',
    "⁄∕": "//",
    "․": ".",
    "∶": ":",
}
_VARIANTS = ("<wide>", "<narrow>", "<font>")


class _Skeleton(dict[int, str]):
    """A translation table that looks a character up the first time it occurs."""

    def __init__(self) -> None:
        super().__init__(
            (ord(a), b)
            for lookalikes, plain in _TWINS.items()
            for a, b in zip(lookalikes, plain, strict=True)
        )

    def __missing__(self, point: int) -> str:
        character = chr(point)
        parts = unicodedata.decomposition(character).split()
        varies = parts and parts[0] in _VARIANTS
        self[point] = "".join(chr(int(part, 16)) for part in parts[1:]) if varies else character
        return self[point]


_SKELETON = _Skeleton()


def twins(values: pa.Array) -> dict[int, str]:
    """Labels that look like another of `values`: their index, and the label they look like.

    Of two labels the one written in plain letters is taken for the meant one.
    """
    plain = pc.fill_null(pc.string_is_ascii(values), True).to_numpy(zero_copy_only=False)
    if plain.all():
        return {}
    odd = np.flatnonzero(~plain)
    others = dict.fromkeys(values.to_pylist())
    seen: dict[str, str] = {}
    found: dict[int, str] = {}
    for index, label in zip(odd.tolist(), values.take(pa.array(odd)).to_pylist(), strict=True):
        skeleton = label.translate(_SKELETON)
        if skeleton != label:
            twin = skeleton if skeleton in others else seen.setdefault(skeleton, label)
            if twin != label:
                found[index] = twin
    return found
