"""Rules on every system call: 1 to 1,000 of the form `-a always,exit -F uid=N`.

An index of rules by system call does not help with such rules: each is a candidate for every call.
No process has any of the uids.
"""

import argparse

from .. import cells, options, tables
from ..cells import Cell
from ..charts import Series, line_chart
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
from ..rules import NOBODY, counted
from ..stats import within_noise

NAME = "uids"
KERNEL_COUNTS = [1, 10, 100]
TARSIER_COUNTS = [1, 10, 100, 1000]
AUDITED = (("kernel", "kernel audit", KERNEL_COUNTS), ("tarsier", "Tarsier", TARSIER_COUNTS))


def rules(count: int) -> list[str]:
    """`count` rules that are on every call and select nothing."""
    return [f"-a always,exit -F uid={NOBODY + i}" for i in range(count)]


def make_cells() -> list[Cell]:
    """All rows, in the order of the table."""
    rows = [Cell("native", "native")]
    for side, name, counts in AUDITED:
        rows += [Cell(side, f"{name}, {counted(n)}", rules(n), {"count": n}) for n in counts]
    return rows


def ratio(one: CellResult, most: CellResult, probe: str) -> str:
    """The cost of a call under the largest number of rules, as a multiple of that under one."""
    if within_noise(one["ns"][probe], most["ns"][probe]):
        return tables.WITHIN_NOISE
    return f"{most['ns'][probe]['min'] / one['ns'][probe]['min']:.2f}"


def ratios(results: list[CellResult]) -> str:
    """A table of ratios with a row for each measured side."""
    rows = []
    for side, name, _ in AUDITED:
        found = [result for result in results if result["side"] == side]
        if len(found) >= 2:
            one, most = found[0], found[-1]
            label = f"{name}, {most['count']} rules / 1 rule"
            rows.append([label, *(ratio(one, most, probe) for probe in tables.PROBES)])
    return tables.markdown(["times", *tables.PROBES], rows) if rows else ""


def plot(results: list[CellResult], line: str) -> str:
    """A plot of the cost of getppid by number of rules."""
    native = require_native(results)
    series = [Series("native", [native["null"]["min"]] * len(TARSIER_COUNTS))]
    for side, name, _ in AUDITED:
        series.append(Series(name, minima_along(results, side, TARSIER_COUNTS, "count")))
    return line_chart(
        "What getppid costs under N rules `-a always,exit -F uid=…` on all calls",
        line,
        [str(n) for n in TARSIER_COUNTS],
        series,
        ("rules (not to scale)", "ns per call"),
    )


def measure(chosen: argparse.Namespace) -> Measured:
    """Measures all cells."""
    workload = cells.latency_workload(chosen.calls)
    results = cells.measure(NAME, chosen.sides, chosen.rounds, make_cells(), workload)
    return Measured(NAME, {**about(chosen.rounds, chosen.calls), "cells": results})


def report(record: Record, _stem: str) -> Report:
    """The report: a row per cell, then the ratios."""
    results = record["cells"]
    heading = (
        "# Rules on every system call\n\n"
        "Rules of the form `-a always,exit -F uid=N`. Minimum in ns per call; in brackets "
        "what was added to native."
    )
    body = f"{tables.latency_table(results)}\n{ratios(results)}"
    return cells_report(NAME, record, heading, body, plot)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of cells."""
    options.add_cells(parser, rounds=4, calls=8000)


BENCHMARK = Benchmark(NAME, __doc__ or "", add_options, measure, report)
