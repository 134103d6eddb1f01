"""Line and bar charts as SVG text: axes, labels, a legend, and nothing else."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP = 64, 16, 52
BOTTOM = HEIGHT - 48
LEGEND_ROW, LEGEND_COLUMNS = 18, 2
# Distinguishable by colour-blind readers (Okabe and Ito's palette).
COLOURS = ["#555555", "#d55e00", "#e69f00", "#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#000000"]


@dataclass(frozen=True)
class Series:
    """One line, or the bars of one colour: a value per category; None gives no point or bar.

    `within_noise`: indices of values that are drawn pale and without a figure.
    """

    name: str
    values: Sequence[float | None]
    within_noise: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Text:
    """The style of a piece of text. `turn`: rotation in degrees."""

    anchor: str = "start"
    fill: str = "#222222"
    size: int = 12
    weight: str = "normal"
    turn: int | None = None


TITLE = Text(size=15, weight="bold")
SUBTITLE = Text(fill="#555555", size=11)
AXIS = Text(anchor="middle", fill="#555555")
UPRIGHT_AXIS = Text(anchor="middle", fill="#555555", turn=-90)
PLAIN, CENTRED, TO_THE_LEFT = Text(), Text(anchor="middle"), Text(anchor="end")
FIGURE = Text(anchor="middle", size=10)


def nice_step(top: float, ticks: int = 6) -> float:
    """The smallest step of 1, 2 or 5 times a power of ten with at most `ticks` steps up to `top`.

    A `top` of zero or below is treated as a very small one.
    """
    raw = max(top, 1e-9) / ticks
    power: float = 10 ** math.floor(math.log10(raw))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999999)


def colour(index: int) -> str:
    """The colour of a series; after the last colour they repeat."""
    return COLOURS[index % len(COLOURS)]


class Chart:
    """A chart with evenly spaced categories along x and a scale from zero along y."""

    def __init__(
        self,
        title: str,
        subtitle: str,
        categories: Sequence[str],
        series: Sequence[Series],
        labels: tuple[str, str],
    ) -> None:
        """`labels`: the labels of the x and y axes."""
        self.categories, self.names = categories, [one.name for one in series]
        top = max((v for one in series for v in one.values if v is not None), default=0)
        self.step = nice_step(top)
        self.top = max(1, math.ceil(top / self.step - 1e-9)) * self.step
        height = HEIGHT + math.ceil(len(series) / LEGEND_COLUMNS) * LEGEND_ROW
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
            '<rect width="100%" height="100%" fill="#ffffff"/>',
        ]
        self.text(LEFT, 20, title, TITLE)
        self.text(LEFT, 38, subtitle, SUBTITLE)
        self.axes(*labels)
        self.legend()

    def text(self, x: float, y: float, content: str, look: Text = PLAIN) -> None:
        """Adds text with its anchor at (x, y), in pixels from the upper left."""
        turned = f' transform="rotate({look.turn} {x:.1f} {y:.1f})"' if look.turn else ""
        self.parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{look.anchor}" fill="{look.fill}" '
            f'font-size="{look.size}" font-weight="{look.weight}"{turned}>{escape(content)}</text>'
        )

    def level(self, y: float, stroke: str) -> None:
        """Adds a line from the left to the right."""
        self.parts.append(
            f'<line x1="{LEFT:.1f}" y1="{y:.1f}" x2="{WIDTH - RIGHT:.1f}" y2="{y:.1f}" '
            f'stroke="{stroke}"/>'
        )

    def slot(self) -> float:
        """Width of a category, in pixels."""
        return (WIDTH - LEFT - RIGHT) / len(self.categories)

    def x(self, index: int) -> float:
        """Middle of a category, in pixels from the left."""
        return LEFT + self.slot() * (index + 0.5)

    def y(self, value: float) -> float:
        """Position of a value, in pixels from above."""
        return BOTTOM - (BOTTOM - TOP) * value / self.top

    def axes(self, x_label: str, y_label: str) -> None:
        """Adds the scale, the categories and the labels of both axes."""
        for i in range(round(self.top / self.step) + 1):
            value = i * self.step
            self.level(self.y(value), "#888888" if i == 0 else "#e4e4e4")
            self.text(LEFT - 6, self.y(value) + 4, f"{value:.10g}", TO_THE_LEFT)
        for i, category in enumerate(self.categories):
            self.text(self.x(i), BOTTOM + 17, category, CENTRED)
        self.text((LEFT + WIDTH - RIGHT) / 2, BOTTOM + 36, x_label, AXIS)
        self.text(16, (TOP + BOTTOM) / 2, y_label, UPRIGHT_AXIS)

    def legend(self) -> None:
        """Adds the names of the series."""
        for i, name in enumerate(self.names):
            x = LEFT + i % LEGEND_COLUMNS * (WIDTH - LEFT) / LEGEND_COLUMNS
            y = HEIGHT + i // LEGEND_COLUMNS * LEGEND_ROW
            self.parts.append(
                f'<rect x="{x:.1f}" y="{y - 9}" width="14" height="9" fill="{colour(i)}"/>'
            )
            self.text(x + 20, y, name)

    def bar(self, left: float, width: float, value: float, fill: str, is_pale: bool) -> None:
        """Adds a bar with its figure above. A negative value has no height."""
        y = self.y(max(value, 0))
        pale = ' fill-opacity="0.35"' if is_pale else ""
        self.parts.append(
            f'<rect x="{left:.1f}" y="{y:.1f}" width="{width * 0.92:.1f}" '
            f'height="{BOTTOM - y:.1f}" fill="{fill}"{pale}/>'
        )
        if not is_pale:
            self.text(left + width * 0.46, y - 3, f"{round(value)}", FIGURE)

    def done(self) -> str:
        """The SVG file."""
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def line_chart(
    title: str,
    subtitle: str,
    categories: Sequence[str],
    series: Sequence[Series],
    labels: tuple[str, str],
) -> str:
    """A chart with a line per series. Lines skip categories without a value."""
    chart = Chart(title, subtitle, categories, series, labels)
    for i, one in enumerate(series):
        values = enumerate(one.values)
        points = [(chart.x(j), chart.y(value)) for j, value in values if value is not None]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        chart.parts.append(
            f'<polyline points="{path}" fill="none" stroke="{colour(i)}" stroke-width="2"/>'
        )
        chart.parts += [
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour(i)}"/>' for x, y in points
        ]
    return chart.done()


def bar_chart(
    title: str,
    subtitle: str,
    categories: Sequence[str],
    series: Sequence[Series],
    labels: tuple[str, str],
) -> str:
    """A bar chart; the bars of a category are side by side, those within noise are pale."""
    if any(one.within_noise for one in series):
        subtitle += " Pale: within noise."
    chart = Chart(title, subtitle, categories, series, labels)
    width = chart.slot() * 0.8 / len(series)
    for i, one in enumerate(series):
        for j, value in enumerate(one.values):
            if value is not None:
                left = chart.x(j) + (i - len(series) / 2) * width
                chart.bar(left, width, value, colour(i), j in one.within_noise)
    return chart.done()
