"""A page of panels: title, legend outside, notes below; and the files that it becomes."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from surepick.bench.figures.panels import Look
from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.reports.figure_files import write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

LETTERS_PER_INCH, LARGE_PER_INCH = 15.5, 11.5  # of the notes, and of the title
ROOM_FOR_ROW = 2.2  # inches, of a legend in a row beside the title


@contextmanager
def reproducible() -> Iterator[None]:
    """Draw so that equal tables give equal files.

    Raises:
        InvalidInput: matplotlib is absent.
    """
    try:
        import matplotlib  # noqa: PLC0415 (heavy, and an extra)
    except ImportError as error:
        raise InvalidInput('figures need matplotlib, which is absent: pip install "surepick[reports]".') from error
    with matplotlib.rc_context({"svg.hashsalt": "surepick"}):
        yield


def save(figure: Figure, directory: Path, name: str) -> list[Path]:
    """Write the figure as PNG and SVG.

    Raises:
        InvalidInput: a file cannot be written.
    """
    paths = [directory / f"{name}.png", directory / f"{name}.svg"]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the figure cannot be written to {directory}: {error}.") from error
    write_figure(figure, paths[0], dpi=150)
    figure.set_layout_engine("none")  # where everything is has been found, and takes most of the time
    write_figure(figure, paths[1], metadata={"Date": None})
    return paths


@record
class Page:
    """A figure that is being drawn.

    Args:
        figure: what is drawn on.
        axes: its panels, row by row.
        width: of the figure, in inches.
        in_a_row: whether the legend is a row beside the title, or a column beside the panels.
        notes: sentences for below the panels, filled while drawing.
        key: entries of the legend, filled while drawing.
    """

    figure: Figure
    axes: list[Axes]
    width: float
    in_a_row: bool
    notes: list[str] = field(default_factory=list)
    key: list[Line2D] = field(default_factory=list)

    def name_policies(
        self,
        policies: Sequence[str],
        styles: Mapping[str, Look],
        *,
        filled: Collection[str],
        notes: Mapping[str, str],
        marks: tuple[str, ...] = ("marker", "line"),
    ) -> None:
        """A legend entry for each policy, with what is to be said of it, and those of its marks that are drawn."""
        for policy in policies:
            look = styles[policy]
            self.name_mark(
                f"{policy} ({notes[policy]})" if policy in notes else policy,
                color=look.colour,
                marker=look.marker if "marker" in marks else "",
                linestyle=look.line if "line" in marks else "",
                markerfacecolor=look.colour if policy in filled else "white",
            )

    def name_mark(self, label: str, **drawn: object) -> None:
        """A legend entry for a mark, a line or both."""
        from matplotlib.lines import Line2D  # noqa: PLC0415 (heavy)

        self.key.append(Line2D([], [], label=label, **drawn))  # type: ignore[arg-type]

    def finish(self, title: str) -> Figure:
        """Title, legend and notes; the figure is ready."""
        letters = int(LARGE_PER_INCH * (self.width - ROOM_FOR_ROW * self.in_a_row))
        self.figure.suptitle("\n".join(textwrap.wrap(title, letters)), x=0.01, ha="left", fontsize="large")
        if self.key:
            self.figure.legend(
                handles=self.key,
                loc="outside upper right" if self.in_a_row else "outside right center",
                ncols=len(self.key) if self.in_a_row else 1,
                frameon=False,
                fontsize="small",
                handlelength=1.5 if self.in_a_row else 3.2,
            )
        lines = [line for note in self.notes for line in textwrap.wrap(note, int(LETTERS_PER_INCH * self.width))]
        self.figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize="x-small", color="#444444")
        return self.figure


def open_page(panels: int, *, columns: int, width: float, height: float, room: float, in_a_row: bool = False) -> Page:
    """An empty page.

    Args:
        panels: how many, at least 1.
        columns: most panels side by side.
        width, height: of a panel, in inches.
        room: inches beside the panels, for names.
        in_a_row: whether the legend is a row beside the title, or a column beside the panels.
    """
    from matplotlib.figure import Figure  # noqa: PLC0415 (heavy, and an extra)

    across = panels if panels <= columns else min(columns, 2 if panels == 4 else 3)
    down = -(-panels // across)
    total = room + width * across
    figure = Figure(figsize=(total, 1.1 + height * down))
    figure.set_layout_engine("constrained", wspace=0.05)
    grid = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for surplus in grid[panels:]:
        surplus.remove()
    return Page(figure, grid[:panels], total, in_a_row)
