"""Workloads in a virtual machine whose clock counts instructions."""

from pathlib import Path

from ... import vm
from ...environment import BenchError
from ...results import Record
from .tally import COLUMNS, SideResult, Tally

SIDES = {
    "native": "native",
    "native-again": "native again",
    "kernel-audit": "kernel audit",
    "trampoline": "Tarsier trampoline",
    "tracepoint": "Tarsier tracepoint",
}


def read_side(path: Path, label: str) -> SideResult:
    """Reads the results of a side from tests/vm/workloads-icount: a line per workload."""
    tally = Tally(path.name, label)
    for line in path.read_text().splitlines():
        load, *numbers = line.split("\t")
        if len(numbers) != len(COLUMNS):
            raise BenchError(f"{path}: expected a name and {len(COLUMNS)} numbers: {line!r}")
        tally.add(load, *map(int, numbers))
    return tally.result()


def measure(name: str, series: str) -> Record | None:
    """Makes one run; None, with the reason printed, if no virtual machine can run.

    The run fails if an event is lost.
    """
    found = vm.run(name, series, "workloads-icount")
    if found is None:
        return None
    kernel, directory = found
    sides = [read_side(directory / side, label) for side, label in SIDES.items()]
    return {**vm.about(kernel), "sides": sides}
