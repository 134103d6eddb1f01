"""Time inside audit, and loggers on a slow disk: files of the machine's tests, and tables."""

import tempfile
import unittest
from pathlib import Path

from tarsier_bench.benchmarks import profile, slowdisk


class Files(unittest.TestCase):
    def setUp(self) -> None:
        found = tempfile.TemporaryDirectory()
        self.addCleanup(found.cleanup)
        self.directory = Path(found.name)

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def test_what_the_tracer_adds_is_subtracted_from_each_function(self) -> None:
        lines = (
            "call 7300.5\n__audit_syscall_exit 3000.0 10020\n__audit_syscall_entry 850.0 10020\n"
        )
        self.write("watched.kernel-audit.10", lines)
        found = profile.read_inside(self.directory, "watched", "kernel-audit", 10, 744.0)
        self.assertEqual(found["inside"], {"exit": 2256.0, "entry": 106.0})
        self.assertEqual(found["call"], 7300.5)

    def test_a_program_that_runs_at_each_call_is_one_run(self) -> None:
        self.write("watched.trampoline.10", "call 4466.5\nprogram 1000 10 1021000 10210\n")
        found = profile.read_inside(self.directory, "watched", "trampoline", 10, 70.0)
        self.assertEqual(found["inside"], {"program": 30.0})

    def test_few_runs_are_shared_by_all_calls(self) -> None:
        self.write("unwatched.tracepoint.10", "call 4341.0\nprogram 0 0 15000 100\n")
        found = profile.read_inside(self.directory, "unwatched", "tracepoint", 10, 50.0)
        self.assertEqual(found["inside"], {"program": 1.0})

    def test_a_profile_has_the_group_of_its_side(self) -> None:
        self.write("nop.stig.tracepoint", "samples 200\naudit 1\nbpf 60\nbpf_trace_run1 40\n")
        found = profile.read_profile(self.directory, "stig.tracepoint", "nop")
        self.assertEqual(found["functions"], {"bpf_trace_run1": 40})
        self.assertEqual(profile.share(found), "30.0 %")

    def test_a_case_of_a_slow_disk(self) -> None:
        for what, text in (("seconds", "4"), ("made", "made 4000 urgent 4"), ("logged", "40")):
            self.write(f"auditd.SYNC.5.{what}", f"{text}\n")
        self.write("auditd.SYNC.5.lost", "3000\n")
        found = slowdisk.read_case(self.directory, "auditd.SYNC", 5)
        self.assertTrue(
            slowdisk.table([found]).endswith("| auditd SYNC, 5 ms | 1,000 | 10 | 75.0 % | 45 |\n")
        )

    def test_the_time_of_one_synced_write(self) -> None:
        self.assertEqual(slowdisk.sync_ms("153.97 154.93\n"), 48.0)


if __name__ == "__main__":
    unittest.main()
