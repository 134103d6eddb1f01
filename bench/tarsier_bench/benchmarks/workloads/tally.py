"""The workloads, and a side's results for them in all rounds."""

import statistics
from typing import TypedDict, cast

# Columns of a run: those that loads prints, then the logger's time, events in the log, and
# candidates that it dropped.
COLUMNS = ("amount", "elapsed_ns", "processor_ns", "logger_ns", "events", "dropped")
# Name of a workload: its description, and the amount.
LOADS = {
    "syscall": ("system calls: dup, close, getpid, getuid, umask", 250000),
    "pipe": ("pipe throughput, 512 bytes", 250000),
    "context": ("pipe-based context switching", 40000),
    "spawn": ("process creation", 2000),
    "execl": ("execl", 500),
    "fswrite": ("file write, 2000 blocks of 1024 bytes", 150),
    "shell": ("shell scripts", 30),
    "find": ("find in the tree", 1),
    "tar": ("tar of the tree to a pipe", 1),
    "smallfiles": ("small files: create, read, append, delete", 5000),
    "http": ("HTTP requests, a connection each", 2500),
}


class Column(TypedDict):
    """One number of a workload, over all its runs."""

    min: int
    median: float
    max: int


class Load(TypedDict):
    """A workload on one side; `amount`: number of its units in each run."""

    amount: int
    elapsed_ns: Column
    processor_ns: Column
    logger_ns: Column
    events: Column
    dropped: Column


class SideResult(TypedDict):
    """One side; `lost`: number of events lost in all runs."""

    side: str
    label: str
    lost: int
    loads: dict[str, Load]


class Tally:
    """Results of a side in all rounds, by workload."""

    def __init__(self, side: str, label: str) -> None:
        self.side, self.label, self.lost = side, label, 0
        self.runs: dict[str, list[tuple[int, ...]]] = {}

    def add(self, load: str, *numbers: int) -> None:
        """Adds a run; `numbers` has one value for each of COLUMNS."""
        if len(numbers) != len(COLUMNS):
            raise ValueError(f"{load}: expected {len(COLUMNS)} numbers, got {len(numbers)}")
        self.runs.setdefault(load, []).append(numbers)

    def result(self) -> SideResult:
        """The summary of all runs."""
        return {
            "side": self.side,
            "label": self.label,
            "lost": self.lost,
            "loads": {load: summary(runs) for load, runs in self.runs.items()},
        }


def summary(runs: list[tuple[int, ...]]) -> Load:
    """The summary of one workload's runs."""
    columns = dict(zip(COLUMNS, zip(*runs, strict=True), strict=True))
    found: dict[str, object] = {"amount": min(columns.pop("amount"))}
    for name, values in columns.items():
        found[name] = {
            "min": min(values),
            "median": statistics.median(values),
            "max": max(values),
        }
    return cast(Load, found)
