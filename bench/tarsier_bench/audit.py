"""The kernel's audit: its state, and exclusive use of it for a while."""

import contextlib
import fcntl
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .environment import ROOT, BenchError

# The tests of the crates hold this lock while they use kernel audit.
LOCK = Path(tempfile.gettempdir(), "tarsier-audit-test.lock")


def auditctl(*arguments: str, check: bool = True) -> str:
    """Standard output of the distribution's auditctl; with `check`, BenchError if it fails."""
    command: list[str | Path] = [ROOT / "scripts/peer", "auditctl", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip()
        raise BenchError(f"auditctl {' '.join(arguments)}: {said}")
    return done.stdout


def parse_status(text: str) -> dict[str, str]:
    """The output of `auditctl -s` as {name: value}, both text."""
    pairs = (line.split(None, 1) for line in text.splitlines())
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def status() -> dict[str, str]:
    """The state of kernel audit: {name: value}, both text."""
    return parse_status(auditctl("-s"))


def loaded_rules() -> list[str]:
    """The rules in the kernel, one line each."""
    return [line for line in auditctl("-l").splitlines() if line != "No rules"]


def what_is_not_idle(state: dict[str, str], rules: list[str]) -> list[str]:
    """Why kernel audit with this state and these rules is in use; empty if it is idle."""
    found = []
    if state.get("enabled") != "0":
        found.append(f"enabled is {state.get('enabled')}")
    if state.get("pid") != "0":
        found.append(f"process {state.get('pid')} is the audit daemon")
    if rules:
        found.append("rules are loaded")
    return found


def require_idle_audit(when: str) -> None:
    """Raises BenchError unless audit is off, without rules and without a daemon."""
    found = what_is_not_idle(status(), loaded_rules())
    if found:
        raise BenchError(
            f"{when}, kernel audit is not idle ({', '.join(found)}); "
            "expected: enabled 0, no daemon, no rules"
        )


def restore_audit() -> None:
    """Sets the state that require_idle_audit requires; never raises, for use in `finally`."""
    auditctl("-e", "0", check=False)
    auditctl("-D", check=False)


@contextlib.contextmanager
def audit_to_ourselves(when: str) -> Iterator[None]:
    """Holds the lock of kernel audit. Restores audit after an error, if it was idle before."""
    with LOCK.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for {LOCK}, which another benchmark or test holds", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        require_idle_audit(when)
        try:
            yield
        except BaseException:
            restore_audit()
            raise
