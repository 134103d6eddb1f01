"""Loggers that benchmarks compare, each a context manager that yields its process id.

On exit each restores what it changed in kernel audit.
"""

import contextlib
import json
import math
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from . import audit
from .audit import auditctl
from .environment import ROOT, TARSIER, BenchError, output_of
from .rules import write_rules

PAUSE_S = 0.05
# Records that the kernel's queue holds for auditd, as in the experiment whose figures stand beside.
BACKLOG = 16440
# A backlog_wait_time of 60 s, whatever the kernel's ticks: its own default.
DEFAULT_WAIT = -1
DEFAULT_WAIT_S = 60
# Values of HZ that kernels are built with.
TICKS_PER_S = (100, 250, 300, 1000)
# Time after SIGTERM at which a logger that still runs is killed.
END_S = 60.0


def processor_s(pid: int) -> float:
    """Processor time of a logger and its plugins."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ticks = 0
    for process in [pid, *children]:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_until(what: str, is_so: Callable[[], bool], seconds: float = 10) -> None:
    """Polls until `is_so` returns true; raises BenchError when the time is over."""
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise BenchError(f"{what} did not happen within {seconds:g} s")
        time.sleep(PAUSE_S)


def wait_for_quiet(log: Path, quiet_s: float, seconds: float = math.inf) -> None:
    """Waits until a log has not grown for `quiet_s`, or the time is over."""
    end = time.monotonic() + seconds
    size = None
    while time.monotonic() < end:
        now = size_of(log)
        if now is not None and now == size:
            return
        size = now
        time.sleep(quiet_s)


def size_of(log: Path) -> int | None:
    """Bytes of a log; None while it is being rotated."""
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return None


def configuration(scratch: Path, settings: Sequence[str]) -> None:
    """Writes auditd.conf for a logger with files in `scratch`; `settings` are further lines."""
    lines = [
        f"log_file = {scratch}/audit.log",
        "log_format = RAW",
        "max_log_file = 0",
        "max_log_file_action = IGNORE",
        "space_left = 1",
        "space_left_action = IGNORE",
        f"plugin_dir = {scratch}/plugins.d",
        "priority_boost = 4",
        *settings,
    ]
    (scratch / "auditd.conf").write_text("\n".join(lines) + "\n")
    # auditd requires files that only root can access, and a directory of plugins.
    (scratch / "auditd.conf").chmod(0o640)
    (scratch / "plugins.d").mkdir(exist_ok=True)


def end(process: subprocess.Popen[Any]) -> None:
    """Ends a process with SIGTERM, and with SIGKILL if that does not help."""
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_S)
    if process.poll() is None:
        process.kill()
        process.wait()


def ticks_per_s() -> int:
    """The kernel's HZ, from the ticks that it counts in half a second."""

    def ticks() -> int:
        lines = Path("/proc/timer_list").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("jiffies:"))

    start, first = time.monotonic(), ticks()
    time.sleep(0.5)
    rate = (ticks() - first) / (time.monotonic() - start)
    return min(TICKS_PER_S, key=lambda known: abs(known - rate))


@contextlib.contextmanager
def auditd(scratch: Path, wait_time: int, load_rules: Callable[[], object]) -> Iterator[int]:
    """The real auditd, with the rules that `load_rules()` loads.

    `wait_time`: how long a caller waits for auditd, in the kernel's ticks; 0 loses events instead;
    DEFAULT_WAIT is the kernel's own setting.
    """
    before = audit.status()
    if wait_time == DEFAULT_WAIT:
        wait_time = DEFAULT_WAIT_S * ticks_per_s()
    process = subprocess.Popen(
        [ROOT / "scripts/peer", "auditd", "-n", "-c", scratch],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def has_started() -> bool:
        return audit.status().get("pid") == str(process.pid) or process.poll() is not None

    try:
        wait_until("the start of auditd", has_started)
        if process.poll() is not None:
            raise BenchError(f"auditd ended with {process.returncode}")
        # A full queue must not fill the kernel's log.
        auditctl("-f", "0")
        auditctl("-b", str(BACKLOG))
        auditctl("--backlog_wait_time", str(wait_time))
        load_rules()
        yield process.pid
    finally:
        auditctl("-D", check=False)
        end(process)
        auditctl("-e", "0", check=False)
        auditctl("-f", before["failure"], check=False)
        auditctl("-b", before["backlog_limit"], check=False)
        auditctl("--backlog_wait_time", before["backlog_wait_time"], check=False)


@contextlib.contextmanager
def tarsier(scratch: Path, rules: Sequence[str]) -> Iterator[int]:
    """Tarsier's daemon with the tracepoint engine; `rules` are lines of a rules file."""
    has_rules = bool(audit.loaded_rules())
    command: list[str | Path] = [
        TARSIER,
        "run",
        "--engine",
        "tracepoint",
        "--config",
        scratch / "auditd.conf",
    ]
    command += ["--rules", write_rules(scratch / "rules", rules), "--run-dir", scratch / "run"]
    # A file rather than a pipe, which nobody would read while the daemon runs.
    messages = scratch / "tarsier.messages"
    with messages.open("w") as file:
        process = subprocess.Popen(command, stderr=file)

    def has_started() -> bool:
        return "rules armed" in messages.read_text() or process.poll() is not None

    try:
        wait_until("the start of Tarsier", has_started, 60)
        if process.poll() is not None:
            raise BenchError(
                f"tarsier ended with {process.returncode}:\n{messages.read_text().strip()}"
            )
        yield process.pid
    finally:
        end(process)
        if not has_rules:
            # Tarsier leaves the rule where audit had never been enabled.
            auditctl("-d", "never,task", check=False)


def tarsier_status(scratch: Path) -> dict[str, Any]:
    """The output of `tarsier status --json` for the daemon with files in `scratch`."""
    status = json.loads(output_of([TARSIER, "status", "--json", "--run-dir", scratch / "run"]))
    if not isinstance(status, dict):
        raise BenchError(f"tarsier status --json: expected an object, got {status}")
    return status


@contextlib.contextmanager
def native() -> Iterator[None]:
    """No logger: processes created meanwhile have no audit context."""
    auditctl("-a", "never,task")
    try:
        yield None
    finally:
        audit.restore_audit()


def count_lines(log: Path, pattern: str) -> int:
    """Number of lines in a log that match an extended regular expression; 0 without a log."""
    if not log.exists():
        return 0
    done = subprocess.run(
        ["grep", "-Ec", pattern, log], capture_output=True, text=True, check=False
    )
    # Status 1: no line matches.
    if done.returncode > 1:
        raise BenchError(f"grep {log}: {done.stderr.strip()}")
    return int(done.stdout)
