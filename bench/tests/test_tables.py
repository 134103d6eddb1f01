"""Tables, with their cells for native and for noise."""

import unittest
from typing import cast

from tarsier_bench import tables
from tarsier_bench.results import CellResult
from tarsier_bench.stats import Timing


def row(side: str, label: str, *columns: tuple[float, float | None]) -> CellResult:
    """A row with a minimum and a spread for each of the probes a, b, …"""
    ns = {}
    for probe, (low, spread) in zip("abc", columns, strict=False):
        ns[probe] = {"min": low, "median": low, **({} if spread is None else {"spread": spread})}
    return cast(CellResult, {"side": side, "label": label, "rules": 0, "loaded": None, "ns": ns})


class Markdown(unittest.TestCase):
    def test_text_on_the_left_numbers_on_the_right(self) -> None:
        self.assertEqual(
            tables.markdown(["what", "ns", "µs"], [["one", "1", "2"], ["two", "3", ""]]),
            "| what | ns | µs |\n|---|---:|---:|\n| one | 1 | 2 |\n| two | 3 |  |\n",
        )


class Figures(unittest.TestCase):
    def test_percent_has_a_sign_and_zero_has_plus(self) -> None:
        self.assertEqual(tables.signed_percent(176.54), "+176.5 %")
        self.assertEqual(tables.signed_percent(-2.66), "-2.7 %")
        self.assertEqual(tables.signed_percent(-0.04), "+0.0 %")

    def test_added_ns_are_whole(self) -> None:
        native: Timing = {"min": 135.0, "median": 140.0}
        self.assertEqual(tables.added_ns({"min": 174.4, "median": 0}, native), "+39")
        self.assertEqual(tables.added_ns({"min": 131.9, "median": 0}, native), "-3")
        self.assertEqual(tables.added_ns({"min": 134.9, "median": 0}, native), "+0")


class LatencyTable(unittest.TestCase):
    def test_each_row_is_compared_with_native(self) -> None:
        results = [
            row("native", "native", (135.0, 3.0), (950.2, 40.0)),
            row("kernel", "kernel audit", (341.2, 5.0), (1711.4, 80.0)),
            row("tarsier", "Tarsier", (137.0, 2.0), (960.0, 10.0)),
        ]
        self.assertEqual(
            tables.latency_table(results, ["a", "b"]),
            "| ns per call | a | b |\n|---|---:|---:|\n"
            "| native | 135 | 950 |\n"
            "| kernel audit | 341 (+206) | 1711 (+761) |\n"
            "| Tarsier | 137 (within noise) | 960 (within noise) |\n",
        )

    def test_without_rounds_to_compare_the_figure_stands(self) -> None:
        results = [row("native", "native", (135.0, None)), row("tarsier", "T", (132.0, None))]
        self.assertIn("| T | 132 (-3) |", tables.latency_table(results, ["a"]))

    def test_without_native_there_is_nothing_to_compare_with(self) -> None:
        table = tables.latency_table([row("kernel", "kernel audit", (341.2, 1.0))], ["a"], "ns")
        self.assertEqual(table, "| ns | a |\n|---|---:|\n| kernel audit | 341 |\n")


if __name__ == "__main__":
    unittest.main()
