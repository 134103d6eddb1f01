"""Whole workloads under Debian's STIG rules: natively, under the kernel's audit, under Tarsier.

The workloads are those of UnixBench, a walk (find) and an archive (tar) of a tree as large as a
kernel's, many small files, and a web server on the loopback interface. tests/vm/loads.c runs each
on one processor. Files are in memory (/dev/shm), so that no disk is measured. Each side runs all
workloads in each round, and each round begins with the next side. Native runs twice, to show how
much equal sides differ.

Every rule gets a condition on the group of the workloads, which they meet; their login uid is 1000,
as the STIG rules require. Both loggers (auditd for the kernel's audit) write RAW with Debian's
settings (INCREMENTAL_ASYNC, freq 50; calls wait for auditd).

With --vm the workloads run in a virtual machine whose clock counts instructions, without that
condition, and with both eBPF engines: cargo xtask vm --kernel SERIES -- workloads-icount.
"""

import argparse

from ... import options, vm
from ...results import Benchmark, Measured
from . import in_vm, native
from .reporting import report

NAME = "workloads"


def measure(chosen: argparse.Namespace) -> Measured | None:
    """Measures here or in a virtual machine; None if no virtual machine can run."""
    if chosen.vm:
        record = in_vm.measure(NAME, chosen.vm)
        return Measured(f"{NAME}-vm-{chosen.vm}", record) if record else None
    return Measured(NAME, native.measure(NAME, chosen.rounds, chosen.files))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for amount and place."""
    options.add_rounds(parser, 3, "side")
    parser.add_argument(
        "--files",
        type=options.positive_int,
        default=80000,
        metavar="N",
        help="in the tree (default: %(default)s)",
    )
    vm.add_option(parser)
    options.add_out(parser)


BENCHMARK = Benchmark(NAME, __doc__ or "", add_options, measure, report)
