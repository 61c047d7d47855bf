"""Whether the layouts of a transition are balanced: every candidate in every physical position once.

Pure arithmetic over positions; which entries they belong to is the caller's business.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Mask = npt.NDArray[np.bool_]


def balanced(positions: npt.NDArray[np.integer]) -> Mask:
    """bool[m] for positions int[m, groups, L, K]: what candidate k was shown at in layout l.

    A group is one endpoint of one acquisition of one arm. True where L = K, every candidate takes L
    different positions over the layouts of a group, no two candidates share one in a layout, and all use
    the same ones. Positions may be counted from any number.
    """
    transitions, _, layouts, candidates = positions.shape
    if layouts != candidates:
        return np.zeros(transitions, bool)
    over_layouts = np.sort(positions, axis=2).swapaxes(2, 3)  # [m, groups, K, L]
    over_candidates = np.sort(positions, axis=3)  # [m, groups, L, K]
    wanted = over_layouts[:, :1, :1]
    axes = (1, 2, 3)
    found: Mask = (
        (over_layouts == wanted).all(axis=axes)
        & (over_candidates == wanted).all(axis=axes)
        & (np.diff(wanted, axis=3) > 0).all(axis=axes)
    )
    return found
