"""Real rule sets: those of bench/rules, and the table of prices."""

import unittest
from typing import Any, cast

from tarsier_bench.benchmarks import samples
from tarsier_bench.benchmarks.samples import prices
from tarsier_bench.results import CellResult
from tarsier_bench.rules import own_rules, select_nobody


class Rules(unittest.TestCase):
    def test_each_of_a_set_has_a_key_and_can_be_made_to_select_nobody(self) -> None:
        for name in samples.OWN_SETS.values():
            for rule, changed in zip(own_rules(name), select_nobody(own_rules(name)), strict=True):
                self.assertIn(" -k ", rule)
                self.assertTrue(changed.endswith(" -F uid=4000000"), changed)


class Prices(unittest.TestCase):
    def test_open_and_close_are_one_probe(self) -> None:
        calls: dict[str, float] = {"getppid": 74, "stat": 195, "open": 195, "close": 74}
        predicted: dict[str, Any] = {
            "calls": [{"name": name, "arch": "x86_64", "ns": ns} for name, ns in calls.items()]
        }
        ns = prices.probes_ns(predicted)
        self.assertEqual(ns, {"null": 74, "stat": 195, "open+close": 269})

    def test_predicted_and_measured_stand_beside_each_other(self) -> None:
        def cell(side: str, ns: float) -> CellResult:
            probes = {probe: {"min": ns, "median": ns} for probe in prices.PROBES}
            return cast(CellResult, {"side": side, "set": "X", "form": "as it is", "ns": probes})

        price: prices.Price = {
            "named": 97,
            "share": 0.048,
            "ns": {"null": 74, "stat": 195, "open+close": 269},
        }
        rows = [cell("native", 100), cell("kernel", 400), cell("tarsier", 170)]
        added = ["+74", "+70", "+300", "+195", "+70", "+300", "+269", "+70", "+300"]
        expected = " | ".join(["| X rules", "97", "4.8 %", *added]) + " |\n"
        self.assertTrue(prices.price_table(rows, {"X": price}).endswith(expected))


if __name__ == "__main__":
    unittest.main()
