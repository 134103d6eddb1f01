"""Parsers of programs' output: samples from tests/samples, and wrong output.

The samples are recorded, except `tracepoint` and `cut`, which are written by hand.
"""

import unittest
from pathlib import Path

from tarsier_bench import audit, cells, environment, rules, vm
from tarsier_bench.benchmarks import index, livelock, polled, rings, seccomp, share
from tarsier_bench.benchmarks.flush import measuring as flush
from tarsier_bench.benchmarks.workloads import in_vm
from tarsier_bench.environment import BenchError

SAMPLES = Path(__file__).parent / "samples"


def sample(name: str) -> str:
    """A recorded output."""
    return (SAMPLES / f"{name}.txt").read_text()


class Latency(unittest.TestCase):
    def test_a_minimum_and_a_median_for_each_probe(self) -> None:
        found = cells.parse_latency(sample("latency"))
        self.assertEqual(found["null"], (122.5, 130.8))
        self.assertEqual(found["open+close"], (1073.8, 1129.4))
        self.assertEqual(len(found), 6)

    def test_a_missing_probe_is_an_error(self) -> None:
        text = "".join(sample("latency").splitlines(keepends=True)[:-1])
        with self.assertRaisesRegex(BenchError, "measured only"):
            cells.parse_latency(text)


class Rings(unittest.TestCase):
    def test_best_and_median_of_five_loops(self) -> None:
        # 78.9 86.3 87.1 88.1 90.1
        self.assertEqual(rings.parser_of("nop")(sample("rings")), {"nop": (78.9, 87.1)})

    def test_a_missing_loop_is_an_error(self) -> None:
        with self.assertRaisesRegex(BenchError, "nop: expected 5 times"):
            rings.parser_of("nop")("88.1\n78.9\n")

    def test_fio_tells_operations_per_second(self) -> None:
        text = '{"jobs": [{"read": {"iops": 250000.0}}]}'
        self.assertEqual(rings.parser_of_fio("fio")(text), {"fio": (4000.0, 4000.0)})

    def test_fio_that_has_read_nothing_is_an_error(self) -> None:
        with self.assertRaisesRegex(BenchError, "read nothing"):
            rings.parser_of_fio("fio")('{"jobs": [{"read": {"iops": 0.0}}]}')


class Share(unittest.TestCase):
    def test_loops_take_turns(self) -> None:
        # Each loop 30 times: 100, 200, 300 ns per call, and 1 ns more in each turn.
        lines = [
            f"calls 10 in_ns {10 * (100 * (loop + 1) + turn)} pid 7\n"
            for turn in range(share.TURNS)
            for loop in range(3)
        ]
        # The medians are between turns 14 and 15.
        self.assertEqual(
            share.parse("".join(lines)),
            {"getppid": (100.0, 114.5), "kill": (200.0, 214.5), "openat": (300.0, 314.5)},
        )

    def test_a_missing_turn_is_an_error(self) -> None:
        with self.assertRaisesRegex(BenchError, "printed 1 times, expected 90"):
            share.parse("calls 1000 in_ns 124077 pid 30210\n")


class Seccomp(unittest.TestCase):
    def test_calls_and_attaching(self) -> None:
        found = seccomp.parse(sample("seccomp"))
        self.assertEqual(found["getpid"], (157.0, 171.3))
        self.assertEqual(found["attach"], (2215.0, 2215.0))

    def test_a_missing_call_is_an_error(self) -> None:
        with self.assertRaisesRegex(BenchError, "measured only"):
            seccomp.parse("getpid 157.0 171.3\n")


class Hammer(unittest.TestCase):
    def test_percentiles(self) -> None:
        self.assertEqual(flush.percentiles(sample("timer")), [67.6, 37921.3, 61571.6, 61571.6])
        self.assertEqual(flush.percentiles(sample("appends")), [859.2, 112357.3] + [112357.3] * 2)

    def test_missing_percentiles_are_an_error(self) -> None:
        with self.assertRaisesRegex(BenchError, "expected 4 percentiles"):
            flush.percentiles("timer 181 67.6\n")

    def test_calls_of_all_producers(self) -> None:
        self.assertEqual(flush.calls_made(sample("calls")), 40)


