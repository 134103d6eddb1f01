"""Results: a benchmark's measurements as JSON, and reports made from it as Markdown and SVG."""

import argparse
import datetime
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from .environment import BenchError, machine
from .stats import Timing

# The JSON object of one benchmark: facts about the run, then the measurements.
Record = dict[str, Any]


class CellResult(TypedDict):
    """One row: a side of a benchmark under some rules. `loaded`: number of rules in the kernel.

    Fields from `count` on: facts by which a benchmark finds the row, and values it has added.
    """

    side: str
    label: str
    rules: int
    loaded: int | None
    ns: dict[str, Timing]
    count: NotRequired[int]
    watched: NotRequired[bool]
    hook: NotRequired[str]
    set: NotRequired[str]
    form: NotRequired[str]
    case: NotRequired[str]
    hooks: NotRequired[object]
    percent_of_cpu: NotRequired[dict[str, float]]


@dataclass(frozen=True)
class Report:
    """A report: a Markdown text, and a plot as SVG unless sides for it are missing."""

    text: str
    plot: str | None


@dataclass(frozen=True)
class Measured:
    """A run: `stem` is the name of its files without suffix."""

    stem: str
    record: Record


@dataclass(frozen=True)
class Benchmark:
    """A benchmark that `bench/run` can start.

    `measure` returns None, after printing why, if it cannot run on this machine. `report` takes
    the record and the stem of its files; it measures nothing, so it can be repeated later.
    """

    name: str
    description: str
    add_options: Callable[[argparse.ArgumentParser], None]
    measure: Callable[[argparse.Namespace], Measured | None]
    report: Callable[[Record, str], Report]


def about(rounds: int, calls: int) -> Record:
    """Facts about a run of rounds."""
    return {
        "machine": machine(),
        "date": today(),
        "rounds": rounds,
        "calls": calls,
        "unit": "ns per call",
    }


def today() -> str:
    """Today's date, such as 2026-11-21."""
    return datetime.date.today().isoformat()


def where(record: Record) -> str:
    """The machine, its kernel and the date."""
    found = record["machine"]
    return f"{found['cpu']}, {found['cpus']} CPUs, Linux {found['kernel']}, {record['date']}"


def machine_line(record: Record) -> str:
    """A sentence that says where, when, and how many rounds."""
    return f"{where(record)}, {record['rounds']} interleaved rounds."


def native_of(results: Sequence[CellResult]) -> dict[str, Timing] | None:
    """The timings of the native row: {probe: timing}."""
    return next((result["ns"] for result in results if result["side"] == "native"), None)


def require_native(results: Sequence[CellResult]) -> dict[str, Timing]:
    """The timings of the native row; BenchError if there is none."""
    native = native_of(results)
    if native is None:
        raise BenchError("the results have no native row")
    return native


def has_all_sides(results: Sequence[CellResult]) -> bool:
    """Whether a plot can be drawn."""
    return {result["side"] for result in results} >= {"native", "kernel", "tarsier"}


def cells_report(
    name: str,
    record: Record,
    heading: str,
    body: str,
    plot: Callable[[list[CellResult], str], str],
) -> Report:
    """Text and plot of a benchmark of cells; `plot` gets the results and the machine's line.

    `heading`: the title, and a description of what is measured.
    """
    results, line = record["cells"], machine_line(record)
    text = f"{heading}\n{line} Made by `bench/run {name}`.\n\n{body}"
    return Report(text, plot(results, line) if has_all_sides(results) else None)


def cells_along(
    results: Sequence[CellResult],
    side: str,
    categories: Sequence[object],
    key: str,
    **facts: str | bool,
) -> list[CellResult | None]:
    """For each category, the cell of a side whose `key` is the category and whose facts match."""

    def matches(result: CellResult, category: object) -> bool:
        wanted = {"side": side, key: category, **facts}
        return all(result.get(name) == value for name, value in wanted.items())

    return [
        next((result for result in results if matches(result, category)), None)
        for category in categories
    ]


def minima_along(
    results: Sequence[CellResult],
    side: str,
    categories: Sequence[object],
    key: str,
    probe: str = "null",
    **facts: str | bool,
) -> list[float | None]:
    """The minima in ns of `cells_along`; None if there is no such cell."""
    cells = cells_along(results, side, categories, key, **facts)
    return [cell["ns"][probe]["min"] if cell else None for cell in cells]


def as_json(record: Record) -> str:
    """The text of a results file."""
    return json.dumps(record, indent=1) + "\n"


def read(path: Path) -> Record:
    """Reads a results file; BenchError if it is not one."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BenchError(f"{path}: {error}") from error
    if not isinstance(found, dict):
        raise BenchError(f"{path}: expected a JSON object")
    return found


def write_record(out: Path, measured: Measured) -> None:
    """Writes OUT/STEM.json."""
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{measured.stem}.json").write_text(as_json(measured.record))


def write_report(out: Path, stem: str, report: Report) -> None:
    """Writes OUT/STEM.md, and OUT/STEM.svg if there is a plot."""
    (out / f"{stem}.md").write_text(report.text)
    if report.plot is not None:
        (out / f"{stem}.svg").write_text(report.plot)
