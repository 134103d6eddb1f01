"""Measures a row: the producers of hammer.c, a logger, and what the logger writes."""

import argparse
import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

from ... import loggers
from ...audit import audit_to_ourselves, auditctl
from ...cells import rotated, say_round
from ...environment import (
    BENCH,
    ROOT,
    TARSIER,
    BenchError,
    compile_c,
    output_of,
    require_root,
    require_tarsier,
    scratch_directory,
)
from .rows import GID, MARK, Row, make_rows, sealing_rows

# Longest time for a logger to write what is queued: auditd with SYNC needs half a minute.
DRAIN_S = 1.0
LOSSLESS_DRAIN_S = 40.0
QUIET_S = 0.2
# The disk may pause longer while auditd syncs each record.
LOSSLESS_QUIET_S = 1.0
LATE_NAMES = ("p50", "p99", "p99.9", "max")


class RowResult(TypedDict, total=False):
    """One row. Names of times end in their unit.

    `made` and `logged`: numbers of events; `lost`: their difference. `late_us`: {percentile: how
    late the timer was}. `durable_after_us`: p50, p99 and maximum. `counted_lost`: Tarsier's count.
    """

    side: str
    label: str
    producers: int
    rate: int
    long: bool
    settings: list[str]
    calls_per_s: int
    made: int
    late_us: dict[str, float]
    logger_cpu_s: float
    bytes: int
    logged: int
    lost: int
    logged_per_s: int
    durable_after_us: list[float]
    counted_lost: int


class Pair(TypedDict):
    """Rows measured in interleaved rounds of `seconds`: {label: a result per round}."""

    rounds: int
    seconds: float
    rows: dict[str, list[RowResult]]


def configuration(row: Row, scratch: Path) -> None:
    """Writes auditd.conf for a row, laurel's files and the key of seals if the row needs them."""
    loggers.configuration(scratch, row.settings)
    if row.laurel:
        (scratch / "laurel.toml").write_text(
            f'directory = "{scratch}/laurel"\n[auditlog]\nfile = "audit.log"\n'
        )
        conf = scratch / "plugins.d" / "laurel.conf"
        conf.write_text(
            f"active = yes\ndirection = out\npath = {row.laurel}\ntype = always\n"
            f"args = --config {scratch}/laurel.toml\nformat = string\n"
        )
        conf.chmod(0o640)
    if row.sealed:
        log, key = scratch / "audit.log", scratch / "key"
        output_of([TARSIER, "seal", "init", "--log-file", log, "--key", key, "--on-disk"])


class Producers:
    """The process of hammer.c that makes a row's calls."""

    def __init__(self, row: Row, hammer: Path, seconds: float) -> None:
        self.row, self.seconds = row, seconds
        task = ["calls", str(GID), str(row.producers), str(seconds), str(row.rate)]
        if row.execs:
            task = ["execs", str(GID), str(seconds), str(row.rate)]
        if row.by_process:
            task = ["held", str(GID), str(seconds)]
        self.command: list[str | Path] = [hammer, *task]
        self.held: subprocess.Popen[str] | None = None

    def rule(self) -> str:
        """The rule of the row. If it names the process, this is started, and waits."""
        if not self.row.by_process:
            return self.row.rule
        pipe = subprocess.PIPE
        self.held = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True)
        return self.row.rule.format(pid=self.held.pid)

    def run(self) -> int:
        """Number of calls made."""
        if self.held is None:
            return calls_made(output_of(self.command))
        said = self.held.communicate()[0]
        if self.held.returncode != 0:
            raise BenchError(f"hammer ended with {self.held.returncode}")
        return calls_made(said)

    def end(self) -> None:
        """Ends a process that still waits."""
        if self.held is not None:
            loggers.end(self.held)


def rule_without_context(producers: Producers) -> str:
    """The rule of a row; a process that it names is created without an audit context."""
    with loggers.native():
        return producers.rule()


@contextlib.contextmanager
def logger(row: Row, scratch: Path, producers: Producers) -> Iterator[int | None]:
    """The logger of a row, with its rule loaded; its process id."""
    with contextlib.ExitStack() as stack:
        stack.callback(producers.end)
        if row.side == "auditd":
            one = loggers.auditd(scratch, row.wait, lambda: auditctl(*producers.rule().split()))
            yield stack.enter_context(one)
        elif row.side == "tarsier":
            rule = rule_without_context(producers) if row.by_process else producers.rule()
            yield stack.enter_context(loggers.tarsier(scratch, [rule]))
        else:
            yield stack.enter_context(loggers.native())


def key_pattern(row: Row) -> str:
    """A pattern for a rule's events, RAW or JSON; the kernel's other records have no key."""
    call = f" .*a0={MARK} .*" if row.by_process else " .*"
    return f'(^type=SYSCALL{call}key="{row.key}"|"key":\\["{row.key}"\\])'


def percentiles(output: str) -> list[float]:
    """p50, p99, p99.9 and maximum in µs, from the output of hammer's timer or appends."""
    found = [float(word) for word in output.split()[2:]]
    if len(found) != len(LATE_NAMES):
        raise BenchError(f"hammer: expected {len(LATE_NAMES)} percentiles, it printed: {output!r}")
    return found


def calls_made(output: str) -> int:
    """Number of calls of all producers, from the output of hammer's calls or execs."""
    return sum(int(line.split()[1]) for line in output.splitlines())