class Floods(unittest.TestCase):
    def test_shells_and_calls(self) -> None:
        found = livelock.shells_of("made 200 p50 2492513 p99 6582610\n")
        self.assertEqual(found, {"made": 200, "p50": 2492513, "p99": 6582610})
        self.assertEqual(vm.calls_of_flood("made 150 urgent 0\n"), 150)

    def test_what_is_cut_is_an_error(self) -> None:
        with self.assertRaisesRegex(BenchError, "'made 200 p50'"):
            livelock.shells_of("made 200 p50")
        with self.assertRaisesRegex(BenchError, "expected a number of calls"):
            vm.calls_of_flood("")


class Index(unittest.TestCase):
    @staticmethod
    def machine(**sides: float) -> index.Machine:
        """A machine on which every workload takes so many instructions."""
        loads = {side: dict.fromkeys([*index.LOADS, *index.MORE], n) for side, n in sides.items()}
        return {"series": "", "kernel": "", "variant": "", "modules": "", "sides": loads}

    def test_twice_the_instructions_are_half_the_index(self) -> None:
        base = self.machine(native=100.0, tracepoint=200.0)
        self.assertAlmostEqual(index.index(base, "native", base), 100)
        self.assertAlmostEqual(index.index(base, "tracepoint", base), 50)

    def test_native_differs_from_itself(self) -> None:
        found = index.noise_percent(self.machine(native=100.0, **{"native-again": 99.0}), "pipe")
        self.assertAlmostEqual(found, 1)


class PolledReads(unittest.TestCase):
    def test_a_loss_within_the_spread_is_noise(self) -> None:
        native = polled.Case(case="native", label="", runs={"inline": [100, 101, 100, 101]})
        alike = polled.Case(case="a", label="", runs={"inline": [101, 101, 101, 101]})
        slower = polled.Case(case="b", label="", runs={"inline": [200, 201, 200, 201]})
        self.assertTrue(polled.is_noise(alike, native, "inline"))
        self.assertFalse(polled.is_noise(slower, native, "inline"))
        self.assertAlmostEqual(polled.lost(slower, native, "inline"), 49.9, 1)


class SeccompEstimates(unittest.TestCase):
    def test_costs_are_split_into_entry_and_filters(self) -> None:
        found = seccomp.estimates([100, 150, 150, 180, 190])
        self.assertEqual(found["entry"], 50)
        self.assertEqual(found["per filter (4th minus 3rd)"], 10)
        self.assertEqual(found["per filter (all but entry, of 4)"], 10)
        self.assertTrue(all(seccomp.expectations([100, 150, 150, 180, 190]).values()))

    def test_an_expectation_that_is_not_met_is_named(self) -> None:
        found = seccomp.expectations([100, 150, 170, 180, 190])
        self.assertFalse(found["1 and 2 filters, bitmap, alike"])
        self.assertTrue(found["native ≤ 1 filter, bitmap"])


class VirtualMachine(unittest.TestCase):
    def test_the_kernel_is_named_only_when_all_is_well(self) -> None:
        said = "ok: kernel 6.12.117+deb12-cloud-amd64: workloads-icount\n"
        test = "workloads-icount"
        self.assertEqual(vm.kernel_of("building\n" + said, test), "6.12.117+deb12-cloud-amd64")
        self.assertIsNone(vm.kernel_of(f"FAILED: kernel 6.12.117: {test}\n", test))
        self.assertIsNone(vm.kernel_of(said, "polled-icount"))
        self.assertIsNone(vm.kernel_of(said, test, "6.1"))
        self.assertIsNone(vm.kernel_of(said, test, "6.12", "no-lsm"))
        of_variant = "ok: kernel 6.1.0-56-cloud-amd64 no-lsm: index-icount\n"
        found = vm.kernel_of(said + of_variant, "index-icount", "6.1", "no-lsm")
        self.assertEqual(found, "6.1.0-56-cloud-amd64")

    def test_a_side_is_a_line_per_workload(self) -> None:
        found = in_vm.read_side(SAMPLES / "tracepoint", "Tarsier tracepoint")
        self.assertEqual(found["side"], "tracepoint")
        self.assertEqual(found["loads"]["tar"]["elapsed_ns"]["min"], 95000000)
        self.assertEqual(found["loads"]["syscall"]["dropped"]["max"], 2)

    def test_a_line_that_is_cut_is_an_error(self) -> None:
        with self.assertRaisesRegex(BenchError, "expected a name and 6 numbers: 'tar"):
            in_vm.read_side(SAMPLES / "cut", "cut")


