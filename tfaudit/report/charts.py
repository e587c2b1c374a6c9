"""Charts as inline SVG: drawn by matplotlib, coloured and set in type by the page.

Matplotlib draws in placeholder colours that are replaced by the page's CSS variables, so that one
SVG serves the light and the dark page. Text stays text. Each chart exists in two layouts, because
an SVG that is scaled down to a telephone's width cannot be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..records import Comparison, Interval, Report
from . import numbers, plain, reading, svg

# Placeholder colours and what the page calls them.
INK, MUTED, GRID, BAR, OWN, CEILING, PAGE = (
    "#010101", "#010102", "#010103", "#010104", "#010105", "#010106", "#010107",
)  # fmt: skip
_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--rule)",
    BAR: "var(--bar)",
    OWN: "var(--bar-own)",
    CEILING: "var(--ceiling)",
    PAGE: "var(--page)",
}
_MOST_BLOCKS = 60  # more dots than this are a smear


WIDE = svg.Layout("wide", 880, 250, 150, 38, False, 42)
NARROW = svg.Layout("narrow", 360, 6, 8, 50, True, 34)
_TOP, _BOTTOM = 30, 40
_FAR = 2.5


class Row(NamedTuple):
    """One line of a chart."""

    name: str
    note: str
    interval: Interval
    written: str
    own: bool = False
    dots: tuple[float, ...] = ()


class Drawing:
    """One chart in one layout: a figure with one pair of axes, without pyplot's global state."""

    def __init__(self, layout: svg.Layout, rows: Sequence[Row], least: float, most: float) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self.layout, self.rows = layout, rows
        height = _TOP + layout.row * len(rows) + _BOTTOM
        # 72 dots per inch makes a point a pixel.
        self.figure: Any = Figure(figsize=(layout.width / 72, height / 72), dpi=72)
        FigureCanvasSVG(self.figure)
        self.figure.patch.set_visible(False)
        inner = layout.width - layout.left - layout.right
        self.axes: Any = self.figure.add_axes(
            (layout.left / layout.width, _BOTTOM / height, inner / layout.width,
             layout.row * len(rows) / height)
        )  # fmt: skip
        self.axes.set(xlim=(least, most), ylim=(len(rows), 0), facecolor="none")
        self.least, self.most, self.inner = least, most, inner

    def write(self, x: float, y: float, text: str, **style: Any) -> None:
        """Put text at a value and a row; dollar signs are no mathematics."""
        style = {"fontsize": 12, "color": INK, "va": "center", "zorder": 6, **style}
        self.axes.text(x, y, text, parse_math=False, clip_on=False, **style)

    def pixels(self, count: float) -> float:
        """That many pixels as a distance on the value axis."""
        return count * (self.most - self.least) / self.inner

    def scale(self, label: str) -> None:
        """The value axis: thin lines, few figures, one label."""
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        axes = self.axes
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(4 if self.layout.stacked else 6, min_n_ticks=3))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: numbers.tick(x)))
        axes.tick_params(axis="x", length=0, labelsize=11, labelcolor=MUTED, pad=6)
        axes.set_yticks([])
        axes.grid(axis="x", color=GRID, linewidth=1)
        axes.set_axisbelow(True)
        right = self.layout.stacked
        axes.set_xlabel(label, fontsize=11, color=MUTED, loc="right" if right else "left")

    def names(self) -> None:
        """Each row's name and value in words."""
        layout = self.layout
        for y, row in enumerate(self.rows):
            name = plain.one_line(row.name, layout.longest_name)
            weight = "bold" if row.own else "normal"
            if layout.stacked:
                self.write(self.least, y + 0.24, name, weight=weight)
                self.write(self.most, y + 0.24, row.written, ha="right")
                continue
            note = plain.one_line(row.note.replace("`", ""), layout.longest_name)
            left = self.least - self.pixels(layout.left)
            self.write(left, y + (0.34 if note else 0.5), name, weight=weight)
            self.write(left, y + 0.72, note, fontsize=11, color=MUTED)
            end = min(max(row.interval.high, *row.dots[:_MOST_BLOCKS], row.interval.median), self.most)
            self.write(end + self.pixels(10), y + 0.5, row.written)

    def centre(self, y: int) -> float:
        """Where the bar of a row lies."""
        return y + (0.66 if self.layout.stacked else 0.5)

    def whisker(self, y: int, row: Row) -> None:
        """The interval as a line with ends."""
        centre, low, high = self.centre(y), row.interval.low, row.interval.high
        self.axes.plot([low, high], [centre, centre], color=INK, linewidth=1.5, zorder=4)
        for end in (low, high):
            tick = [centre - 0.12, centre + 0.12]
            self.axes.plot([end, end], tick, color=INK, linewidth=1.5, zorder=4)

    def bar(self, y: int, row: Row) -> None:
        """The median as a bar, single blocks as dots; a bar that leaves the scale is shown torn."""
        centre, thick = self.centre(y), (10 if self.layout.stacked else 16) / self.layout.row
        colour = OWN if row.own else BAR
        self.axes.barh(centre, min(row.interval.median, self.most), thick, color=colour)
        if row.interval.median > self.most:
            for back in (14, 20):
                right = self.most - self.pixels(back - 6)
                left = self.most - self.pixels(back)
                ends = [centre + thick, centre - thick]
                self.axes.plot([left, right], ends, color=PAGE, linewidth=2.5, zorder=4)
            return
        if len(row.dots) <= _MOST_BLOCKS:
            style = {"ms": 3, "mfc": MUTED, "mec": "none", "zorder": 3}
            self.axes.plot(row.dots, [centre] * len(row.dots), "o", **style)
        self.whisker(y, row)

    def svg(self, identifier: str, title: str, description: str) -> str:
        """The finished element; the same rows give the same bytes."""
        return svg.inline(self.figure, identifier, title, description, self.layout.name, _VARIABLES)


