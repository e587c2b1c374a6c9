"""The timeline of one step, and the parts of each step, as inline SVG.

Each kind of work has a colour and a pattern of its own, and stands in a row that is named: nothing
is told by colour alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ..trace.summary import Cause, Step, Timeline
from ..trace.verdicts import Part, Split, split
from . import numbers, plain, svg
from . import trace_words as words


class Look(NamedTuple):
    """How one kind of work is drawn; ``variable`` is the page's name for the colour."""

    placeholder: str
    variable: str
    hatch: str


INK, MUTED, GRID, PAGE = "#020201", "#020202", "#020203", "#020204"
COMPILATION = "compiling"
LOOKS: dict[str, Look] = {
    Part.INPUT.value: Look("#020211", "--work-input", "///"),
    Part.COPY.value: Look("#020212", "--work-copies", "\\\\\\"),
    Part.LAUNCH.value: Look("#020213", "--work-launching", "---"),
    Part.COMPUTE.value: Look("#020214", "--work-compute", ""),
    Part.COMMUNICATION.value: Look("#020215", "--work-communication", "|||"),
    COMPILATION: Look("#020216", "--work-compiling", "+++"),
    Part.OTHER.value: Look("#020217", "--work-other", "xxx"),
}
_VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--rule)",
    PAGE: "var(--page)",
    **{look.placeholder: f"var({look.variable})" for look in LOOKS.values()},
}
#: What a lane or a cause of idleness is drawn as; what is not named here is drawn as other.
_KINDS: dict[str, str] = {
    **{f"copies {way}": Part.COPY.value for way in words.WAYS},
    Cause.INPUT.value: Part.INPUT.value,
    Cause.COPY.value: Part.COPY.value,
    Cause.COMPILATION.value: COMPILATION,
    Cause.LAUNCH.value: Part.LAUNCH.value,
    "host: running ops": Part.COMPUTE.value,
    "host: waiting for input": Part.INPUT.value,
    "host: making input": Part.INPUT.value,
    "host: launching": Part.LAUNCH.value,
    "host: blocked by the device": Part.COPY.value,
    "host: compiling": COMPILATION,
}
_MOST_STEPS = 12
_TOP, _BOTTOM = 8, 44


WIDE = svg.Layout("wide", 880, 214, 84, 30, False, 34)
NARROW = svg.Layout("narrow", 360, 6, 8, 44, True, 32)


class Row(NamedTuple):
    """One line of a chart: stretches of the value axis by kind of work."""

    name: str
    written: str
    stretches: tuple[tuple[str, tuple[tuple[float, float], ...]], ...]
    labels: tuple[tuple[float, str], ...] = ()
    bold: bool = False


def timeline(drawn: Timeline, layout: svg.Layout = WIDE) -> str | None:
    """What ran when in one step, and why the device idled; None where nothing is known of it."""
    rows = list(_timeline_rows(drawn))
    if not rows or not drawn.duration_ms > 0:
        return None
    chart = _Chart(layout, rows, drawn.duration_ms)
    chart.scale("from the start of the step" if drawn.step is not None else "from the first event")
    described = "; ".join(f"{row.name}: {row.written}" for row in rows)
    title = f"Timeline of {f'step {drawn.step}' if drawn.step is not None else 'the trace'}"
    return chart.svg(f"chart-timeline-{layout.name}", title, described)


def _timeline_rows(drawn: Timeline) -> list[Row]:
    """A row per lane, with its exact time."""
    found = []
    for lane in drawn.lanes:
        ends = tuple((each.start_ms, each.start_ms + each.duration_ms) for each in lane.intervals)
        name = plain.one_line(_LANES.get(lane.name, lane.name), 60)
        found.append(Row(name, words.duration(lane.busy_ms), ((work_of(lane.name), ends),)))
    return found


_LANES = {
    "copies h2d": "copies, host to device",
    "copies d2h": "copies, device to host",
    "copies d2d": "copies within the device",
    "copies other": "copies, direction unknown",
}


def work_of(kind: str) -> str:
    """The kind of work that a lane or a cause is drawn as."""
    kind = kind.removeprefix("idle: ")
    return kind if kind in LOOKS else _KINDS.get(kind, Part.OTHER.value)


def steps(all_steps: Sequence[Step], layout: svg.Layout = WIDE) -> str | None:
    """What each step's time went to, the mean of all first; None without steps."""
    total = split(all_steps)
    if total is None:
        return None
    rows = [_step_row(f"mean of {total.count}", total, total.count, bold=True)]
    for step in all_steps[:_MOST_STEPS] if len(all_steps) > 1 else ():
        one = split([step])
        if one is not None:
            rows.append(_step_row(f"step {words.step_label(step, all_steps)}", one))
    longest = max(row.stretches[-1][1][0][1] for row in rows)
    chart = _Chart(layout, rows, longest)
    chart.scale("per step")
    described = "; ".join(f"{part.value} {words.share(total.share(part))}" for part in Part)
    return chart.svg(f"chart-steps-{layout.name}", "Where a step's time goes", described)


