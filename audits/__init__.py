"""Statistics from verified entries: each audit is a function of a snapshot, with a frozen result.

    from audits import transport
    found = transport(snapshot, ref="direct", alt="generated")

An audit is imported when its name is first used, so that importing this package costs nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audits.bridge import bridge
    from audits.contrast import contrast
    from audits.cube import cube
    from audits.face import face
    from audits.jev import jev
    from audits.mixture import mixture
    from audits.pool import pool
    from audits.redundancy_audit import redundancy
    from audits.repeatability import repeatability
    from audits.transport import transport

__all__ = [
    "bridge", "contrast", "cube", "face", "jev", "mixture", "pool", "redundancy", "repeatability",
    "transport",
]  # fmt: skip


class _Audit:
    """The function of an audit as an attribute of this package, although a module of it has that name.

    An import sets the module as the attribute of its package; this attribute stays the function, whatever
    was imported first.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module, self._name = module, name

    def __get__(self, package: ModuleType, kind: type) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(import_module(self._module), self._name)
        return function

    def __set__(self, package: ModuleType, module: ModuleType) -> None:
        """Keep the function: the module is found under its full name."""


class _Package(ModuleType):
    bridge = _Audit("audits.bridge", "bridge")
    contrast = _Audit("audits.contrast", "contrast")
    cube = _Audit("audits.cube", "cube")
    face = _Audit("audits.face", "face")
    jev = _Audit("audits.jev", "jev")
    mixture = _Audit("audits.mixture", "mixture")
    pool = _Audit("audits.pool", "pool")
    redundancy = _Audit("audits.redundancy_audit", "redundancy")
    repeatability = _Audit("audits.repeatability", "repeatability")
    transport = _Audit("audits.transport", "transport")


sys.modules[__name__].__class__ = _Package
