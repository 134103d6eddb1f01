"""What auditing adds to a system call that it does not record, by the number of rules.

No rule selects anything: each requires a uid that no process has. In rows called `unwatched` the
rules are on system calls that are not measured, which shows the cost of a call without rules. In
rows called `watched` they are on the measured calls. The last row has the rule set of `make run`.

Under Tarsier, rules for only 64-bit calls use per-syscall tracepoints, and rules that also cover
32-bit calls use tp_btf/sys_exit, which sees every entry; both are measured.
"""

import argparse
import json
from pathlib import Path

from .. import cells, options, tables
from ..cells import Cell
from ..charts import Series, line_chart
from ..environment import TARSIER, BenchError, output_of, require_root, scratch_directory
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
from ..rules import (
    counted,
    sample_rules,
    select_nobody,
    select_nobody_on,
    tolerant,
    write_rules,
)

NAME = "latency"
KERNEL_COUNTS = [0, 1, 10, 50, 100, 160]
TARSIER_COUNTS = [0, 1, 10, 100, 160, 1000, 2000]
KERNEL_WATCHED_COUNTS = [1, 10, 160]
WATCHED_COUNTS = [1, 160, 1000, 2000]
PROBE_CALLS = ["getppid,read,write,stat,fstat,newfstatat,open,openat,close"]
# Rare calls that are not among the probes.
OTHER_CALLS = ["mkdir", "rmdir", "mknod", "symlink", "link", "chroot", "swapon", "acct"]
# Hook, and the arches of the rules that make Tarsier choose it.
HOOKS = {"per-syscall": ("b64",), "tp_btf": ("b64", "b32")}
SAMPLES = ["30-stig", "41-containers", "43-module-load", "71-networking"]
COMMANDS = [
    f"-a exit,always -F arch={arch} -F auid!=4294967295 -S execve -k cmds"
    for arch in ("b64", "b32")
]


def kernel_cells() -> list[Cell]:
    """Cells under the kernel's audit, by number of rules."""
    unwatched = [
        Cell(
            "kernel",
            f"kernel audit, {counted(n)}",
            select_nobody_on(OTHER_CALLS, n),
            {"count": n, "watched": False},
        )
        for n in KERNEL_COUNTS
    ]
    watched = [
        Cell(
            "kernel",
            f"kernel audit, watched, {counted(n)}",
            select_nobody_on(PROBE_CALLS, n),
            {"count": n, "watched": True},
        )
        for n in KERNEL_WATCHED_COUNTS
    ]
    return unwatched + watched


def tarsier_cells(watched: bool) -> list[Cell]:
    """Cells under Tarsier with each hook, by number of rules."""
    calls, counts = (PROBE_CALLS, WATCHED_COUNTS) if watched else (OTHER_CALLS, TARSIER_COUNTS)
    return [
        Cell(
            "tarsier",
            f"Tarsier {hook}, {'watched, ' if watched else ''}{counted(n)}",
            select_nobody_on(calls, n, arches),
            {"count": n, "watched": watched, "hook": hook},
        )
        for hook, arches in HOOKS.items()
        for n in counts
        # Without rules no hook is chosen.
        if n or hook == "per-syscall"
    ]


def make_cells() -> list[Cell]:
    """All rows, in the order of the table."""
    real = sample_rules(SAMPLES) + COMMANDS
    nobody = select_nobody(real)
    return [
        Cell("native", "native"),
        *kernel_cells(),
        *tarsier_cells(watched=False),
        *tarsier_cells(watched=True),
        Cell("kernel", "kernel audit, real-world rules, selecting nobody", nobody),
        Cell("tarsier", "Tarsier, real-world rules, selecting nobody", nobody),
        Cell("tarsier", "Tarsier, real-world rules", real),
    ]


def planned_hooks(lines: list[str]) -> object:
    """The hooks that the measured engine uses for these rules, from `tarsier plan`."""
    with scratch_directory() as scratch:
        rules = write_rules(scratch / "rules", tolerant(lines))
        command: list[str | Path] = [
            TARSIER,
            "plan",
            "--engine",
            "tracepoint",
            "--rules",
            rules,
            "--json",
        ]
        answer = json.loads(output_of(command))
    if "hooks" not in answer:
        raise BenchError("tarsier plan --json: the answer has no hooks")
    return answer["hooks"]


def measure(chosen: argparse.Namespace) -> Measured:
    """Measures all cells; adds the hooks of those under Tarsier."""
    require_root()
    rows = make_cells()
    workload = cells.latency_workload(chosen.calls)
    results = cells.measure(NAME, chosen.sides, chosen.rounds, rows, workload)
    rules = {cell.label: cell.rules for cell in rows if cell.side == "tarsier"}
    for result in results:
        if result["label"] in rules:
            result["hooks"] = planned_hooks(rules[result["label"]])
    return Measured(NAME, {**about(chosen.rounds, chosen.calls), "cells": results})


def plot(results: list[CellResult], line: str) -> str:
    """A plot of the cost of getppid by number of rules."""
    counts = sorted(set(KERNEL_COUNTS + TARSIER_COUNTS))
    native = require_native(results)

    def along(name: str, side: str, **wanted: str | bool) -> Series:
        return Series(name, minima_along(results, side, counts, "count", "null", **wanted))

    series = [
        Series("native", [native["null"]["min"]] * len(counts)),
        along("kernel audit, call watched by every rule", "kernel", watched=True),
        along("kernel audit, call not watched", "kernel", watched=False),
    ]
    for hook in ("tp_btf", "per-syscall"):
        for watched, word in ((True, "watched"), (False, "not watched")):
            name = f"Tarsier {hook}, {word}"
            series.append(along(name, "tarsier", watched=watched, hook=hook))
    return line_chart(
        "What getppid costs by the number of rules, none of which selects it",
        line,
        [str(n) for n in counts],
        series,
        ("rules (not to scale)", "ns per call"),
    )


def report(record: Record, _stem: str) -> Report:
    """The report: a row per cell."""
    results = record["cells"]
    heading = (
        "# A system call that is not recorded\n\n"
        "Minimum in ns per call; in brackets what was added to native. No rule selects anything."
    )
    body = tables.latency_table(results)
    return cells_report(NAME, record, heading, body, plot)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of cells."""
    options.add_cells(parser, rounds=4, calls=8000)


BENCHMARK = Benchmark(NAME, __doc__ or "", add_options, measure, report)
