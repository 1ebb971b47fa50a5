"""Figures as files."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick.core.files import write_whole
from surepick.errors import InvalidInput

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_figure(figure: Figure, path: str | Path, **drawing: Any) -> None:
    """Draw the figure, then write it whole or not at all.

    Args:
        figure: what is drawn.
        path: a file whose ending says the format; without an ending we write PATH.png.
        drawing: for `savefig`.

    Raises:
        InvalidInput: matplotlib does not know the format, or the file cannot be written.
    """
    target = Path(path)
    if not target.suffix:
        target = target.with_name(f"{target.name}.png")
    drawn = io.BytesIO()
    try:
        figure.savefig(drawn, format=target.suffix[1:], **drawing)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the figure cannot be written to {target}: {error}.") from error
    write_whole(target, drawn.getvalue(), what="the figure")
