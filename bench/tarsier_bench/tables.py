"""Markdown tables, and the texts and figures in their cells."""

from collections.abc import Sequence

from .results import CellResult, native_of
from .stats import Timing, within_noise

# Calls that `workload --latency` measures, in its order.
PROBES = ["null", "read", "write", "stat", "fstat", "open+close"]
WITHIN_NOISE = "within noise"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = ["| " + " | ".join(header) + " |", "|---|" + "---:|" * (len(header) - 1)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def signed_percent(value: float) -> str:
    """A percentage with sign and one digit after the point; zero is never negative."""
    return f"{value:+z.1f} %"


def added_ns(found: Timing, native: Timing) -> str:
    """The time added to native in whole ns, or `within noise`."""
    if within_noise(found, native):
        return WITHIN_NOISE
    return f"{round(found['min'] - native['min']):+d}"


def latency_row(
    result: CellResult, native: dict[str, Timing] | None, probes: Sequence[str]
) -> list[str]:
    """The cells of a row, one per probe: minimum of all rounds, and in brackets the added time."""
    row = []
    for probe in probes:
        found = result["ns"][probe]
        added = ""
        if native and result["side"] != "native":
            added = f" ({added_ns(found, native[probe])})"
        row.append(f"{found['min']:.0f}{added}")
    return row


def latency_table(
    results: Sequence[CellResult], probes: Sequence[str] = PROBES, head: str = "ns per call"
) -> str:
    """A table with a row per cell."""
    native = native_of(results)
    rows = [[result["label"], *latency_row(result, native, probes)] for result in results]
    return markdown([head, *probes], rows)
