"""System calls under seccomp filters: none, from the bitmap, full, and those that people run.

The rows are: those of the kernel's own seccomp_benchmark (native, 1 and 2 filters that the bitmap
answers, 3 and 4 with full ones); Docker's default profile from libseccomp and from Tarsier; the 34
filters of a hardened systemd unit; and the filter that `tarsier seccomp merge` makes from those.
Needs neither root nor audit.
"""

import argparse
import struct
from pathlib import Path
from typing import TypedDict

from .. import options
from ..cells import Visit, rotated, say_round
from ..charts import Series, bar_chart
from ..environment import (
    BENCH,
    ROOT,
    TARSIER,
    BenchError,
    bytes_of,
    compile_c,
    output_of,
    require_tarsier,
    scratch_directory,
)
from ..results import Benchmark, Measured, Record, Report, about, machine_line
from ..stats import Timing, timing
from ..tables import markdown

NAME = "seccomp"
DATA = ROOT / "crates/seccomp/tests/data"
PROBES = ["getpid", "personality", "clone", "socket", "mmap", "openat"]
ATTACH = "attach"
# Size of a struct sock_filter.
INSN_BYTES = 8
ALLOW = struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)
# Loads an argument, so that the kernel cannot know the answer beforehand.
FULL = struct.pack("<HBBI", 0x20, 0, 0, 16) + ALLOW


class FilterResult(TypedDict):
    """One row: number of filters of a process, and of instructions in all of them."""

    label: str
    filters: int
    insns: int
    ns: dict[str, Timing]


def chain(name: str) -> list[bytes]:
    """The filters in a file of test data, oldest first."""
    return [bytes.fromhex(part) for part in (DATA / f"{name}.hex").read_text().split("\n\n")]


def tarsier(*arguments: str | Path) -> list[bytes]:
    """A filter that Tarsier makes."""
    return [bytes_of([TARSIER, "seccomp", *arguments, "--format", "raw"])]


def rows() -> dict[str, list[bytes]]:
    """The filters of each row, oldest first."""
    return {
        "native": [],
        "1 filter, bitmap": [ALLOW],
        "2 filters, bitmap": [ALLOW] * 2,
        "3 filters, full": [ALLOW] * 2 + [FULL],
        "4 filters, full": [ALLOW] * 2 + [FULL] * 2,
        "Docker, libseccomp linear": chain("libseccomp-3arch-linear.bpf"),
        "Docker, libseccomp tree": chain("libseccomp-3arch-tree.bpf"),
        "Docker, as runc installs it": chain("runc-docker"),
        "Docker, compiled by Tarsier": tarsier("compile", "docker"),
        "Docker by runc, optimised": tarsier("optimise", DATA / "runc-docker.hex"),
        "systemd hardened, 34 filters": chain("systemd-hardened"),
        "systemd hardened, merged": tarsier("merge", DATA / "systemd-hardened.hex"),
    }


def parse(text: str) -> Visit:
    """{call: (minimum, median)} in ns, from the output of seccomp_calls."""
    words = map(str.split, text.splitlines())
    found = {name: (float(low), float(middle)) for name, low, middle in words}
    if set(found) != {*PROBES, ATTACH}:
        raise BenchError(f"seccomp_calls measured only {sorted(found)}; it printed:\n{text}")
    return found


def visit(program: Path, directory: Path, filters: list[bytes], calls: int) -> Visit:
    """Runs one process under these filters."""
    paths = [directory / f"filter.{index}" for index in range(len(filters))]
    for path, program_bytes in zip(paths, filters, strict=True):
        path.write_bytes(program_bytes)
    return parse(output_of([program, str(calls), *paths], directory))


def result(label: str, filters: list[bytes], visits: list[Visit]) -> FilterResult:
    """The row of all visits."""
    ns = {
        probe: timing([one[probe][0] for one in visits], [one[probe][1] for one in visits])
        for probe in visits[0]
    }
    insns = sum(map(len, filters)) // INSN_BYTES
    return {"label": label, "filters": len(filters), "insns": insns, "ns": ns}


def measure(chosen: argparse.Namespace) -> Measured:
    """Measures all rows in interleaved rounds."""
    require_tarsier()
    filters = rows()
    visits: dict[str, list[Visit]] = {label: [] for label in filters}
    with scratch_directory() as scratch:
        program = compile_c(BENCH / "seccomp_calls.c", scratch, "-std=gnu11", "-Werror")
        for number in range(chosen.rounds):
            say_round(NAME, number, chosen.rounds, f"{len(filters)} rows")
            for label in rotated(list(filters), number):
                visits[label].append(visit(program, scratch, filters[label], chosen.calls))
    results = [result(label, filters[label], visits[label]) for label in filters]
    return Measured(NAME, {**about(chosen.rounds, chosen.calls), "cells": results})


def table(results: list[FilterResult]) -> str:
    """A table with a row per chain of filters."""
    lines = []
    for found in results:
        ns = found["ns"]
        lines.append(
            [
                found["label"],
                str(found["filters"]),
                str(found["insns"]),
                *(f"{ns[probe]['min']:.0f} ({ns[probe]['median']:.0f})" for probe in PROBES),
                f"{ns[ATTACH]['median'] / 1000:.0f}",
            ]
        )
    header = ["ns per call", "filters", "instructions", *PROBES, "attach, µs"]
    return markdown(header, lines)


def plot(results: list[FilterResult], line: str) -> str:
    """A plot of the minima of all rows except those with 2 and 3 filters."""
    series = [
        Series(found["label"], [found["ns"][probe]["min"] for probe in PROBES])
        for found in results
        if not found["label"].startswith(("2 ", "3 "))
    ]
    return bar_chart(
        "System calls under seccomp filters",
        line,
        PROBES,
        series,
        ("system call", "ns per call, minimum"),
    )


def report(record: Record, _stem: str) -> Report:
    """The report: a row per chain of filters."""
    results, line = record["cells"], machine_line(record)
    text = (
        "# System calls under seccomp filters\n\n"
        "Minimum (median) in ns per call; calls that fail at once. "
        "`attach` is the median time to take all filters. A denied call is cheaper than the call "
        "itself: personality and socket under the hardened unit.\n"
        f"{line} Made by `bench/run {NAME}`.\n\n{table(results)}"
    )
    return Report(text, plot(results, line))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for rounds and calls."""
    options.add_rounds(parser, 20, "row")
    options.add_calls(parser, 1000)
    options.add_out(parser)


BENCHMARK = Benchmark(NAME, __doc__ or "", add_options, measure, report)
