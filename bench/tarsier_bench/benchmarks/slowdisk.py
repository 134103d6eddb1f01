"""Loggers whose log is on a slow disk: what they log of a flood, and lose.

In a virtual machine whose clock counts instructions (cargo xtask vm -- slowdisk-icount), where the
kernel's dm-delay makes each write and each flush of the disk 5 or 20 ms late. A process makes calls
without a pause, and a rule on all its calls records them. Rates are those of the machine's clock:
one nanosecond per instruction, while a disk is as late as on any machine.
"""

import argparse
from pathlib import Path
from typing import TypedDict, cast

from .. import vm
from ..charts import Series, bar_chart
from ..results import Benchmark, Measured, Record, Report
from ..tables import markdown

NAME = "slowdisk"
TEST = "slowdisk-icount"
DELAYS_MS = (5, 20)
CASES = {
    "auditd.SYNC": "auditd SYNC",
    "auditd.DATA": "auditd DATA",
    "auditd.INCREMENTAL_ASYNC": "auditd INCREMENTAL_ASYNC 50",
    "auditd.NONE": "auditd NONE",
    "tarsier.SYNC": "Tarsier SYNC",
    "tarsier.NONE": "Tarsier NONE",
}
# By the author of the experiment, on a real disk; events per second.
PUBLISHED = {"auditd.SYNC": "45", "auditd.NONE": "38,300"}
# Synced writes that are timed.
SYNCS = 20
HEADER = ["per second of the virtual clock", "calls/s", "logged/s", "lost", "published logged/s"]


class Case(TypedDict):
    """A row: calls in so many seconds, events in the log at their end, and events lost."""

    case: str
    delay_ms: int
    seconds: int
    made: int
    logged: int
    lost: int


def read_case(directory: Path, case: str, delay_ms: int) -> Case:
    """Reads the files of a case."""

    def read(what: str) -> str:
        return (directory / f"{case}.{delay_ms}.{what}").read_text()

    return {
        "case": case,
        "delay_ms": delay_ms,
        "seconds": int(read("seconds")),
        "made": vm.calls_of_flood(read("made")),
        "logged": int(read("logged")),
        "lost": int(read("lost")),
    }


def sync_ms(text: str) -> float:
    """Milliseconds of a synced write, from the times before and after all of them."""
    before, after = map(float, text.split())
    return round(1000 * (after - before) / SYNCS, 1)


def measure(chosen: argparse.Namespace) -> Measured | None:
    """Makes one run; None if no virtual machine can run."""
    found = vm.run(NAME, chosen.vm, TEST)
    if found is None:
        return None
    kernel, directory = found
    cases = [read_case(directory, case, delay) for delay in DELAYS_MS for case in CASES]
    syncs = {str(ms): sync_ms((directory / f"sync.{ms}").read_text()) for ms in DELAYS_MS}
    record = {**vm.about(kernel), "cases": cases, "sync_ms": syncs}
    return Measured(f"{NAME}-vm-{chosen.vm}", record)


def logged_per_s(case: Case) -> float:
    """Events per second that the log got while the calls were made."""
    return case["logged"] / case["seconds"]


def table(cases: list[Case]) -> str:
    """A row per case."""
    rows = []
    for case in cases:
        percent = 100 * case["lost"] / case["made"]
        rows.append(
            [
                f"{CASES[case['case']]}, {case['delay_ms']} ms",
                f"{case['made'] / case['seconds']:,.0f}",
                f"{logged_per_s(case):,.0f}",
                f"{percent:.1f} %" if case["lost"] else "0",
                PUBLISHED.get(case["case"], ""),
            ]
        )
    return markdown(HEADER, rows)


def plot(cases: list[Case], line: str) -> str:
    """A plot of the events logged per second."""
    series = [
        Series(label, [logged_per_s(one) for one in cases if one["case"] == case])
        for case, label in CASES.items()
    ]
    title = "Events logged per second on a slow disk"
    names = [f"{ms} ms" for ms in DELAYS_MS]
    return bar_chart(title, line, names, series, ("delay of the disk", "per second"))


def report(record: Record, stem: str) -> Report:
    """The report: a row per logger, mode and disk."""
    cases, line = cast(list[Case], record["cases"]), vm.line(record)
    series = stem.partition("-vm-")[2]
    syncs: dict[str, float] = record["sync_ms"]
    sync_table = markdown(
        ["ms on a disk that is late by", *(f"{delay} ms" for delay in syncs)],
        [["a write and fsync of 512 bytes, ext4", *(f"{ms:.0f}" for ms in syncs.values())]],
    )
    text = (
        "# Loggers on a slow disk\n\n"
        "dm-delay makes each write and each flush 5 or 20 ms late, in ticks of 4 ms. A process "
        "makes calls without a pause, with the logger on the same processor; calls do not wait for "
        "auditd, whose queue has room for 16,440 records. Rates are per second of the machine's "
        "virtual clock: the disk is as late as on any machine, and the processor makes one "
        "instruction per nanosecond. logged/s: in the log when the calls ended. "
        f"{line} Made by `bench/run {NAME} --vm {series}`.\n\n"
        f"{table(cases)}\n{sync_table}\n"
        "Published by the author of the experiment, on a real disk.\n"
    )
    return Report(text, plot(cases, line))


BENCHMARK = Benchmark(NAME, __doc__ or "", vm.add_options, measure, report)
