"""What `tarsier plan` predicts for rule sets, and the same calls as measured."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

from ... import loggers, tables
from ...audit import audit_to_ourselves
from ...environment import (
    ROOT,
    TARSIER,
    WORKLOAD,
    compile_c,
    output_of,
    scratch_directory,
)
from ...results import CellResult, cells_along, require_native
from ...rules import tolerant, write_rules

# Time for which `tarsier plan` counts calls.
COUNT_S = 2
# Calls of each probe of `workload --latency` in the table.
PROBES = {"null": ["getppid"], "stat": ["stat"], "open+close": ["open", "close"]}
# Amount of work that takes longer than COUNT_S; the process is ended before.
ENDLESS = 1_000_000


class Price(TypedDict):
    """A set: calls that its rules name, their share of shell scripts' calls, ns of each probe."""

    named: int
    share: float
    ns: dict[str, float]


@contextlib.contextmanager
def running(command: Sequence[str | Path], directory: Path) -> Iterator[None]:
    """Runs a load as long as the context lasts."""
    null = subprocess.DEVNULL
    load = subprocess.Popen(command, cwd=directory, stdout=null, stderr=null, process_group=0)
    try:
        yield
    finally:
        # Its programs too, which otherwise fail one after the other.
        os.killpg(load.pid, signal.SIGKILL)
        load.wait()


def profile(rules: Path) -> dict[str, Any]:
    """What `tarsier plan` predicts for the calls that are made now."""
    command: list[str | Path] = [TARSIER, "plan", "--engine", "tracepoint", "--rules", rules]
    text = output_of([*command, "--profile", "live", "--seconds", str(COUNT_S), "--json"])
    found: dict[str, Any] = json.loads(text)
    return found


def probes_ns(predicted: dict[str, Any]) -> dict[str, float]:
    """The predicted ns of each probe."""
    ns = {call["name"]: call["ns"] for call in predicted["calls"] if call["arch"] == "x86_64"}
    return {probe: sum(ns[name] for name in names) for probe, names in PROBES.items()}


def price_of(lines: Sequence[str], loads: Path, scratch: Path) -> Price:
    """The price of a set."""
    rules = write_rules(scratch / "rules", tolerant(lines))
    plan = json.loads(
        output_of([TARSIER, "plan", "--engine", "tracepoint", "--rules", rules, "--json"])
    )
    # Processes without an audit context, as in the native row.
    with loggers.native():
        latency: list[str | Path] = [
            WORKLOAD,
            "--latency",
            "--rounds",
            str(ENDLESS),
            "--calls",
            "1000",
        ]
        with running(latency, scratch):
            ns = probes_ns(profile(rules))
        with running([loads, scratch, "shell", str(ENDLESS)], scratch):
            scripts = profile(rules)
    share = scripts["watched_per_s"] / scripts["calls_per_s"]
    return {"named": plan["watched_calls"], "share": round(share, 4), "ns": ns}


def prices_of(sets: dict[str, list[str]]) -> dict[str, Price]:
    """The price of each set."""
    with scratch_directory() as scratch, audit_to_ourselves("before prices"):
        loads = compile_c(ROOT / "tests/vm/loads.c", scratch)
        output_of([loads, "prepare", scratch, "1"], scratch)
        return {name: price_of(lines, loads, scratch) for name, lines in sets.items()}


def price_table(results: list[CellResult], prices: dict[str, Price]) -> str:
    """A row per set: what its rules name; what is added to each probe, predicted and measured."""
    native = require_native(results)
    measured = {
        side: cells_along(results, side, list(prices), "set", form="as it is")
        for side in ("tarsier", "kernel")
    }
    rows = []
    for index, (name, price) in enumerate(prices.items()):
        row = [f"{name} rules", str(price["named"]), f"{100 * price['share']:.1f} %"]
        for probe in PROBES:
            row.append(f"+{price['ns'][probe]:.0f}")
            for side in ("tarsier", "kernel"):
                cell = measured[side][index]
                row.append(tables.added_ns(cell["ns"][probe], native[probe]) if cell else "")
        rows.append(row)
    header = ["ns added", "calls named", "share of shell scripts' calls"]
    for probe in PROBES:
        header += [f"{probe}: tarsier plan", "Tarsier", "kernel audit"]
    return tables.markdown(header, rows)
