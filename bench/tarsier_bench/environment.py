"""Paths, the programs that benchmarks run, and the machine that they run on."""

import contextlib
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict

BENCH = Path(__file__).resolve().parent.parent
ROOT = BENCH.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TARSIER = Path(os.environ.get("TARSIER_BIN", TARGET / "release" / "tarsier"))
WORKLOAD = Path(os.environ.get("TARSIER_WORKLOAD", ROOT / "target/workload/workload"))


class BenchError(Exception):
    """Ends the run with a message for the user."""


class Machine(TypedDict):
    """The machine as described in results; `kernel` is the release that `uname -r` prints."""

    cpu: str
    cpus: int | None
    kernel: str
    arch: str


def bytes_of(command: Sequence[str | Path], cwd: str | Path | None = None) -> bytes:
    """Standard output of a program.

    Raises BenchError if the program cannot be started, or ends with a status other than zero.
    """
    try:
        done = subprocess.run(command, capture_output=True, cwd=cwd, check=False)
    except OSError as error:
        raise BenchError(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise BenchError(f"{command[0]} ended with {done.returncode}:\n{said}")
    return done.stdout


def output_of(command: Sequence[str | Path], cwd: str | Path | None = None) -> str:
    """Standard output of a program as text; raises as `bytes_of` does."""
    return bytes_of(command, cwd).decode(errors="replace")


def compile_c(source: Path, directory: Path, *flags: str) -> Path:
    """Builds a program from one C file in `directory`, and makes that accessible to all users."""
    program = directory / source.stem
    output_of(["cc", "-O2", "-Wall", "-Wextra", *flags, "-o", program, source])
    directory.chmod(0o755)
    return program


@contextlib.contextmanager
def scratch_directory(parent: str | None = None) -> Iterator[Path]:
    """A directory that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="tarsier-bench-", dir=parent) as name:
        yield Path(name)


def require_root() -> None:
    """Raises BenchError unless this is root."""
    if os.geteuid() != 0:
        raise BenchError("must be root, to load audit rules and BPF programs")


def require_tarsier() -> None:
    """Raises BenchError unless Tarsier has been built."""
    if not os.access(TARSIER, os.X_OK):
        raise BenchError(f"{TARSIER} is not there; run cargo build --release")


def require_workload() -> None:
    """Raises BenchError unless the system-call workload has been built."""
    if not os.access(WORKLOAD, os.X_OK):
        raise BenchError(f"{WORKLOAD} is not there; run scripts/build-workload")


def cpu_model(cpuinfo: str) -> str:
    """The first processor's name in the text of /proc/cpuinfo, or `unknown`."""
    for line in cpuinfo.splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"


def machine() -> Machine:
    """Describes this machine."""
    return {
        "cpu": cpu_model(Path("/proc/cpuinfo").read_text()),
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "arch": platform.machine(),
    }
