"""Reads audit logs as events, and pairs the events of two logs of the same actions."""
import re

FIELD = re.compile(r"""([^\s=]+)=("[^"]*"|\S*)""")
HEAD = re.compile(r"type=(\S+) msg=audit\(([^)]*)\): ?(.*)")
# Programs that load rules and mark the log; their events are not part of a scenario.
HARNESS = {'"auditctl"', '"tarsier"', '"exact"', '"run"', '"auditd"'}
# Types of records about the daemon and its rules, not about a scenario.
ABOUT_DAEMON = re.compile(r"DAEMON_|CONFIG_CHANGE$|SERVICE_|BPF$")
# Records that the kernel makes inside a call whatever the rules are, and with them that call's SYSCALL record.
OWN = {"LOGIN", "CONFIG_CHANGE", "BPF", "SECCOMP", "ANOM_ABEND", "ANOM_PROMISCUOUS", "NETFILTER_CFG", "AVC", "FANOTIFY", "TTY", "INTEGRITY_RULE"}
EXECS = {("c000003e", "59"), ("c000003e", "322"), ("40000003", "11"), ("40000003", "358"), ("c00000b7", "221"), ("c00000b7", "281"), ("40000028", "11"), ("40000028", "387")}


class Event:
    """The records of one event: `records` is [(type, {field: value})] in the order of the log."""

    def __init__(self, records):
        self.records = records
        self.call = next((fields for kind, fields in records if kind == "SYSCALL"), None)
        kinds = [kind for kind, _ in records]
        self.own = next((kind for kind in kinds if kind in OWN), None)
        if self.own and self.call and self.call.get("key") != "(null)":
            self.own = None
        if self.own:
            self.signature = (self.own,)
        elif self.call:
            self.signature = (self.call["arch"], self.call["syscall"])
        else:
            self.signature = (kinds[0],)

    @property
    def is_harness(self):
        if any(fields.get("comm") in HARNESS for _, fields in self.records):
            return True
        kind, fields = self.records[0]
        # The marks, and the records about auditctl's own actions.
        if not self.call and ABOUT_DAEMON.match(kind):
            return True
        return any("exact-" in value for value in fields.values())

    @property
    def pid(self):
        """The process of the event, or -1. Every run makes its processes in the same order."""
        return next((int(fields["pid"]) for _, fields in self.records if "pid" in fields), -1)

    def syscall(self, names):
        """The name of the call; for an event without a call, its type."""
        if not self.call:
            return self.signature[0]
        return names.get((self.call["arch"], self.call["syscall"]), self.call["syscall"])


def drop_duplicate_names(records):
    """Removes the PATH record that TOMOYO's look-up adds to an execve.

    It is of the same file, or has the name /dev/fd/… that the kernel gives a file executed through a descriptor.
    """
    kept, seen, dropped = [], {}, 0
    for kind, fields in records:
        if kind == "PATH":
            # TOMOYO does not follow a symbolic link, so that its record may be of the link itself.
            is_link = fields.get("mode", "").startswith("012")
            by_descriptor = bool(seen) and fields["name"].startswith('"/dev/fd/')
            if by_descriptor or fields["name"] in seen and (is_link or fields.get("inode") in seen[fields["name"]]):
                dropped += 1
                continue
            seen.setdefault(fields["name"], set()).add(fields.get("inode"))
            fields = dict(fields, item=str(int(fields["item"]) - dropped))
        kept.append((kind, fields))
    if not dropped:
        return records
    return [(k, dict(f, items=str(int(f["items"]) - dropped)) if k == "SYSCALL" else f) for k, f in kept]


def read_events(path, is_kernel_made):
    """The events of a scenario's log, by process and time; `is_kernel_made`: the kernel's audit made the records."""
    groups = {}
    with open(path, encoding="utf-8", errors="surrogateescape") as log:
        for line in log:
            head = HEAD.match(line)
            if not head:
                raise SystemExit(f"compare: {path}: not an audit record: {line!r}")
            body = head[3].split("\x1d")[0]
            groups.setdefault(head[2], []).append((head[1], dict(FIELD.findall(body))))
    events, latest = [], {}
    for stamp, records in groups.items():
        call = next((fields for kind, fields in records if kind == "SYSCALL"), None)
        if is_kernel_made and call and (call["arch"], call["syscall"]) in EXECS:
            records = drop_duplicate_names(records)
        event = Event(records)
        if event.is_harness:
            continue
        # Records without a call come by another socket, so that later events of the process may precede them in the log.
        time, serial = stamp.split(":")
        time = float(time)
        if event.call:
            time = latest[event.pid] = max(time, latest.get(event.pid, 0))
        # The kernel's records of one processor may precede earlier ones of another, which have smaller serials.
        events.append((event.pid, time, bool(event.call), int(serial) if is_kernel_made else 0, event))
    return [event for *_, event in sorted(events, key=lambda entry: entry[:4])]


def is_twice(sequence, k):
    """Whether an event equals the one before or after it: one call that was recorded twice."""
    near = sequence[max(k - 1, 0) : k] + sequence[k + 1 : k + 2]
    return any(other.call and other.records == sequence[k].records for other in near)


def align(ours, theirs, score):
    """Pairs two sequences in order so that the sum of `score` is greatest; a score of 0 never pairs.

    Returns [(i, j)]; i or j is None for an element without a partner.
    """
    best = [[0] * (len(theirs) + 1) for _ in range(len(ours) + 1)]
    for i in reversed(range(len(ours))):
        for j in reversed(range(len(theirs))):
            points = score(ours[i], theirs[j])
            paired = best[i + 1][j + 1] + points if points else 0
            best[i][j] = max(paired, best[i + 1][j], best[i][j + 1])
    pairs, i, j = [], 0, 0
    while i < len(ours) and j < len(theirs):
        points = score(ours[i], theirs[j])
        if points and best[i][j] == best[i + 1][j + 1] + points:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            pairs.append((i, None))
            i += 1
        else:
            pairs.append((None, j))
            j += 1
    return pairs + [(k, None) for k in range(i, len(ours))] + [(None, k) for k in range(j, len(theirs))]


def event_score(ours, theirs):
    """How well two events fit; 0 if their calls or types differ."""
    if ours.signature != theirs.signature:
        return 0
    if not (ours.call and theirs.call):
        return 100
    same = [name for name in ("comm", "exit", "key", "exe", "a0", "a1", "a2", "a3") if ours.call.get(name) == theirs.call.get(name)]
    return 100 + 4 * len(same) + 20 * ("comm" in same) + 10 * ("exit" in same)


def path_score(ours, theirs):
    """How well two PATH records fit."""
    same = {name for name in ("nametype", "name", "item", "mode") if ours[1].get(name) == theirs[1].get(name)}
    return 1 + 8 * ("nametype" in same) + 4 * ("name" in same) + len(same)


def pair_records(ours, theirs):
    """Pairs the records of two events: [(type, our fields or None, their fields or None)]."""
    pairs = []
    kinds = dict.fromkeys(kind for kind, _ in ours + theirs)
    for kind in kinds:
        left = [record for record in ours if record[0] == kind]
        right = [record for record in theirs if record[0] == kind]
        score = path_score if kind == "PATH" else lambda a, b: 1
        for i, j in align(left, right, score):
            pairs.append((kind, left[i][1] if i is not None else None, right[j][1] if j is not None else None))
    return pairs
