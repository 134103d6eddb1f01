"""Cells: the order of rounds, the cells of each benchmark, and the summary of their visits."""

import unittest

from tarsier_bench import cells
from tarsier_bench.benchmarks import rings, seccomp, share, uids
from tarsier_bench.cells import Cell
from tarsier_bench.results import CellResult
from tarsier_bench.tables import PROBES


class Rounds(unittest.TestCase):
    def test_the_order_moves_on_by_one(self) -> None:
        self.assertEqual(cells.rotated("abc", 0), ["a", "b", "c"])
        self.assertEqual(cells.rotated("abc", 1), ["b", "c", "a"])
        self.assertEqual(cells.rotated("abc", 5), ["c", "a", "b"])

    def test_in_as_many_rounds_as_cells_each_is_everywhere_once(self) -> None:
        places = zip(*(cells.rotated(range(5), number) for number in range(5)), strict=True)
        self.assertTrue(all(set(place) == set(range(5)) for place in places))


class Results(unittest.TestCase):
    def test_a_row_has_its_columns_in_this_order(self) -> None:
        cell = Cell("kernel", "kernel audit, 2 rules", ["-a …", "-a …"], {"count": 2}, loaded=2)
        cell.add({"null": (341.0, 400.0)})
        cell.add({"null": (339.0, 410.0)})
        result = cell.result()
        self.assertEqual(list(result), ["side", "label", "count", "rules", "loaded", "ns"])
        self.assertEqual(result["ns"], {"null": {"min": 339.0, "median": 405.0, "spread": 2.0}})
        self.assertEqual((result["rules"], result["loaded"]), (2, 2))

    def test_cells_do_not_share_their_visits(self) -> None:
        one, other = Cell("native", "one"), Cell("native", "other")
        one.add({"null": (1.0, 1.0)})
        self.assertEqual(other.visits, {})


class Rows(unittest.TestCase):
    def test_labels_are_unique(self) -> None:
        for make in (uids.make_cells, share.make_cells, rings.make_cells):
            labels = [cell.label for cell in make()]
            self.assertEqual(len(labels), len(set(labels)))

    def test_ten_rules_and_a_twin_for_32_bit(self) -> None:
        counts = [len(cell.rules) for cell in share.make_cells()]
        self.assertEqual(counts, [0, 0, 10, 10, 0, 10, 10, 11, 11])


class Uids(unittest.TestCase):
    @staticmethod
    def cell(count: int, low: float, spread: float) -> Cell:
        """A cell whose rounds differ by `spread`."""
        cell = Cell("kernel", f"{count}", facts={"count": count})
        for value in (low, low + spread):
            cell.add(dict.fromkeys(PROBES, (value, value)))
        return cell

    def test_a_ratio_within_noise_is_called_that(self) -> None:
        one, same, more = (
            self.cell(1, 200, 10).result(),
            self.cell(100, 209, 1).result(),
            self.cell(100, 300, 1).result(),
        )
        self.assertEqual(uids.ratio(one, same, "null"), "within noise")
        self.assertEqual(uids.ratio(one, more, "null"), "1.50")
        self.assertIn("| kernel audit, 100 rules / 1 rule | 1.50 |", uids.ratios([one, more]))


class Shares(unittest.TestCase):
    @staticmethod
    def rows(extra_ns: float) -> list[CellResult]:
        """Native with 100 ns, and Tarsier with more, in rounds that differ by 4 ns."""
        found = []
        for side, low in (("native", 100.0), ("tarsier", 100.0 + extra_ns)):
            cell = Cell(side, side)
            for value in (low, low + 4):
                cell.add(dict.fromkeys(share.LOOPS, (value, value)))
            found.append(cell.result())
        share.add_shares(found)
        return found

    def test_a_fifth_of_the_time(self) -> None:
        rows = self.rows(25)
        self.assertEqual(rows[1]["percent_of_cpu"]["kill"], 20.0)
        self.assertIn("| 8000 | 8000 | 8000 | 20 | 20 | 20 |", share.table(rows))

    def test_within_noise_there_is_no_figure(self) -> None:
        rows = self.rows(-2)
        self.assertEqual(share.share(rows[1], rows, "kill"), "within noise")
        self.assertEqual(share.share(rows[0], rows, "kill"), "0")
        self.assertIn('fill-opacity="0.35"', share.plot(rows, ""))

    def test_without_native_there_are_no_shares(self) -> None:
        rows = self.rows(25)[1:]
        del rows[0]["percent_of_cpu"]
        share.add_shares(rows)
        self.assertIn("| 8000 | 8000 | 8000 |  |  |  |", share.table(rows))


class Seccomp(unittest.TestCase):
    def test_instructions_of_all_filters_are_counted(self) -> None:
        visits: list[cells.Visit] = [{"getpid": (340.0, 458.0)}, {"getpid": (339.0, 460.0)}]
        found = seccomp.result("3 filters", [seccomp.ALLOW] * 2 + [seccomp.FULL], visits)
        self.assertEqual((found["filters"], found["insns"]), (3, 4))
        self.assertEqual(found["ns"]["getpid"], {"min": 339.0, "median": 459.0, "spread": 1.0})


if __name__ == "__main__":
    unittest.main()
