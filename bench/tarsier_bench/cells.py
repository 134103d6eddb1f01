"""Cells, which are measured in interleaved rounds, with the audit state restored after each.

Each cell runs in a new process of the workload, because a process keeps the audit context that it
got when it was created:

** native, and everything under Tarsier: created under `never,task`, without a context. (Once audit
  was enabled, every process created without that rule has a context until the next boot.)
* kernel: created while audit is enabled and the rules are loaded.

Each round visits every cell once and begins one cell further than the last, so that drift of the
machine affects all alike. Audit must be off, without rules and without a daemon.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar, cast

from . import audit, environment
from .environment import TARSIER, WORKLOAD, BenchError, output_of
from .results import CellResult
from .rules import tolerant, write_rules
from .stats import timing
from .tables import PROBES

SIDES = ("native", "kernel", "tarsier")
# Results of one visit: {probe: (minimum, median)} in ns per call.
Visit = dict[str, tuple[float, float]]
# A command, and the parser of its output.
Workload = tuple[Sequence[str | Path], Callable[[str], Visit]]
Item = TypeVar("Item")


@dataclass
class Cell:
    """One row of a table: the side on which the workload runs, and the rules.

    `facts` are further columns of the JSON, by which a benchmark finds the row.
    """

    side: str
    label: str
    rules: list[str] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    loaded: int | None = None
    visits: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def add(self, visit: Visit) -> None:
        """Adds the results of one visit."""
        for probe, pair in visit.items():
            self.visits.setdefault(probe, []).append(pair)

    def result(self) -> CellResult:
        """The row of all visits."""
        ns = {
            probe: timing([low for low, _ in pairs], [middle for _, middle in pairs])
            for probe, pairs in self.visits.items()
        }
        row = {
            "side": self.side,
            "label": self.label,
            **self.facts,
            "rules": len(self.rules),
            "loaded": self.loaded,
            "ns": ns,
        }
        return cast(CellResult, row)


def run_native(_cell: Cell, scratch: Path, _rules: Path, command: Sequence[str | Path]) -> str:
    """The workload's output; processes created meanwhile have no audit context."""
    try:
        audit.auditctl("-a", "never,task")
        return output_of(command, scratch)
    finally:
        audit.restore_audit()


def run_kernel(cell: Cell, scratch: Path, rules: Path, command: Sequence[str | Path]) -> str:
    """The workload's output under the kernel's audit, without a daemon."""
    try:
        # Rules are loaded while audit is off: otherwise each would make a record in the kernel's
        # log. Tarsier loads them, because auditctl 3.0.9 does not know the newest system calls,
        # which the optimiser uses.
        output_of([TARSIER, "ctl", "--kernel", "-R", rules], scratch)
        cell.loaded = len(audit.loaded_rules())
        audit.auditctl("-e", "1")
        return output_of(command, scratch)
    finally:
        audit.restore_audit()


def run_tarsier(_cell: Cell, scratch: Path, rules: Path, command: Sequence[str | Path]) -> str:
    """The workload's output under `tarsier run`, which restores audit itself."""
    tarsier: list[str | Path] = [TARSIER, "run", "--engine", "tracepoint", "--rules", rules]
    places: list[str | Path] = ["--run-dir", scratch / "run", "--log-file", scratch / "audit.log"]
    text = output_of([*tarsier, *places, "--", *command], scratch)
    audit.require_idle_audit("after tarsier run")
    return text


RUN = dict(zip(SIDES, (run_native, run_kernel, run_tarsier), strict=True))


def visit(cell: Cell, scratch: Path, workloads: Sequence[Workload]) -> None:
    """Runs every workload once in the cell."""
    # A sample may watch paths that this system does not have.
    rules = write_rules(scratch / "rules", tolerant(cell.rules))
    for command, parse in workloads:
        with audit.audit_to_ourselves(f"before '{cell.label}'"):
            text = RUN[cell.side](cell, scratch, rules, command)
        cell.add(parse(text))


def rotated(items: Sequence[Item], number: int) -> list[Item]:
    """The order of round `number`: each round begins one item further."""
    first = number % len(items)
    return [*items[first:], *items[:first]]


def measure(
    name: str,
    sides: Sequence[str],
    count: int,
    cells: Sequence[Cell],
    workloads: Sequence[Workload],
) -> list[CellResult]:
    """Visits the cells of these sides in `count` rounds. One result per cell, in order."""
    environment.require_root()
    environment.require_workload()
    environment.require_tarsier()
    chosen = [cell for cell in cells if cell.side in sides]
    with environment.scratch_directory() as scratch:
        for number in range(count):
            say_round(name, number, count, f"{len(chosen)} cells")
            for cell in rotated(chosen, number):
                visit(cell, scratch, workloads)
    return [cell.result() for cell in chosen]


def say_round(name: str, number: int, count: int, what: str) -> None:
    """Prints progress on standard error."""
    print(f"{name}: round {number + 1} of {count}, {what}", file=sys.stderr)


def parse_latency(text: str) -> Visit:
    """Parses the output of `workload --latency`. BenchError unless it has every probe."""
    found = {}
    for line in text.splitlines():
        words = line.split("\t")
        if len(words) == 3 and words[0] in PROBES:
            found[words[0]] = (float(words[1]), float(words[2]))
    if set(found) != set(PROBES):
        raise BenchError(f"the workload measured only {sorted(found)}; it printed:\n{text}")
    return found


def latency_workload(calls: int) -> list[Workload]:
    """The workload that runs each probe in five loops of `calls` calls."""
    command: list[str | Path] = [WORKLOAD, "--latency", "--rounds", "5", "--calls", str(calls)]
    return [(command, parse_latency)]
