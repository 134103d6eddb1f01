"""Workloads on this machine."""

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from ... import audit, loggers
from ...cells import rotated, say_round
from ...environment import (
    ROOT,
    TARSIER,
    compile_c,
    machine,
    output_of,
    require_root,
    require_tarsier,
    scratch_directory,
)
from ...results import Record, today
from ...rules import sample_rules, tolerant, with_condition, write_rules
from .tally import LOADS, Tally

GID, AUID = 61234, 1000
# Runs of a workload in each round.
REPEATS = 2
# A log that has not grown for this long is complete.
QUIET_S = 0.25
SIDES = {
    "native": "native",
    "native-again": "native again",
    "kernel-audit": "kernel audit",
    "tracepoint": "Tarsier",
}


@contextlib.contextmanager
def auditd(scratch: Path, rules: Sequence[str]) -> Iterator[int]:
    """Runs auditd with settings that make calls wait for it."""
    path = write_rules(scratch / "rules", tolerant(rules))
    command: list[str | Path] = [TARSIER, "ctl", "--kernel", "-R", path]
    with loggers.auditd(scratch, 60000, lambda: output_of(command, scratch)) as pid:
        yield pid


def logger(
    side: str, scratch: Path, rules: Sequence[str]
) -> contextlib.AbstractContextManager[int | None]:
    """The logger of a side, with these rules."""
    if side == "kernel-audit":
        return auditd(scratch, rules)
    if side == "tracepoint":
        return loggers.tarsier(scratch, tolerant(rules))
    return loggers.native()


def kauditd() -> list[int]:
    """The kernel's thread that passes records to auditd, if it exists."""
    for path in Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text() == "kauditd\n":
                return [int(path.parent.name)]
    return []


def spent_ns(pids: Sequence[int]) -> int:
    """Processor time of all threads of these processes."""
    paths = [path for pid in pids for path in Path(f"/proc/{pid}/task").glob("*/schedstat")]
    return sum(int(path.read_text().split()[0]) for path in paths)


def await_end(log: Path, start: int, name: str) -> None:
    """Waits until everything recorded so far is in the log, which had `start` bytes before.

    This is so when a message sent here is in the log and nothing more comes: Tarsier reads the
    kernel's messages and its own events independently.
    """
    message = f"tarsier-bench-{name} "
    audit.auditctl("-m", message)

    def is_there() -> bool:
        with log.open("rb") as file:
            file.seek(start)
            return message.encode() in file.read()

    loggers.wait_until(f"the message {message}in the log", is_there, 60)
    loggers.wait_for_quiet(log, QUIET_S)


def lost_events(side: str, scratch: Path, before: int) -> int:
    """Events that the logger has lost since its start; `before`: the kernel's count then."""
    if side == "kernel-audit":
        return int(audit.status()["lost"]) - before
    return sum(loggers.tarsier_status(scratch)["lost"].values()) if side == "tracepoint" else 0


def counters(side: str, scratch: Path, pids: Sequence[int]) -> tuple[int, int, int]:
    """Counts since the logger's start: its time in ns, events in the log, candidates dropped.

    Only events that a rule selected are counted; others have no key.
    """
    dropped = loggers.tarsier_status(scratch)["events_dropped"] if side == "tracepoint" else 0
    events = loggers.count_lines(scratch / "audit.log", '^type=SYSCALL .*key="')
    return spent_ns(pids), events, dropped


def visit(tally: Tally, program: Path, place: Path, rules: Sequence[str]) -> None:
    """Runs all workloads on one side."""
    side, label = tally.side, tally.label
    with scratch_directory() as scratch, audit.audit_to_ourselves(f"before {label}"):
        log = scratch / "audit.log"
        loggers.configuration(scratch, ["flush = INCREMENTAL_ASYNC", "freq = 50"])
        lost = int(audit.status()["lost"])
        with logger(side, scratch, rules) as pid:
            pids = [pid] if pid else []
            pids += kauditd() if side == "kernel-audit" else []
            for load, repeat in itertools.product(LOADS, range(REPEATS)):
                before = counters(side, scratch, pids)
                start = log.stat().st_size if pid else 0
                who = ["--gid", str(GID), "--auid", str(AUID)]
                text = output_of([program, *who, place, load, str(LOADS[load][1])], "/")
                if pid:
                    await_end(log, start, f"{load}-{repeat}")
                after = counters(side, scratch, pids)
                spent = (b - a for a, b in zip(before, after, strict=True))
                tally.add(load, *map(int, text.split("\t")[1:]), *spent)
            tally.lost += lost_events(side, scratch, lost)
        audit.require_idle_audit(f"after {label}")


def measure(name: str, rounds: int, files: int) -> Record:
    """Measures all sides in interleaved rounds; `files`: number of files in the tree."""
    require_root()
    require_tarsier()
    # Only for the workloads' group.
    rules = with_condition(sample_rules(["30-stig"]), f"gid={GID}")
    tallies = [Tally(side, label) for side, label in SIDES.items()]
    with scratch_directory() as build, scratch_directory("/dev/shm") as place:
        program = compile_c(ROOT / "tests/vm/loads.c", build)
        place.chmod(0o777)
        output_of([program, "prepare", place, str(files)], "/")
        for number in range(rounds):
            say_round(name, number, rounds, f"{len(tallies)} sides")
            for tally in rotated(tallies, number):
                visit(tally, program, place, rules)
    return {
        "machine": machine(),
        "date": today(),
        "rounds": rounds,
        "repeats": REPEATS,
        "files": files,
        "rules": len(rules),
        "sides": [tally.result() for tally in tallies],
    }
