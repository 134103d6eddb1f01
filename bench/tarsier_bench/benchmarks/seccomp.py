"""System calls under seccomp filters: none, from the bitmap, full, and those that people run.

The rows are: those of the kernel's own seccomp_benchmark (native, 1 and 2 filters that the bitmap
answers, 3 and 4 with full ones); Docker's default profile from libseccomp and from Tarsier; the 34
filters of a hardened systemd unit; and the filter that `tarsier seccomp merge` makes from those.
Estimates and expectations are those of the kernel's program. Three servers, each with a client on
the loopback interface (tests/vm/loads.c, keyvalue.c), run under Docker's profile as it is,
optimised, and compiled by Tarsier. Needs neither root nor audit.
"""

import argparse
import statistics
import struct
from pathlib import Path
from typing import TypedDict

from .. import options, stats
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
from ..tables import WITHIN_NOISE, markdown, signed_percent

NAME = "seccomp"
DATA = ROOT / "crates/seccomp/seccomp/tests/data"
PROBES = ["getpid", "personality", "clone", "socket", "mmap", "openat"]
ATTACH = "attach"
# Size of a struct sock_filter.
INSN_BYTES = 8
ALLOW = struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000)
# Loads an argument, so that the kernel cannot know the answer beforehand.
FULL = struct.pack("<HBBI", 0x20, 0, 0, 16) + ALLOW


# How much two figures that are expected to be alike may differ, in percent.
ALIKE_PERCENT = 10
JIT = Path("/proc/sys/net/core")
JIT_SETTINGS = ("bpf_jit_enable", "bpf_jit_harden", "bpf_jit_kallsyms")
# Servers: the workload of loads.c, or keyvalue.c, and its amount.
KEY_VALUE = "keyvalue"
SERVERS = {
    "HTTP, a connection each": ("http", 1000),
    "keys and values": (KEY_VALUE, 10000),
    "request and response": ("requests", 10000),
}
SERVED = (
    "native",
    "Docker, as runc installs it",
    "Docker by runc, optimised",
    "Docker, compiled by Tarsier",
)


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


def write_filters(directory: Path, filters: list[bytes]) -> list[Path]:
    """Writes each filter to a file."""
    paths = [directory / f"filter.{index}" for index in range(len(filters))]
    for path, program_bytes in zip(paths, filters, strict=True):
        path.write_bytes(program_bytes)
    return paths


def visit(program: Path, directory: Path, filters: list[bytes], calls: int) -> Visit:
    """Runs one process under these filters."""
    paths = write_filters(directory, filters)
    return parse(output_of([program, str(calls), *paths], directory))


def result(label: str, filters: list[bytes], visits: list[Visit]) -> FilterResult:
    """The row of all visits."""
    ns = {
        probe: timing([one[probe][0] for one in visits], [one[probe][1] for one in visits])
        for probe in visits[0]
    }
    insns = sum(map(len, filters)) // INSN_BYTES
    return {"label": label, "filters": len(filters), "insns": insns, "ns": ns}


def jit_settings() -> dict[str, str]:
    """Settings of the kernel's compiler for filters; only root may read some."""
    found = {}
    for name in JIT_SETTINGS:
        try:
            found[name] = (JIT / name).read_text().strip()
        except OSError as error:
            found[name] = error.strerror or "unknown"
    return found


def serve(program: Path, directory: Path, filters: list[bytes]) -> dict[str, float]:
    """Requests per second of each server, under these filters. `directory` has the servers."""
    paths = write_filters(directory, filters)
    found = {}
    for label, (load, amount) in SERVERS.items():
        server: list[str | Path] = [directory / "loads", directory, load]
        if load == KEY_VALUE:
            server = [directory / KEY_VALUE]
        text = output_of([program, "--run", *paths, "--", *server, str(amount)], directory)
        _, _, elapsed_ns, _ = text.split("\t")
        found[label] = 1e9 * amount / int(elapsed_ns)
    return found


def measure_servers(program: Path, scratch: Path, rounds: int) -> dict[str, dict[str, list[float]]]:
    """{row: {server: requests per second in each round}}, in interleaved rounds."""
    filters = rows()
    loads = compile_c(ROOT / "tests/vm/loads.c", scratch)
    compile_c(BENCH / "keyvalue.c", scratch)
    output_of([loads, "prepare", scratch, "1"], scratch)
    found: dict[str, dict[str, list[float]]] = {
        label: {server: [] for server in SERVERS} for label in SERVED
    }
    for number in range(rounds):
        say_round(NAME, number, rounds, f"servers under {len(SERVED)} rows")
        for label in rotated(list(SERVED), number):
            for server, rate in serve(program, scratch, filters[label]).items():
                found[label][server].append(round(rate, 1))
    return found


