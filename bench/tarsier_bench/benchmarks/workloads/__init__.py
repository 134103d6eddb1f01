"""Whole workloads under Debian's STIG rules: natively, under the kernel's audit, under Tarsier.

UnixBench's kinds, a walk (find) and an archive (tar) of a tree of files as large as a kernel's,
many small files, a web server on the loopback interface: tests/vm/loads.c, which runs each on one
processor. Files are in memory (/dev/shm), so that no disk is what is measured. Each side runs all
of them in each round, and the order of the sides moves on by one from round to round; native runs
twice, to show what a difference of nothing looks like.

Every rule has one more condition, the group of the workloads, which meet it; their login uid is
1000, which the STIG rules ask for. Both loggers (auditd is the kernel's) write RAW with Debian's
settings (INCREMENTAL_ASYNC, freq 50; calls wait for auditd).

With --vm the same in a virtual machine whose clock counts instructions, without that condition, and
with both eBPF engines: cargo xtask vm --kernel SERIES -- workloads-icount.
"""

import argparse

from ... import options
from ...results import Benchmark, Measured
from . import native, vm
from .reporting import report

NAME = "workloads"


def measure(chosen: argparse.Namespace) -> Measured | None:
    """Here, or in a virtual machine; None where there can be none."""
    if chosen.vm:
        record = vm.measure(NAME, chosen.vm)
        return Measured(f"{NAME}-vm-{chosen.vm}", record) if record else None
    return Measured(NAME, native.measure(NAME, chosen.rounds, chosen.files))


def add_options(parser: argparse.ArgumentParser) -> None:
    """How much, and where."""
    options.add_rounds(parser, 3, "side")
    parser.add_argument(
        "--files",
        type=options.positive_int,
        default=80000,
        metavar="N",
        help="in the tree (default: %(default)s)",
    )
    parser.add_argument(
        "--vm", metavar="SERIES", help="in a virtual machine with this kernel, such as 6.12"
    )
    options.add_out(parser)


BENCHMARK = Benchmark(NAME, __doc__ or "", add_options, measure, report)
