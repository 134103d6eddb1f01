"""Real rule sets: what each costs a call that it does not record.

They are Debian's samples (package auditd), and those of bench/rules: what the CIS Benchmark for
Debian asks to audit, and a host of containers. Under the kernel's audit each set is measured
unchanged and as `tarsier rules optimise` rewrites it; under Tarsier, unchanged. So that nothing is
recorded, each rule gets a condition that no process meets; a watch (-w) is converted to its long
form, the only one that can have conditions. Beside the measured times stand those that `tarsier
plan --profile live` predicts, and which share of the calls of shell scripts the rules name.
"""

import argparse
import json
from typing import Any

from ... import cells, options, tables
from ...cells import Cell
from ...charts import Series, bar_chart
from ...environment import TARSIER, output_of, require_root, scratch_directory
from ...results import (
    Benchmark,
    CellResult,
    Measured,
    Record,
    Report,
    about,
    cells_along,
    cells_report,
    require_native,
)
from ...rules import own_rules, sample_rules, select_nobody, tolerant, write_rules
from ...stats import within_noise
from .prices import price_table, prices_of

NAME = "samples"
SETS = {
    "STIG": ["30-stig"],
    "PCI-DSS": ["30-pci-dss-v31"],
    "OSPP": ["30-ospp-v42*"],
    "NISPOM": ["30-nispom"],
}
OWN_SETS = {"CIS Debian": "cis-debian", "container host": "container-host"}
FORMS = ("as it is", "optimised")
# The optimiser's numbers for a set: {"before": {name: value}, "after": {name: value}}.
Counts = dict[str, dict[str, int]]


def optimised(lines: list[str]) -> tuple[list[str], Counts]:
    """The rules from `tarsier rules optimise`, and its numbers before and after."""
    with scratch_directory() as scratch:
        rules = write_rules(scratch / "rules", tolerant(lines))
        answer: dict[str, Any] = json.loads(
            output_of([TARSIER, "rules", "optimise", "--json", rules])
        )
    return answer["rules"], {"before": answer["before"], "after": answer["after"]}


def lines_of_sets() -> dict[str, list[str]]:
    """The rules of each set."""
    found = {name: sample_rules(files) for name, files in SETS.items()}
    return {**found, **{name: own_rules(file) for name, file in OWN_SETS.items()}}


def make_cells() -> tuple[list[Cell], dict[str, Counts]]:
    """The cells, and the optimiser's numbers for each set."""
    rows, optimiser = [Cell("native", "native")], {}
    for name, lines in lines_of_sets().items():
        better, optimiser[name] = optimised(lines)
        nobody, better = select_nobody(lines), select_nobody(better)
        as_it_is, rewritten = ({"set": name, "form": form} for form in FORMS)
        rows += [
            Cell("kernel", f"{name}, kernel audit", nobody, {**as_it_is}),
            Cell("kernel", f"{name} optimised, kernel audit", better, {**rewritten}),
            Cell("tarsier", f"{name}, Tarsier", nobody, {**as_it_is}),
        ]
    return rows, optimiser


def rule_table(results: list[CellResult], optimiser: dict[str, Counts]) -> str:
    """A row per set: the number of its rules, and how many the kernel has to evaluate."""
    rows = []
    for name, counts in optimiser.items():
        loaded = {
            result["form"]: result["loaded"]
            for result in results
            if result["side"] == "kernel" and result["set"] == name
        }
        numbers = [
            str(counts[when][what])
            for what in ("rules", "kernel_passed", "kernel_evaluated")
            for when in ("before", "after")
        ]
        rows.append([name, *numbers, " / ".join(str(loaded.get(form, "")) for form in FORMS)])
    header = [
        "set",
        "rules",
        "optimised",
        "rules that an unwatched call passes in the kernel",
        "optimised",
        "of these evaluated",
        "optimised",
        "loaded in the kernel",
    ]
    return tables.markdown(header, rows)


def sets_of(results: list[CellResult]) -> list[str]:
    """The sets that were measured, in order."""
    return list(dict.fromkeys(found["set"] for found in results if found["side"] != "native"))


def added(results: list[CellResult], name: str, side: str, form: str) -> Series:
    """What each set adds to getppid, in ns."""
    native = require_native(results)
    along = cells_along(results, side, sets_of(results), "set", form=form)
    found = [cell["ns"]["null"] if cell else None for cell in along]
    values = [one and round(one["min"] - native["null"]["min"], 1) for one in found]
    noisy = (i for i, one in enumerate(found) if one and within_noise(one, native["null"]))
    return Series(name, values, frozenset(noisy))


def plot(results: list[CellResult], line: str) -> str:
    """A plot of what each set adds to getppid."""
    series = [
        added(results, "kernel audit", "kernel", "as it is"),
        added(results, "kernel audit, rules optimised", "kernel", "optimised"),
        added(results, "Tarsier", "tarsier", "as it is"),
    ]
    return bar_chart(
        "What real rule sets add to getppid, which none of them selects",
        line,
        sets_of(results),
        series,
        ("rule set", "ns added per call"),
    )


def measure(chosen: argparse.Namespace) -> Measured:
    """Measures all cells; adds the optimiser's numbers."""
    require_root()
    rows, optimiser = make_cells()
    workload = cells.latency_workload(chosen.calls)
    results = cells.measure(NAME, chosen.sides, chosen.rounds, rows, workload)
    facts = about(chosen.rounds, chosen.calls)
    prices = prices_of({name: select_nobody(lines) for name, lines in lines_of_sets().items()})
    return Measured(NAME, {**facts, "optimiser": optimiser, "prices": prices, "cells": results})


def report(record: Record, _stem: str) -> Report:
    """The report: a row per set, then a row per cell."""
    results = record["cells"]
    heading = (
        "# Real rule sets\n\n"
        "Minimum in ns per call; in brackets what was added to native. Every rule has one "
        "more condition, so that none selects anything."
    )
    body = f"{rule_table(results, record['optimiser'])}\n"
    if "prices" in record:
        body += f"{price_table(results, record['prices'])}\n"
    body += tables.latency_table(results)
    return cells_report(NAME, record, heading, body, plot)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of cells."""
    options.add_cells(parser, rounds=4, calls=8000)


BENCHMARK = Benchmark(NAME, __doc__ or "", add_options, measure, report)
