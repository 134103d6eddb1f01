"""The share of CPU time that auditing takes of a program that only makes system calls.

A fixed number of equal calls is timed natively, with auditing enabled without rules, and with ten
rules that match nothing. The share of auditing is the part of a loop's time that exceeds the native
time: 100 * (1 - native / measured) percent. The rules are on other, rare calls, or on the loop's
call itself.
"""

import argparse
import re
import statistics
from collections.abc import Sequence

from .. import cells, options, stats
from ..cells import Cell, Visit, Workload
from ..charts import Series, bar_chart
from ..environment import WORKLOAD, BenchError
from ..results import (
    Benchmark,
    CellResult,
    Measured,
    Record,
    Report,
    about,
    cells_report,
    native_of,
    require_native,
)
from ..rules import select_nobody_on
from ..tables import WITHIN_NOISE, markdown

NAME = "share"
LOOPS = ["getppid", "kill", "openat"]
TURNS = 30
RULES = 10
OTHER_CALLS = [
    *("mknod", "symlink", "link", "chroot", "swapon"),
    *("acct", "rmdir", "mount", "umount2", "pivot_root"),
]


def rules(calls: Sequence[str], arches: Sequence[str] = ("b64",)) -> list[str]:
    """Ten rules that select nothing, plus one rule for each further arch."""
    return select_nobody_on(calls, RULES, arches, twin="chroot")


def make_cells() -> list[Cell]:
    """All rows, in the order of the table."""
    loops, both = [",".join(LOOPS)], ("b64", "b32")
    return [
        Cell("native", "native"),
        Cell("kernel", "kernel audit, no rules"),
        Cell("kernel", "kernel audit, 10 rules on other calls", rules(OTHER_CALLS)),
        Cell("kernel", "kernel audit, 10 rules on these calls", rules(loops)),
        Cell("tarsier", "Tarsier, no rules"),
        Cell("tarsier", "Tarsier per-syscall, 10 rules on other calls", rules(OTHER_CALLS)),
        Cell("tarsier", "Tarsier per-syscall, 10 rules on these calls", rules(loops)),
        Cell("tarsier", "Tarsier tp_btf, 10 rules on other calls", rules(OTHER_CALLS, both)),
        Cell("tarsier", "Tarsier tp_btf, 10 rules on these calls", rules(loops, both)),
    ]


def loops_workload(calls: int) -> list[Workload]:
    """All loops in turn, many short ones, so that some of them run without interruption."""
    script = (
        f"i=0; while [ $i -lt {TURNS} ]; do for loop in {' '.join(LOOPS)}; do "
        f'"$0" --count {calls} $loop || exit 1; done; i=$((i + 1)); done'
    )
    return [(["/bin/sh", "-c", script, WORKLOAD], parse)]


def parse(text: str) -> Visit:
    """{loop: (minimum, median)} in ns per call, from the output of `workload --count`."""
    lines = re.findall(r"^calls (\d+) in_ns (\d+) ", text, re.MULTILINE)
    found = [int(ns) / int(calls) for calls, ns in lines]
    expected = TURNS * len(LOOPS)
    if len(found) != expected:
        raise BenchError(f"the workload printed {len(found)} times, expected {expected}:\n{text}")
    turns = {name: found[i :: len(LOOPS)] for i, name in enumerate(LOOPS)}
    return {name: (round(min(ns), 1), statistics.median(ns)) for name, ns in turns.items()}


def add_shares(results: list[CellResult]) -> None:
    """Adds the percentages to each row, if there is a native row."""
    native = native_of(results)
    if native is None:
        return
    for result in results:
        result["percent_of_cpu"] = {
            name: round(stats.percent_of_time(native[name]["min"], result["ns"][name]["min"]), 1)
            for name in LOOPS
        }


def is_noise(result: CellResult, results: Sequence[CellResult], loop: str) -> bool:
    """Whether a row's share cannot be distinguished from 0."""
    if result["side"] == "native":
        return False
    return stats.within_noise(result["ns"][loop], require_native(results)[loop])


def share(result: CellResult, results: Sequence[CellResult], loop: str) -> str:
    """The share in whole percent, or why there is none."""
    if "percent_of_cpu" not in result:
        return ""
    if is_noise(result, results, loop):
        return WITHIN_NOISE
    return str(round(result["percent_of_cpu"][loop]))


def table(results: list[CellResult]) -> str:
    """A table of thousand calls per second, and percent."""
    header = [
        "",
        *(f"{name}, 1,000 calls/s" for name in LOOPS),
        *(f"{name}, % of CPU in auditing" for name in LOOPS),
    ]
    rows = [
        [
            result["label"],
            *(f"{1e6 / result['ns'][name]['min']:.0f}" for name in LOOPS),
            *(share(result, results, name) for name in LOOPS),
        ]
        for result in results
    ]
    return markdown(header, rows)


def plot(results: list[CellResult], line: str) -> str:
    """A plot of the percentages."""
    series = [
        Series(
            result["label"],
            [result["percent_of_cpu"][name] for name in LOOPS],
            frozenset(i for i, name in enumerate(LOOPS) if is_noise(result, results, name)),
        )
        for result in results
        if result["side"] != "native"
    ]
    return bar_chart(
        "Share of CPU time in auditing, in a loop of one call that no rule selects",
        line,
        LOOPS,
        series,
        ("the call that the loop makes", "% of CPU time"),
    )


def measure(chosen: argparse.Namespace) -> Measured:
    """Measures all cells; adds the percentages."""
    workload = loops_workload(chosen.calls)
    results = cells.measure(NAME, chosen.sides, chosen.rounds, make_cells(), workload)
    add_shares(results)
    return Measured(NAME, {**about(chosen.rounds, chosen.calls), "cells": results})


def report(record: Record, _stem: str) -> Report:
    """The report: a row per cell."""
    results = record["cells"]
    heading = (
        "# Share of CPU time spent in auditing\n\n"
        "A loop of one system call, fastest of its rounds; no rule selects anything."
    )
    body = table(results)
    return cells_report(NAME, record, heading, body, plot)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of cells."""
    options.add_cells(parser, rounds=4, calls=10000)


BENCHMARK = Benchmark(NAME, __doc__ or "", add_options, measure, report)
