"""io_uring, polled: random reads of 4 KiB that nobody audits, in instructions.

In a virtual machine whose clock counts instructions (cargo xtask vm -- polled-icount). The device
is null_blk with a poll queue, whose reads take no time, so that only the processor limits them.
128 reads are in flight, submitted 32 at a time by the process, or by the kernel's thread (SQPOLL).
"""

import argparse
import statistics
from pathlib import Path
from typing import TypedDict, cast

from .. import stats, vm
from ..charts import Series, bar_chart
from ..environment import BenchError
from ..results import Benchmark, Measured, Record, Report
from ..tables import WITHIN_NOISE, markdown

NAME = "polled"
TEST = "polled-icount"
RUNS = 4
MODES = {"inline": "by the process", "sqpoll": "SQPOLL"}
RULES = {
    "none": "no rules",
    "never": "`task,never`",
    "stig": "STIG rules",
    "other": "rule on another operation",
}
SIDES = {
    "kernel-audit": "kernel audit",
    "trampoline": "Tarsier trampoline",
    "tracepoint": "Tarsier tracepoint",
}
# Of IOPS lost to operations that nobody audits, by the author of the experiment.
PUBLISHED = "4.5 to 4.8 %"


class Case(TypedDict):
    """A row: instructions of a read in each run, by mode."""

    case: str
    label: str
    runs: dict[str, list[float]]


def read_case(path: Path, label: str) -> Case:
    """Reads one file of tests/vm/polled-icount: lines of mode and instructions per read."""
    runs: dict[str, list[float]] = {mode: [] for mode in MODES}
    for line in path.read_text().splitlines():
        mode, _, value = line.partition("\t")
        if mode not in runs:
            raise BenchError(f"{path}: expected a mode and a number: {line!r}")
        runs[mode].append(float(value))
    if any(len(values) != RUNS for values in runs.values()):
        raise BenchError(f"{path}: expected {RUNS} runs of each mode")
    return {"case": path.name, "label": label, "runs": runs}


def labels() -> dict[str, str]:
    """The rows: names of the test's files, and labels."""
    found = {
        "native": "native",
        "native-again": "native again",
        "floor.tracepoint": "two tracepoint programs that do nothing",
    }
    for side, name in SIDES.items():
        for rules, label in RULES.items():
            if rules != "never" or side == "kernel-audit":
                found[f"{rules}.{side}"] = f"{name}, {label}"
    return found


def measure(chosen: argparse.Namespace) -> Measured | None:
    """Makes one run; None if no virtual machine can run."""
    found = vm.run(NAME, chosen.vm, TEST)
    if found is None:
        return None
    kernel, directory = found
    cases = [read_case(directory / case, label) for case, label in labels().items()]
    return Measured(f"{NAME}-vm-{chosen.vm}", {**vm.about(kernel), "cases": cases})


def lost(case: Case, native: Case, mode: str) -> float:
    """The share of reads per second that a case loses, in percent."""
    value, base = case["runs"][mode], native["runs"][mode]
    return stats.percent_of_time(statistics.mean(base), statistics.mean(value))


def is_noise(case: Case, native: Case, mode: str) -> bool:
    """Whether a case differs from native no more than the runs of either."""
    value, base = case["runs"][mode], native["runs"][mode]
    width = stats.noise(stats.spread(value), stats.spread(base))
    return stats.is_noise(statistics.mean(value) - statistics.mean(base), width)


def table(cases: list[Case]) -> str:
    """A row per case: per mode the mean of a read, the runs' spread, and the lost share."""
    native, rows = cases[0], []
    for case in cases:
        row = [case["label"]]
        for mode in MODES:
            runs = case["runs"][mode]
            mean = statistics.mean(runs)
            loss = f"{lost(case, native, mode):z.2f} %"
            if is_noise(case, native, mode):
                loss = "" if case is native else WITHIN_NOISE
            row += [
                f"{mean:.0f}",
                f"{100 * (max(runs) - min(runs)) / mean:.2f} %",
                loss,
            ]
        rows.append(row)
    rows.append(["published: kernel audit", "", "", PUBLISHED, "", "", PUBLISHED])
    header = ["instructions per read"]
    for name in MODES.values():
        header += [name, "spread", "IOPS lost"]
    return markdown(header, rows)


def plot(cases: list[Case], line: str) -> str:
    """A plot of the lost share, where the process submits."""
    native, *others = cases
    by_name = {case["case"]: case for case in others}
    series = []
    for side, name in SIDES.items():
        found = [by_name.get(f"{rules}.{side}") for rules in RULES]
        values = [round(lost(case, native, "inline"), 2) if case else None for case in found]
        noise = (i for i, case in enumerate(found) if case and is_noise(case, native, "inline"))
        series.append(Series(name, values, frozenset(noise)))
    title = "What auditing takes of polled reads that nobody audits"
    return bar_chart(title, line, list(RULES.values()), series, ("", "% of IOPS"))


def report(record: Record, stem: str) -> Report:
    """The report: a row per case."""
    cases, line = cast(list[Case], record["cases"]), vm.line(record)
    series = stem.partition("-vm-")[2]
    text = (
        "# Polled reads through io_uring, in instructions\n\n"
        "4 KiB, random, from null_blk with a poll queue; 128 in flight, 32 submitted at a time. "
        f"Nobody audits them. Mean of {RUNS} runs; IOPS lost: compared with native. {line} "
        f"Made by `bench/run polled --vm {series}`.\n\n"
        "Published: what the experiment's author lost to operations that nobody audits, on another "
        "kernel and machine.\n\n"
        f"{table(cases)}"
    )
    return Report(text, plot(cases, line))


BENCHMARK = Benchmark(NAME, __doc__ or "", vm.add_options, measure, report)
