"""io_uring: operations through a ring of depth 128, with and without rules on them.

nop: IORING_OP_NOP; read: 512 bytes of /dev/zero, limited by the processor since there is no device;
open+close: openat of /dev/null through the ring, close by system call. Each operation is submitted
by the process, and by the kernel's thread (SQPOLL).

fio: its io_uring engine reads 4 KiB at random from a file in memory (/dev/shm), which is fully
allocated, so that this is limited by the processor, too. `bench/run polled` has polled reads, which
need a block device with poll queues.

Rules select no process.
"""

import argparse
import json
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path

from .. import cells, options, tables
from ..cells import Cell, Visit, Workload
from ..charts import Series, line_chart
from ..environment import WORKLOAD, BenchError
from ..results import (
    Benchmark,
    CellResult,
    Measured,
    Record,
    Report,
    about,
    cells_report,
    minima_along,
    require_native,
)
from ..rules import NOBODY

NAME = "rings"
LOOPS = {
    "nop": ("--loop", "nop"),
    "read": ("--loop", "read"),
    "open+close": ("--loop", "open"),
    "nop, SQPOLL": ("--sqpoll-loop", "nop"),
    "read, SQPOLL": ("--sqpoll-loop", "read"),
    "open+close, SQPOLL": ("--sqpoll-loop", "open"),
}
FIO = ("fio", "fio, SQPOLL")
FIO_FILE = "/dev/shm/tarsier-bench-rings"
# Number of loops, the best of which counts for a round.
REPEATS = 5
RULES = {
    "no io_uring rule": [f"-a always,exit -F arch=b64 -S mkdir -F uid={NOBODY}"],
    "rule on another operation": [f"-a always,io_uring -S mkdirat -F uid={NOBODY}"],
    "rule on these": [f"-a always,io_uring -S nop,read,openat -F uid={NOBODY}"],
}
AUDITED = (("kernel", "kernel audit"), ("tarsier", "Tarsier"))


def parser_of(probe: str) -> Callable[[str], Visit]:
    """A parser for the workload's output: ns per operation, one line per loop."""

    def parse(text: str) -> Visit:
        values = [float(line) for line in text.split()]
        if len(values) != REPEATS:
            raise BenchError(f"{probe}: expected {REPEATS} times, the workload printed:\n{text}")
        return {probe: (min(values), statistics.median(values))}

    return parse


def parser_of_fio(probe: str) -> Callable[[str], Visit]:
    """A parser for fio's JSON that gives ns per operation."""

    def parse(text: str) -> Visit:
        iops = json.loads(text)["jobs"][0]["read"]["iops"]
        if iops <= 0:
            raise BenchError(f"{probe}: fio has read nothing")
        return {probe: (1e9 / iops, 1e9 / iops)}

    return parse


def fio(calls: int) -> list[Workload]:
    """Workloads of fio with `calls` reads of 4 KiB."""
    command = [
        "fio",
        "--name=reads",
        "--ioengine=io_uring",
        "--rw=randread",
        "--bs=4k",
        "--iodepth=128",
        "--iodepth_batch_submit=32",
        "--iodepth_batch_complete_min=1",
        "--randseed=1",
        "--norandommap",
        f"--filename={FIO_FILE}",
        "--size=16m",
        f"--io_size={4 * calls}k",
        "--output-format=json",
    ]
    by_process, by_thread = FIO
    return [
        (command, parser_of_fio(by_process)),
        ([*command, "--sqthread_poll=1"], parser_of_fio(by_thread)),
    ]


def workloads(calls: int) -> list[Workload]:
    """The loops of the project's workload, then fio's."""
    loop = f'"$0" --rings "$1" "$2" {calls}'
    script = f"for i in $(seq {REPEATS}); do {loop} || exit; done"
    loops: list[Workload] = [
        (["sh", "-c", script, WORKLOAD, *words], parser_of(probe)) for probe, words in LOOPS.items()
    ]
    return loops + fio(calls)


def make_cells() -> list[Cell]:
    """All rows, in the order of the table."""
    rows = [Cell("native", "native")]
    for side, name in AUDITED:
        rows += [
            Cell(side, f"{name}, {label}", rules, {"case": label}) for label, rules in RULES.items()
        ]
    return rows


def plot(results: list[CellResult], line: str) -> str:
    """A plot of the cost of openat and close by rules."""
    cases = list(RULES)
    native = require_native(results)
    series = [Series("native", [native["open+close"]["min"]] * len(cases))]
    for side, name in AUDITED:
        series.append(Series(name, minima_along(results, side, cases, "case", "open+close")))
    return line_chart(
        "What openat through a ring and close cost",
        line,
        cases,
        series,
        ("rules loaded", "ns per pair"),
    )


def measure(chosen: argparse.Namespace) -> Measured:
    """Measures all cells."""
    if not shutil.which("fio"):
        raise BenchError("fio is not installed; run scripts/setup bench")
    workload = workloads(chosen.calls)
    try:
        results = cells.measure(NAME, chosen.sides, chosen.rounds, make_cells(), workload)
    finally:
        Path(FIO_FILE).unlink(missing_ok=True)
    return Measured(NAME, {**about(chosen.rounds, chosen.calls), "cells": results})


def report(record: Record, _stem: str) -> Report:
    """The report: a row per cell."""
    results = record["cells"]
    heading = (
        "# io_uring\n\n"
        "Operations through a ring of depth 128; `read` is of /dev/zero, which no device "
        "limits; `fio` reads 4 KiB at random from a file in memory; `open+close` is openat "
        "through the ring and close by system call. The rules select no process. Minimum in "
        "ns per operation; in brackets what was added to native."
    )
    body = tables.latency_table(results, [*LOOPS, *FIO], "ns per operation")
    return cells_report(NAME, record, heading, body, plot)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of cells."""
    options.add_cells(parser, rounds=3, calls=40000)


BENCHMARK = Benchmark(NAME, __doc__ or "", add_options, measure, report)
