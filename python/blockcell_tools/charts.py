"""Charts as SVG, written by hand: no package is needed, and the same numbers make the same text."""

import html
from typing import Any, Dict, NamedTuple, Optional, Sequence, Tuple

WIDTH, LEFT, RIGHT = 760, 290, 100
"""Of a chart, of the names at its left, and of the room for numbers at its right."""
BAR, GAP, TOP = 15, 12, 28
COLORS = ("#8a8f98", "#d9822b", "#3b6fb6", "#3a9a6b")
_FONT = 'font-family="system-ui, sans-serif" font-size="12"'


class Bar(NamedTuple):
    """A bar."""

    value: float
    text: str
    """What stands at its end."""
    spread: Optional[Tuple[float, float]] = None
    """Quartiles, drawn as a line."""


def _element(name: str, text: str = "", **attributes: Any) -> str:
    pairs = " ".join(f'{key.replace("_", "-")}="{value}"' for key, value in attributes.items())
    return f"<{name} {pairs}>{text}</{name}>" if text else f"<{name} {pairs}/>"


def _label(x: float, y: float, text: str, anchor: str = "start") -> str:
    escaped = html.escape(text)
    return _element("text", escaped, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor)


def bars(
    groups: Sequence[Tuple[str, Sequence[Bar]]],
    names: Sequence[str],
    mark: Optional[float] = None,
) -> str:
    """Horizontal bars, those of a group one below the other.

    Args:
      groups: The name of each group, and its bars.
      names: What the bars of a group are, in their order.
      mark: A value at which a vertical line stands.
    """
    most = max([(bar.spread or (0.0, bar.value))[1] for _, some in groups for bar in some] + [1e-9])
    most = max(most, max((bar.value for _, some in groups for bar in some), default=0.0))
    scale = (WIDTH - LEFT - RIGHT) / most
    parts, y = [], TOP
    for group, some in groups:
        parts.append(_label(LEFT - 8, y + len(some) * BAR / 2 + 4, group, "end"))
        for number, bar in enumerate(some):
            parts += _bar(bar, y, scale, COLORS[number % len(COLORS)])
            y += BAR
        y += GAP
    if mark is not None:
        x = f"{LEFT + mark * scale:.1f}"
        line = {"stroke": "#222", "stroke-dasharray": "3 3"}
        parts.append(_element("line", x1=x, x2=x, y1=TOP - 4, y2=y - GAP + 4, **line))
    return _picture([*_legend(names), *parts], y)


def _bar(bar: Bar, y: float, scale: float, color: str) -> Sequence[str]:
    parts = [
        _element("rect", x=LEFT, y=y, width=f"{bar.value * scale:.1f}", height=BAR - 2, fill=color)
    ]
    end = bar.value
    if bar.spread is not None:
        low, high = bar.spread
        end, middle = max(end, high), y + (BAR - 2) / 2
        ends = {"x1": f"{LEFT + low * scale:.1f}", "x2": f"{LEFT + high * scale:.1f}"}
        parts.append(_element("line", **ends, y1=middle, y2=middle, stroke="#222"))
    return [*parts, _label(LEFT + end * scale + 5, y + BAR - 4, bar.text)]


def lines(title: str, series: Sequence[Tuple[str, Sequence[float]]]) -> str:
    """Curves of numbers over their places."""
    height, finite = 200, [n for _, numbers in series for n in numbers if n - n == 0]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    span = (high - low) or 1.0
    parts = [_label(60, TOP + height + 16, title)]
    parts += [
        _label(55, TOP + 10, f"{high:.3g}", "end"),
        _label(55, TOP + height, f"{low:.3g}", "end"),
    ]
    for number, (_, numbers) in enumerate(series):
        step = (WIDTH - 80) / max(1, len(numbers) - 1)
        points = " ".join(
            f"{60 + place * step:.1f},{TOP + height * (1 - (n - low) / span):.1f}"
            for place, n in enumerate(numbers)
            if n - n == 0
        )
        style: Dict[str, Any] = {
            "fill": "none",
            "stroke": COLORS[number % len(COLORS)],
            "stroke_width": 1.5,
        }
        parts.append(_element("polyline", **style, points=points))
    return _picture([*_legend([name for name, _ in series]), *parts], TOP + height + 24)


def _legend(names: Sequence[str]) -> Sequence[str]:
    parts, x = [], LEFT
    for number, name in enumerate(names):
        parts.append(_element("rect", x=x, y=6, width=10, height=10, fill=COLORS[number]))
        parts.append(_label(x + 14, 15, name))
        x += 30 + 7 * len(name)
    return parts


def _picture(parts: Sequence[str], height: float) -> str:
    body = "\n".join(parts)
    box = f'viewBox="0 0 {WIDTH} {height:.0f}"'
    background = _element("rect", width=WIDTH, height=f"{height:.0f}", fill="white")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} width="{WIDTH}" height="{height:.0f}" '
        f"{_FONT}>\n{background}\n{body}\n</svg>\n"
    )
