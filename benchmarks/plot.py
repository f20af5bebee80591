"""Lines over time as an SVG: a panel a quantity, with no library.

What is measured, and when, is the caller's.
"""

from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 800, 190, 70, 210, 34, 26
_COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#8c564b", "#17becf", "#7f7f7f")

Series = Mapping[str, Sequence[float]]


def svg(title: str, times: Sequence[float], panels: Mapping[str, Series], *, unit: str = "min") -> str:
    """A drawing of all panels, one below the other. `times` are in `unit`; each series has a value a time."""
    height = 40 + _HEIGHT * len(panels)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}"'
        f' height="{height}" font-family="sans-serif" font-size="11" fill="#333">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
        f'<text x="12" y="22" font-size="15">{escape(title)}</text>',
    ]
    for number, (name, series) in enumerate(panels.items()):
        parts += _panel(name, times, series, top=40 + number * _HEIGHT, unit=unit)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(name: str, times: Sequence[float], series: Series, *, top: int, unit: str) -> list[str]:
    most = max((value for values in series.values() for value in values), default=1.0) or 1.0
    last = max(times, default=1.0) or 1.0
    width, height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    bottom = top + _TOP + height

    def at(time: float, value: float) -> str:
        return f"{_LEFT + width * time / last:.1f},{bottom - height * value / (most * 1.05):.1f}"

    parts = [f'<text x="12" y="{top + 20}" font-weight="bold">{escape(name)}</text>']
    for share in (0.0, 0.5, 1.0):
        y = bottom - height * share / 1.05
        parts.append(f'<line x1="{_LEFT}" x2="{_LEFT + width}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{most * share:,.4g}</text>')
        x = _LEFT + width * share
        text = f"{last * share:.0f} {unit}"
        parts.append(f'<text x="{x:.1f}" y="{bottom + 15}" text-anchor="middle">{text}</text>')
    for number, (label, values) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        points = " ".join(at(time, value) for time, value in zip(times, values, strict=True))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        y = top + _TOP + 12 + 15 * number
        parts.append(f'<text x="{_LEFT + width + 10}" y="{y}" fill="{colour}">{escape(label)}</text>')
    return parts
