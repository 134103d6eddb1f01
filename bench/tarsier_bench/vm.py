"""Tests in a virtual machine whose clock counts instructions, as benchmarks."""

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from . import options
from .environment import ROOT, TARGET, BenchError
from .results import Record, today

# The variant of machines that have the distribution's settings.
PLAIN = "stock"


def add_option(parser: argparse.ArgumentParser, default: str | None = None) -> None:
    """Adds --vm; with a default, the benchmark runs only in a virtual machine."""
    parser.add_argument(
        "--vm",
        metavar="SERIES",
        default=default,
        help="in a virtual machine with this kernel"
        + (" (default: %(default)s)" if default else ", such as 6.12"),
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds --vm and --out, for a benchmark that runs only in a virtual machine."""
    add_option(parser, "6.12")
    options.add_out(parser)


def kernel_of(said: str, test: str, series: str = "", variant: str = "") -> str | None:
    """The kernel in the output of a run, if the test succeeded on it; the plain variant if none."""
    release = rf"{re.escape(series)}\.\S+" if series else r"\S+"
    machine = f" {re.escape(variant)}" if variant else ""
    found = re.search(rf"^ok: kernel ({release}){machine}: {re.escape(test)}$", said, re.MULTILINE)
    return found[1] if found else None


def output_of_run(name: str, kernels: Sequence[str], test: str, variants: Sequence[str]) -> str:
    """What `cargo xtask vm` prints for a test on these kernels, in machines of these variants."""
    # With output: cargo builds first, and the machines take minutes.
    command = ["cargo", "xtask", "vm"]
    for kernel in kernels:
        command += ["--kernel", kernel]
    for variant in variants:
        command += ["--variant", variant or PLAIN]
    command += ["--", test]
    print(f"{name}: {' '.join(command)}", file=sys.stderr)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BenchError(f"{' '.join(command)}:\n{done.stdout}")
    return done.stdout


def directory_of(kernel: str, test: str, variant: str = "") -> Path:
    """The directory with the files of a test."""
    machine = f"instruction-clock.{variant}" if variant else "instruction-clock"
    return TARGET / "vm/runs" / kernel / machine / "results" / test


def run(name: str, series: str, test: str) -> tuple[str, Path] | None:
    """Runs a test; its kernel, and the directory with its files.

    None, with the reason printed, if no virtual machine can run. The test itself judges what it
    measures; BenchError if it fails.
    """
    said = output_of_run(name, [series], test, [])
    kernel = kernel_of(said, test)
    if kernel is None:
        print(said, end="")
        return None
    return kernel, directory_of(kernel, test)


def calls_of_flood(text: str) -> int:
    """Reads what `flood uid` and `flood held` of tests/vm print: their calls."""
    found = re.fullmatch(r"made (\d+) urgent \d+\n", text)
    if not found:
        raise BenchError(f"expected a number of calls: {text!r}")
    return int(found[1])


def about(kernel: str) -> Record:
    """Facts about a run."""
    return {"kernel": kernel, "date": today(), "unit": "instructions"}


def line(record: Record) -> str:
    """A sentence that says where and when."""
    return (
        f"Linux {record['kernel']}, {record['date']}, one processor under QEMU's -icount: "
        "one instruction, one nanosecond."
    )
