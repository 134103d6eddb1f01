"""Audit records for an event that a rule asks for, written as the kernel and programs write them."""

import posixpath
import struct

SECOND = 1790000000

# How each action is done: system call, its arguments, how the object is named.
CALLS = {
    "executed": ("execve", {}, "NORMAL"),
    "opened-file": ("openat", {"a0": "ffffff9c", "a2": "0"}, "NORMAL"),
    "wrote-to-file": ("write", {}, None),
    "deleted": ("unlinkat", {"a0": "ffffff9c"}, "DELETE"),
    "renamed": ("renameat2", {"a0": "ffffff9c"}, "CREATE"),
    "changed-file-ownership-of": ("fchownat", {"a0": "ffffff9c"}, "NORMAL"),
    "changed-file-permissions-of": ("fchmodat", {"a0": "ffffff9c"}, "NORMAL"),
    "connected-to": ("connect", {"a0": "3", "a2": "10"}, None),
    "bound-socket": ("bind", {"a0": "3", "a2": "58"}, None),
    "accepted-connection-from": ("accept4", {"a0": "3"}, None),
    "listen-for-connections": ("listen", {"a0": "3"}, None),
    "killed-pid": ("kill", {"a0": "4d2", "a1": "9"}, None),
    "loaded-kernel-module": ("finit_module", {"a0": "3"}, None),
    "unloaded-kernel-module": ("delete_module", {}, None),
    "mounted": ("mount", {}, "NORMAL"),
    "changed-identity-of": ("setuid", {"a0": "0"}, None),
    "violated-apparmor-policy": ("fchmodat", {"a0": "ffffff9c"}, "NORMAL"),
}

# Records of programs: type, its text. ACCT, ID, ADDR, EXE, RES and GRANTORS are put in.
MESSAGES = {
    "authenticated": (
        "USER_AUTH",
        'op=PAM:authentication grantors=GRANTORS acct="ACCT" exe="EXE" hostname=? addr=ADDR terminal=ssh res=RES',
    ),
    "logged-in": (
        "USER_LOGIN",
        'op=login id=ID exe="EXE" hostname=ADDR addr=ADDR terminal=/dev/pts/0 res=RES',
    ),
    "started-session": (
        "USER_START",
        'op=PAM:session_open grantors=GRANTORS acct="ACCT" exe="EXE" hostname=ADDR addr=ADDR terminal=ssh res=RES',
    ),
    "changed-password": (
        "USER_CHAUTHTOK",
        'op=changing password id=ID exe="EXE" hostname=? addr=? terminal=pts/1 res=RES',
    ),
    "added-user-account": (
        "ADD_USER",
        'op=add-user acct="ACCT" exe="EXE" hostname=? addr=? terminal=pts/1 res=RES',
    ),
    "added-group-account-to": (
        "ADD_GROUP",
        'op=add-group acct="ACCT" exe="EXE" hostname=? addr=? terminal=pts/1 res=RES',
    ),
    "stopped-service": (
        "SERVICE_STOP",
        'unit=UNIT comm="systemd" exe="/usr/lib/systemd/systemd" hostname=? addr=? terminal=? res=RES',
    ),
}

# What is done where a rule names no action: by event.category and event.type.
DEFAULTS = {
    ("file", "deletion"): "deleted",
    ("file", "creation"): "created",
    ("file", "change"): "renamed",
    ("network", "start"): "connected-to",
    ("driver", "start"): "loaded-kernel-module",
    ("authentication", "start"): "logged-in",
    ("iam", "creation"): "added-user-account",
    ("iam", "change"): "changed-password",
}

