"""Whole workloads: what sides add, and when that is within noise."""

import unittest

from tarsier_bench.benchmarks.workloads.reporting import Comparison, count, plot, said_lost, table
from tarsier_bench.benchmarks.workloads.tally import SideResult, Tally


def side(label: str, *elapsed: int, dropped: int = 0) -> SideResult:
    """A side whose runs of `pipe` took that long; the processor took a tenth less."""
    tally = Tally(label, label)
    for ns in elapsed:
        tally.add("pipe", 7, ns, ns - ns // 10, ns // 100, 3, dropped)
    return tally.result()


def comparison(*audited: int) -> Comparison:
    """Two native sides with 100 µs and 102 µs, and an audited side, in six runs each.

    The spread of native's runs is 4 µs, from 100 to their median of 104.
    """
    native = side("native", 100_000, 102_000, 103_000, 105_000, 106_000, 300_000)
    again = side("native again", 102_000, 103_000, 104_000, 104_000, 105_000, 106_000)
    return Comparison([native, again, side("kernel audit", *audited)], 6)


class Tallies(unittest.TestCase):
    def test_minimum_median_maximum(self) -> None:
        load = side("native", 300, 100, 200, 1000)["loads"]["pipe"]
        self.assertEqual(load["amount"], 7)
        self.assertEqual(load["elapsed_ns"], {"min": 100, "median": 250, "max": 1000})
        self.assertEqual(load["events"], {"min": 3, "median": 3, "max": 3})

    def test_a_number_too_few_is_refused(self) -> None:
        with self.assertRaisesRegex(ValueError, "expected 6 numbers, got 2"):
            Tally("native", "native").add("pipe", 1, 2)


class Added(unittest.TestCase):
    def said(self, sides: Comparison) -> str:
        return sides.said(sides.audited[0], "pipe", "elapsed_ns")

    def test_more_than_the_spread_is_a_figure(self) -> None:
        self.assertEqual(self.said(comparison(*[130_000] * 6)), "+30.0 %")
        self.assertEqual(self.said(comparison(*[105_000] * 6)), "+5.0 %")

    def test_less_than_the_spread_of_native_is_noise(self) -> None:
        self.assertEqual(self.said(comparison(*[104_000] * 6)), "within noise")
        self.assertEqual(self.said(comparison(*[96_000] * 6)), "within noise")

    def test_less_than_the_spread_of_the_side_is_noise(self) -> None:
        wide = (110_000, 111_000, 119_000, 123_000, 124_000, 125_000)
        self.assertEqual(self.said(comparison(*wide)), "within noise")

    def test_less_than_native_adds_to_itself_is_noise(self) -> None:
        sides = [side("native", 100), side("native again", 93), side("Tarsier", 107)]
        self.assertEqual(self.said(Comparison(sides, 1)), "within noise")
        sides[2] = side("Tarsier", 108)
        self.assertEqual(self.said(Comparison(sides, 1)), "+8.0 %")


class Tables(unittest.TestCase):
    def test_a_row(self) -> None:
        found = table(comparison(*[130_000] * 6), "ms").splitlines()
        self.assertEqual(
            found[0],
            "| workload | native, ms | native again: time | kernel audit: time | CPU | logger "
            "| events |",
        )
        # 1300 ns of the logger are 1.4 % of native's 90 µs.
        self.assertEqual(
            found[2],
            "| pipe throughput, 512 bytes | 0.1 | +2.0 % | +30.0 % | +30.0 % | 1.4 % | 3 |",
        )

    def test_only_tarsier_has_candidates(self) -> None:
        sides = [side("native", 100), side("native again", 100), side("Tarsier", 300, dropped=9)]
        found = table(Comparison(sides, 1), "ms").splitlines()
        self.assertTrue(found[0].endswith("| candidates | events |"))
        self.assertTrue(found[2].endswith("| 9 | 3 |"))

    def test_a_count_is_one_number_if_all_runs_agree(self) -> None:
        self.assertEqual(count({"min": 6422, "median": 6422, "max": 6422}), "6,422")
        self.assertEqual(count({"min": 1, "median": 1, "max": 1025}), "1-1,025")

    def test_what_was_lost_is_said(self) -> None:
        results = [side("kernel audit", 1), side("Tarsier", 1)]
        self.assertEqual(said_lost(results), "none was lost.")
        results[0]["lost"] = 1234
        self.assertEqual(said_lost(results), "lost in all: kernel audit 1,234, Tarsier 0.")

    def test_a_bar_within_noise_is_pale(self) -> None:
        self.assertIn("fill-opacity", plot(comparison(*[104_000] * 6), "elapsed_ns", "", "%"))
        self.assertNotIn("fill-opacity", plot(comparison(*[130_000] * 6), "elapsed_ns", "", "%"))


if __name__ == "__main__":
    unittest.main()
