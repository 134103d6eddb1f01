"""Loggers that benchmarks compare, each as a context that gives its pid and puts the audit state back."""
import contextlib
import json
import os
import pathlib
import signal
import subprocess
import time

import harness
from harness import BenchError, auditctl

PAUSE = 0.05


def processor_s(pid):
    """Processor time of a logger and its plugins."""
    children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ticks = 0
    for process in [pid, *children]:
        fields = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def wait_until(what, is_so, seconds=10):
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise BenchError(f"{what} did not happen within {seconds} s")
        time.sleep(PAUSE)


def configuration(scratch, settings):
    """auditd.conf for a logger whose files are in `scratch`; `settings` are further lines."""
    text = "\n".join([f"log_file = {scratch}/audit.log", "log_format = RAW", "max_log_file = 0",
                      "max_log_file_action = IGNORE", "space_left = 1", "space_left_action = IGNORE",
                      f"plugin_dir = {scratch}/plugins.d", "priority_boost = 4", *settings]) + "\n"
    (scratch / "auditd.conf").write_text(text)
    # auditd wants its files to be root's alone, and a directory of plugins.
    os.chmod(scratch / "auditd.conf", 0o640)
    (scratch / "plugins.d").mkdir(exist_ok=True)


def audit_status():
    """What `auditctl -s` says: {name: value}, both text."""
    return dict(line.split(None, 1) for line in auditctl("-s").splitlines() if len(line.split(None, 1)) == 2)


@contextlib.contextmanager
def auditd(scratch, wait_time, load_rules):
    """The real auditd, with what `load_rules()` loads. Settings of kernel audit are put back afterwards.

    `wait_time`: how long a caller waits for auditd, in the kernel's ticks; 0 loses events instead."""
    before = audit_status()
    process = subprocess.Popen([harness.ROOT / "scripts/peer", "auditd", "-n", "-c", str(scratch)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until("the start of auditd", lambda: f"pid {process.pid}" in auditctl("-s") or process.poll() is not None)
        if process.poll() is not None:
            raise BenchError(f"auditd ended with {process.returncode}")
        # A full queue is no reason to fill the kernel's log.
        for setting in (["-f", "0"], ["-b", "8192"], ["--backlog_wait_time", str(wait_time)]):
            auditctl(*setting)
        load_rules()
        yield process.pid
    finally:
        auditctl("-D", check=False)
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(60)
        if process.poll() is None:
            process.kill()
            process.wait()
        auditctl("-e", "0", check=False)
        for option, name in (("-f", "failure"), ("-b", "backlog_limit"), ("--backlog_wait_time", "backlog_wait_time")):
            auditctl(option, before[name], check=False)


@contextlib.contextmanager
def tarsier(scratch, rules):
    """`rules`: lines of a rules file."""
    (scratch / "rules").write_text("".join(line + "\n" for line in rules))
    process = subprocess.Popen(
        [harness.TARSIER, "run", "--engine", "tracepoint", "--config", scratch / "auditd.conf", "--rules",
         scratch / "rules", "--run-dir", scratch / "run"], stderr=subprocess.PIPE, text=True)
    try:
        for line in process.stderr:
            if "rules armed" in line:
                break
        else:
            raise BenchError(f"tarsier ended with {process.wait()}")
        yield process.pid
    finally:
        process.terminate()
        process.stderr.read()
        process.wait()


def tarsier_status(scratch):
    done = subprocess.run([harness.TARSIER, "status", "--json", "--run-dir", scratch / "run"], check=True,
                          capture_output=True, text=True)
    return json.loads(done.stdout)


@contextlib.contextmanager
def native():
    """Nothing: what begins in it has no audit context."""
    auditctl("-a", "never,task")
    try:
        yield None
    finally:
        harness.restore_audit()