NUMBERS = {
    "execve": 59,
    "execveat": 322,
    "openat": 257,
    "open": 2,
    "unlinkat": 263,
    "renameat2": 316,
    "fchownat": 260,
    "fchmodat": 268,
    "connect": 42,
    "bind": 49,
    "accept4": 288,
    "listen": 50,
    "kill": 62,
    "finit_module": 313,
    "init_module": 175,
    "delete_module": 176,
    "mount": 165,
    "setuid": 105,
    "write": 1,
    "prctl": 157,
    "mprotect": 10,
    "socket": 41,
    "splice": 275,
    "unshare": 272,
    "memfd_create": 319,
    "mknod": 133,
    "sysinfo": 99,
    "syslog": 103,
    "personality": 135,
    "setns": 308,
    "setgid": 106,
    "setresuid": 117,
    "setresgid": 119,
    "setreuid": 113,
    "setregid": 114,
    "chown": 92,
    "fchown": 93,
    "chmod": 90,
    "fchmod": 91,
    "ptrace": 101,
    "rename": 82,
    "renameat": 264,
    "creat": 85,
    "mkdir": 83,
    "mkdirat": 258,
    "link": 86,
    "linkat": 265,
    "symlink": 88,
    "symlinkat": 266,
    "unlink": 87,
    "rmdir": 84,
    "truncate": 76,
}
NOBODY, PERSON, ROOT = "65534", "1000", "0"
USERS = {ROOT: "root", PERSON: "alice", NOBODY: "nobody", "33": "www-data"}


class Wish:
    """What a rule asks of an event: values of fields, and values that are not allowed."""

    def __init__(self, chosen, rng):
        self.rng, self.wanted, self.avoided = rng, {}, {}
        for term, is_wanted in chosen:
            (self.wanted if is_wanted else self.avoided).setdefault(term.field, []).append(term)

    def fits(self, field, value):
        wanted = all(term.holds(value) for term in self.wanted.get(field, []))
        return wanted and self.is_allowed(field, value)

    def is_allowed(self, field, value):
        return not any(term.holds(value) for term in self.avoided.get(field, []))

    def one(self, field, *defaults):
        """A value of the field that the rule allows, or the first default that it allows, or None."""
        terms = [term for term in self.wanted.get(field, [])]
        samples = [sample for term in terms for sample in term.samples]
        self.rng.shuffle(samples)
        firsts = [term.samples[-1] for term in terms if term.samples]
        joined = [glue.join(firsts) for glue in ("", " ", "/")] if len(firsts) > 1 else []
        for value in samples + joined + [default for default in defaults if default is not None]:
            if self.fits(field, value):
                return value
        return next((value for value in [*samples, *defaults] if value is not None), None)

    def each(self, field):
        """Values for a field with a list, one for each term."""
        out = []
        for term in self.wanted.get(field, []):
            allowed = [sample for sample in term.samples if self.is_allowed(field, sample)]
            value = (allowed or term.samples or [None])[0]
            if value is not None and not any(term.holds(there) for there in out):
                out.append(value)
        return out

    def has(self, *fields):
        return any(field in self.wanted for field in fields)


def quoted(text):
    """A text as the kernel writes one that it does not trust."""
    raw = text.encode()
    if any(byte < 0x21 or byte > 0x7E or byte == 0x22 for byte in raw):
        return raw.hex().upper()
    return f'"{text}"'


