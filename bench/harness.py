"""What the benchmarks share: cells measured in interleaved rounds, natively, under the kernel's audit
and under Tarsier, with the audit state restored after each.

A cell is a fresh process of the workload, because a process keeps the audit context that it got at
birth:

* native, and everything under Tarsier: born under `never,task`, which gives it none. (Once audit
  has been enabled, every process born without that rule has a context until the next boot.)
* kernel: born while audit is enabled and the rules are loaded.

Each round visits every cell once, in an order that moves on by one from round to round, so that
drift of the machine falls on all alike. Needs audit off, without rules and without a daemon.
"""
import argparse
import contextlib
import datetime
import fcntl
import json
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TARSIER = pathlib.Path(os.environ.get("TARSIER_BIN", TARGET / "release" / "tarsier"))
WORKLOAD = os.environ.get("TARSIER_WORKLOAD", str(ROOT / "target/workload/workload"))
# The tests of the crates hold this one while they touch kernel audit.
LOCK = pathlib.Path(tempfile.gettempdir(), "tarsier-audit-test.lock")

SIDES = ("native", "kernel", "tarsier")
PROBES = ["null", "read", "write", "stat", "fstat", "open+close"]
# No process has this uid or one above it, so rules that ask for one select nobody.
NOBODY = 4000000


class BenchError(Exception):
    """Ends the run with a message for the user."""


