"""Values that a command takes as they were typed, so that the parser does not load what converts others.

typer converts each value by pydantic, whose import takes a tenth of a second: more than everything else a
small command does. A text is a text, what was left out is nothing, and a default was written by us.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def spare(command: Any) -> None:
    """Lets the plain values of a command, and of those below it, pass by the parser's conversion."""
    listed = command.get_params
    command.get_params = lambda ctx: spared(listed(ctx))  # the parser asks for them, with its own `--help`
    for below in getattr(command, "commands", {}).values():
        spare(below)


def spared(params: Iterable[Any]) -> list[Any]:
    """The same for some parameters; those of another typer, which tells less of them, stay as they are."""
    listed = list(params)
    for param in listed:
        kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
        if kind is not None and "process_value" not in vars(param):
            param.process_value = _passing(param, kind)
    return listed


def _passing(param: Any, kind: Any) -> Any:
    """The step from what was typed to what the command is given, see `Parameter.process_value`."""
    convert = param.process_value
    many = param.multiple or param.nargs != 1

    def process_value(ctx: Any, value: Any) -> Any:
        if value is None and not param.required:
            taken: Any = () if many else None
        elif kind == list[str] and isinstance(value, list | tuple) and value:
            taken = list(value)
        elif (not many and kind is str and type(value) is str) or _is_default(param, value):
            taken = value
        else:
            return convert(ctx, value)
        return taken if param.callback is None else param.callback(ctx, param, taken)

    return process_value


def _is_default(param: Any, value: Any) -> bool:
    return value is not None and type(value) is type(param.default) and value == param.default
