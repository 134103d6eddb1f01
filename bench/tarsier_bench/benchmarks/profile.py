"""Time inside the kernel's audit functions and inside Tarsier's programs, in instructions.

In a virtual machine whose clock counts instructions (cargo xtask vm -- profile-icount).

1. stat(2) 10,000 times, by number of rules, of which none selects it: the time in
   __audit_syscall_exit and __audit_syscall_entry by the kernel's tracer function_graph, beside the
   time that the kernel adds up of Tarsier's programs (kernel.bpf_stats_enabled). What measuring
   itself adds is measured in the same run, and subtracted: the tracer's time for a function that
   only returns, and the time of a program that does nothing. Beside them what a call takes in all,
   without tracer and statistics; that includes what leads to the functions and programs.
2. Which share of a profile audit takes: samples of the call stack, one every 50 µs of processor
   time, in or below functions of the kernel's audit, or BPF programs and what enters them.
"""

import argparse
from pathlib import Path
from typing import TypedDict, cast

from .. import vm
from ..charts import Series, line_chart
from ..environment import BenchError
from ..results import Benchmark, Measured, Record, Report
from ..tables import markdown

NAME = "profile"
TEST = "profile-icount"
CALLS = 10_000
COUNTS = list(range(0, 131, 10))
SETS = {"unwatched": "rules on another call", "watched": "rules on stat"}
ENGINES = {"trampoline": "Tarsier trampoline", "tracepoint": "Tarsier tracepoint"}
FUNCTIONS = {"exit": "__audit_syscall_exit", "entry": "__audit_syscall_entry"}
EMPTY_FUNCTION = "do_no_restart_syscall"
LOADS = {"stat": "stat", "nop": "NOPs", "inline": "polled reads", "sqpoll": "polled, SQPOLL"}
CASES = {
    "none.kernel-audit": "kernel audit enabled, no rules",
    "stig.kernel-audit": "kernel audit, STIG rules",
    "other.kernel-audit": "kernel audit, rule on another operation",
    "stig.trampoline": "Tarsier trampoline, STIG rules",
    "other.trampoline": "Tarsier trampoline, rule on another operation",
    "stig.tracepoint": "Tarsier tracepoint, STIG rules",
    "other.tracepoint": "Tarsier tracepoint, rule on another operation",
}
# Smaller shares are not shown of single functions.
SHOWN_SHARE = 0.001
# The group of functions of a side.
GROUPS = {"kernel-audit": "audit", "trampoline": "bpf", "tracepoint": "bpf"}


class Inside(TypedDict):
    """A set and a number of rules, ns of a call: in each function or program, and in all."""

    set: str
    side: str
    rules: int
    inside: dict[str, float]
    call: float


class Profile(TypedDict):
    """Samples of a load: all of them, those of the side's group, and those of its functions."""

    case: str
    load: str
    samples: int
    group: int
    functions: dict[str, int]


def words_of(path: Path) -> dict[str, list[str]]:
    """The lines of a file: {first word: the others}."""
    lines = (line.split() for line in path.read_text().splitlines())
    return {first: others for first, *others in lines}


def own_time(directory: Path) -> dict[str, float]:
    """Ns that measuring itself adds to a function, or to a program of each engine."""
    traced = words_of(directory / "own.kernel-audit")
    if EMPTY_FUNCTION not in traced:
        raise BenchError(f"{directory}/own.kernel-audit: no {EMPTY_FUNCTION} in {traced}")
    own = {"kernel-audit": float(traced[EMPTY_FUNCTION][0])}
    for engine in ENGINES:
        _, _, ns, runs = map(int, words_of(directory / f"own.{engine}")["program"])
        own[engine] = round(ns / runs, 1)
    return own


def read_inside(directory: Path, name: str, side: str, rules: int, own: float) -> Inside:
    """Reads a file of the first part."""
    words = words_of(directory / f"{name}.{side}.{rules}")
    inside = {}
    if side == "kernel-audit":
        for key, function in FUNCTIONS.items():
            inside[key] = round(float(words[function][0]) - own, 1)
    else:
        ns_before, runs_before, ns_after, runs_after = map(int, words["program"])
        runs = runs_after - runs_before
        # Each call runs one program at most. Some runs are of what reads the sums.
        inside["program"] = round((ns_after - ns_before - runs * own) / max(runs, CALLS), 1)
    call = float(words["call"][0])
    return {"set": name, "side": side, "rules": rules, "inside": inside, "call": call}


def read_profile(directory: Path, case: str, load: str) -> Profile:
    """Reads a file of the second part."""
    counts = {name: int(words[0]) for name, words in words_of(directory / f"{load}.{case}").items()}
    samples, groups = counts.pop("samples"), {one: counts.pop(one) for one in ("audit", "bpf")}
    group = GROUPS[case.partition(".")[2]]
    return {
        "case": case,
        "load": load,
        "samples": samples,
        "group": groups[group],
        "functions": counts,
    }


