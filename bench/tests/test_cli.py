"""bench/run as a user starts it."""

import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tarsier_bench import cli
from tarsier_bench.environment import BENCH


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs bench/run with these arguments."""
    return subprocess.run(
        [BENCH / "run", *arguments], capture_output=True, text=True, cwd="/", check=False
    )


class Help(unittest.TestCase):
    def test_every_benchmark_is_listed(self) -> None:
        done = run("--help")
        self.assertEqual(done.returncode, 0)
        for name, benchmark in cli.BENCHMARKS.items():
            self.assertIn(f"  {name}", done.stdout)
            self.assertIn(cli.first_line(benchmark), done.stdout)

    def test_every_benchmark_tells_its_options(self) -> None:
        for name, benchmark in cli.BENCHMARKS.items():
            with self.subTest(name=name):
                self.assertIn("--out DIR", cli.parser_of(benchmark).format_help())


class BadInput(unittest.TestCase):
    def refused(self, arguments: list[str], message: str) -> None:
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(message, done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_a_name_that_is_none(self) -> None:
        self.refused(["latencies"], "'latencies' is not a benchmark; expected: latency, share")

    def test_an_option_that_no_benchmark_knows(self) -> None:
        self.refused(["--secnods", "1"], "no benchmark knows --secnods")

    def test_an_option_that_this_benchmark_does_not_know(self) -> None:
        self.refused(["flush", "--calls", "3"], "unrecognized arguments: --calls 3")

    def test_values(self) -> None:
        self.refused(["uids", "--rounds", "0"], "'0' is not a whole number above zero")
        self.refused(["uids", "--sides", "nativ"], "'nativ' is not a side; expected: native")
        self.refused(["flush", "--seconds", "nan"], "'nan' is not a number of seconds above zero")
        self.refused(["flush", "--producers", "1,,2"], "'' is not a whole number above zero")

    def test_times_have_a_sum(self) -> None:
        self.assertEqual(
            cli.times([("flush", 420.0), ("workloads --vm 6.12", 90.0)]),
            "   7.0 min  flush\n   1.5 min  workloads --vm 6.12\n   8.5 min  all\n",
        )

    def test_options_of_all_are_checked_before_anything_runs(self) -> None:
        self.assertEqual(cli.unknown_to_all(["--rounds", "1", "--seconds", "2"]), [])
        self.assertEqual(cli.unknown_to_all(["--rounds", "1", "--x", "y"]), ["--x", "y"])


class Redraw(unittest.TestCase):
    def test_tables_are_made_of_the_json_alone(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            out = Path(name)
            shutil.copy(BENCH / "results/uids.json", out)
            done = run("redraw", "--out", name)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            for suffix in (".md", ".svg"):
                expected = (BENCH / "results/uids").with_suffix(suffix).read_text()
                self.assertEqual((out / "uids").with_suffix(suffix).read_text(), expected)

    def test_what_cannot_be_drawn_is_named(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            self.assertIn("holds no results", run("redraw", "--out", name).stderr)
            (Path(name) / "other.json").write_text("{}")
            self.assertIn("not named after a benchmark", run("redraw", "--out", name).stderr)
            (Path(name) / "other.json").unlink()
            (Path(name) / "uids.json").write_text("{")
            done = run("redraw", "--out", name)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr, r"^bench/run: .*uids\.json: Expecting")


if __name__ == "__main__":
    unittest.main()
