"""The command line of bench/run."""

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from typing import NoReturn

from . import options
from .benchmarks import (
    flush,
    grid,
    index,
    latency,
    livelock,
    polled,
    profile,
    rings,
    samples,
    seccomp,
    share,
    slowdisk,
    uids,
    workloads,
)
from .environment import BenchError
from .results import Benchmark, read, write_record, write_report

# In the order in which they run if no name is given.
MODULES = (
    latency,
    share,
    uids,
    samples,
    rings,
    flush,
    seccomp,
    workloads,
    polled,
    grid,
    profile,
    slowdisk,
    livelock,
    index,
)
BENCHMARKS = {module.BENCHMARK.name: module.BENCHMARK for module in MODULES}
# Runs last: takes minutes in a virtual machine, with its own sizes of workloads.
IN_A_VM = ("workloads", ["--vm", "6.12"])
REDRAW = "redraw"
USAGE = "usage: bench/run [NAME] [OPTION…]"


def first_line(benchmark: Benchmark) -> str:
    """The first line of its description."""
    return benchmark.description.splitlines()[0]


def usage() -> str:
    """The output of `bench/run --help`."""
    names = "".join(f"  {name:<11}{first_line(one)}\n" for name, one in BENCHMARKS.items())
    return (
        f"{USAGE}\n\n"
        "Runs a benchmark, or without a name all of them, each with the options that it knows.\n"
        "`bench/run NAME --help` shows them. Results are written to bench/results.\n\n"
        f"{names}  {REDRAW:<11}Makes the tables and plots anew from the JSON; measures nothing.\n"
    )


def parser_of(benchmark: Benchmark) -> argparse.ArgumentParser:
    """A parser for the options of a benchmark."""
    parser = argparse.ArgumentParser(
        prog=f"bench/run {benchmark.name}",
        description=benchmark.description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    benchmark.add_options(parser)
    return parser


def run_one(benchmark: Benchmark, chosen: argparse.Namespace) -> None:
    """Measures, writes and prints the results. The measured values are written first."""
    try:
        measured = benchmark.measure(chosen)
        if measured is None:
            return
        write_record(chosen.out, measured)
        report = benchmark.report(measured.record, measured.stem)
        write_report(chosen.out, measured.stem, report)
    except BenchError as error:
        raise BenchError(f"{benchmark.name}: {error}") from error
    print(report.text, end="", flush=True)


def unknown_to_all(arguments: Sequence[str]) -> list[str]:
    """The arguments that no benchmark accepts, in order."""
    unknown = [parser_of(one).parse_known_args(arguments)[1] for one in BENCHMARKS.values()]
    return [word for word in arguments if all(word in words for words in unknown)]


def times(took_s: Sequence[tuple[str, float]]) -> str:
    """A line per benchmark with its time, and one with their sum."""
    lines = [*took_s, ("all", sum(seconds for _, seconds in took_s))]
    return "".join(f"{seconds / 60:6.1f} min  {name}\n" for name, seconds in lines)


def run_all(arguments: list[str]) -> None:
    """Runs every benchmark with the options that it accepts; the last one in a virtual machine.

    Prints how long each took.
    """
    unknown = unknown_to_all(arguments)
    if unknown:
        refuse(f"no benchmark knows {unknown[0]}")
    last, in_a_vm = IN_A_VM
    took_s = []
    for name, extra in (*((name, []) for name in BENCHMARKS), (last, in_a_vm)):
        chosen, _ = parser_of(BENCHMARKS[name]).parse_known_args([*extra, *arguments])
        start = time.monotonic()
        run_one(BENCHMARKS[name], chosen)
        took_s.append((" ".join([name, *extra]), time.monotonic() - start))
        print()
    print(times(took_s), end="")


def redraw(arguments: list[str]) -> None:
    """Makes the tables and plots of all results in the directory."""
    parser = argparse.ArgumentParser(
        prog=f"bench/run {REDRAW}",
        description="Makes the tables and plots of results anew, from the JSON beside them.",
        allow_abbrev=False,
    )
    options.add_out(parser)
    out = parser.parse_args(arguments).out
    paths = sorted(out.glob("*.json"))
    if not paths:
        raise BenchError(f"{out} holds no results")
    for path in paths:
        benchmark = BENCHMARKS.get(path.stem.split("-")[0])
        if benchmark is None:
            raise BenchError(f"{path} is not named after a benchmark")
        write_report(out, path.stem, benchmark.report(read(path), path.stem))


def refuse(why: str) -> NoReturn:
    """Ends with status 2, as argparse does."""
    print(f"{USAGE}\nbench/run: error: {why}; see bench/run --help", file=sys.stderr)
    sys.exit(2)


def dispatch(arguments: list[str]) -> None:
    """Runs what the command line asks for."""
    name = arguments[0] if arguments else ""
    if name in ("-h", "--help"):
        print(usage(), end="")
    elif name == REDRAW:
        redraw(arguments[1:])
    elif name in BENCHMARKS:
        run_one(BENCHMARKS[name], parser_of(BENCHMARKS[name]).parse_args(arguments[1:]))
    elif name and not name.startswith("-"):
        refuse(f"'{name}' is not a benchmark; expected: {', '.join([*BENCHMARKS, REDRAW])}")
    else:
        run_all(arguments)


def main() -> None:
    """Runs the command line; ends the process with its status."""
    # Raises an exception, so that `finally` blocks restore the state.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        dispatch(sys.argv[1:])
    except BenchError as error:
        sys.exit(f"bench/run: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
