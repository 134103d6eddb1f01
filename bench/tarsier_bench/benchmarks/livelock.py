"""A login shell beside a flood of calls, both audited by rules on all calls.

In a virtual machine whose clock counts instructions (cargo xtask vm -- livelock-icount). The shell,
of one user, starts and runs a program, fifty times a second; a process of another user makes calls
without a pause. They share one processor with the logger. Under the kernel's audit a record waits
for room in the backlog (16,440 records) for up to backlog_wait_time ticks of 4 ms; 15,000 is the
kernel's own setting. Under Tarsier `overload` is THROTTLE or DROP; with a rule on all calls, the
trampoline engine uses the same tracepoint as the other one.
"""

import argparse
import re
from pathlib import Path
from typing import TypedDict, cast

from .. import vm
from ..charts import Series, bar_chart
from ..environment import BenchError
from ..results import Benchmark, Measured, Record, Report
from ..tables import markdown

NAME = "livelock"
TEST = "livelock-icount"
CASES = {
    "none": "no auditing",
    "auditd.0": "auditd, backlog_wait_time 0",
    "auditd.100": "auditd, backlog_wait_time 100",
    "auditd.15000": "auditd, backlog_wait_time 15000",
    "trampoline.THROTTLE": "Tarsier trampoline, THROTTLE",
    "trampoline.DROP": "Tarsier trampoline, DROP",
}
HEADER = [
    "ms",
    "quiet p50",
    "quiet p99",
    "flooded p50",
    "flooded p99",
    "p99, flooded : quiet",
    "four floods p99",
    "daemon stopped p99",
    "flood alone, calls/s",
    "events lost",
]
# Time for which the flood runs alone, by the machine's clock.
ALONE_S = 5


class Shells(TypedDict):
    """Shells that were started: their number, and how long they took, in ns."""

    made: int
    p50: int
    p99: int


class Case(TypedDict):
    """A row; `made`: calls of the flood alone in ALONE_S; `lost`: number of events."""

    case: str
    label: str
    quiet: Shells
    flooded: Shells
    four: Shells
    stopped: Shells | None
    made: int
    lost: int


def shells_of(text: str) -> Shells:
    """Reads what `flood shell` prints."""
    found = re.fullmatch(r"made (\d+) p50 (\d+) p99 (\d+)\n", text)
    if not found:
        raise BenchError(f"expected a number of shells, p50 and p99: {text!r}")
    made, p50, p99 = map(int, found.groups())
    return {"made": made, "p50": p50, "p99": p99}


def read_case(directory: Path, case: str, label: str) -> Case:
    """Reads the files of a case."""

    def shells(state: str) -> Shells:
        return shells_of((directory / f"{case}.{state}").read_text())

    is_ours = "Tarsier" in label
    return {
        "case": case,
        "label": label,
        "quiet": shells("quiet"),
        "flooded": shells("flooded"),
        "four": shells("four"),
        "stopped": shells("stopped") if is_ours else None,
        "made": vm.calls_of_flood((directory / f"{case}.made").read_text()),
        "lost": int((directory / f"{case}.lost").read_text()),
    }


def measure(chosen: argparse.Namespace) -> Measured | None:
    """Makes one run; None if no virtual machine can run."""
    found = vm.run(NAME, chosen.vm, TEST)
    if found is None:
        return None
    kernel, directory = found
    cases = [read_case(directory, case, label) for case, label in CASES.items()]
    return Measured(f"{NAME}-vm-{chosen.vm}", {**vm.about(kernel), "cases": cases})


def milliseconds(ns: int) -> str:
    """Nanoseconds as milliseconds."""
    return f"{ns / 1e6:,.1f}"


def table(cases: list[Case]) -> str:
    """A row per case."""
    rows = []
    for case in cases:
        quiet, flooded, stopped = case["quiet"], case["flooded"], case["stopped"]
        times = (quiet["p50"], quiet["p99"], flooded["p50"], flooded["p99"])
        rows.append(
            [
                case["label"],
                *map(milliseconds, times),
                f"{flooded['p99'] / quiet['p99']:,.1f}",
                milliseconds(case["four"]["p99"]),
                milliseconds(stopped["p99"]) if stopped else "",
                f"{case['made'] / ALONE_S:,.0f}",
                f"{case['lost']:,}",
            ]
        )
    return markdown(HEADER, rows)


def plot(cases: list[Case], line: str) -> str:
    """A plot of the ratios of p99; `wait` is backlog_wait_time."""
    ratios = {case["case"]: case["flooded"]["p99"] / case["quiet"]["p99"] for case in cases}

    def series(name: str, *keys: str) -> Series:
        found = (ratios.get(key) for key in keys)
        return Series(name, [None if ratio is None else round(ratio, 1) for ratio in found])

    none = ("", "")
    bars = [
        series("kernel audit and auditd", "none", "auditd.0", "auditd.100", "auditd.15000", *none),
        *(
            series(f"Tarsier {engine}", *none, *none, f"{engine}.THROTTLE", f"{engine}.DROP")
            for engine in ("trampoline", "tracepoint")
        ),
    ]
    categories = ["no auditing", "wait 0", "wait 100", "wait 15000", "THROTTLE", "DROP"]
    title = "How much slower a login shell is beside a flood: its p99, compared with quiet"
    return bar_chart(title, line, categories, bars, ("", "times"))


def report(record: Record, stem: str) -> Report:
    """The report: a row per case."""
    cases, line = cast(list[Case], record["cases"]), vm.line(record)
    series = stem.partition("-vm-")[2]
    text = (
        "# A login shell beside a flood\n\n"
        "A rule on all calls of both. Time from fork to the end of a login shell that runs "
        "/bin/true. The backlog holds 16,440 records; backlog_wait_time is in ticks of 4 ms. "
        f"{line} Made by `bench/run livelock --vm {series}`.\n\n"
        "* no auditing: what the flood takes of the processor, which both share.\n"
        "* flood alone: its calls in a second of this clock, 1,000 million instructions, which it "
        "shares with the logger.\n"
        "* daemon stopped: for 100 ms again and again beside one flood, so that its rings "
        "overflow.\n"
        "* events lost: the kernel's count, or Tarsier's; of both processes.\n\n"
        f"{table(cases)}"
    )
    return Report(text, plot(cases, line))


BENCHMARK = Benchmark(NAME, __doc__ or "", vm.add_options, measure, report)