def _step_row(name: str, time: Split, count: int = 1, bold: bool = False) -> Row:
    stretches, labels, at = [], [], 0.0
    for part in Part:
        length = time.parts_ms[part] / count
        stretches.append((part.value, ((at, at + length),)))
        labels.append(
            (at + length / 2, f"{100 * time.share(part):.0f} %" if time.share(part) >= 0.08 else "")
        )
        at += length
    written = words.duration(time.duration_ms / count)
    return Row(plain.one_line(name, 60), written, tuple(stretches), tuple(labels), bold)


class _Chart:
    """Rows over one axis of time, from 0 to ``most`` milliseconds."""

    def __init__(self, layout: svg.Layout, rows: Sequence[Row], most: float) -> None:
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        self.layout = layout
        height = _TOP + layout.row * len(rows) + _BOTTOM
        # 72 dots per inch makes a point a pixel.
        self.figure: Any = Figure(figsize=(layout.width / 72, height / 72), dpi=72)
        FigureCanvasSVG(self.figure)
        self.figure.patch.set_visible(False)
        self.inner = layout.width - layout.left - layout.right
        self.axes: Any = self.figure.add_axes(
            (layout.left / layout.width, _BOTTOM / height, self.inner / layout.width,
             layout.row * len(rows) / height)
        )  # fmt: skip
        self.unit, self.most = _unit(most)
        self.factor = self.most / most
        self.axes.set(xlim=(0, self.most), ylim=(len(rows), 0), facecolor="none")
        for y, row in enumerate(rows):
            self.row(y, row)

    def row(self, y: int, row: Row) -> None:
        """One row's words, bars and labels."""
        stacked, pixel = self.layout.stacked, self.most / self.inner
        centre, half = (y + 0.7, 0.2) if stacked else (y + 0.5, 0.32)
        words_at = y + 0.26 if stacked else centre
        left = 0.0 if stacked else -self.layout.left * pixel
        name = plain.one_line(row.name, self.layout.longest_name)
        self.write(left, words_at, name, weight="bold" if row.bold else "normal")
        self.write(self.most if stacked else self.most + 10 * pixel, words_at, row.written,
                   ha="right" if stacked else "left", color=INK if row.bold else MUTED)  # fmt: skip
        self.axes.plot([0, self.most], [centre, centre], color=GRID, linewidth=1, zorder=1)
        for work, ends in row.stretches:
            self.bars(ends, centre - half, centre + half, LOOKS[work])
        for x, label in row.labels:
            self.write(x * self.factor, centre, label, ha="center", fontsize=11)

    def bars(self, ends: Sequence[tuple[float, float]], top: float, bottom: float, look: Look) -> None:
        """All stretches of one kind as one path, each at least a pixel wide."""
        from matplotlib.patches import PathPatch
        from matplotlib.path import Path

        corners: list[tuple[float, float]] = []
        codes: list[Any] = []
        for start, stop in _merged(ends, self.most / self.inner / self.factor):
            x, right = (
                start * self.factor,
                max(stop * self.factor, start * self.factor + self.most / self.inner),
            )
            corners += [(x, top), (right, top), (right, bottom), (x, bottom), (x, top)]
            codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
        if corners:
            style = {"facecolor": look.placeholder, "edgecolor": PAGE, "hatch": look.hatch or None}
            self.axes.add_patch(PathPatch(Path(corners, codes), linewidth=0, zorder=2, **style))

    def write(self, x: float, y: float, text: str, **style: Any) -> None:
        """Put text at a value and a row; dollar signs are no mathematics."""
        style = {"fontsize": 12, "color": INK, "va": "center", "zorder": 6, **style}
        self.axes.text(x, y, text, parse_math=False, clip_on=False, **style)

    def scale(self, label: str) -> None:
        """The axis of time: thin lines, few figures, one label."""
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        axes = self.axes
        for spine in axes.spines.values():
            spine.set_visible(False)
        axes.xaxis.set_major_locator(MaxNLocator(4 if self.layout.stacked else 8, min_n_ticks=3))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: numbers.tick(x)))
        axes.tick_params(axis="x", length=0, labelsize=11, labelcolor=MUTED, pad=6)
        axes.set_yticks([])
        axes.grid(axis="x", color=GRID, linewidth=1)
        axes.set_axisbelow(True)
        axes.set_xlabel(f"{self.unit} {label}", fontsize=11, color=MUTED, loc="left")

    def svg(self, identifier: str, title: str, description: str) -> str:
        return svg.inline(self.figure, identifier, title, description, self.layout.name, _VARIABLES)


def _unit(ms: float) -> tuple[str, float]:
    """The unit that suits a duration, and the duration in it."""
    if ms >= 2000:
        return "seconds", ms / 1e3
    return ("milliseconds", ms) if ms >= 2 else ("microseconds", ms * 1e3)


def _merged(ends: Sequence[tuple[float, float]], pixel: float) -> list[tuple[float, float]]:
    """Stretches closer than a pixel made one: more would only be larger, not clearer."""
    found: list[tuple[float, float]] = []
    for start, stop in sorted(ends):
        if found and start - found[-1][1] < pixel:
            found[-1] = (found[-1][0], max(found[-1][1], stop))
        else:
            found.append((start, stop))
    return found