class Writer:
    """One event for a wish. `forced`: fields whose values other events of the rule share."""

    def __init__(self, wish, serial, forced, is_of_tarsier):
        self.wish, self.serial, self.forced, self.is_of_tarsier = (
            wish,
            serial,
            forced,
            is_of_tarsier,
        )
        self.lines, self.chosen_parent = [], None

    def one(self, field, *defaults):
        return self.forced.get(field) or self.wish.one(field, *defaults)

    def record(self, kind, text, names=""):
        head = f"type={kind} msg=audit({SECOND + self.serial}.000:{self.serial}): "
        self.lines.append(head + text + (("\x1d" + names) if names else ""))

    def action(self):
        wish = self.wish
        actions = [name for term in wish.wanted.get("event.action", []) for name in term.samples]
        known = [name for name in actions if name in CALLS or name in MESSAGES]
        if known:
            return wish.rng.choice(known)
        categories, types = wish.each("event.category"), wish.each("event.type")
        for category in categories or [""]:
            for kind in types or ["start", "creation"]:
                if (category, kind) in DEFAULTS:
                    return DEFAULTS[(category, kind)]
        if "authentication" in categories:
            return "authenticated"
        if "file" in categories:
            return "opened-file"
        return "executed"

    def write(self):
        call = self.wish.one("auditd.data.syscall")
        action = "called" if call else self.action()
        self.person()
        self.program()
        if action in MESSAGES:
            self.message(*MESSAGES[action])
        elif call:
            self.call(call, {}, "NORMAL" if call in ("open", "openat") else None)
        elif action == "created":
            self.call("openat", {"a0": "ffffff9c", "a2": "241", "a3": "1b6"}, "CREATE")
        else:
            self.call(*CALLS[action])
        return self.lines

    def person(self):
        name = self.one("user.name")
        default = ROOT if name == "root" else PERSON
        self.uid = self.one("user.id", default, NOBODY, ROOT)
        self.euid = self.one("user.effective.id", self.uid)
        self.user = name or USERS.get(self.uid, "alice")

    def program(self):
        wish = self.wish
        title = wish.one("process.executable")
        name = wish.one("process.name", posixpath.basename(title) if title else None)
        self.name = name or (
            "python3"
            if not wish.has("process.args")
            else (wish.each("process.args")[0].split("/")[-1] or "tool")
        )
        if not wish.is_allowed("process.name", self.name):
            self.name = "tool"
        self.exe = (
            title
            or wish.one("process.executable", f"/usr/bin/{self.name}", f"/opt/x/{self.name}")
            or f"/usr/bin/{self.name}"
        )
        self.args = arguments(wish, "process", self.name)
        self.cwd = wish.one("process.working_directory", "/srv") or "/srv"
        pid = self.forced.get("process.pid") or 5000 + self.serial * 3
        self.pid = int(pid)
        self.ppid = int(
            self.forced.get("process.parent.pid")
            or self.wish.one("process.parent.pid", str(self.pid - 1))
        )

    def parent(self):
        """What a log with identity says of the parent: program and arguments."""
        if self.chosen_parent is None:
            self.chosen_parent = self.choose_parent()
        return self.chosen_parent

    def choose_parent(self):
        wish = self.wish
        exe = wish.one("process.parent.executable")
        name = (
            wish.one(
                "process.parent.name", posixpath.basename(exe) if exe else None, "bash", "tool"
            )
            or "bash"
        )
        exe = (
            exe
            or wish.one("process.parent.executable", f"/usr/bin/{name}", f"/opt/x/{name}")
            or f"/usr/bin/{name}"
        )
        return exe, arguments(wish, "process.parent", name)

    def ancestors(self):
        """What an ENRICHED log of Tarsier adds."""
        return (
            f' ANCESTORS="{self.ppid}:{self.parent()[0]},1:/usr/lib/systemd/systemd"'
            if self.is_of_tarsier
            else ""
        )

    def acts(self, action):
        return self.wish.has("event.action") and any(
            term.holds(action) for term in self.wish.wanted["event.action"]
        )

    def names(self):
        ids = {
            "AUID": "alice",
            "UID": self.user,
            "GID": self.user,
            "EUID": USERS.get(self.euid, self.user),
            "SUID": self.user,
        }
        ids |= {"FSUID": ids["EUID"], "EGID": self.user, "SGID": self.user, "FSGID": self.user}
        return " ".join(f'{name}="{value}"' for name, value in ids.items())

    def call(self, name, given, nametype):
        wish = self.wish
        has_failed = wish.one("event.outcome") == "failure"
        result = "success=no exit=-13" if has_failed else "success=yes exit=0"
        registers = {"a0": "7ffc1000", "a1": "7ffc2000", "a2": "7ffc3000", "a3": "8"} | given
        for register in registers:
            registers[register] = (
                wish.one(f"auditd.data.{register}", registers[register]) or registers[register]
            )
        paths = self.paths(nametype)
        names = f"ARCH=x86_64 SYSCALL={name} " + self.names() + self.ancestors()
        if self.acts("violated-apparmor-policy"):
            self.record(
                "AVC",
                f'apparmor="DENIED" operation="chmod" profile="web" name={quoted(paths[0][0])} pid={self.pid} comm="web"',
            )
        self.record(
            "SYSCALL",
            f"arch=c000003e syscall={NUMBERS[name]} {result} "
            + " ".join(f"{register}={value}" for register, value in registers.items())
            + f" items={len(paths)} ppid={self.ppid} pid={self.pid} auid=1000 uid={self.uid} gid={self.uid} euid={self.euid}"
            f" suid={self.euid} fsuid={self.euid} egid={self.uid} sgid={self.uid} fsgid={self.uid} tty=pts0 ses=3"
            f" comm={quoted(self.name[:15])} exe={quoted(self.exe)} subj=unconfined key={quoted(wish.one('key', 'watched') or 'watched')}",
            names,
        )
        if name in ("execve", "execveat"):
            listed = " ".join(
                f"a{number}={quoted(argument)}" for number, argument in enumerate(self.args)
            )
            self.record("EXECVE", f"argc={len(self.args)} {listed}")
        address = self.address(name)
        if address:
            self.record("SOCKADDR", f"saddr={address.hex().upper()}")
        if paths:
            self.record("CWD", f"cwd={quoted(self.cwd)}")
        for number, (path, kind) in enumerate(paths):
            mode = "040755" if kind == "PARENT" else "0100755"
            self.record(
                "PATH",
                f"item={number} name={quoted(path)} inode={1000 + number} dev=08:01 mode={mode} ouid=0 ogid=0 rdev=00:00"
                f" nametype={kind} cap_fp=0 cap_fi=0 cap_fe=0 cap_fver=0 cap_frootid=0",
                'OUID="root" OGID="root"',
            )
        title = wish.one("process.title")
        title = title.encode() if title else b"\0".join(argument.encode() for argument in self.args)
        self.record("PROCTITLE", f"proctitle={title.hex().upper()}")

    def paths(self, nametype):
        if nametype is None:
            return []
        wish = self.wish
        if wish.has("file.path", "file.name", "file.extension") or not wish.has("process.args"):
            name = wish.one("file.name")
            extension = wish.one("file.extension")
            name = name or (f"x.{extension}" if extension else None)
            path = wish.one("file.path", f"/srv/{name}" if name else None)
            if path and extension and not path.endswith(f".{extension}"):
                path = posixpath.join(
                    posixpath.dirname(path), posixpath.basename(path) + f".{extension}"
                )
            if path and name and not extension and posixpath.basename(path) != name:
                path = posixpath.join(posixpath.dirname(path), name)
        else:
            path = None
        path = path or self.exe
        if not path.startswith("/"):
            path = "/srv/" + path
        if nametype in ("CREATE", "DELETE"):
            return [(posixpath.dirname(path) + "/", "PARENT"), (path, nametype)]
        return [(path, nametype)]

    def address(self, call):
        wish = self.wish
        if call not in ("connect", "bind", "accept4"):
            return None
        family = wish.one("auditd.data.socket.family")
        if family == "38":
            return (
                struct.pack("<H", 38)
                + b"skcipher".ljust(14, b"\0")
                + bytes(8)
                + b"cbc(aes)".ljust(64, b"\0")
            )
        path = wish.one("destination.address")
        if path and path.startswith("/"):
            return struct.pack("<H", 1) + path.encode() + b"\0"
        ip = self.one(
            "destination.ip" if call != "accept4" else "source.ip",
            path,
            "198.51.100.9",
            "93.184.215.14",
        )
        port = int(wish.one("destination.port", "443"))
        if ":" in ip:
            import ipaddress

            return (
                struct.pack("<HHI", 10, port, 0)[:2]
                + struct.pack(">HI", port, 0)
                + ipaddress.ip_address(ip).packed
                + bytes(4)
            )
        return (
            struct.pack("<H", 2)
            + struct.pack(">H", port)
            + bytes(int(part) for part in ip.split("."))
            + bytes(8)
        )

    def message(self, kind, text):
        wish = self.wish
        result = (
            "failed"
            if wish.one("event.outcome") == "failure" or wish.one("auditd.result") == "fail"
            else "success"
        )
        values = {
            "ACCT": self.user,
            "ID": self.uid,
            "ADDR": self.one("source.ip", "192.0.2.4"),
            "EXE": self.exe,
            "RES": result,
            "GRANTORS": wish.one("auditd.data.grantors", "pam_unix") or "pam_unix",
            "UNIT": wish.one("unit", "x") or "x",
        }
        for name, value in values.items():
            text = text.replace(name, value)
        names = f'UID="root" AUID="alice" ID="{self.user}"'
        self.record(
            kind, f"pid={self.pid} uid=0 auid=1000 ses=3 subj=unconfined msg='{text}'", names
        )


