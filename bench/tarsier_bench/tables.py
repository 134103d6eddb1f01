"""Markdown tables, and the words and figures in them."""

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
    """One digit after the point, never a negative zero."""
    return f"{value:+z.1f} %"


def added_ns(found: Timing, native: Timing) -> str:
    """What is added to native, in whole ns, or that it is within noise."""
    if within_noise(found, native):
        return WITHIN_NOISE
    return f"{round(found['min'] - native['min']):+d}"


def latency_row(
    result: CellResult, native: dict[str, Timing] | None, probes: Sequence[str]
) -> list[str]:
    """A column per probe: minimum of all rounds, in brackets what was added to native."""
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
    """A row per cell."""
    native = native_of(results)
    rows = [[result["label"], *latency_row(result, native, probes)] for result in results]
    return markdown([head, *probes], rows)
