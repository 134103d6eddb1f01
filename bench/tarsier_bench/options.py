"""Options that several benchmarks have, and checks of their values."""

import argparse
import math
from pathlib import Path

from .cells import SIDES
from .environment import BENCH


def positive_int(text: str) -> int:
    """A whole number above zero."""
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number above zero")
    return number


def positive_ints(text: str) -> list[int]:
    """Whole numbers above zero, separated by commas."""
    return [positive_int(word) for word in text.split(",")]


def positive_seconds(text: str) -> float:
    """A time above zero."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not (seconds > 0 and math.isfinite(seconds)):
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds above zero")
    return seconds


def sides(text: str) -> list[str]:
    """Sides, separated by commas."""
    chosen = text.split(",")
    unknown = [side for side in chosen if side not in SIDES]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"'{unknown[0]}' is not a side; expected: {', '.join(SIDES)}"
        )
    return chosen


def add_out(parser: argparse.ArgumentParser) -> None:
    """Adds --out."""
    parser.add_argument(
        "--out",
        type=Path,
        default=BENCH / "results",
        metavar="DIR",
        help="where the results go (default: bench/results)",
    )


def add_rounds(parser: argparse.ArgumentParser, default: int, what: str) -> None:
    """Adds --rounds."""
    parser.add_argument(
        "--rounds",
        type=positive_int,
        default=default,
        metavar="N",
        help=f"visits of every {what} (default: %(default)s)",
    )


def add_calls(parser: argparse.ArgumentParser, default: int) -> None:
    """Adds --calls."""
    parser.add_argument(
        "--calls",
        type=positive_int,
        default=default,
        metavar="N",
        help="calls of a probe at a time (default: %(default)s)",
    )


def add_cells(parser: argparse.ArgumentParser, rounds: int, calls: int) -> None:
    """Adds the options of benchmarks that measure cells."""
    parser.add_argument(
        "--sides",
        type=sides,
        default=",".join(SIDES),
        metavar="SIDE,…",
        help="which rows (default: %(default)s)",
    )
    add_rounds(parser, rounds, "cell")
    add_calls(parser, calls)
    add_out(parser)
