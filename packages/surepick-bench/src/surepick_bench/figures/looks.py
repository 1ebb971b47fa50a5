"""How the series of an experiment are drawn: colour, marker and line are the same in all figures of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from surepick.core.records import record
from surepick.errors import InvalidInput
from surepick.reports.figure_page import COLOURS, Page, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "v", "P", "X", "h", "<", ">", "p", "d", "8", "H")
LINES = ("-", "--", ":", "-.")


@record
class Look:
    """How a series is drawn: colour, marker and line are the same in all figures of a table."""

    colour: str
    marker: str
    line: str
    filled: bool = True

    @property
    def face(self) -> str:
        """The colour inside its marks."""
        return self.colour if self.filled else "white"


Looks = Mapping[str, Look]


def looks(names: Sequence[str]) -> dict[str, Look]:
    """A look for each series; no two are equal up to 91 of them."""
    return {
        name: Look(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], LINES[i // len(COLOURS) % len(LINES)])
        for i, name in enumerate(names)
    }


def name_series(page: Page, styles: Looks, notes: Mapping[str, str], *, marker: bool = True, line: bool = True) -> None:
    """A legend entry for each series, with what is to be said of it, and those of its marks that are drawn."""
    for name, look in styles.items():
        page.name_mark(
            f"{name} ({notes[name]})" if name in notes else name,
            color=look.colour,
            marker=look.marker if marker else "",
            linestyle=look.line if line else "",
            markerfacecolor=look.face,
        )


def save(figure: Figure, directory: Path, name: str) -> list[Path]:
    """Write the figure as PNG and SVG."""
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    paths = [directory / f"{name}.png", directory / f"{name}.svg"]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the figure cannot be written to {directory}: {error}.") from error
    write_figure(figure, paths[0], dpi=150)
    figure.set_layout_engine("none")  # where everything is has been found, and takes most of the time
    write_figure(figure, paths[1], metadata={"Date": None})
    return paths


def write_note(axes: Axes, words: str) -> None:
    """A panel with nothing to draw says so."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center")
