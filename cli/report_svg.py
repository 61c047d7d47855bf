"""Figures as SVG that stands inside a page: same bytes every time, colours from the page, text for every eye.

Matplotlib draws in place-holder colours, which become CSS variables, so one drawing serves light, dark and
print. Labels stay text. Nothing of a label is markup: it goes through an XML writer.
"""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from contracts.findings import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, MUTED, RULE, FLIP, KEEP, TINT, OTHER = (f"#01020{n}" for n in range(7))
VARIABLES = {
    INK: "ink", MUTED: "muted", RULE: "rule", FLIP: "flip", KEEP: "keep", TINT: "tint", OTHER: "other",
}  # fmt: skip
WIDTH = 5.0  # inches; 360 units of the drawing, about a phone's width in CSS pixels
LABEL = 26  # characters of a label
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "evaluator-ledger",
    "text.parse_math": False,
    "font.family": "DejaVu Sans",
    "font.size": 10.5,
    "axes.titlesize": 10.0,
    "axes.labelsize": 10.0,
    "xtick.labelsize": 9.5,
    "ytick.labelsize": 10.0,
    "axes.edgecolor": RULE,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": RULE,
    "ytick.color": RULE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.constrained_layout.use": True,
}


@dataclass(frozen=True)
class Drawing:
    """A figure for a page: its SVG, a heading, and what it shows in words."""

    name: str
    title: str
    text: str
    svg: str


@contextmanager
def canvas(height: float) -> Iterator[Figure]:
    """An empty figure `height` inches high, whatever the settings of the machine are."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield Figure(figsize=(WIDTH, height))


def drawing(figure: Figure, name: str, title: str, text: str) -> Drawing:
    """The figure as a drawing; `name` keeps its ids apart from those of others, `text` says what it shows."""
    buffer = io.BytesIO()
    empty = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", transparent=True, metadata=empty)
    root = ET.fromstring(buffer.getvalue())  # noqa: S314  (written just above, no foreign document)
    return Drawing(name, title, text, _page_ready(root, name, title, text))


def label(text: str, limit: int = LABEL) -> str:
    """A foreign text as a label of a figure."""
    return shown(text, limit)


def _page_ready(root: ET.Element, name: str, title: str, text: str) -> str:
    for child in list(root):
        if child.tag == f"{{{SVG}}}metadata":
            root.remove(child)
    _own_ids(root, name)
    for parent in root.iter():
        _hoist(parent)
    for element in root.iter():
        style = element.get("style")
        if style is not None:
            element.set("style", _themed(style))
    for attribute in ("width", "height", "version"):
        root.attrib.pop(attribute, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-desc")
    for place, (tag, words) in enumerate((("title", title), ("desc", text))):
        element = ET.Element(f"{{{SVG}}}{tag}", {"id": f"{name}-{tag}"})
        element.text = words
        root.insert(place, element)
    ET.register_namespace("", SVG)
    return ET.tostring(root, encoding="unicode")


def _own_ids(root: ET.Element, name: str) -> None:
    """Only ids that something refers to are kept, under the drawing's name."""
    link = f"{{{XLINK}}}href"
    used: set[str] = set()
    for element in root.iter():
        target = element.attrib.pop(link, None)
        if target is not None:
            used.add(target.removeprefix("#"))
            element.set("href", f"#{name}-{target.removeprefix('#')}")
        for attribute, value in list(element.attrib.items()):
            found = re.fullmatch(r"url\(#([^)]*)\)", value)
            if found:
                used.add(found[1])
                element.set(attribute, f"url(#{name}-{found[1]})")
    for element in root.iter():
        identity = element.attrib.pop("id", None)
        if identity in used:
            element.set("id", f"{name}-{identity}")


def _hoist(parent: ET.Element) -> None:
    """One style for a run of equal marks: a thousand points say it once."""
    styles = {child.get("style") for child in parent}
    if len(parent) > 1 and len(styles) == 1 and all(child.tag == f"{{{SVG}}}use" for child in parent):
        (style,) = styles
        if style is not None:
            parent.set("style", style)
            for child in parent:
                del child.attrib["style"]


def _themed(style: str) -> str:
    for colour, variable in VARIABLES.items():
        style = style.replace(colour, f"var(--{variable})")
    return re.sub(r"font: ([\d.]+px)[^;]*", r"font-size: \1", style)