def measure(chosen: argparse.Namespace) -> Measured | None:
    """Makes one run; None if no virtual machine can run."""
    found = vm.run(NAME, chosen.vm, TEST)
    if found is None:
        return None
    kernel, directory = found
    own = own_time(directory)
    inside = [
        read_inside(directory, name, side, rules, own[side])
        for name in SETS
        for side in ("kernel-audit", *ENGINES)
        for rules in COUNTS
    ]
    profiles = [read_profile(directory, case, load) for case in CASES for load in LOADS]
    # The kernel may still have to do with its start when the first one is measured.
    native = min(
        float(words_of(directory / f"{name}.call")["call"][0])
        for name in ("native", "native-again")
    )
    record = {"native": native, "own": own, "inside": inside, "profiles": profiles}
    return Measured(f"{NAME}-vm-{chosen.vm}", {**vm.about(kernel), **record})


def inside_table(inside: list[Inside], native: float) -> str:
    """A row per set and number of rules: ns per call inside, and added in all."""
    by_key = {(one["set"], one["side"], one["rules"]): one for one in inside}
    rows = []
    for name, label in SETS.items():
        for count in COUNTS:
            kernel = by_key[name, "kernel-audit", count]
            row = [f"{label}, {count}"]
            row += [f"{kernel['inside'][key]:.0f}" for key in FUNCTIONS]
            row.append(f"{kernel['call'] - native:.0f}")
            for engine in ENGINES:
                ours = by_key[name, engine, count]
                row += [f"{ours['inside']['program']:z.0f}", f"{ours['call'] - native:z.0f}"]
            rows.append(row)
    header = ["instructions per stat", *FUNCTIONS.values(), "kernel audit, in all"]
    for label in ENGINES.values():
        header += [f"{label}, programs", "in all"]
    return markdown(header, rows)


def share(profile: Profile) -> str:
    """The share of the side's group."""
    return f"{100 * profile['group'] / profile['samples']:.1f} %"


def profile_table(profiles: list[Profile]) -> str:
    """A row per case: the share of each load's samples."""
    by_key = {(one["case"], one["load"]): one for one in profiles}
    rows = [
        [label, *(share(by_key[case, load]) for load in LOADS)] for case, label in CASES.items()
    ]
    return markdown(["share of samples", *LOADS.values()], rows)


def function_table(profiles: list[Profile]) -> str:
    """The functions in the profile of polled reads, by their share with what they call."""
    rows = []
    for one in profiles:
        if one["load"] != "inline":
            continue
        most = sorted(one["functions"].items(), key=lambda pair: -pair[1])[:3]
        named = ", ".join(
            f"{name} {100 * count / one['samples']:.1f} %"
            for name, count in most
            if count / one["samples"] >= SHOWN_SHARE
        )
        rows.append(f"| polled reads: {CASES[one['case']]} | {named or 'none'} |")
    lines = ["| share of samples | functions, each with those that it calls |", "|---|---|", *rows]
    return "\n".join(lines) + "\n"


def plot(inside: list[Inside], line: str) -> str:
    """A plot of the time in the exit function and in the programs."""
    series = []
    for name, about in SETS.items():
        for side in ("kernel-audit", *ENGINES):
            key = "exit" if side == "kernel-audit" else "program"
            label = FUNCTIONS["exit"] if key == "exit" else f"{ENGINES[side]}, programs"
            values = [
                one["inside"][key] for one in inside if one["set"] == name and one["side"] == side
            ]
            series.append(Series(f"{label}, {about}", values))
    title = "Time inside: the kernel's exit function, and Tarsier's programs, for a stat"
    counts = [str(count) for count in COUNTS]
    return line_chart(title, line, counts, series, ("rules", "instructions"))


def report(record: Record, stem: str) -> Report:
    """The report: time inside by number of rules, then the profiles."""
    inside, line = cast(list[Inside], record["inside"]), vm.line(record)
    profiles, own = cast(list[Profile], record["profiles"]), record["own"]
    series = stem.partition("-vm-")[2]
    text = (
        "# Time inside audit, in instructions\n\n"
        f"Mean of {CALLS:,} calls of stat; no rule selects them. In functions: by the tracer "
        f"function_graph, less the {own['kernel-audit']:.0f} that it shows for a function that "
        f"only returns. In programs: by kernel.bpf_stats_enabled, less {own['trampoline']:.0f} "
        f"(trampoline) and {own['tracepoint']:.0f} (tracepoint) for each run of a program, which "
        "an empty one has. In all: what a call takes more than natively, without tracer and "
        f"statistics. Natively a call takes {record['native']:.0f}. {line} Made by "
        f"`bench/run {NAME} --vm {series}`.\n\n"
        f"{inside_table(inside, record['native'])}\n"
        "Which share of a profile audit takes: samples of the call stack every 50 µs of "
        "processor time, in or below functions named audit_… and __audit_…; under Tarsier in or "
        "below BPF programs and what enters them. The loads are those of `bench/run polled` and "
        "`bench/run rings`; nobody audits their operations. Paths of the kernel that audit makes "
        "longer without a function of its own are not in these shares.\n\n"
        f"{profile_table(profiles)}\n{function_table(profiles)}"
    )
    return Report(text, plot(inside, line))


BENCHMARK = Benchmark(NAME, __doc__ or "", vm.add_options, measure, report)
