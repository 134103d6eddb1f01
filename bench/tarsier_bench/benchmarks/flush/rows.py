"""The rows of the table: a logger, its settings, and who makes audited calls."""

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from ...loggers import DEFAULT_WAIT

GID = 61234
# MARK of hammer.c.
MARK = "7a53"
RULE = f"-a always,exit -F arch=b64 -S getppid -F gid={GID} -F a0=0x{MARK} -k "
EXEC_RULE = f"-a always,exit -F arch=b64 -S execve -F gid={GID} -k "
# The experiment's rule, for the only producer.
PROCESS_RULE = "-a always,exit -S all -F pid={pid} -k "
EXEC_RATES = (333, 1000)
# Values of `freq` for INCREMENTAL. Tarsier writes in large batches, where `freq` changes little.
AUDITD_FREQS = (20, 50, 100, 200, 400, 1000, 2000, 4000, 8000)
TARSIER_FREQS = (20, 200, 1000, 8000)
# backlog_wait_time in ticks.
LOSSLESS_WAIT = 60000
WAITS = {"wait 0": 0, "wait 100": 100, "default wait": DEFAULT_WAIT}
# With more producers, a long row would only wait.
LONG_PRODUCERS_MAX = 8


@dataclass(frozen=True)
class Row:
    """A logger with its settings.

    `side`: native, auditd, tarsier, or disk, which has no logger. `flush`, `freq` and `extra` (more
    lines) go to auditd.conf. `rate`: calls per second of each producer, 0 for as many as possible.
    `key`: the rule's key. `execs`: the call is execve. `laurel`: the path of that plugin. `wait`:
    auditd's backlog_wait_time. `by_process`: the rule is on all calls of the producer.
    """

    side: str
    label: str
    flush: str | None = None
    freq: int | None = None
    extra: tuple[str, ...] = ()
    producers: int = 1
    rate: int = 0
    key: str = "bench"
    wait: int = 0
    by_process: bool = False
    is_long: bool = False
    sealed: bool = False
    execs: bool = False
    laurel: str | None = None

    @property
    def rule(self) -> str:
        """The only rule that is loaded; with `{pid}` in it if it is by process."""
        rule = PROCESS_RULE if self.by_process else EXEC_RULE if self.execs else RULE
        return rule + self.key

    @property
    def settings(self) -> list[str]:
        """Lines of auditd.conf."""
        lines = [f"flush = {self.flush}"] if self.flush else []
        lines += [f"freq = {self.freq}"] if self.freq else []
        return [*lines, *self.extra]


def mode_rows(side: str, name: str, freqs: Sequence[int]) -> list[Row]:
    """Rows of a logger in each flush mode."""
    return [
        Row(side, f"{name} NONE", "NONE"),
        *(Row(side, f"{name} INCREMENTAL {freq}", "INCREMENTAL", freq) for freq in freqs),
        Row(side, f"{name} DATA", "DATA"),
        Row(side, f"{name} SYNC", "SYNC"),
    ]


def process_rows() -> list[Row]:
    """Rows with the experiment's rule: auditd with each time that calls wait, and Tarsier."""
    rows = []
    for flush in ("NONE", "SYNC"):
        row = partial(Row, flush=flush, by_process=True)
        rows += [
            row("auditd", f"auditd {flush}, rule by pid, {name}", wait=wait)
            for name, wait in WAITS.items()
        ]
        rows.append(row("tarsier", f"Tarsier {flush}, rule by pid"))
    return rows


def sealing_rows() -> list[Row]:
    """The pair of which the ratio of processor time counts, not sealed and sealed."""
    return [
        Row("tarsier", "Tarsier SYNC", "SYNC"),
        Row("tarsier", "Tarsier SYNC, sealed", "SYNC", sealed=True, extra=("seal = yes",)),
    ]


def producer_rows(producers: Sequence[int]) -> list[Row]:
    """Rows with several producers, also natively; and rows that take longer."""
    several = [n for n in producers if n > 1]
    rotating = ("max_log_file = 512", "max_log_file_action = ROTATE", "num_logs = 2")
    sync = partial(Row, "tarsier", flush="SYNC")
    return [
        *(sync(label=f"Tarsier SYNC, {n} producers", producers=n) for n in several),
        *(Row("native", f"no auditing, {n} producers", producers=n) for n in several),
        *(
            sync(
                label=f"Tarsier SYNC, {n} producers, long",
                producers=n,
                is_long=True,
                extra=rotating,
            )
            for n in producers
            if n <= LONG_PRODUCERS_MAX
        ),
    ]


def exec_rows() -> list[Row]:
    """Rows that start programs at fixed rates, under each logger; with laurel if available."""
    laurel = os.environ.get("TARSIER_LAUREL") or shutil.which("laurel")
    rows = []
    for rate in EXEC_RATES:
        row = partial(Row, flush="INCREMENTAL_ASYNC", freq=50, rate=rate, execs=True)
        for side, name in (("auditd", "auditd"), ("tarsier", "Tarsier")):
            rows.append(row(side, f"{name} RAW, {rate} programs/s"))
            if laurel:
                rows.append(row(side, f"{name} RAW and laurel, {rate} programs/s", laurel=laurel))
        json = ("log_format = JSON",)
        rows.append(row("tarsier", f"Tarsier JSON, {rate} programs/s", extra=json))
    return rows


def make_rows(producers: Sequence[int]) -> list[Row]:
    """All rows, in the order of the table."""
    urgent = ("urgent_keys = now",)
    sync = partial(Row, "tarsier", flush="SYNC")
    return [
        Row("native", "no auditing"),
        *mode_rows("auditd", "auditd", AUDITD_FREQS),
        Row("auditd", "auditd NONE, lossless", "NONE", wait=LOSSLESS_WAIT),
        *mode_rows("tarsier", "Tarsier", TARSIER_FREQS),
        *process_rows(),
        sync(label="Tarsier SYNC, overload = DROP", extra=("overload = DROP",)),
        *producer_rows(producers),
        sealing_rows()[1],
        sync(label="Tarsier SYNC, 10,000 calls/s", rate=10000),
        Row("disk", "500 bytes and fdatasync, 100/s", rate=100),
        Row(
            "tarsier",
            "Tarsier NONE, urgent key, 100 calls/s",
            "NONE",
            rate=100,
            key="now",
            extra=urgent,
        ),
        *exec_rows(),
    ]
