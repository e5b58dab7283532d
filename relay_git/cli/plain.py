"""A start without pydantic: typer converts every value by it, also one that was not given or is a word already.

Promise: what a command gets is what typer would have given it; only the 110 ms of importing pydantic are left out.
Where typer changes its insides, this at most loses its effect.
"""

from __future__ import annotations

from typing import Any

from typer.core import TyperArgument, TyperOption


def spare_conversion() -> None:
    """Let options and arguments pass where there is nothing to convert."""
    for kind in (TyperArgument, TyperOption):
        _spare(kind)


def _spare(kind: Any) -> None:  # noqa: ANN401 - a class of typer's, whose methods it does not document
    convert = kind.process_value

    def process_value(self: Any, ctx: Any, value: Any) -> Any:  # noqa: ANN401
        words = getattr(getattr(self, "type_descriptor", None), "annotation", None) is str
        kept = value is None or (words and type(value) is str)
        if not kept or self.required or self.multiple or self.nargs != 1:
            return convert(self, ctx, value)
        return value if self.callback is None else self.callback(ctx, self, value)

    kind.process_value = process_value
