"""Tests in a virtual machine whose clock counts instructions, as benchmarks."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

from .environment import ROOT, TARGET, BenchError
from .results import Record, today


def add_option(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Adds --vm; with a default, the benchmark runs only in a virtual machine."""
    parser.add_argument(
        "--vm",
        metavar="SERIES",
        default=default,
        help="in a virtual machine with this kernel"
        + (" (default: %(default)s)" if default else ", such as 6.12"),
    )


def kernel_of(said: str, test: str) -> str | None:
    """The kernel in the output of the run, if the test succeeded."""
    found = re.search(rf"^ok: kernel (\S+): {re.escape(test)}$", said, re.MULTILINE)
    return found[1] if found else None


def run(name: str, series: str, test: str) -> tuple[str, Path] | None:
    """Runs a test; its kernel, and the directory with its files.

    None, with the reason printed, if no virtual machine can run. The test itself judges what it
    measures; BenchError if it fails.
    """
    # With output: cargo builds first, and the machine takes minutes.
    command = ["cargo", "xtask", "vm", "--kernel", series, "--", test]
    print(f"{name}: {' '.join(command)}", file=sys.stderr)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    kernel = kernel_of(done.stdout, test)
    if kernel is None:
        if "skipped:" in done.stdout:
            print(done.stdout, end="")
            return None
        raise BenchError(f"{' '.join(command)}:\n{done.stdout}")
    return kernel, TARGET / "vm/runs" / kernel / "instruction-clock/results" / test


def about(kernel: str) -> Record:
    """Facts about a run."""
    return {"kernel": kernel, "date": today(), "unit": "instructions"}


def line(record: Record) -> str:
    """A sentence that says where and when."""
    return (
        f"Linux {record['kernel']}, {record['date']}, one processor under QEMU's -icount: "
        "one instruction, one nanosecond."
    )
