"""The table and the plot: what each side adds to a workload."""

from typing import Literal, cast

from ... import stats, vm
from ...charts import Series, bar_chart
from ...results import Record, Report, machine_line
from ...tables import WITHIN_NOISE, markdown, signed_percent
from .tally import LOADS, Column, SideResult

Time = Literal["elapsed_ns", "processor_ns"]

NOTES = """* time, CPU: elapsed time and the workload's processor time, added to native; within
  noise where that is no more than native's two sides differ, or the runs of one side among
  themselves.
* logger: processor time of auditd and kauditd, or of Tarsier's daemon, in percent of the
  workload's native processor time; an idle one wakes now and then, which shows beside short
  workloads.
* candidates: events that Tarsier's daemon looked at and dropped, because only it can decide the
  rule (a watch, say).
* events: in the log, per run; {lost}
"""


class Comparison:
    """The sides of a run: native twice, then the audited ones. `runs`: of each workload."""

    def __init__(self, results: list[SideResult], runs: int) -> None:
        self.native, self.again, *self.audited = results
        self.runs = runs

    def added(self, result: SideResult, load: str, time: Time) -> float:
        """What a side adds to native's minimum, in percent."""
        value, base = result["loads"][load][time], self.native["loads"][load][time]
        return stats.percent_added(value["min"], base["min"])

    def is_noise(self, result: SideResult, load: str, time: Time) -> bool:
        """Whether this is within the difference of the two native sides, or of a side's runs."""
        native = self.native["loads"][load][time]
        value, again = result["loads"][load][time], self.again["loads"][load][time]
        width = stats.noise(
            abs(again["min"] - native["min"]), self.spread(native), self.spread(value)
        )
        return stats.is_noise(value["min"] - native["min"], width)

    def spread(self, column: Column) -> float | None:
        """The spread of the runs of one side."""
        return stats.spread_of(column["min"], column["median"], column["max"], self.runs)

    def said(self, result: SideResult, load: str, time: Time) -> str:
        """What a side adds, in the table's form."""
        if self.is_noise(result, load, time):
            return WITHIN_NOISE
        return signed_percent(self.added(result, load, time))


def count(column: Column) -> str:
    """A range, or a single number if all runs had the same."""
    return "-".join(f"{n:,}" for n in dict.fromkeys((column["min"], column["max"])))


def has_candidates(result: SideResult) -> bool:
    """Whether the side is one of Tarsier's."""
    return "Tarsier" in result["label"]


def header(sides: Comparison, unit: str) -> list[str]:
    """Names of the columns."""
    names = ["workload", f"native, {unit}", f"{sides.again['label']}: time"]
    for result in sides.audited:
        names += [f"{result['label']}: time", "CPU", "logger"]
        names += ["candidates"] if has_candidates(result) else []
        names.append("events")
    return names


def table(sides: Comparison, unit: str) -> str:
    """What each side adds, the time of its logger, and the events it handled."""
    rows = []
    for load, native in sides.native["loads"].items():
        row = [
            LOADS[load][0],
            f"{native['elapsed_ns']['min'] / 1e6:.1f}",
            signed_percent(sides.added(sides.again, load, "elapsed_ns")),
        ]
        for result in sides.audited:
            ours = result["loads"][load]
            logger = 100 * ours["logger_ns"]["min"] / native["processor_ns"]["min"]
            row += [
                sides.said(result, load, "elapsed_ns"),
                sides.said(result, load, "processor_ns"),
                f"{logger:.1f} %",
            ]
            row += [count(ours["dropped"])] if has_candidates(result) else []
            row.append(count(ours["events"]))
        rows.append(row)
    return markdown(header(sides, unit), rows)


def plot(sides: Comparison, time: Time, line: str, y_label: str) -> str:
    """A plot of what the audited sides add, in percent."""
    loads = list(sides.native["loads"])
    series = [
        Series(
            result["label"],
            [round(sides.added(result, load, time), 1) for load in loads],
            frozenset(i for i, load in enumerate(loads) if sides.is_noise(result, load, time)),
        )
        for result in sides.audited
    ]
    title = "What auditing by the STIG rules adds to a workload"
    return bar_chart(title, line, loads, series, ("", y_label))


def said_lost(audited: list[SideResult]) -> str:
    """The end of a sentence about lost events."""
    lost = {result["label"]: result["lost"] for result in audited}
    if not any(lost.values()):
        return "none was lost."
    return "lost in all: " + ", ".join(f"{label} {n:,}" for label, n in lost.items()) + "."


def native_report(record: Record) -> Report:
    """The report of a run on this machine."""
    runs = record["repeats"] * record["rounds"]
    sides = Comparison(cast(list[SideResult], record["sides"]), runs)
    line = machine_line(record)
    text = (
        f"# Whole workloads\n\nMinimum of {runs} runs, under Debian's STIG rules "
        f"({record['rules']}), Tarsier with the tracepoint engine. {line} "
        f"Made by `bench/run workloads`; the tree has {record['files']:,} files.\n\n"
        f"{NOTES.format(lost=said_lost(sides.audited))}\n{table(sides, 'ms')}"
    )
    return Report(text, plot(sides, "elapsed_ns", line, "% of elapsed time"))


def vm_report(record: Record, series: str) -> Report:
    """The report of a run in a virtual machine, which runs each workload once."""
    sides = Comparison(cast(list[SideResult], record["sides"]), 1)
    line = vm.line(record)
    text = (
        "# Whole workloads in instructions\n\n"
        f"Under Debian's STIG rules, all of them as they are. {line} "
        f"Made by `bench/run workloads --vm {series}`.\n\n"
        f"{NOTES.format(lost=said_lost(sides.audited))}\n{table(sides, 'million instructions')}"
    )
    return Report(text, plot(sides, "processor_ns", line, "% of the workload's instructions"))


def report(record: Record, stem: str) -> Report:
    """The report: a row per workload."""
    _, _, series = stem.partition("-vm-")
    return vm_report(record, series) if series else native_report(record)