def start_of(row: Row) -> RowResult:
    """The first columns of every row."""
    return {
        "side": row.side,
        "label": row.label,
        "producers": row.producers,
        "rate": row.rate,
        "long": row.is_long,
    }


def measure_disk(row: Row, hammer: Path, seconds: float) -> RowResult:
    """Measures a row without a logger: the best that any logger could reach."""
    with tempfile.NamedTemporaryFile(prefix="tarsier-bench-") as file:
        text = output_of([hammer, "appends", file.name, str(seconds), str(row.rate)])
    p50, p99, _, longest = percentiles(text)
    return {**start_of(row), "durable_after_us": [p50, p99, longest]}


def produce(row: Row, hammer: Path, producers: Producers) -> RowResult:
    """Runs the producers, and the timer at the same time."""
    seconds = producers.seconds
    timer = subprocess.Popen([hammer, "timer", str(seconds)], stdout=subprocess.PIPE, text=True)
    try:
        made = producers.run()
        late = percentiles(timer.communicate()[0])
    finally:
        loggers.end(timer)
    return {
        **start_of(row),
        "settings": row.settings,
        "calls_per_s": round(made / seconds),
        "made": made,
        "late_us": dict(zip(LATE_NAMES, late, strict=True)),
    }


def add_logged(row: Row, result: RowResult, log: Path, status: dict[str, Any]) -> None:
    """What the logger has written."""
    if row.is_long:  # The log was rotated away.
        size, logged = status["log_bytes"], status["events_recorded"]
    else:
        size, logged = log.stat().st_size, loggers.count_lines(log, key_pattern(row))
    result["bytes"], result["logged"] = size, logged
    result["lost"] = result["made"] - logged
    if row.side == "tarsier":
        result["durable_after_us"] = status["durable_after_us"]
        result["counted_lost"] = sum(status["lost"].values())


def measure_logger(
    row: Row, hammer: Path, producers: Producers, scratch: Path, pid: int
) -> RowResult:
    """Measures a row with a logger, whose process this is."""
    log = scratch / "audit.log"
    spent_s, start = loggers.processor_s(pid), time.monotonic()
    result = produce(row, hammer, producers)
    size_meanwhile = loggers.size_of(log) or 0
    if row.wait:
        loggers.wait_for_quiet(log, LOSSLESS_QUIET_S, LOSSLESS_DRAIN_S)
    else:
        loggers.wait_for_quiet(log, QUIET_S, DRAIN_S)
    took_s = time.monotonic() - start
    result["logger_cpu_s"] = round(loggers.processor_s(pid) - spent_s, 2)
    add_logged(row, result, log, loggers.tarsier_status(scratch) if row.side == "tarsier" else {})
    logged = result["logged"]
    if row.wait:  # What was queued when the producer ended is not a part of its rate.
        logged = round(logged * size_meanwhile / result["bytes"])
    # If the producer is slowed down, its time counts.
    slowed = row.side == "tarsier" or row.wait
    result["logged_per_s"] = round(logged / (producers.seconds if slowed else took_s))
    return result


def measure(row: Row, hammer: Path, seconds: float) -> RowResult:
    """Measures one row. Raises BenchError if Tarsier has not counted what it lost."""
    if row.side == "disk":
        return measure_disk(row, hammer, seconds)
    producers = Producers(row, hammer, seconds)
    with scratch_directory() as scratch:
        configuration(row, scratch)
        with logger(row, scratch, producers) as pid:
            if pid:
                result = measure_logger(row, hammer, producers, scratch, pid)
            else:
                result = produce(row, hammer, producers)
    if row.side == "tarsier" and result["lost"] != result["counted_lost"]:
        missing, counted = result["lost"], result["counted_lost"]
        raise BenchError(f"{row.label}: {missing} events are missing, {counted} were counted")
    return result


def measure_pair(name: str, hammer: Path, rounds: int, seconds: float) -> Pair:
    """Measures the pair, not sealed and sealed, in interleaved rounds."""
    rows = sealing_rows()
    found: dict[str, list[RowResult]] = {row.label: [] for row in rows}
    for number in range(rounds):
        say_round(name, number, rounds, "not sealed and sealed")
        for row in rotated(rows, number):
            found[row.label].append(measure(row, hammer, seconds))
    return {"rounds": rounds, "seconds": seconds, "rows": found}


def measure_all(name: str, chosen: argparse.Namespace) -> tuple[list[RowResult], Pair]:
    """Measures all rows in order, then the pair in interleaved rounds."""
    require_root()
    require_tarsier()
    results = []
    with scratch_directory() as build, audit_to_ourselves("before the first row"):
        hammer = compile_c(BENCH / "hammer.c", build)
        for row in make_rows(chosen.producers):
            print(f"{name}: {row.label}", file=sys.stderr)
            seconds = chosen.long_seconds if row.is_long else chosen.seconds
            results.append(measure(row, hammer, seconds))
        pair = measure_pair(name, hammer, chosen.rounds, chosen.pair_seconds)
    return results, pair


def measure_encoder() -> list[list[str]]:
    """Rows [format, ns per event, bytes] from the example of crates/log/record, built by cargo."""
    command = ["cargo", "run", "-q", "--release", "-p", "tarsier-record"]
    text = output_of([*command, "--example", "encode_speed"], ROOT)
    return [line.split() for line in text.splitlines()]
