"""What a call costs by number of rules, in instructions: the calls and numbers of lmbench's grid.

In a virtual machine whose clock counts instructions (cargo xtask vm -- grid-icount). The rules are
on the measured calls (watched) or on another one, and select no process. Tarsier also gets 1,000
and 2,000 rules.
"""

import argparse
import json
from pathlib import Path
from typing import TypedDict, cast

from .. import vm
from ..charts import Series, line_chart
from ..environment import BenchError
from ..results import Benchmark, Measured, Record, Report
from ..tables import PROBES, markdown

NAME = "grid"
TEST = "grid-icount"
COUNTS = [0, 10, 20, 30, 40, 50, 100, 160]
MORE = [1000, 2000]
MEMORY_COUNTS = [10, 2000]
SIDES = {
    "kernel-audit": "kernel audit",
    "trampoline": "Tarsier trampoline",
    "tracepoint": "Tarsier tracepoint",
}
SETS = {"unwatched": "rules on another call", "watched": "rules on these calls"}
# Of the index of rules, by the author of the experiment.
PUBLISHED = "under 4 KB"


class Case(TypedDict):
    """A row: instructions of each probe; side and set are empty natively."""

    side: str
    set: str
    rules: int
    instructions: dict[str, float]


def read_case(path: Path, side: str = "", name: str = "", rules: int = 0) -> Case:
    """Reads the output of `workload --latency`: probe, minimum, median."""
    found = {}
    for line in path.read_text().splitlines():
        probe, value, _ = line.split("\t")
        found[probe] = float(value)
    if list(found) != PROBES:
        raise BenchError(f"{path}: expected {', '.join(PROBES)}, found {', '.join(found)}")
    return {"side": side, "set": name, "rules": rules, "instructions": found}


def counts_of(side: str) -> list[int]:
    """Numbers of rules of a side."""
    return COUNTS if side == "kernel-audit" else COUNTS + MORE


def measure(chosen: argparse.Namespace) -> Measured | None:
    """Makes one run; None if no virtual machine can run."""
    found = vm.run(NAME, chosen.vm, TEST)
    if found is None:
        return None
    kernel, directory = found
    cases = [read_case(directory / "native"), read_case(directory / "native.again")]
    cases += [
        read_case(directory / f"{name}.{side}.{count}", side, name, count)
        for name in SETS
        for side in SIDES
        for count in counts_of(side)
    ]
    memory = {
        side: {
            str(count): json.loads((directory / f"memory.{side}.{count}").read_text())
            for count in MEMORY_COUNTS
        }
        for side in list(SIDES)[1:]
    }
    record = {**vm.about(kernel), "cases": cases, "memory": memory}
    return Measured(f"{NAME}-vm-{chosen.vm}", record)


def label_of(case: Case) -> str:
    """The first cell of a row."""
    return f"{SIDES[case['side']]}, {SETS[case['set']]}, {case['rules']:,}"


def table(cases: list[Case]) -> str:
    """Instructions per call, and in brackets what was added to native."""
    native, again, *others = cases
    rows = [
        [label, *(f"{case['instructions'][probe]:.0f}" for probe in PROBES)]
        for label, case in (("native", native), ("native again", again))
    ]
    for case in others:
        row = [label_of(case)]
        for probe in PROBES:
            value = case["instructions"][probe]
            row.append(f"{value:.0f} ({value - native['instructions'][probe]:+z.0f})")
        rows.append(row)
    return markdown(["instructions per call", *PROBES], rows)


def memory_table(memory: dict[str, dict[str, dict[str, int]]]) -> str:
    """Memory of the tables, the index of the rules among them, by number of rules."""
    counts = [str(count) for count in MEMORY_COUNTS]
    rows = [
        [SIDES[side], *(f"{by_count[count]['tables'] / 1024:,.0f}" for count in counts)]
        for side, by_count in memory.items()
    ]
    heads = [f"{count} rules" for count in counts]
    return markdown(["KiB of tables", *heads], rows)


def plot(cases: list[Case], line: str) -> str:
    """A plot of what stat costs."""
    native, _, *others = cases
    counts = COUNTS + MORE
    series = [Series("native", [native["instructions"]["stat"]] * len(counts))]
    for name, about in SETS.items():
        for side, label in SIDES.items():
            by_count = {
                case["rules"]: case["instructions"]["stat"]
                for case in others
                if case["side"] == side and case["set"] == name
            }
            values = [by_count.get(count) for count in counts]
            series.append(Series(f"{label}, {about}", values))
    title = "What stat costs by the number of rules, none of which selects it"
    labels = ("rules (not to scale)", "instructions")
    return line_chart(title, line, [str(n) for n in counts], series, labels)


def report(record: Record, stem: str) -> Report:
    """The report: a row per side, set and number of rules."""
    cases, line = cast(list[Case], record["cases"]), vm.line(record)
    series = stem.partition("-vm-")[2]
    text = (
        "# Calls by number of rules, in instructions\n\n"
        "The quickest of 7 rounds of 100 calls; in brackets what was added to native. No rule "
        f"selects anything. {line} Made by `bench/run grid --vm {series}`.\n\n"
        f"{table(cases)}\n{memory_table(record['memory'])}\n"
        f"Published for the index of rules: {PUBLISHED}, by the experiment's author. Tarsier's "
        "tables have a fixed size, whatever the number of rules.\n"
    )
    return Report(text, plot(cases, line))


BENCHMARK = Benchmark(NAME, __doc__ or "", vm.add_options, measure, report)
