"""Counts the rules of Elastic and Sigma that find events made for them, as Tarsier sends these.

Usage: run.py --elastic CHECKOUT --sigma CHECKOUT --tarsier PROGRAM [--only NAME]

For each rule, audit records are made that it should find, from what it compares. `tarsier
search --format` maps them, as the forwarder does, and the rule's terms are compared with what comes out.
scripts/siem-rules runs this. Nothing of the rules is kept.
"""

import argparse
import json
import random
import re
import subprocess
import sys

import events
import languages
import terms

TRIES = 40
# Of Sigma's process_creation, in ECS.
SIGMA_FIELDS = {
    "Image": "process.executable",
    "CommandLine": "process.command_line",
    "ParentImage": "process.parent.executable",
    "ParentCommandLine": "process.parent.command_line",
    "CurrentDirectory": "process.working_directory",
    "User": "user.name",
    "LogonId": "auditd.session",
}


def renamed(tree, names):
    if isinstance(tree, terms.Not):
        return terms.Not(renamed(tree.part, names))
    if isinstance(tree, terms.Term):
        return terms.Term(names.get(tree.field, tree.field), tree.text, tree.holds, tree.samples)
    return type(tree)([renamed(part, names) for part in tree.parts])


# Who wrote the log: auditd, or Tarsier with `identity = yes`.
LOGS = ("auditd's log", "Tarsier's ENRICHED log", "Tarsier's JSON log")


class Attempts:
    """Events made for rules, all of them mapped at once."""

    def __init__(self, program, log):
        self.program, self.log, self.lines, self.parents, self.serial = program, log, [], {}, 0

    def add(self, tree, rng, forced, kind=events.Writer):
        """Writes an event for one way to make the tree true. Returns its serial number."""
        self.serial += 1
        wish = events.Wish(terms.choose(tree, rng), rng)
        writer = kind(wish, self.serial, forced, self.log == LOGS[1])
        self.lines += writer.write()
        self.parents[self.serial] = (writer.pid, writer.ppid, *writer.parent())
        return self.serial

    def mapped(self, form):
        """The documents of all events in the format, by serial number."""
        text = "".join(line + "\n" for line in self.lines)
        if self.log == LOGS[2]:
            text = "".join(self.with_parent(line) for line in self.formatted(text, "json"))
        out = {}
        for line in self.formatted(text, form):
            document = json.loads(line)
            serial = document["serial"] if form == "json" else document["event"]["sequence"]
            out[serial] = document
        return out

    def with_parent(self, line):
        """A line of a JSON log with what `identity = yes` adds."""
        serial = json.loads(line)["serial"]
        pid, ppid, exe, argv = self.parents[serial]
        process = {"pid": pid, "start": pid * 1000, "boot": "53d1a22c-0000-4000-8000-000000000000"}
        process["ancestors"] = [{"pid": ppid, "start": ppid * 1000, "exe": exe, "argv": argv}]
        mark = f'"serial":{serial},'
        return line.replace(mark, mark + f'"process":{json.dumps(process)},', 1) + "\n"

    def formatted(self, text, form):
        options = ["--format", "jsonl"] if form == "json" else ["--as-host", "web1", "--format", form]
        command = [self.program, "search", *options]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr}")
        return done.stdout.removesuffix("\n").split("\n")


def forced_by(stages, number):
    """The pid that a later stage has to share with the first one."""
    first, this = stages[0][1], stages[number][1]
    out = {}
    for one, other in zip(first, this, strict=True):
        kinds = {
            "process.pid": "process.pid",
            "process.entity_id": "process.pid",
            "process.parent.pid": "process.parent.pid",
            "process.parent.entity_id": "process.parent.pid",
        }
        if one in kinds and other in kinds:
            out[kinds[other]] = kinds[one]
    return out


def tried(rules, program, log):
    """For each rule what keeps the best of its events from being found: nothing, if it is found."""
    rng = random.Random(7)
    attempts, made = Attempts(program, log), []
    for rule in rules:
        ways = []
        for _ in range(TRIES):
            serials = []
            for number, (tree, _) in enumerate(rule.stages):
                forced = {}
                for field, of_first in forced_by(rule.stages, number).items() if number else ():
                    pid, ppid, *_ = attempts.parents[serials[0]]
                    forced[field] = str(pid if of_first == "process.pid" else ppid)
                serials.append(attempts.add(tree, rng, forced))
            ways.append(serials)
        made.append((rule, ways))
    return judged(made, attempts.mapped("ecs-auditbeat"))


