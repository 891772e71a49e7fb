"""SVG figures. Positions are percentages, so that a figure grows with the page while its text does not."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stillvec.report.html_markup import Html, element
from stillvec.report.html_tables import number

COLOURS = 8  # defined in colours.css; later sets are grey


def colour(place: int) -> str:
    """The CSS class of the set at a rank."""
    return f"c{place + 1}" if place < COLOURS else "c0"


@dataclass(frozen=True)
class Scale:
    """From values to percent of the width."""

    low: float
    high: float

    @classmethod
    def around(cls, values: Iterable[float]) -> Scale:
        """The smallest scale between round numbers that contains all finite values."""
        finite = [value for value in values if math.isfinite(value)]
        if not finite:
            return cls(0.0, 1.0)
        low, high = min(finite), max(finite)
        step = _step(high - low)
        low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        return cls(low, high if high > low else low + step)

    def __call__(self, value: float) -> float:
        return 100 * (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[float]:
        step = _step(self.high - self.low)
        first = math.ceil(self.low / step - 1e-9)
        return [step * at for at in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _step(span: float) -> float:
    """The step 1, 2 or 5 times a power of ten that gives about five ticks."""
    if not span > 0:
        return 0.05
    power: float = 10.0 ** math.floor(math.log10(span / 4))
    return next(power * digit for digit in (1, 2, 5, 10) if span / (power * digit) <= 5.001)


def percent(value: float) -> str:
    return f"{value:.2f}%"


def svg(*children: object, label: str | None, height: int, classes: str = "") -> Html:
    """A figure of full width; without a label it is hidden from screen readers."""
    aria = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    return element("svg", *children, width="100%", height=height, class_=f"figure {classes}".strip(), **aria)


def whisker(scale: Scale, value: float, low: float, high: float, classes: str) -> Html:
    """A dot at the value, a line from `low` to `high`."""
    parts = [rule(scale(tick), "zero" if abs(tick) < 1e-12 and scale.low < 0 else "rule") for tick in scale.ticks()]
    if math.isfinite(value):
        if math.isfinite(low) and math.isfinite(high):
            ends = {"x1": percent(scale(low)), "x2": percent(scale(high))}
            parts.append(element("line", **ends, y1="50%", y2="50%", class_=f"whisker {classes}"))
        title = element("title", f"{number(value)}, 95% {number(low)} to {number(high)}")
        parts.append(element("circle", title, cx=percent(scale(value)), cy="50%", r=4, class_=f"dot {classes}"))
    return svg(*parts, label=None, height=28, classes="strip")


def axis(scale: Scale, n_max: int = 6) -> Html:
    """The tick labels above a column of whiskers, at most `n_max` of them."""
    ticks = scale.ticks()
    labels = [
        element("text", number(tick, 0), x=percent(scale(tick)), y=14, class_="tick", text_anchor="middle")
        for tick in ticks[:: math.ceil(len(ticks) / n_max)]
    ]
    return svg(*labels, label=None, height=20, classes="strip")


@dataclass(frozen=True)
class Line:
    """A line of a chart: points with their intervals; y is a score."""

    name: str
    classes: str
    points: Sequence[tuple[float, float, float, float]]  # x in percent, value, low, high


def line_chart(lines: Sequence[Line], ticks: Sequence[tuple[float, str]], label: str) -> Html:
    """Lines over positions labelled by `ticks` (percent, text); whiskers are intervals."""
    scale = Scale.around(value for line in lines for point in line.points for value in point[1:])
    rules, labels = [], []
    for tick in scale.ticks():
        y = percent(100 - scale(tick))
        rules.append(element("line", x1="0%", x2="100%", y1=y, y2=y, class_="rule"))
        labels.append(element("text", number(tick, 0), x=-10, y=y, dy="0.35em", class_="tick", text_anchor="end"))
    tick_style = {"y": "100%", "dy": 22, "class_": "tick", "text_anchor": "middle"}
    below = [element("text", text, x=percent(x), **tick_style) for x, text in ticks]
    curves = [part for line in reversed(lines) for part in _line(line, scale)]
    inside = element("svg", *rules, *labels, *below, *curves, width="100%", height=240, y=12, overflow="visible")
    return element("div", svg(inside, label=label, height=284), class_="plot")


def _line(line: Line, scale: Scale) -> list[Html]:
    finite = [point for point in line.points if math.isfinite(point[1])]
    places = [(percent(x), *(percent(100 - scale(y)) for y in rest)) for x, *rest in finite]
    style = f"line {line.classes}"
    parts = [element("line", x1=a[0], y1=a[1], x2=b[0], y2=b[1], class_=style) for a, b in pairwise(places)]
    for (x, y, low, high), point in zip(places, finite, strict=True):
        if math.isfinite(point[2]) and math.isfinite(point[3]):
            parts.append(element("line", x1=x, x2=x, y1=low, y2=high, class_=f"whisker thin {line.classes}"))
        title = element("title", f"{line.name}: {number(point[1])}, 95% {number(point[2])} to {number(point[3])}")
        parts.append(element("circle", title, cx=x, cy=y, r=4, class_=f"dot {line.classes}"))
    return parts


def scatter(points: Sequence[tuple[float, float, str]], label: str) -> Html:
    """Dots at two scores, both axes alike, with the diagonal; the text of a dot is shown on pointing at it."""
    scale = Scale.around(value for *both, _ in points for value in both)
    rules = [element("line", x1="0%", x2="100%", y1="100%", y2="0%", class_="rule")]
    for tick in scale.ticks():
        at, across = percent(scale(tick)), percent(100 - scale(tick))
        rules.append(element("line", x1="0%", x2="100%", y1=across, y2=across, class_="rule"))
        rules.append(element("text", number(tick, 0), x=-10, y=across, dy="0.35em", class_="tick", text_anchor="end"))
        rules.append(element("text", number(tick, 0), x=at, y="100%", dy=22, class_="tick", text_anchor="middle"))
    dots = []
    for x, y, text in points:
        if math.isfinite(x) and math.isfinite(y):
            title = element("title", f"{text}: {number(x)}, {number(y)}")
            place = {"cx": percent(scale(x)), "cy": percent(100 - scale(y))}
            dots.append(element("circle", title, **place, r=4, class_=f"dot {colour(0)}"))
    inside = element("svg", *rules, *dots, width="100%", height=240, y=12, overflow="visible")
    return element("div", svg(inside, label=label, height=284), class_="plot square")


def rule(x: float, classes: str) -> Html:
    """A vertical line."""
    return element("line", x1=percent(x), x2=percent(x), y1="0%", y2="100%", class_=classes)
