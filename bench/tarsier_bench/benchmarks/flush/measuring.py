"""Measures a row: the producers of hammer.c, a logger, and what the logger writes."""

import contextlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

from ... import loggers
from ...audit import audit_to_ourselves, auditctl
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
from .rows import GID, Row, make_rows

# Longest time for a logger to write what is queued: auditd with SYNC needs half a minute.
DRAIN_S = 1.0
LOSSLESS_DRAIN_S = 20.0
QUIET_S = 0.2
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


def logger(row: Row, scratch: Path) -> contextlib.AbstractContextManager[int | None]:
    """The logger of a row, with its rule loaded."""
    if row.side == "auditd":
        wait_time = 60000 if row.lossless else 0
        return loggers.auditd(scratch, wait_time, lambda: auditctl(*row.rule.split()))
    if row.side == "tarsier":
        return loggers.tarsier(scratch, [row.rule])
    return loggers.native()


def key_pattern(key: str) -> str:
    """A pattern for a rule's events, RAW or JSON; the kernel's other records have no key."""
    return f'(^type=SYSCALL .* key="{key}"|"key":\\["{key}"\\])'


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


def produce(row: Row, hammer: Path, seconds: float) -> RowResult:
    """Runs the producers, and the timer at the same time."""
    timer = subprocess.Popen([hammer, "timer", str(seconds)], stdout=subprocess.PIPE, text=True)
    try:
        if row.execs:
            task = ["execs", str(GID), str(seconds), str(row.rate)]
        else:
            task = ["calls", str(GID), str(row.producers), str(seconds), str(row.rate)]
        made = calls_made(output_of([hammer, *task]))
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


def add_logged(
    row: Row, result: RowResult, log: Path, status: dict[str, Any], seconds: float
) -> None:
    """What the logger has written in `seconds`."""
    if row.is_long:  # The log was rotated away.
        size, logged = status["log_bytes"], status["events_recorded"]
    else:
        size, logged = log.stat().st_size, loggers.count_lines(log, key_pattern(row.key))
    result["bytes"], result["logged"] = size, logged
    result["lost"] = result["made"] - logged
    result["logged_per_s"] = round(logged / seconds)
    if row.side == "tarsier":
        result["durable_after_us"] = status["durable_after_us"]
        result["counted_lost"] = sum(status["lost"].values())


def measure(row: Row, hammer: Path, seconds: float) -> RowResult:
    """Measures one row. Raises BenchError if Tarsier has not counted what it lost."""
    if row.side == "disk":
        return measure_disk(row, hammer, seconds)
    with scratch_directory() as scratch:
        log = scratch / "audit.log"
        configuration(row, scratch)
        with logger(row, scratch) as pid:
            spent_s, start = loggers.processor_s(pid) if pid else 0, time.monotonic()
            result = produce(row, hammer, seconds)
            if pid:
                loggers.wait_for_quiet(log, QUIET_S, LOSSLESS_DRAIN_S if row.lossless else DRAIN_S)
                took_s = time.monotonic() - start
                result["logger_cpu_s"] = round(loggers.processor_s(pid) - spent_s, 2)
                status = loggers.tarsier_status(scratch) if row.side == "tarsier" else {}
                # If the producer is slowed down, its time counts.
                slowed = row.side == "tarsier" or row.lossless
                add_logged(row, result, log, status, seconds if slowed else took_s)
    if row.side == "tarsier" and result["lost"] != result["counted_lost"]:
        missing, counted = result["lost"], result["counted_lost"]
        raise BenchError(f"{row.label}: {missing} events are missing, {counted} were counted")
    return result


def measure_rows(
    name: str, producers: Sequence[int], seconds: float, long_seconds: float
) -> list[RowResult]:
    """Measures all rows in order."""
    require_root()
    require_tarsier()
    results = []
    with scratch_directory() as build, audit_to_ourselves("before the first row"):
        hammer = compile_c(BENCH / "hammer.c", build)
        for row in make_rows(producers):
            print(f"{name}: {row.label}", file=sys.stderr)
            results.append(measure(row, hammer, long_seconds if row.is_long else seconds))
    return results


def measure_encoder() -> list[list[str]]:
    """Rows [format, ns per event, bytes] from the example of crates/event, built by cargo."""
    command = ["cargo", "run", "-q", "--release", "-p", "tarsier-event"]
    text = output_of([*command, "--example", "encode_speed"], ROOT)
    return [line.split() for line in text.splitlines()]