def arguments(wish, prefix, name):
    """A list of arguments for what the rule asks of them, of their number and of the whole line."""
    field, line = f"{prefix}.args", f"{prefix}.command_line"
    listed = wish.each(field)
    texts = wish.each(line)
    rest = [argument for argument in listed if argument != name]
    ways = [[name] + rest + texts]
    for text in texts:
        ways.append(text.split(" ") + rest)
        ways.append([name] + rest + text.split(" "))
        ways.append([name] + text.split(" ") + rest)
        ways.append([text] + rest)
    ways.append(listed + texts)
    # A rule may ask for a long line.
    ways += [way + ["x" * 100] for way in ways]
    fits = [
        way
        for way in ways
        if way and wish.fits(line, " ".join(way)) and has_arguments(wish, field, way)
    ]
    way = list((fits or ways)[0]) or [name]
    while (
        wish.has(f"{prefix}.args_count")
        and not wish.fits(f"{prefix}.args_count", str(len(way)))
        and len(way) < 12
    ):
        way.append("x")
    return way


def has_arguments(wish, field, way):
    wanted = all(
        any(term.holds(argument) for argument in way) for term in wish.wanted.get(field, [])
    )
    return wanted and all(wish.is_allowed(field, argument) for argument in way)


class RecordWriter(Writer):
    """One event for what a rule of Sigma for auditd asks of one of its records."""

    # Names of such a rule, and what they are elsewhere in this file.
    NAMES = {
        "exe": "process.executable",
        "comm": "process.name",
        "SYSCALL": "auditd.data.syscall",
        "name": "file.path",
        "euid": "user.effective.id",
    }

    def write(self):
        wish = self.wish
        for own, name in self.NAMES.items():
            for side in (wish.wanted, wish.avoided):
                if own in side:
                    side[name] = side[own]
        kind = (wish.one("type") or "EXECVE").upper()
        self.person()
        self.program()
        self.ppid, self.exe = self.pid - 1, self.exe if wish.has("exe") else "/usr/bin/tool"
        if kind == "EXECVE":
            self.args = self.numbered()
            self.call("execve", {}, "NORMAL")
        elif kind == "PATH":
            self.call("openat", {"a0": "ffffff9c"}, wish.one("nametype", "NORMAL"))
        elif kind in ("TTY", "USER_TTY"):
            self.record(
                kind,
                f'pid={self.pid} uid=0 auid=1000 ses=3 major=136 minor=0 comm="bash" data=77686F616D690D',
            )
        elif kind in ("ADD_USER", "SERVICE_STOP"):
            self.message(*next(message for message in MESSAGES.values() if message[0] == kind))
        else:
            registers = {f"a{number}": wish.one(f"a{number}") for number in range(4)}
            self.call(
                wish.one("auditd.data.syscall", "openat"),
                {name: value for name, value in registers.items() if value},
                None,
            )
        return self.lines

    def numbered(self):
        """Arguments by their numbers, then words that may be anywhere."""
        wish = self.wish
        numbers = [
            int(field[1:]) for field in wish.wanted if field[0] == "a" and field[1:].isdigit()
        ]
        words = wish.each("(anywhere)")
        args = [wish.one(f"a{number}", "x") for number in range(max(numbers, default=-1) + 1)]
        return args + words or ["tool"]
