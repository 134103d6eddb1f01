"""The benchmark of loggers: its rows, and the figures of its tables."""

import os
import re
import unittest
from typing import ClassVar
from unittest import mock

from tarsier_bench.benchmarks.flush import reporting, rows
from tarsier_bench.benchmarks.flush.measuring import Pair, RowResult, key_pattern
from tarsier_bench.environment import BENCH
from tarsier_bench.results import read


def labels(producers: list[int]) -> list[str]:
    """The labels of all rows, without laurel."""
    with mock.patch.dict("os.environ"), mock.patch("shutil.which", return_value=None):
        os.environ.pop("TARSIER_LAUREL", None)
        return [row.label for row in rows.make_rows(producers)]


class Rows(unittest.TestCase):
    def test_they_are_those_of_the_committed_results(self) -> None:
        committed = [row["label"] for row in read(BENCH / "results/flush.json")["rows"]]
        without_laurel = [label for label in committed if "laurel" not in label]
        self.assertEqual(labels([1, 2, 8, 64]), without_laurel)

    def test_no_label_stands_twice(self) -> None:
        made = labels([1, 2, 8, 64])
        self.assertEqual(len(made), len(set(made)))

    def test_the_experiment_has_all_its_values_of_freq(self) -> None:
        freqs = [row.freq for row in rows.make_rows([1]) if row.side == "auditd" and row.freq]
        self.assertEqual(freqs[:9], [20, 50, 100, 200, 400, 1000, 2000, 4000, 8000])

    def test_a_rule_by_process_names_it(self) -> None:
        row = rows.Row("auditd", "x", "NONE", by_process=True)
        rule = row.rule.format(pid=7)
        self.assertEqual(rule, "-a always,exit -S all -F pid=7 -k bench")

    def test_laurel_has_rows_where_it_is(self) -> None:
        with mock.patch.dict("os.environ", TARSIER_LAUREL="/opt/laurel"):
            made = [row for row in rows.exec_rows() if row.laurel]
        self.assertEqual([row.side for row in made], ["auditd", "tarsier"] * 2)
        self.assertEqual({row.laurel for row in made}, {"/opt/laurel"})

    def test_settings_are_lines_of_auditd_conf(self) -> None:
        row = rows.Row("tarsier", "x", "INCREMENTAL", 20, extra=("overload = DROP",))
        self.assertEqual(row.settings, ["flush = INCREMENTAL", "freq = 20", "overload = DROP"])
        self.assertEqual(rows.Row("native", "no auditing").settings, [])

    def test_the_mark_of_the_rule_is_that_of_hammer(self) -> None:
        mark = re.search(r"#define MARK (\w+)", (BENCH / "hammer.c").read_text())
        assert mark is not None
        self.assertIn(f"-F a0={mark[1]} ", rows.RULE)


class Events(unittest.TestCase):
    def test_raw_and_json_are_found_by_their_key(self) -> None:
        pattern = key_pattern(rows.Row("auditd", "x"))
        raw = 'type=SYSCALL msg=audit(1.2:3): arch=c000003e syscall=110 key="bench"'
        self.assertTrue(re.search(pattern, raw))
        self.assertTrue(re.search(pattern, '{"serial":3,"key":["bench"]}'))
        self.assertFalse(re.search(pattern, raw.replace("bench", "other")))
        self.assertFalse(re.search(pattern, 'type=CONFIG_CHANGE msg=audit(1.2:3): key="bench"'))

    def test_of_all_calls_of_a_process_those_of_hammer_are_found(self) -> None:
        pattern = key_pattern(rows.Row("auditd", "x", by_process=True))
        event = 'type=SYSCALL msg=audit(1.2:3): syscall=110 a0=7a53 a1=0 key="bench"'
        self.assertTrue(re.search(pattern, event))
        self.assertFalse(re.search(pattern, event.replace("7a53", "1")))


class Tables(unittest.TestCase):
    RESULT: ClassVar[RowResult] = {
        "side": "auditd",
        "label": "auditd NONE",
        "made": 1000,
        "calls_per_s": 250,
        "logged": 130,
        "lost": 870,
        "logged_per_s": 26,
        "bytes": 92_940_000,
        "logger_cpu_s": 2.6,
        "late_us": {"p50": 110.2, "p99": 299.4, "p99.9": 4321.0, "max": 7400.0},
    }

    def test_a_logger(self) -> None:
        self.assertIn(
            "| auditd NONE | 250 | 26 | 87.0 % | 92.9 | 2.60 | 20000.0 |  | 4.3, 7.4 | 38,300 |\n",
            reporting.table([self.RESULT]),
        )

    def test_nothing_lost_is_a_plain_zero(self) -> None:
        self.assertEqual(reporting.logged_columns({**self.RESULT, "lost": 0})[1], "0")

    def test_a_row_without_a_logger(self) -> None:
        native: RowResult = {"side": "native", "label": "no auditing", "calls_per_s": 4198832}
        self.assertIn("| no auditing | 4,198,832 |" + "  |" * 8, reporting.table([native]))

    def test_a_logger_that_has_logged_nothing_divides_by_one(self) -> None:
        self.assertEqual(reporting.per_event_us({"logger_cpu_s": 0.5, "logged": 0}), 500000)

    def test_the_ratio_of_the_pair_is_of_its_lowest_rounds(self) -> None:
        def rounds(*cpu_s: float) -> list[RowResult]:
            base: RowResult = {"logged": 1_000_000, "calls_per_s": 100}
            return [{**base, "logger_cpu_s": one, "calls_per_s": int(9 / one)} for one in cpu_s]

        pair = {"Tarsier SYNC": rounds(1.0, 2.0), "Tarsier SYNC, sealed": rounds(3.0, 1.2)}
        record: Pair = {"rounds": 2, "seconds": 3, "rows": pair}
        self.assertEqual(reporting.sealing_ratio([], record), "1.2")
        self.assertIn(
            "| Tarsier SYNC, in rounds | 1.000 | 1.000 | 9 | 5 |\n",
            reporting.sealing_table(record),
        )

    def test_ratios_have_three_digits(self) -> None:
        self.assertEqual(reporting.ratio(739136, 44897), "16.5")
        self.assertEqual(reporting.ratio(1, 0), "-")


if __name__ == "__main__":
    unittest.main()