def variants(report: Report, layout: svg.Layout = WIDE) -> str | None:
    """Samples per second of every measured variant with interval, blocks and the ceiling."""
    rows = [
        Row(v.id, v.title if v.title != v.id else "", v.samples_per_s,
            str(numbers.rate(v.samples_per_s)), v.id == reading.BASELINE, v.block_samples_per_s)
        for v in report.variants
        if v.samples_per_s is not None
    ]  # fmt: skip
    if not rows:
        return None
    drawing = Drawing(layout, rows, 0.0, _scale_end(rows) * 1.02)
    drawing.scale("samples per second, with 95 % interval")
    drawing.names()
    for y, row in enumerate(rows):
        drawing.bar(y, row)
    ceiling = next((row for row in rows if row.name == reading.CEILING), None)
    if ceiling:
        _mark(drawing, ceiling.interval.median, "ceiling: cached input")
    described = "; ".join(f"{plain.one_line(r.name, 60)} {r.written}" for r in rows)
    return drawing.svg(f"chart-variants-{layout.name}", "Samples per second by variant", described)


def comparisons(report: Report, layout: svg.Layout = WIDE) -> str | None:
    """The ratio of every comparison with its interval, against the line of no difference."""
    rows = [Row(*_compared(c, layout), c.ratio, str(numbers.ratio(c.ratio))) for c in report.comparisons]
    if not rows:
        return None
    least = min(0.9, *(row.interval.low for row in rows))
    most = max(1.1, *(row.interval.high for row in rows))
    margin = (most - least) * 0.04
    drawing = Drawing(layout, rows, least - margin, most + margin)
    drawing.scale("times the samples/s of the reference, with 95 % interval")
    drawing.names()
    for y, row in enumerate(rows):
        drawing.whisker(y, row)
        drawing.axes.plot(row.interval.median, drawing.centre(y), "o", ms=9, mfc=OWN, mec="none")
    _mark(drawing, 1.0, "no difference")
    described = "; ".join(
        f"{plain.one_line(r.name, 60)} {plain.one_line(r.note, 60)} {r.written}" for r in rows
    )
    return drawing.svg(f"chart-ratios-{layout.name}", "Ratios between variants", described)


def _compared(comparison: Comparison, layout: svg.Layout) -> tuple[str, str]:
    """A comparison's name and note; where names have one line only, both are the name."""
    over = f"over {comparison.reference}"
    return (f"{comparison.variant} {over}", "") if layout.stacked else (comparison.variant, over)


def _scale_end(rows: Sequence[Row]) -> float:
    """Where the axis ends. Input without training may be far faster, and may not flatten the rest."""
    ends = {row.name: max(row.interval.high, *row.dots[:_MOST_BLOCKS], 0.0) for row in rows}
    trained = max((end for name, end in ends.items() if name != reading.INPUT_ONLY), default=0.0)
    everything = max(ends.values())
    return (trained if 0 < trained * _FAR < everything else everything) or 1.0


def _mark(drawing: Drawing, value: float, text: str) -> None:
    """A dashed line down the chart, named at its top."""
    lines = [(0.0, float(len(drawing.rows)))]
    if drawing.layout.stacked:  # only across the bars, since the text above them fills the width
        lines = [(drawing.centre(y) - 0.18, drawing.centre(y) + 0.18) for y in range(len(drawing.rows))]
    for ends in lines:
        drawing.axes.plot([value, value], ends, color=CEILING, linewidth=1.5, dashes=(4, 3), zorder=2.5)
    late = value > (drawing.least + drawing.most) / 2
    drawing.write(
        value, -8 / drawing.layout.row, text, fontsize=11, color=CEILING, va="bottom",
        ha="right" if late else "left",
    )  # fmt: skip