def auditctl(*arguments, check=True):
    """Runs the distribution's auditctl; returns its standard output."""
    done = subprocess.run([ROOT / "scripts/peer", "auditctl", *arguments], capture_output=True, text=True)
    if check and done.returncode != 0:
        raise BenchError(f"auditctl {' '.join(arguments)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def loaded_rules():
    return [line for line in auditctl("-l").splitlines() if line != "No rules"]


def require_idle_audit(when):
    pairs = (line.split(None, 1) for line in auditctl("-s").splitlines())
    status = {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
    found = []
    if status.get("enabled") != "0":
        found.append(f"enabled is {status.get('enabled')}")
    if status.get("pid") != "0":
        found.append(f"process {status.get('pid')} is the audit daemon")
    if loaded_rules():
        found.append("rules are loaded")
    if found:
        raise BenchError(f"{when}, kernel audit is not idle ({', '.join(found)}); "
                         "expected: enabled 0, no daemon, no rules")


def restore_audit():
    """The state that require_idle_audit asked for; never raises, so that `finally` may call it."""
    auditctl("-e", "0", check=False)
    auditctl("-D", check=False)


@contextlib.contextmanager
def audit_to_ourselves(when):
    with open(LOCK, "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        require_idle_audit(when)
        yield


def output_of(command, cwd):
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd)
    if done.returncode != 0:
        raise BenchError(f"{command[0]} ended with {done.returncode}:\n{done.stderr.strip()}")
    return done.stdout


def run_native(_cell, scratch, _rules, workload):
    try:
        auditctl("-a", "never,task")
        return output_of(workload, scratch)
    finally:
        restore_audit()


def run_kernel(cell, scratch, rules, workload):
    try:
        # Loaded while audit is off: each would otherwise be a record in the kernel's log. By Tarsier,
        # because auditctl 3.0.9 does not know the newest system calls, which the optimiser names.
        output_of([str(TARSIER), "ctl", "--kernel", "-R", str(rules)], scratch)
        cell.loaded = len(loaded_rules())
        auditctl("-e", "1")
        return output_of(workload, scratch)
    finally:
        restore_audit()


def run_tarsier(_cell, scratch, rules, workload):
    command = [str(TARSIER), "run", "--engine", "tracepoint", "--rules", str(rules), "--run-dir",
               str(scratch / "run"), "--log-file", str(scratch / "audit.log"), "--", *workload]
    try:
        text = output_of(command, scratch)
    except BaseException:
        # Killed with us, it had no time to restore.
        restore_audit()
        raise
    require_idle_audit("after tarsier run")
    return text


RUN = dict(zip(SIDES, (run_native, run_kernel, run_tarsier)))


class Cell:
    """One row of a table: on which side the workload runs, and under which rules.

    `facts` are further columns of the JSON, by which a benchmark finds the row again for its plot."""

    def __init__(self, side, label, rules=None, **facts):
        self.side, self.label, self.rules, self.facts = side, label, rules or [], facts
        self.loaded = None
        self.minimum, self.median = {}, {}

    def measure(self, scratch, workloads):
        """`workloads`: (command, parser) pairs; a parser makes {probe: (minimum, median)} of the output."""
        rules = scratch / "rules"
        # -i: a sample may watch what this system does not have.
        rules.write_text("".join(line + "\n" for line in ["-i", *self.rules]))
        for command, parse in workloads:
            with audit_to_ourselves(f"before '{self.label}'"):
                text = RUN[self.side](self, scratch, rules, command)
            for probe, (minimum, median) in parse(text).items():
                self.minimum.setdefault(probe, []).append(minimum)
                self.median.setdefault(probe, []).append(median)

    def result(self):
        ns = {probe: {"min": min(values), "median": round(statistics.median(self.median[probe]), 1)}
              for probe, values in self.minimum.items()}
        return {"side": self.side, "label": self.label, **self.facts, "rules": len(self.rules),
                "loaded": self.loaded, "ns": ns}


def sample_rules(names):
    """The rules of Debian's samples of these names (or patterns), in order; their settings are left out."""
    peers = subprocess.run([ROOT / "scripts/peers"], check=True, capture_output=True, text=True).stdout.strip()
    lines = []
    for name in names:
        paths = sorted(pathlib.Path(peers, "usr/share/doc/auditd/examples/rules").glob(name + ".rules"))
        if not paths:
            raise BenchError(f"Debian's samples do not hold {name}.rules")
        for path in paths:
            lines += [line.strip() for line in path.read_text().splitlines() if line.strip().startswith(("-a", "-w"))]
    return lines


def with_condition(lines, condition):
    """The same rules, each with one more condition; a watch becomes its long form, which can hold one."""
    changed = []
    for line in lines:
        words = line.split()
        if words[0] == "-w":
            path = words[1]
            kind = "dir" if os.path.isdir(path) else "path"
            options = dict(zip(words[2::2], words[3::2]))
            line = f"-a always,exit -F {kind}={path.rstrip('/')} -F perm={options.get('-p', 'rwxa')}"
            line += f" -k {options['-k']}" if "-k" in options else ""
        changed.append(f"{line} -F {condition}")
    return changed


def select_nobody(lines):
    """The same rules, each with one more condition that no process meets."""
    return with_condition(lines, f"uid={NOBODY}")


def parse_latency(text):
    """{probe: (minimum, median)} in ns per call, from what `workload --latency` prints."""
    found = {}
    for line in text.splitlines():
        words = line.split("\t")
        if len(words) == 3 and words[0] in PROBES:
            found[words[0]] = (float(words[1]), float(words[2]))
    if set(found) != set(PROBES):
        raise BenchError(f"the workload measured only {sorted(found)}; it printed:\n{text}")
    return found


def latency_workload(calls):
    return [([WORKLOAD, "--latency", "--rounds", "5", "--calls", str(calls)], parse_latency)]


def arguments(description, rounds, calls):
    """The options that every benchmark has."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--sides", default=",".join(SIDES), help="which rows (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=rounds, help="visits of every cell (default: %(default)s)")
    parser.add_argument("--calls", type=int, default=calls, help="calls of a probe at a time (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, default=HERE / "results", help="where the results go")
    chosen = parser.parse_args()
    chosen.sides = chosen.sides.split(",")
    if not set(chosen.sides) <= set(SIDES) or chosen.rounds < 1 or chosen.calls < 1:
        parser.error("sides are native, kernel, tarsier; rounds and calls are at least 1")
    return chosen


def measure(chosen, cells, workloads):
    """Visits every cell `rounds` times; gives one result per cell, in the order of `cells`."""
    if os.geteuid() != 0:
        raise BenchError("must be root, to load audit rules and BPF programs")
    if not os.access(WORKLOAD, os.X_OK):
        raise BenchError(f"{WORKLOAD} is not there; run scripts/build-workload")
    if not os.access(TARSIER, os.X_OK):
        raise BenchError(f"{TARSIER} is not there; run cargo build --release")
    cells = [cell for cell in cells if cell.side in chosen.sides]
    name = pathlib.Path(sys.argv[0]).name
    with tempfile.TemporaryDirectory(prefix="tarsier-bench-") as scratch:
        for number in range(chosen.rounds):
            print(f"{name}: round {number + 1} of {chosen.rounds}, {len(cells)} cells", file=sys.stderr)
            first = number % len(cells)
            for cell in cells[first:] + cells[:first]:
                cell.measure(pathlib.Path(scratch), workloads)
    return [cell.result() for cell in cells]


def counted(n):
    return f"{n} rule" if n == 1 else f"{n} rules"


def machine():
    model = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "unknown")
    return {"cpu": model, "cpus": os.cpu_count(), "kernel": platform.release(), "arch": platform.machine()}


def about(chosen):
    return {"machine": machine(), "date": datetime.date.today().isoformat(), "rounds": chosen.rounds,
            "calls": chosen.calls, "unit": "ns per call"}


def machine_line(facts):
    found = facts["machine"]
    return (f"{found['cpu']}, {found['cpus']} CPUs, Linux {found['kernel']}, {facts['date']}, "
            f"{facts['rounds']} interleaved rounds.")


def native_of(results):
    return next((result["ns"] for result in results if result["side"] == "native"), None)


def markdown(header, rows):
    """A table whose first column is text and whose others are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def latency_row(result, native, probes=None):
    """The cells of a table for each probe: minimum of all rounds, in brackets what was added to native."""
    row = []
    for probe in probes or PROBES:
        ns = result["ns"][probe]["min"]
        added = f" ({round(ns - native[probe]['min']):+d})" if native and result["side"] != "native" else ""
        row.append(f"{ns:.0f}{added}")
    return row


def latency_table(results, probes=None, head="ns per call"):
    native = native_of(results)
    rows = [[r["label"], *latency_row(r, native, probes)] for r in results]
    return markdown([head, *(probes or PROBES)], rows)


def series(results, side, categories, key, probe="null", **facts):
    """The minima of one line of a plot: for each category the cell whose fact `key` is that, or None."""
    values = []
    for category in categories:
        values.append(next((r["ns"][probe]["min"] for r in results if r["side"] == side and r.get(key) == category
                            and all(r.get(fact) == value for fact, value in facts.items())), None))
    return values


def write(chosen, name, facts, results, text, plot=None):
    """bench/results/NAME.json, .md and .svg; the text is shown as well."""
    chosen.out.mkdir(parents=True, exist_ok=True)
    (chosen.out / f"{name}.json").write_text(json.dumps({**facts, "cells": results}, indent=1) + "\n")
    (chosen.out / f"{name}.md").write_text(text)
    if plot and set(chosen.sides) == set(SIDES):
        (chosen.out / f"{name}.svg").write_text(plot())
    print(text, end="")


def run(main):
    # As an exception, so that `finally` restores.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        main()
    except BenchError as error:
        sys.exit(f"{sys.argv[0]}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
