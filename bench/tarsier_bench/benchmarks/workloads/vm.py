"""Workloads in a virtual machine whose clock counts instructions."""

import re
import subprocess
import sys
from pathlib import Path

from ...environment import ROOT, TARGET, BenchError
from ...results import Record, today
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


def kernel_of(said: str) -> str | None:
    """The kernel in the output of the run, if it succeeded."""
    found = re.search(r"^ok: kernel (\S+): workloads-icount$", said, re.MULTILINE)
    return found[1] if found else None


def measure(name: str, series: str) -> Record | None:
    """Makes one run; None, with the reason printed, if no virtual machine can run.

    The run fails if an event is lost.
    """
    # With output: cargo builds first, and the machine takes minutes.
    command = ["cargo", "xtask", "vm", "--kernel", series, "--", "workloads-icount"]
    print(f"{name}: {' '.join(command)}", file=sys.stderr)
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    kernel = kernel_of(done.stdout)
    if kernel is None:
        if "skipped:" in done.stdout:
            print(done.stdout, end="")
            return None
        raise BenchError(f"{' '.join(command)}:\n{done.stdout}")
    runs = TARGET / "vm/runs" / kernel
    directory = runs / "instruction-clock/results/workloads-icount"
    return {
        "kernel": kernel,
        "date": today(),
        "unit": "instructions",
        "sides": [read_side(directory / side, label) for side, label in SIDES.items()],
    }
