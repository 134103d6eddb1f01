"""The tables and the plot."""

from collections.abc import Sequence
from typing import cast

from ... import stats
from ...charts import Series, bar_chart
from ...results import Record, Report, where
from ...tables import markdown
from .measuring import Pair, RowResult

HEADER = [
    "",
    "calls/s",
    "logged/s",
    "lost",
    "MB",
    "CPU s",
    "CPU µs per event",
    "durable p50, p99, max ms",
    "timer late p99.9, max ms",
    "published logged/s",
]
# By the author of the experiment, on a real disk.
PUBLISHED = {"auditd NONE": "38,300", "auditd SYNC": "45"}
NOTES = (
    "* logged/s: of auditd with what it wrote in the second after the producer ended; where calls "
    "wait for auditd, and of Tarsier, which slows the producer instead, per second of the "
    "producer.\n"
    "* rule by pid: on all calls of the process; wait: backlog_wait_time in ticks, 60 s by "
    "default, 0 in the other rows. The kernel's queue has room for 16,440 records.\n"
    "* durable: from the call to a finished sync that covers its record, each event counted as old "
    "as the oldest written with it. auditd does not tell this. Without a logger, of one write and "
    "fdatasync.\n"
    "* lost: below zero where the kernel still held records of the row before.\n"
    "* CPU: of the logger and its plugins. Programs are /bin/true, flush INCREMENTAL_ASYNC, "
    "freq 50.\n"
    "* timer: how late an unrelated process wakes that sleeps 1 ms at a time.\n"
    "* published: by the author of the experiment, on a real disk.\n"
)


def milliseconds(us: float) -> str:
    """Microseconds as milliseconds, with one digit after the point."""
    return f"{us / 1000:.1f}"


def per_event_us(result: RowResult) -> float:
    """The logger's processor time per event; all of it if nothing was logged."""
    return result["logger_cpu_s"] * 1e6 / max(result["logged"], 1)


def logged_columns(result: RowResult) -> list[str]:
    """The logger's columns of HEADER; empty without a logger."""
    if "logged" not in result:
        return [""] * 5
    percent = 100 * result["lost"] / max(result["made"], 1)
    return [
        f"{result['logged_per_s']:,}",
        f"{percent:.1f} %" if result["lost"] else "0",
        f"{result['bytes'] / 1e6:.1f}",
        f"{result['logger_cpu_s']:.2f}",
        f"{per_event_us(result):.1f}",
    ]


def table(results: list[RowResult]) -> str:
    """A table with a row per result."""
    rows = []
    for result in results:
        calls = f"{result['calls_per_s']:,}" if "calls_per_s" in result else ""
        durable = result.get("durable_after_us") or []
        late = result.get("late_us")
        rows.append(
            [
                result["label"],
                calls,
                *logged_columns(result),
                ", ".join(map(milliseconds, durable)),
                f"{milliseconds(late['p99.9'])}, {milliseconds(late['max'])}" if late else "",
                PUBLISHED.get(result["label"], ""),
            ]
        )
    return markdown(HEADER, rows)


def ratio(ours: float, theirs: float) -> str:
    """A ratio with three digits; `-` if the divisor is 0."""
    return f"{ours / theirs:.3g}" if theirs else "-"


def lowest_per_event_us(rounds: Sequence[RowResult]) -> float:
    """The logger's processor time per event in the round in which it was least."""
    return min(map(per_event_us, rounds))


def sealing_table(pair: Pair) -> str:
    """Extremes and spreads of the rows that were measured in rounds."""
    rows = []
    for label, rounds in pair["rows"].items():
        spent_us = [per_event_us(result) for result in rounds]
        calls = [result["calls_per_s"] for result in rounds]
        spread_us = stats.spread(spent_us)
        # Disturbances make rates lower.
        slower = stats.spread([-one for one in calls])
        rows.append(
            [
                f"{label}, in rounds",
                f"{min(spent_us):.3f}",
                "" if spread_us is None else f"{spread_us:.3f}",
                f"{max(calls):,}",
                "" if slower is None else f"{slower:,.0f}",
            ]
        )
    head = f"{pair['rounds']} rounds of {pair['seconds']:g} s"
    header = [head, "CPU µs per event, lowest", "spread", "calls/s, highest", "spread"]
    return markdown(header, rows)


def sealing_ratio(results: list[RowResult], pair: Pair | None) -> str:
    """Processor time per event, sealed : not sealed; from the rounds if there are any."""
    labels = ("Tarsier SYNC, sealed", "Tarsier SYNC")
    if pair is None:
        by_label = {result["label"]: result for result in results}
        sealed, plain = (per_event_us(by_label[label]) for label in labels)
    else:
        sealed, plain = (lowest_per_event_us(pair["rows"][label]) for label in labels)
    return ratio(sealed, plain)


def ratios(results: list[RowResult], pair: Pair | None) -> str:
    """Ratios of pairs of rows. The noise is unknown of those that were measured once."""
    by_label = {result["label"]: result for result in results}
    sync, none = by_label["Tarsier SYNC"], by_label["Tarsier NONE"]
    lossless = by_label["auditd NONE, lossless"]
    auditd_sync, auditd_none = by_label["auditd SYNC"], by_label["auditd NONE"]
    lines = [
        (
            "Tarsier SYNC : auditd SYNC, events logged/s",
            ratio(sync["logged_per_s"], auditd_sync["logged_per_s"]),
        ),
        (
            "Tarsier SYNC : auditd NONE, events logged/s",
            ratio(sync["logged_per_s"], auditd_none["logged_per_s"]),
        ),
        (
            "Tarsier SYNC : Tarsier NONE, events logged/s",
            ratio(sync["logged_per_s"], none["logged_per_s"]),
        ),
        (
            "the caller under Tarsier SYNC : under auditd lossless, calls/s",
            ratio(sync["calls_per_s"], lossless["calls_per_s"]),
        ),
        ("CPU per event sealed : not sealed, SYNC", sealing_ratio(results, pair)),
    ]
    return markdown(["ratio", ""], lines)


def plot(results: list[RowResult], line: str) -> str:
    """A plot of the rows with one producer that makes as many calls as it can."""
    series = [
        Series(result["label"], [result["calls_per_s"], result["logged_per_s"]])
        for result in results
        if result["side"] not in ("native", "disk")
        and result["producers"] == 1
        and not result["rate"]
        and not result["long"]
        and "rule by pid" not in result["label"]
    ]
    title = "One producer: what it makes and what is logged"
    return bar_chart(title, line, ["calls/s", "events logged/s"], series, ("", "per second"))


def report(record: Record, _stem: str) -> Report:
    """The report: the rows, their ratios, and the encoder."""
    results = cast(list[RowResult], record["rows"])
    line = (
        f"{where(record)}, {record['seconds']:g} s per row, long ones {record['long_seconds']:g} s;"
        f" load average at the end {record['load']:.0f}."
    )
    pair = cast(Pair | None, record.get("sealing"))
    rounds = f"{sealing_table(pair)}\n" if pair else ""
    encoder = markdown(["encoder alone", "ns per event", "bytes"], record["encoder"])
    text = (
        "# Loggers under load\n\n"
        f"A process makes one audited call as fast as it can. {line} Made by `bench/run flush`.\n\n"
        f"{NOTES}\n{table(results)}\n{ratios(results, pair)}\n{rounds}{encoder}"
    )
    return Report(text, plot(results, line))
