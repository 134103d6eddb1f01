"""Results: the files in bench/results match their JSON, and rows are found again."""

import unittest
from typing import cast

from tarsier_bench import cli, results
from tarsier_bench.environment import BENCH, BenchError
from tarsier_bench.results import CellResult

COMMITTED = sorted((BENCH / "results").glob("*.json"))


def row(side: str, label: str, **facts: object) -> CellResult:
    """A row without measurements."""
    ns = {"null": {"min": float(len(label)), "median": 0.0}}
    return cast(
        CellResult, {"side": side, "label": label, **facts, "rules": 0, "loaded": None, "ns": ns}
    )


class Committed(unittest.TestCase):
    """Compares the results in the tree byte for byte."""

    def test_every_benchmark_has_results(self) -> None:
        self.assertEqual({path.stem.split("-")[0] for path in COMMITTED}, set(cli.BENCHMARKS))

    def test_json_is_written_as_it_is_read(self) -> None:
        for path in COMMITTED:
            with self.subTest(path=path.name):
                self.assertEqual(results.as_json(results.read(path)), path.read_text())

    def test_tables_and_plots_are_those_of_the_json(self) -> None:
        for path in COMMITTED:
            with self.subTest(path=path.name):
                benchmark = cli.BENCHMARKS[path.stem.split("-")[0]]
                report = benchmark.report(results.read(path), path.stem)
                self.assertEqual(report.text, path.with_suffix(".md").read_text())
                self.assertEqual(report.plot, path.with_suffix(".svg").read_text())


class Rows(unittest.TestCase):
    ROWS = (
        row("native", "n"),
        row("kernel", "kk", count=1, watched=False),
        row("kernel", "kkk", count=1, watched=True),
        row("tarsier", "tttt", count=10, watched=True),
    )

    def test_native(self) -> None:
        self.assertEqual(results.require_native(self.ROWS)["null"]["min"], 1)
        self.assertIsNone(results.native_of(self.ROWS[1:]))
        with self.assertRaisesRegex(BenchError, "no native row"):
            results.require_native(self.ROWS[1:])

    def test_a_plot_wants_all_sides(self) -> None:
        self.assertTrue(results.has_all_sides(self.ROWS))
        self.assertFalse(results.has_all_sides(self.ROWS[:3]))

    def test_a_series_has_none_where_no_row_matches(self) -> None:
        found = results.minima_along(self.ROWS, "kernel", [1, 10], "count", watched=True)
        self.assertEqual(found, [3, None])
        found = results.minima_along(self.ROWS, "tarsier", [1, 10], "count", watched=True)
        self.assertEqual(found, [None, 4])


class Text(unittest.TestCase):
    def test_machine_and_rounds(self) -> None:
        machine = {"cpu": "AMD EPYC", "cpus": 2, "kernel": "6.18.4", "arch": "x86_64"}
        record = {"machine": machine, "date": "2026-11-21", "rounds": 4}
        self.assertEqual(
            results.machine_line(record),
            "AMD EPYC, 2 CPUs, Linux 6.18.4, 2026-11-21, 4 interleaved rounds.",
        )


if __name__ == "__main__":
    unittest.main()
