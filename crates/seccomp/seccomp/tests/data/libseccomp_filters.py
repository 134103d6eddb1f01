#!/usr/bin/env python3
"""Makes the filters libseccomp-*.bpf.hex beside it: Docker's default profile as runc gives it to
libseccomp, without runc's ENOSYS prologue.

    libseccomp_filters.py ../../data/docker-default.json LIBSECCOMP.so.2

The entries that apply are chosen as moby's seccomp_linux.go chooses them for a container on amd64
with Docker's default capabilities under a kernel of 4.8 or newer.
"""

import ctypes
import json
import os
import sys
import tempfile

CAPS = """CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP
NET_BIND_SERVICE SYS_CHROOT KILL AUDIT_WRITE"""
CAPS = {"CAP_" + name for name in CAPS.split()}
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
OPERATORS = ["NE", "LT", "LE", "EQ", "GE", "GT", "MASKED_EQ"]
X86, X32 = 0x40000003, 0x4000003E
ATTR_OPTIMIZE = 8


class Condition(ctypes.Structure):
    _fields_ = [
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    ]


def applies(call):
    excludes, includes = call.get("excludes", {}), call.get("includes", {})
    if "amd64" in excludes.get("arches", []) or CAPS & set(excludes.get("caps", [])):
        return False
    arches = includes.get("arches", [])
    return (not arches or "amd64" in arches) and set(includes.get("caps", [])) <= CAPS


def action(call):
    if call["action"] == "SCMP_ACT_ALLOW":
        return ALLOW
    return ERRNO | call.get("errnoRet", 1)


def export(lib, profile, archs, optimize, path):
    context = lib.seccomp_init(ERRNO | profile.get("defaultErrnoRet", 1))
    for arch in archs:
        assert lib.seccomp_arch_add(ctypes.c_void_p(context), arch) == 0
    assert lib.seccomp_attr_set(ctypes.c_void_p(context), ATTR_OPTIMIZE, optimize) == 0
    for call in filter(applies, profile["syscalls"]):
        conditions = [
            Condition(arg["index"], OPERATORS.index(arg["op"][len("SCMP_CMP_"):]) + 1,
                      arg["value"], arg.get("valueTwo", 0))
            for arg in call.get("args", [])
        ]
        array = (Condition * len(conditions))(*conditions)
        for name in call["names"]:
            number = lib.seccomp_syscall_resolve_name(name.encode())
            if number != -1:
                lib.seccomp_rule_add_array(
                    ctypes.c_void_p(context), ctypes.c_uint32(action(call)), number,
                    len(conditions), array)
    with tempfile.TemporaryFile() as file:
        assert lib.seccomp_export_bpf(ctypes.c_void_p(context), file.fileno()) == 0
        file.seek(0)
        data = file.read()
    with open(path, "w", encoding="ascii") as out:
        for at in range(0, len(data), 32):
            out.write(data[at:at + 32].hex() + "\n")
    print(path, len(data) // 8)


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        profile = json.load(file)
    lib = ctypes.CDLL(sys.argv[2])
    lib.seccomp_init.restype = ctypes.c_void_p
    here = os.path.dirname(os.path.abspath(__file__))
    for archs, suffix in [([], "x86_64"), ([X86, X32], "3arch")]:
        for optimize, name in [(1, "linear"), (2, "tree")]:
            path = os.path.join(here, f"libseccomp-{suffix}-{name}.bpf.hex")
            export(lib, profile, archs, optimize, path)


main()
