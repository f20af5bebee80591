"""Plots as SVG that fit any width: bars over time, a week's heat map, a small line of bars. Pure functions.

Places are per cent of the width and pixels of the height, so text keeps its size on a phone. Colours are
classes of plots.css: a page's policy takes no style in the markup. A plot is one image for screen readers,
with title and description; its numbers belong into a table below it. All scales begin at zero.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from markupsafe import Markup, escape

_TOP, _HEIGHT, _BOTTOM = 10, 150, 24
_CELL = 20
DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A bar: its whole name, the short one below it where there is one, and a value of each series."""

    label: str
    tick: str | None
    values: Sequence[int]
    is_partial: bool = False
    """The value still grows."""


def bars(
    *, id: str, title: str, description: str, unit: str, series: Sequence[str], bars: Sequence[Bar]
) -> Markup:
    """Bars side by side; of several series, stacked from the first one up. `id` is unique in its page."""
    top = scale_top(max((sum(bar.values) for bar in bars), default=0))
    parts = [*_grid(top), *_bars(bars, series, unit, top)]
    return _svg(id, title, description, _TOP + _HEIGHT + _BOTTOM, parts)


def _grid(top: int) -> Iterator[str]:
    for value in scale(top):
        y = _y(value, top)
        kind = "plot-zero" if value == 0 else "plot-grid"
        yield f'<line class="{kind}" x1="0" x2="100%" y1="{y:g}" y2="{y:g}"/>'
        yield f'<text class="plot-scale" x="-8" y="{y + 4:g}">{value:,}</text>'


def _bars(bars: Sequence[Bar], series: Sequence[str], unit: str, top: int) -> Iterator[str]:
    width, ticks = 100 / max(len(bars), 1), 0
    for number, bar in enumerate(bars):
        yield f'<g class="plot-bar{" plot-partial" if bar.is_partial else ""}">'
        yield f"<title>{escape(_says(bar, series, unit))}</title>"
        # The whole column answers to the pointer, not the bar alone.
        yield _rect(number * width, _TOP, width, _HEIGHT, "plot-column")
        below = 0
        for place, value in enumerate(bar.values):
            if value:
                y, end = _y(below + value, top), _y(below, top)
                # What is there is seen, however small its part is.
                height = max(end - y, 1.5)
                yield _rect((number + 0.1) * width, end - height, 0.8 * width, height, f"plot-{place + 1}")
            below += value
        yield "</g>"
        if bar.tick is not None:
            x = (number + 0.5) * width
            anchor = " plot-first" if x < 4 else " plot-last" if x > 96 else ""
            # A phone has room for every other one.
            anchor += " plot-wide" if ticks % 2 else ""
            ticks += 1
            at = number * width if x < 4 else 100 if x > 96 else x
            y = _TOP + _HEIGHT + 18
            yield f'<text class="plot-tick{anchor}" x="{at:.3g}%" y="{y}">{escape(bar.tick)}</text>'


def _says(bar: Bar, series: Sequence[str], unit: str) -> str:
    so_far = " so far" if bar.is_partial else ""
    if len(series) < 2:
        return f"{bar.label}: {sum(bar.values):,} {unit}{so_far}"
    each = ", ".join(f"{value:,} {name}" for name, value in zip(series, bar.values, strict=True))
    return f"{bar.label}: {each}{so_far}"


def heat(
    *, id: str, title: str, description: str, unit: str, counts: Mapping[tuple[int, int], int]
) -> Markup:
    """A week of hours: a row for each day, Monday first, a cell for each hour; the darker the more."""
    most = max(counts.values(), default=0)
    parts = []
    for day, name in enumerate(DAY_NAMES):
        y = _TOP + day * _CELL
        parts.append(f'<text class="plot-scale" x="-8" y="{y + 14}">{name[:3]}</text>')
        for hour in range(24):
            n = counts.get((day, hour), 0)
            x, width = hour * 100 / 24, 100 / 24 - 0.3
            place = f'x="{x:.4g}%" y="{y}" width="{width:.4g}%" height="{_CELL - 2}" rx="2"'
            shade = f' fill-opacity="{0.15 + 0.85 * n / most:.2f}"' if n else ""
            says = f"{name} {hour:02}:00: {n:,} {unit}"
            parts.append(
                f'<rect class="{"plot-1" if n else "plot-none"}" {place}{shade}><title>{says}</title></rect>'
            )
    bottom = _TOP + 7 * _CELL
    for hour in (0, 6, 12, 18, 24):
        kind = {0: " plot-first", 24: " plot-last"}.get(hour, "")
        x, y = hour * 100 / 24, bottom + 14
        parts.append(f'<text class="plot-tick{kind}" x="{x:g}%" y="{y}">{hour:02}:00</text>')
    return _svg(id, title, description, bottom + _BOTTOM, parts)


def small_bars(values: Sequence[int]) -> Markup:
    """Bars in the height of a line of text, for a row of a table that has the number beside it: no image for
    screen readers. Each has a scale of its own, from zero."""
    most = max(values, default=0) or 1
    columns = "".join(
        f"M{number} 20v-{max(20 * value / most, 1):.3g}h.8v{max(20 * value / most, 1):.3g}z"
        for number, value in enumerate(values)
        if value
    )
    return Markup(
        '<svg class="plot-small" viewBox="0 0 {} 20" preserveAspectRatio="none" aria-hidden="true"'
        ' focusable="false"><path class="plot-1" d="{}"/></svg>'
    ).format(max(len(values), 1), columns)


def scale_top(most: int) -> int:
    """The end of a scale for values up to `most`: the next round number."""
    step = _step(most)
    return max(-(-most // step) * step, step)


def scale(top: int) -> list[int]:
    """Round numbers from zero to the end of a scale."""
    return list(range(0, top + 1, _step(top)))


def _step(most: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... with at most five steps up to `most`."""
    for power in count():
        for digit in (1, 2, 5):
            if most <= 5 * digit * 10**power:
                return int(digit * 10**power)
    raise AssertionError


def _y(value: float, top: int) -> float:
    return round(_TOP + _HEIGHT * (1 - value / top), 1)


def _rect(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:.4g}%" y="{y:.4g}" width="{width:.4g}%" height="{height:.4g}"/>'


def _svg(id: str, title: str, description: str, height: int, parts: Sequence[str]) -> Markup:
    head = Markup(
        '<svg class="plot" width="100%" height="{height}" role="img" aria-labelledby="{id}-title {id}-desc">'
        '<title id="{id}-title">{title}</title><desc id="{id}-desc">{description}</desc>'
    ).format(id=id, title=title, description=description, height=height)
    return head + Markup("".join(parts)) + Markup("</svg>")