def measure(chosen: argparse.Namespace) -> Measured:
    """Measures all rows in interleaved rounds, then the servers."""
    require_tarsier()
    filters = rows()
    visits: dict[str, list[Visit]] = {label: [] for label in filters}
    with scratch_directory() as scratch:
        program = compile_c(BENCH / "seccomp_calls.c", scratch, "-std=gnu11", "-Werror")
        for number in range(chosen.rounds):
            say_round(NAME, number, chosen.rounds, f"{len(filters)} rows")
            for label in rotated(list(filters), number):
                visits[label].append(visit(program, scratch, filters[label], chosen.calls))
        servers = measure_servers(program, scratch, chosen.rounds)
    results = [result(label, filters[label], visits[label]) for label in filters]
    facts = {**about(chosen.rounds, chosen.calls), "jit": jit_settings()}
    return Measured(NAME, {**facts, "cells": results, "servers": servers})


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


def estimates(getpid: list[float]) -> dict[str, float]:
    """The estimates of the kernel's program, in ns.

    `getpid`: natively, with 1 and 2 filters that the bitmap answers, and with 3 and 4 of which the
    last ones run.
    """
    native, one, two, three, four = getpid
    entry = one - native - (two - one)
    return {
        "by 1 filter, bitmap": one - native,
        "by 2 filters, bitmap": two - native,
        "by 3 filters, full": three - native,
        "by 4 filters, full": four - native,
        "entry": entry,
        "per filter (4th minus 3rd)": four - three,
        "per filter (all but entry, of 4)": (four - native - entry) / 4,
    }


def is_alike(one: float, other: float) -> bool:
    """Whether two figures are alike."""
    return abs(one - other) <= max(abs(one), abs(other)) * ALIKE_PERCENT / 100


def expectations(getpid: list[float]) -> dict[str, bool]:
    """The expectations of the kernel's program, and whether they are met."""
    native, one, two, three, four = getpid
    found = estimates(getpid)
    last, mean = found["per filter (4th minus 3rd)"], found["per filter (all but entry, of 4)"]
    return {
        "native ≤ 1 filter, bitmap": native <= one,
        "native ≤ 3 filters, full": native <= three,
        "both estimates per filter alike": is_alike(last, mean),
        "1 and 2 filters, bitmap, alike": is_alike(one - native, two - native),
        "entry and 1 filter, bitmap, alike": is_alike(found["entry"], one - native),
        "entry and 2 filters, bitmap, alike": is_alike(found["entry"], two - native),
        "native, entry and 4 per filter, and 4 filters, alike": is_alike(
            native + found["entry"] + 4 * last, four
        ),
    }


def estimates_table(results: list[FilterResult]) -> str:
    """The estimates, then the expectations, for getpid."""
    getpid = [found["ns"]["getpid"]["min"] for found in results[:5]]
    numbers = [[name, f"{value:.0f}"] for name, value in estimates(getpid).items()]
    verdicts = [[name, "yes" if so else "no"] for name, so in expectations(getpid).items()]
    return (
        markdown(["added to getpid, ns", ""], numbers) + "\n" + markdown(["expected", ""], verdicts)
    )


def servers_table(servers: dict[str, dict[str, list[float]]]) -> str:
    """The best round of each server, and the change from native unless it is within noise."""
    native, table_rows = servers["native"], []
    for label, rates in servers.items():
        row = [f"{label}, servers"]
        for server in SERVERS:
            best, base = max(rates[server]), max(native[server])
            # Rates are disturbed downwards: the medians bound the spread.
            width = max(
                max(all_) - statistics.median(all_) for all_ in (rates[server], native[server])
            )
            change = signed_percent(stats.percent_added(best, base))
            if stats.is_noise(base - best, width):
                change = WITHIN_NOISE
            row += [f"{best:,.0f}", "" if label == "native" else change]
        table_rows.append(row)
    header = ["requests per second"]
    for server in SERVERS:
        header += [server, "added"]
    return markdown(header, table_rows)


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


def jit_line(record: Record) -> str:
    """A sentence with the settings of the kernel's compiler; empty if they were not recorded."""
    if "jit" not in record:
        return ""
    return ", ".join(f"{name} {value}" for name, value in record["jit"].items()) + ". "


def report(record: Record, _stem: str) -> Report:
    """The report: a row per chain of filters."""
    results, line = record["cells"], machine_line(record)
    text = (
        "# System calls under seccomp filters\n\n"
        "Minimum (median) in ns per call; calls that fail at once. "
        "`attach` is the median time to take all filters. A denied call is cheaper than the call "
        "itself: personality and socket under the hardened unit.\n"
        f"{line} {jit_line(record)}Made by `bench/run {NAME}`.\n\n{table(results)}\n"
        "Estimates and expectations of the kernel's seccomp_benchmark, from these minima; alike: "
        f"within {ALIKE_PERCENT} %.\n\n{estimates_table(results)}"
    )
    if "servers" in record:
        text += (
            "\nServers with a client on the loopback interface, the best of all rounds.\n\n"
            f"{servers_table(record['servers'])}"
        )
    return Report(text, plot(results, line))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options for rounds and calls."""
    options.add_rounds(parser, 20, "row")
    options.add_calls(parser, 1000)
    options.add_out(parser)


BENCHMARK = Benchmark(NAME, __doc__ or "", add_options, measure, report)
