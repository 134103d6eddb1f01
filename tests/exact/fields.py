"""Fields of two logs of the same actions: which must be equal, and which need only map one to one."""

PID_FIELDS = {"pid", "ppid", "opid"}
SYSV_GET = {"shmget", "msgget", "semget"}
SYSV_USE = {"shmat", "shmctl", "msgsnd", "msgrcv", "msgctl", "semop", "semctl"}
# Calls that return a process number.
GIVE_PID = {"fork", "vfork", "clone", "clone3", "wait4", "setsid", "getpid", "getppid", "gettid", "set_tid_address"}
# Arguments that are process numbers, by call.
PID_ARGS = {
    "kill": {"a0"}, "tkill": {"a0"}, "tgkill": {"a0", "a1"}, "pidfd_open": {"a0"}, "ptrace": {"a1"},
    "rt_sigqueueinfo": {"a0"}, "rt_tgsigqueueinfo": {"a0", "a1"}, "wait4": {"a0"}, "process_vm_readv": {"a0"},
    "process_vm_writev": {"a0"}, "setpgid": {"a0"},
}
# Fields of a PATH record about its object; a record has all of them or none.
OBJECT = ("inode", "dev", "mode", "ouid", "ogid", "rdev")
UNSET = "4294967295"


class Renaming:
    """One-to-one maps of values that differ from run to run, one per class; a new pair of values is added when it is met."""

    def __init__(self):
        self.forward, self.backward = {}, {}

    def same(self, kind, ours, theirs):
        """Whether the map of class `kind` takes one value to the other; adds the pair if both are new."""
        forward = self.forward.setdefault(kind, {})
        backward = self.backward.setdefault(kind, {})
        if ours not in forward and theirs not in backward:
            forward[ours], backward[theirs] = theirs, ours
        return forward.get(ours) == theirs


def renamed_class(kind, field, call, fields):
    """The class of the map for a field of a record; None if the field has to be equal."""
    if field in PID_FIELDS:
        return "pid"
    if field == "prog-id":
        return "program"
    if kind == "PATH" and field == "inode":
        return "inode"
    if kind == "PATH" and field == "dev":
        return "dev"
    if field in ("ses", "old-ses", "oses") and fields[field] not in (UNSET, "-1"):
        return "session"
    if kind != "SYSCALL":
        return None
    if field == "exit" and call in GIVE_PID:
        return "pid"
    if field in PID_ARGS.get(call, ()):
        return "pid hex"
    if field == "exit" and call == "add_key":
        return "key"
    # Addresses in the memory of the shell that runs the scenarios.
    if call == "execve" and field in ("a0", "a1", "a2") and fields[field] != "0":
        return "address"
    if (field == "exit" and call in SYSV_GET) or (field == "a0" and call in SYSV_USE):
        return "sysv " + call[:3]
    return None


def same_value(renaming, kind, field, call, ours, theirs):
    """Whether `field` of two records of type `kind`, made by `call`, is equal or maps one to one."""
    if field not in ours or field not in theirs:
        return field not in ours and field not in theirs
    left, right = ours[field], theirs[field]
    if kind == "TIME_INJOFFSET" and call in ("clock_settime", "settimeofday"):
        return True
    of_class = renamed_class(kind, field, call, theirs)
    if of_class is None or (of_class != "dev" and left == right and not left.isdigit()):
        return left == right
    if of_class == "inode":
        return renaming.same("inode " + theirs.get("dev", ""), left, right)
    if of_class == "pid hex":
        left, right, of_class = signed(left), signed(right), "pid"
    if of_class.startswith("sysv"):
        left, right = signed(left if field == "a0" else f"{int(left):x}"), signed(right if field == "a0" else f"{int(right):x}")
    if of_class == "pid" and (left.startswith("-") or right.startswith("-") or "0" in (left, right)):
        return left == right
    return renaming.same(of_class, left, right)


def signed(hexadecimal):
    """A hexadecimal argument as the kernel takes it: a signed 32-bit number, in decimal."""
    value = int(hexadecimal, 16) & 0xFFFFFFFF
    return str(value - (1 << 32) if value >> 31 else value)
