"""Audit rules that benchmarks load, as lines of a rules file."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from .environment import BENCH, ROOT, BenchError, output_of

# Rule sets that are written for the benchmarks.
OWN = BENCH / "rules"

# No process has this uid or a higher one, so rules that require one select nothing.
NOBODY = 4000000


def counted(n: int) -> str:
    """`1 rule`, `2 rules`."""
    return f"{n} rule" if n == 1 else f"{n} rules"


def select_nobody_on(
    calls: Sequence[str], count: int, arches: Sequence[str] = ("b64",), twin: str = "mkdir"
) -> list[str]:
    """`count` rules that select nothing, on the entries of `calls` in turn.

    For each further arch there is one more rule, on the call `twin`, if there are rules at all.
    """
    lines = [
        f"-a always,exit -F arch={arches[0]} -S {calls[i % len(calls)]} -F uid={NOBODY + i} -k n{i}"
        for i in range(count)
    ]
    if count:
        lines += [
            f"-a always,exit -F arch={arch} -S {twin} -F uid={NOBODY} -k twin"
            for arch in arches[1:]
        ]
    return lines


def sample_rules(names: Iterable[str]) -> list[str]:
    """The rules of Debian's samples with these names (or patterns), in order, without settings."""
    peers = output_of([ROOT / "scripts/peers"]).strip()
    samples = Path(peers, "usr/share/doc/auditd/examples/rules")
    lines: list[str] = []
    for name in names:
        paths = sorted(samples.glob(name + ".rules"))
        if not paths:
            raise BenchError(f"Debian's samples do not hold {name}.rules")
        for path in paths:
            lines += rules_in(path.read_text())
    return lines


def own_rules(name: str) -> list[str]:
    """The rules of a set in bench/rules."""
    return rules_in((OWN / f"{name}.rules").read_text())


def rules_in(text: str) -> list[str]:
    """The rules in a rules file, without settings and comments."""
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line.startswith(("-a", "-w"))]


def with_condition(lines: Iterable[str], condition: str) -> list[str]:
    """The rules, each with one more condition.

    A watch is converted to its long form, the only one that can have conditions.
    """
    changed = []
    for line in lines:
        words = line.split()
        if words[0] == "-w":
            path = words[1]
            kind = "dir" if Path(path).is_dir() else "path"
            options = dict(zip(words[2::2], words[3::2], strict=False))
            perm = options.get("-p", "rwxa")
            key = f" -k {options['-k']}" if "-k" in options else ""
            place = f"{kind}={path.rstrip('/') or '/'}"
            changed.append(f"-a always,exit -F {place} -F perm={perm}{key} -F {condition}")
        else:
            changed.append(f"{line} -F {condition}")
    return changed


def select_nobody(lines: Iterable[str]) -> list[str]:
    """The rules, each with one more condition that no process meets."""
    return with_condition(lines, f"uid={NOBODY}")


def tolerant(lines: Iterable[str]) -> list[str]:
    """The rules, with an option to skip those that cannot be loaded (on missing paths)."""
    return ["-i", *lines]


def write_rules(path: Path, lines: Iterable[str]) -> Path:
    """Writes a rules file with these lines."""
    path.write_text("".join(line + "\n" for line in lines))
    return path