class Audit(unittest.TestCase):
    def test_an_idle_state(self) -> None:
        state = audit.parse_status(sample("auditctl-status"))
        self.assertEqual(state["backlog_limit"], "64")
        self.assertEqual(state["loginuid_immutable"], "0 unlocked")
        self.assertEqual(audit.what_is_not_idle(state, []), [])

    def test_all_that_is_in_use_is_named(self) -> None:
        state = {"enabled": "1", "pid": "412"}
        self.assertEqual(
            audit.what_is_not_idle(state, ["-a always,exit -S mkdir"]),
            ["enabled is 1", "process 412 is the audit daemon", "rules are loaded"],
        )


class Machine(unittest.TestCase):
    def test_the_first_processor_is_named(self) -> None:
        text = "processor\t: 0\nmodel name\t: AMD EPYC 7:1\n\nmodel name\t: other\n"
        self.assertEqual(environment.cpu_model(text), "AMD EPYC 7:1")
        self.assertEqual(environment.cpu_model("processor : 0\n"), "unknown")


class Programs(unittest.TestCase):
    def test_one_that_fails_is_told_with_its_message(self) -> None:
        with self.assertRaisesRegex(BenchError, "sh ended with 3:\nwhy"):
            environment.output_of(["sh", "-c", "echo why >&2; exit 3"])

    def test_one_that_is_not_there_is_named(self) -> None:
        with self.assertRaisesRegex(BenchError, "/no/such cannot be run: No such file"):
            environment.output_of(["/no/such"])


class Rules(unittest.TestCase):
    def test_settings_and_comments_are_left_out(self) -> None:
        text = "## head\n-D\n-b 8192\n  -w /etc/passwd -p wa\n\n-a always,exit -S mkdir\n-e 2\n"
        self.assertEqual(rules.rules_in(text), ["-w /etc/passwd -p wa", "-a always,exit -S mkdir"])

    def test_a_watch_becomes_its_long_form(self) -> None:
        lines = ["-w /no/such/file -p wa -k id", "-w /etc/", "-a always,exit -S mkdir"]
        self.assertEqual(
            rules.with_condition(lines, "gid=7"),
            [
                "-a always,exit -F path=/no/such/file -F perm=wa -k id -F gid=7",
                "-a always,exit -F dir=/etc -F perm=rwxa -F gid=7",
                "-a always,exit -S mkdir -F gid=7",
            ],
        )

    def test_the_root_directory_keeps_its_name(self) -> None:
        self.assertIn("-F dir=/ ", rules.with_condition(["-w /"], "gid=7")[0])

    def test_rules_go_round_the_calls_and_have_a_twin(self) -> None:
        self.assertEqual(
            rules.select_nobody_on(["a", "b"], 3, ("b64", "b32")),
            [
                "-a always,exit -F arch=b64 -S a -F uid=4000000 -k n0",
                "-a always,exit -F arch=b64 -S b -F uid=4000001 -k n1",
                "-a always,exit -F arch=b64 -S a -F uid=4000002 -k n2",
                "-a always,exit -F arch=b32 -S mkdir -F uid=4000000 -k twin",
            ],
        )
        self.assertEqual(rules.select_nobody_on(["a"], 0, ("b64", "b32")), [])

    def test_numbers_of_rules(self) -> None:
        self.assertEqual([rules.counted(n) for n in (0, 1, 2)], ["0 rules", "1 rule", "2 rules"])


if __name__ == "__main__":
    unittest.main()
