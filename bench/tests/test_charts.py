"""Charts: their scale, and the positions of points and bars, computed by hand."""

import unittest
from collections.abc import Sequence
from xml.etree import ElementTree

from tarsier_bench import charts
from tarsier_bench.charts import Series

SVG = "{http://www.w3.org/2000/svg}"
# Height of the scale, whose lower end is at 372, and width, whose left end is at 64.
HEIGHT_PX, WIDTH_PX = 320, 680
LABELS = ("x", "y")


def parsed(text: str) -> ElementTree.Element:
    """The chart as XML."""
    return ElementTree.fromstring(text)


def texts(text: str) -> list[str]:
    """All texts in the chart, in order."""
    return [one.text or "" for one in parsed(text).iter(f"{SVG}text")]


def bars(text: str) -> list[ElementTree.Element]:
    """The bars, without the background and the legend."""
    found = parsed(text).iter(f"{SVG}rect")
    return [one for one in found if "y" in one.attrib and one.get("width") != "14"]


def bar_chart(*series: Series, categories: Sequence[str] = ("one", "two")) -> str:
    """A bar chart whose texts do not matter."""
    return charts.bar_chart("title", "machine.", categories, series, LABELS)


class Scale(unittest.TestCase):
    def test_steps_are_one_two_or_five(self) -> None:
        known = {6: 1, 7: 2, 12: 2, 13: 5, 30: 5, 31: 10, 600: 100, 601: 200, 0.6: 0.1}
        for top, step in known.items():
            with self.subTest(top=top):
                self.assertAlmostEqual(charts.nice_step(top), step)

    def test_a_scale_of_nothing_or_less_has_steps_too(self) -> None:
        self.assertGreater(charts.nice_step(0), 0)
        self.assertGreater(charts.nice_step(-5), 0)

    def test_millions_are_written_out(self) -> None:
        found = texts(bar_chart(Series("calls", [1_200_000, None])))
        self.assertIn("1000000", found)
        self.assertFalse([text for text in found if "e+" in text])

    def test_parts_of_one_have_no_rounding_error(self) -> None:
        found = texts(bar_chart(Series("a", [0.6, None])))
        self.assertEqual(found[2:9], ["0", "0.1", "0.2", "0.3", "0.4", "0.5", "0.6"])


class Bars(unittest.TestCase):
    def test_height_is_the_part_of_the_scale(self) -> None:
        # The scale ends at 10, in steps of 2.
        half, whole = bars(bar_chart(Series("a", [5, 10])))
        self.assertEqual(float(half.attrib["height"]), HEIGHT_PX / 2)
        self.assertEqual(float(whole.attrib["height"]), HEIGHT_PX)

    def test_bars_of_a_category_stand_around_its_middle(self) -> None:
        left, right = bars(bar_chart(Series("a", [1]), Series("b", [1]), categories=["one"]))
        # Two bars share four fifths of the slot.
        middle, width = 64 + WIDTH_PX / 2, WIDTH_PX * 0.8 / 2
        self.assertEqual(float(left.attrib["x"]), middle - width)
        self.assertEqual(float(right.attrib["x"]), middle)
        self.assertAlmostEqual(float(left.attrib["width"]), width * 0.92, places=1)

    def test_no_value_is_no_bar(self) -> None:
        self.assertEqual(len(bars(bar_chart(Series("a", [None, 3])))), 1)

    def test_below_zero_has_no_height(self) -> None:
        below, _ = bars(bar_chart(Series("a", [-4, 10])))
        self.assertEqual(float(below.attrib["height"]), 0)

    def test_within_noise_is_pale_and_has_no_figure(self) -> None:
        chart = bar_chart(Series("a", [7, 9], frozenset([0])))
        pale, full = bars(chart)
        self.assertEqual(pale.get("fill-opacity"), "0.35")
        self.assertIsNone(full.get("fill-opacity"))
        self.assertIn("machine. Pale: within noise.", texts(chart))
        self.assertEqual([text for text in texts(chart) if text in ("7", "9")], ["9"])

    def test_without_noise_nothing_is_said_of_it(self) -> None:
        self.assertIn("machine.", texts(bar_chart(Series("a", [7, 9]))))

    def test_all_bars_may_be_missing(self) -> None:
        self.assertEqual(bars(bar_chart(Series("a", [None, None]))), [])


class Lines(unittest.TestCase):
    def test_points_are_in_the_middle_of_their_slots(self) -> None:
        series = [Series("a", [0, None, 10])]
        chart = parsed(charts.line_chart("t", "s", ["0", "1", "2"], series, LABELS))
        line = chart.find(f"{SVG}polyline")
        assert line is not None
        # The slots are 680 / 3 wide; the line skips the missing second value.
        self.assertEqual(line.get("points"), "177.3,372.0 630.7,52.0")
        self.assertEqual(len(chart.findall(f"{SVG}circle")), 2)


class Legend(unittest.TestCase):
    def test_two_names_a_row_below_the_frame(self) -> None:
        series = [Series(name, [1, 1]) for name in ("a", "b", "c")]
        self.assertEqual(parsed(bar_chart(*series)).get("height"), str(420 + 2 * 18))

    def test_the_ninth_colour_is_the_first(self) -> None:
        self.assertEqual(charts.colour(8), charts.colour(0))
        self.assertEqual(len({charts.colour(i) for i in range(8)}), 8)

    def test_names_are_escaped(self) -> None:
        self.assertIn("a < b & c", texts(bar_chart(Series("a < b & c", [1, 1]))))


if __name__ == "__main__":
    unittest.main()
