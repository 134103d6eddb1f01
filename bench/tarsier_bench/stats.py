"""Summaries of repeated measurements, and when a difference between two of them means nothing.

A measurement is a time. Disturbances of the machine make it longer, never shorter. So the minimum
represents a side: a disturbed round does not change it.
"""

import statistics
from collections.abc import Sequence
from typing import NotRequired, TypedDict

# From this number of values on, the median bounds the spread; with fewer, the highest does.
MEDIAN_SPREAD_VALUES = 6


class Timing(TypedDict):
    """One probe in all rounds: lowest value, median of the rounds' medians, spread of their minima.

    `spread` is missing with one round, which has none.
    """

    min: float
    median: float
    spread: NotRequired[float]


def spread_of(low: float, median: float, high: float, count: int) -> float | None:
    """How far the others of `count` repeated values are above the lowest; None for fewer than two.

    With six or more values the median counts, so that a few disturbed ones do not. With fewer, the
    highest counts: with the median of three or four values, one in five pairs of equal sides would
    be called different.
    """
    if count < 2:
        return None
    return (median if count >= MEDIAN_SPREAD_VALUES else high) - low


def spread(values: Sequence[float]) -> float | None:
    """The result of `spread_of` for these values."""
    return spread_of(min(values), statistics.median(values), max(values), len(values))


def timing(minima: Sequence[float], medians: Sequence[float]) -> Timing:
    """Summary of a probe from its minimum and median in each round, in the same unit."""
    found: Timing = {"min": min(minima), "median": round(statistics.median(medians), 1)}
    between_rounds = spread(minima)
    if between_rounds is not None:
        found["spread"] = round(between_rounds, 1)
    return found


def noise(*spreads: float | None) -> float | None:
    """The largest known spread, or None."""
    return max((known for known in spreads if known is not None), default=None)


def is_noise(difference: float, width: float | None) -> bool:
    """Whether a difference is no larger than the noise; false if the noise is not known (None)."""
    return width is not None and abs(difference) <= width


def within_noise(one: Timing, other: Timing) -> bool:
    """Whether the minima of two sides differ no more than the rounds of either side."""
    width = noise(one.get("spread"), other.get("spread"))
    return is_noise(one["min"] - other["min"], width)


def percent_added(value: float, base: float) -> float:
    """How much `value` exceeds `base`, in percent of `base`."""
    return 100 * (value / base - 1)


def percent_of_time(native: float, value: float) -> float:
    """The part of `value` that exceeds `native`, in percent of `value`."""
    return 100 * (1 - native / value)
