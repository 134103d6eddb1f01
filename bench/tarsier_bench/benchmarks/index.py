"""An index like UnixBench's, in instructions, with and without AppArmor and BPF LSM.

In virtual machines whose clock counts instructions (cargo xtask vm -- index-icount): Linux 6.1, and
6.12, whose security modules are called by static calls; each with the distribution's modules, and
with `lsm=capability`. The workloads are tests/vm/loads.c: those of UnixBench's kinds, eventfd, and
sockets of the loopback interface. On each machine they run natively (twice), under Debian's STIG
rules with both eBPF engines, and with the kernel's audit.
"""

import argparse
import statistics
from pathlib import Path
from typing import TypedDict, cast

from .. import options, stats, vm
from ..charts import Series, bar_chart
from ..environment import BenchError
from ..results import Benchmark, Measured, Record, Report
from ..tables import WITHIN_NOISE, markdown, signed_percent

NAME = "index"
TEST = "index-icount"
KERNELS = ["6.1", "6.12"]
VARIANTS = {"": "all modules", "no-lsm": "no modules"}
SIDES = {
    "native": "native",
    "native-again": "native again",
    "kernel-audit": "kernel audit",
    "trampoline": "Tarsier trampoline",
    "tracepoint": "Tarsier tracepoint",
}
LOADS = {
    "arithmetic": "arithmetic, in place of Dhrystone",
    "execl": "execl",
    "copy256": "file copy, blocks of 256",
    "copy1024": "file copy, blocks of 1024",
    "copy4096": "file copy, blocks of 4096",
    "pipe": "pipe throughput",
    "context": "pipe-based context switching",
    "spawn": "process creation",
    "shell": "shell scripts",
    "syscall": "system calls",
}
# Not part of the index.
MORE = {
    "eventfd": "eventfd and close",
    "requests": "request and response, TCP",
    "packets": "packets, UDP",
}


class Machine(TypedDict):
    """Instructions of each workload per unit, by side; `modules`: active security modules."""

    series: str
    kernel: str
    variant: str
    modules: str
    sides: dict[str, dict[str, float]]


def read_side(path: Path) -> dict[str, float]:
    """Reads the output of `loads`: workload, amount, elapsed ns, ns of processor time."""
    found: dict[str, float] = {}
    for line in path.read_text().splitlines():
        load, amount, _, processor_ns = line.split("\t")
        instructions = round(int(processor_ns) / int(amount), 1)
        found[load] = min(found.get(load, instructions), instructions)
    if set(found) != {*LOADS, *MORE}:
        raise BenchError(f"{path}: other workloads than expected: {', '.join(found)}")
    return found


def read_machine(series: str, kernel: str, variant: str) -> Machine:
    """Reads the files of one machine."""
    directory = vm.directory_of(kernel, TEST, variant)
    return {
        "series": series,
        "kernel": kernel,
        "variant": variant,
        "modules": (directory / "lsm").read_text().strip(),
        "sides": {side: read_side(directory / side) for side in SIDES},
    }


def measure(_chosen: argparse.Namespace) -> Measured | None:
    """Runs all machines; None if one of them cannot run."""
    said = vm.output_of_run(NAME, KERNELS, TEST, list(VARIANTS))
    machines = []
    for series in KERNELS:
        for variant in VARIANTS:
            kernel = vm.kernel_of(said, TEST, series, variant)
            if kernel is None:
                print(said, end="")
                return None
            machines.append(read_machine(series, kernel, variant))
    kernels = dict.fromkeys(machine["kernel"] for machine in machines)
    return Measured(NAME, {**vm.about(" and ".join(kernels)), "machines": machines})


def label(machine: Machine) -> str:
    """A machine's name."""
    return f"{machine['series']}, {VARIANTS[machine['variant']]}"


def index(machine: Machine, side: str, base: Machine) -> float:
    """The geometric mean over the index's workloads; native on the base machine has 100."""
    ours, theirs = machine["sides"][side], base["sides"]["native"]
    return 100 * statistics.geometric_mean(theirs[load] / ours[load] for load in LOADS)


def noise_percent(machine: Machine, load: str) -> float:
    """How much native differs from itself."""
    native, again = machine["sides"]["native"][load], machine["sides"]["native-again"][load]
    return abs(stats.percent_added(again, native))


def index_table(machines: list[Machine]) -> str:
    """A row per machine, a column per side."""
    rows = [
        [label(machine), *(f"{index(machine, side, machines[0]):.1f}" for side in SIDES)]
        for machine in machines
    ]
    return markdown(["index: kernel, security modules", *SIDES.values()], rows)


def native_table(machines: list[Machine]) -> str:
    """Instructions per unit natively; what the modules take, by kernel."""
    rows = []
    for load, name in (LOADS | MORE).items():
        row = [name]
        for with_modules, without in zip(machines[::2], machines[1::2], strict=True):
            one, other = (m["sides"]["native"][load] for m in (with_modules, without))
            added = stats.percent_added(one, other)
            noise = max(noise_percent(m, load) for m in (with_modules, without))
            said = WITHIN_NOISE if stats.is_noise(added, noise) else signed_percent(added)
            row += [f"{one:,.0f}", f"{other:,.0f}", said]
        rows.append(row)
    header = ["instructions per unit, natively"]
    for series in KERNELS:
        header += [*(f"{series}, {name}" for name in VARIANTS.values()), "modules add"]
    return markdown(header, rows)


def sides_table(machine: Machine) -> str:
    """What each side adds to native on one machine."""
    rows = []
    for load, name in (LOADS | MORE).items():
        native, row = machine["sides"]["native"][load], [f"{name} ({label(machine)})"]
        for side in list(SIDES)[1:]:
            added = stats.percent_added(machine["sides"][side][load], native)
            is_again = side == "native-again"
            is_noise = not is_again and stats.is_noise(added, noise_percent(machine, load))
            row.append(WITHIN_NOISE if is_noise else signed_percent(added))
        rows.append(row)
    return markdown(["added to native", *list(SIDES.values())[1:]], rows)


def report(record: Record, _stem: str) -> Report:
    """The report: indexes, native workloads, and what the sides add."""
    machines, line = cast(list[Machine], record["machines"]), vm.line(record)
    parts = "\n".join(map(sides_table, machines))
    modules = "\n".join(f"* {label(m)}: {m['modules']}" for m in machines)
    text = (
        "# An index like UnixBench's, in instructions\n\n"
        "The quickest of three runs. Index: the geometric mean of the workloads but the last "
        f"three, compared with native on {label(machines[0])} (100); more is faster. {line} "
        "Made by `bench/run index`.\n\n"
        f"Active security modules:\n\n{modules}\n\n"
        f"{index_table(machines)}\n{native_table(machines)}\n{parts}"
    )
    series = [
        Series(name, [round(index(machine, side, machines[0]), 1) for machine in machines])
        for side, name in SIDES.items()
        if side != "native-again"
    ]
    title = "Index of workloads like UnixBench's, by kernel and security modules"
    return Report(text, bar_chart(title, line, [label(m) for m in machines], series, ("", "index")))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds --out."""
    options.add_out(parser)


BENCHMARK = Benchmark(NAME, __doc__ or "", add_options, measure, report)
