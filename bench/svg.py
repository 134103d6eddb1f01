"""Line and bar charts as SVG text: axes, labels, a legend, and nothing else."""
import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP = 64, 16, 52
LEGEND_ROW, LEGEND_COLUMNS = 18, 2
# Told apart by readers who see colours differently (Okabe and Ito's palette).
COLOURS = ["#555555", "#d55e00", "#e69f00", "#0072b2", "#56b4e9", "#009e73", "#cc79a7", "#000000"]


def nice_step(top, ticks=6):
    """The smallest of 1, 2, 5 times a power of ten that divides 0…top into at most `ticks` parts."""
    raw = max(top, 1e-9) / ticks
    power = 10 ** math.floor(math.log10(raw))
    return next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999999)


class Chart:
    """A frame with evenly spaced categories along x and a scale from zero along y."""

    def __init__(self, title, subtitle, categories, x_label, y_label, names, top):
        self.categories, self.names = categories, names
        legend = math.ceil(len(names) / LEGEND_COLUMNS) * LEGEND_ROW
        self.bottom = HEIGHT - 48
        self.step = nice_step(top)
        self.top = max(1, math.ceil(top / self.step - 1e-9)) * self.step
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + legend}" '
            f'width="{WIDTH}" height="{HEIGHT + legend}" font-family="sans-serif" font-size="12">',
            '<rect width="100%" height="100%" fill="#ffffff"/>']
        self.text(LEFT, 20, title, size=15, weight="bold")
        self.text(LEFT, 38, subtitle, fill="#555555", size=11)
        self.axes(x_label, y_label)
        self.legend()

    def text(self, x, y, content, anchor="start", fill="#222222", size=12, weight="normal", turn=None):
        turned = f' transform="rotate({turn} {x:.1f} {y:.1f})"' if turn else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{fill}" font-size="{size}" '
                          f'font-weight="{weight}"{turned}>{escape(content)}</text>')

    def line(self, x1, y1, x2, y2, colour):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>')

    def slot(self):
        return (WIDTH - LEFT - RIGHT) / len(self.categories)

    def x(self, index):
        return LEFT + self.slot() * (index + 0.5)

    def y(self, value):
        return self.bottom - (self.bottom - TOP) * value / self.top

    def axes(self, x_label, y_label):
        for i in range(round(self.top / self.step) + 1):
            value = i * self.step
            self.line(LEFT, self.y(value), WIDTH - RIGHT, self.y(value), "#888888" if i == 0 else "#e4e4e4")
            self.text(LEFT - 6, self.y(value) + 4, f"{value:g}", anchor="end")
        for i, category in enumerate(self.categories):
            self.text(self.x(i), self.bottom + 17, category, anchor="middle")
        self.text((LEFT + WIDTH - RIGHT) / 2, self.bottom + 36, x_label, anchor="middle", fill="#555555")
        self.text(16, (TOP + self.bottom) / 2, y_label, anchor="middle", fill="#555555", turn=-90)

    def legend(self):
        for i, name in enumerate(self.names):
            x = LEFT + i % LEGEND_COLUMNS * (WIDTH - LEFT) / LEGEND_COLUMNS
            y = HEIGHT + i // LEGEND_COLUMNS * LEGEND_ROW
            self.parts.append(f'<rect x="{x:.1f}" y="{y - 9}" width="14" height="9" fill="{colour(i)}"/>')
            self.text(x + 20, y, name)

    def done(self):
        return "\n".join([*self.parts, "</svg>"]) + "\n"


def colour(index):
    return COLOURS[index % len(COLOURS)]


def highest(series):
    return max(value for _, values in series for value in values if value is not None)


def line_chart(title, subtitle, categories, series, x_label, y_label):
    """`series`: (name, a value or None per category); None leaves no point, and the line passes over it."""
    chart = Chart(title, subtitle, categories, x_label, y_label, [name for name, _ in series], highest(series))
    for i, (_, values) in enumerate(series):
        points = [(chart.x(j), chart.y(value)) for j, value in enumerate(values) if value is not None]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        chart.parts.append(f'<polyline points="{path}" fill="none" stroke="{colour(i)}" stroke-width="2"/>')
        chart.parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour(i)}"/>' for x, y in points]
    return chart.done()


def bar_chart(title, subtitle, categories, series, x_label, y_label):
    """`series`: (name, a value or None per category); the bars of a category stand side by side.
    Values below zero are noise around nothing, and drawn as zero."""
    chart = Chart(title, subtitle, categories, x_label, y_label, [name for name, _ in series], highest(series))
    width = chart.slot() * 0.8 / len(series)
    for i, (_, values) in enumerate(series):
        for j, value in enumerate(values):
            if value is None:
                continue
            x, y = chart.x(j) + (i - len(series) / 2) * width, chart.y(max(value, 0))
            chart.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width * 0.92:.1f}" '
                               f'height="{chart.bottom - y:.1f}" fill="{colour(i)}"/>')
            chart.text(x + width * 0.46, y - 3, f"{round(value)}", anchor="middle", size=10)
    return chart.done()
