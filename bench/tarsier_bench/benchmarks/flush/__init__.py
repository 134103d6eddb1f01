"""Loggers under load: auditd and Tarsier in each flush mode, the same producer, one run.

A process makes one audited call as fast as it can, while an unrelated process sleeps 1 ms at a time
and reports how late it wakes. Further rows: a rule on all calls of the process, under auditd with
each time that calls wait for it (backlog_wait_time); Tarsier with more producers, for longer,
sealed, and at a fixed rate; programs started at a fixed rate, under each logger; and the encoder
alone. SYNC, not sealed and sealed, is measured again in interleaved rounds.

The audited calls are getppid with a mark as first argument, or execve, by group 61234. auditd runs
in the foreground with its own configuration and log below a temporary directory, and a queue of
16,440 records; the state of kernel audit is restored.

TARSIER_LAUREL is the path of laurel. Without it, and without laurel in PATH, its rows are left out.
"""

import argparse
import os

from ... import options
from ...environment import machine
from ...results import Benchmark, Measured, today
from .measuring import measure_all, measure_encoder
from .reporting import report

NAME = "flush"


def measure(chosen: argparse.Namespace) -> Measured:
    """Measures all rows once, the sealed pair in rounds, then the encoder."""
    results, pair = measure_all(NAME, chosen)
    facts = {
        "machine": machine(),
        "date": today(),
        "seconds": chosen.seconds,
        "long_seconds": chosen.long_seconds,
        "load": os.getloadavg()[0],
        "encoder": measure_encoder(),
    }
    return Measured(NAME, {**facts, "rows": results, "sealing": pair})


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for times and numbers of producers."""
    parser.add_argument(
        "--seconds",
        type=options.positive_seconds,
        default=2.5,
        metavar="N",
        help="for each row (default: %(default)g)",
    )
    parser.add_argument(
        "--long-seconds",
        type=options.positive_seconds,
        default=30,
        metavar="N",
        help="for the rows called long (default: %(default)g)",
    )
    parser.add_argument(
        "--producers",
        type=options.positive_ints,
        default="1,2,8,64",
        metavar="N,…",
        help="rows of Tarsier (default: %(default)s)",
    )
    parser.add_argument(
        "--pair-seconds",
        type=options.positive_seconds,
        default=3,
        metavar="N",
        help="for each row of the sealed pair (default: %(default)g)",
    )
    options.add_rounds(parser, 5, "row of the sealed pair")
    options.add_out(parser)


BENCHMARK = Benchmark(NAME, __doc__ or "", add_options, measure, report)
