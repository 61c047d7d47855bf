"""Which channels and acquisitions the design in an audit's record lets in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def asks(design: Mapping[str, Any], channel: str | None) -> bool:
    """Whether an audit is about a channel: one of its arms, or one its scope lets in; None is undeclared."""
    arms = design.get("arms")
    if arms:
        return any(arm.get("channel") == channel for arm in arms)
    scope = design.get("scope")
    named = scope.get("channels") if isinstance(scope, Mapping) else ()
    return named is None or channel in named


def chosen(design: Mapping[str, Any], channel: object, acquisition: str) -> bool:
    """Whether the design's restriction to acquisitions, if it has one for the channel, lets this one in."""
    named = [name for fp, name in design.get("scope", {}).get("acquisitions", ()) if fp in (None, channel)]
    return not named or acquisition in named