def tried_by_record(rules, program, form):
    """The same for rules on single records, in a format that has them."""
    rng = random.Random(7)
    attempts, made = Attempts(program, LOGS[0]), []
    for rule in rules:
        made.append(
            (
                rule,
                [
                    attempts.add(rule.stages[0][0], rng, {}, events.RecordWriter)
                    for _ in range(TRIES)
                ],
            )
        )
    documents = attempts.mapped("json")
    results = []
    for rule, ways in made:
        tree = rule.stages[0][0]
        lacking = []
        for serial in ways:
            records = {"json": json_records, "raw": raw_records}[form](
                documents[serial], attempts, serial
            )
            lacking += [(terms.unmet(tree, record), [serial]) for record in records]
        results.append((rule.name, *min(lacking, key=lambda one: len(one[0]))))
    return results


def json_records(document, attempts, serial):
    """Records as `format = json` has them, with the names of fields that docs/guide/siem.md says."""
    for record in document["records"]:
        flat = {name: value for name, value in record.items() if name not in ("argv", "msg_fields")}
        flat |= {f"a{number}": value for number, value in enumerate(record.get("argv", []))}
        flat |= record.get("msg_fields", {})
        flat["SYSCALL"] = record.get("syscall")
        if record["type"] == "SYSCALL":
            flat |= {
                name: flat[name].removeprefix("0x")
                for name in ("a0", "a1", "a2", "a3")
                if name in flat
            }
        yield flat | {languages.KEYWORD: json.dumps(record)}


def raw_records(document, attempts, serial):
    """Records as a store reads them that takes `NAME=VALUE` apart."""
    mark = f":{serial}):"
    for line in attempts.lines:
        if mark in line:
            flat = {}
            for name, value in re.findall(r"""(\w+)=("[^"]*"|[^\s'"\x1d]+)""", line):
                flat.setdefault(name, value.strip('"'))
            yield flat | {languages.KEYWORD: line}


def judged(made, documents):
    results = []
    for rule, ways in made:
        best = None
        for serials in ways:
            found = [documents[serial] for serial in serials]
            lacking = [
                term
                for (tree, _), document in zip(rule.stages, found, strict=True)
                for term in terms.unmet(tree, document)
            ]
            lacking += unjoined(rule.stages, found)
            if best is None or len(lacking) < len(best[0]):
                best = (lacking, serials)
            if not lacking:
                break
        results.append((rule.name, *best))
    return results


def unjoined(stages, documents):
    """Fields whose values the events of a sequence should share."""
    missing = []
    names = [by for _, by in stages]
    for position in range(len(names[0])):
        values = [
            terms.values_at(document, by[position])
            for by, document in zip(names, documents, strict=True)
        ]
        if not all(values) or any(value != values[0] for value in values):
            missing.append(
                terms.Term(" and ".join(sorted({by[position] for by in names})), "shared", None, [])
            )
    return missing


def report(title, results):
    fires = [name for name, lacking, _ in results if not lacking]
    print(
        f"{title}: {len(fires)} of {len(results)} find an event made for them ({100 * len(fires) / len(results):.1f} %)"
    )
    for name, lacking, serials in results:
        if lacking:
            print(
                f"  {name} ({serials[0]}): "
                + "; ".join(sorted({repr(term) for term in lacking}))[:400]
            )


def read(options, found):
    rules, unread = found
    for name, why in unread:
        print(f"  not read: {name}: {why}")
    return [rule for rule in rules if options.only in rule.name]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--elastic")
    parser.add_argument("--sigma")
    parser.add_argument("--tarsier", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.elastic:
        rules = read(options, languages.elastic_rules(options.elastic))
        for log in LOGS:
            results = tried(rules, options.tarsier, log)
            for part in ("linux", "cross-platform"):
                some = [result for result in results if result[0].startswith(part)]
                if some:
                    report(f"Elastic, {part}, {log}", some)
    if options.sigma:
        rules = read(options, languages.sigma_rules(options.sigma, "process_creation"))
        for rule in rules:
            rule.stages = [
                (
                    terms.All(
                        [
                            terms.equals("event.action", "executed"),
                            renamed(rule.stages[0][0], SIGMA_FIELDS),
                        ]
                    ),
                    [],
                )
            ]
        for log in LOGS:
            report(f"Sigma, process_creation, {log}", tried(rules, options.tarsier, log))
        rules = read(options, languages.sigma_rules(options.sigma, "auditd"))
        for form in ("json", "raw"):
            report(f"Sigma, auditd, format = {form}", tried_by_record(rules, options.tarsier, form))


main()
