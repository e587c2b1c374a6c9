"""Progress on stderr: a bar per variant on a terminal, a line per variant elsewhere."""

from __future__ import annotations

import sys
import time

import click

from .evidence import samples_per_s
from .records import VariantResult
from .report import plain
from .report.numbers import number

_PHASES = {
    "start": "starting",
    "load": "loading the program",
    "build": "building and compiling",
    "warm-up": "warming up",
    "trace": "tracing",
    "finish": "finishing",
}

#: A phase that takes longer than this share of its time-out is shown with the time-out beside it.
_LONG_SHARE = 0.1


class Silent:
    """Shows nothing."""

    def stage_started(self, text: str) -> None: ...

    def variant_started(self, variant: str) -> None: ...

    def phase_started(self, variant: str, phase: str) -> None: ...

    def waiting(self, variant: str, phase: str, elapsed_s: float, limit_s: float) -> None: ...

    def block_measured(self, variant: str, fraction: float, samples_per_s: float) -> None: ...

    def variant_finished(self, result: VariantResult) -> None: ...


class Lines(Silent):
    """A line per stage and per finished variant; for logs and pipes."""

    def __init__(self, variants: tuple[str, ...], color: bool | None = None) -> None:
        self._width = max(map(len, variants))
        self._color = color
        self._began_s = time.monotonic()

    def stage_started(self, text: str) -> None:
        elapsed = f"{time.monotonic() - self._began_s:.0f} s"
        click.echo(click.style(f"{elapsed:>6}  {text}", dim=True), err=True, color=self._color)

    def variant_finished(self, result: VariantResult) -> None:
        label = result.id.ljust(self._width)
        click.echo(f"{label}  {ending(result)}", err=True, color=self._color)


class Bars(Lines):
    """One line that moves: the stage, what loads longest or whose turn it is; finished variants above it."""

    def __init__(self, variants: tuple[str, ...], color: bool | None = None) -> None:
        super().__init__(variants, color)
        self._stage = ""
        self._loading: dict[str, str] = {}
        self._bar = click.progressbar(
            length=100,
            label="",
            file=sys.stderr,
            show_eta=False,
            show_percent=False,
            width=20,
            item_show_func=lambda text: text,
            fill_char="━",
            empty_char=" ",
            color=self._color,
        )

    def stage_started(self, text: str) -> None:
        self._stage = text
        self._loading.clear()
        self._show("")

    def variant_started(self, variant: str) -> None:
        self.phase_started(variant, "start")

    def phase_started(self, variant: str, phase: str) -> None:
        self._loading.pop(variant, None)
        if phase in _PHASES:
            self._loading[variant] = _PHASES[phase]
        self._show_longest()

    def waiting(self, variant: str, phase: str, elapsed_s: float, limit_s: float) -> None:
        if phase not in _PHASES:
            return
        text = f"{_PHASES[phase]} {elapsed_s:.0f} s"
        if elapsed_s > _LONG_SHARE * limit_s:
            text += f" (at most {limit_s:g})"
        self._loading[variant] = text
        self._show_longest()

    def _show_longest(self) -> None:
        """The variant that has been in its phase for longest: several load side by side."""
        if self._loading:
            self._show(" ".join(next(iter(self._loading.items()))))

    def block_measured(self, variant: str, fraction: float, samples_per_s: float) -> None:
        self._bar.pos = round(100 * fraction)
        self._show(f"{variant} {number(samples_per_s)} samples/s")

    def _show(self, text: str) -> None:
        self._bar.label = f"{time.monotonic() - self._began_s:4.0f} s  {self._stage}"
        self._bar.current_item = text
        self._bar.render_progress()

    def variant_finished(self, result: VariantResult) -> None:
        click.echo("\r\033[2K", nl=False, err=True)  # only ever used on a terminal
        super().variant_finished(result)


def ending(result: VariantResult) -> str:
    """A finished variant in a few words."""
    if result.failure is not None:
        style = {"not-run": "bright_black", "not-applied": "yellow", "unsupported": "yellow"}
        message = plain.one_line(result.failure.message, 400)
        word = "not run" if result.status == "not-run" else result.failure.kind
        return click.style(word, fg=style.get(result.failure.kind, "red")) + f"  {message}"
    rate = samples_per_s(result)
    if rate is None:
        return click.style("done", fg="green")
    return f"{number(rate.median)} samples/s ±{rate.margin:.0%}"
