"""Prints every call name in the library given, with its number on each ABI: `-` for none, `mux` for
a call that libseccomp reaches through socketcall or ipc too."""

import ctypes
import re
import sys

LIBRARY = sys.argv[1]
ABIS = {"x86_64": 0xC000003E, "x32": 0x4000003E, "x86": 0x40000003, "aarch64": 0xC00000B7,
        "arm": 0x40000028}

library = ctypes.CDLL(LIBRARY)
resolve = library.seccomp_syscall_resolve_name_arch
resolve.argtypes = [ctypes.c_uint32, ctypes.c_char_p]
with open(LIBRARY, "rb") as file:
    words = {word.decode() for word in re.findall(rb"[a-z_][a-z0-9_]{1,40}", file.read())}

for word in sorted(words):
    numbers = [resolve(token, word.encode()) for token in ABIS.values()]
    if any(number != -1 for number in numbers):
        shown = [str(n) if n >= 0 else "mux" if -300 < n < -100 else "-" for n in numbers]
        print(word, *shown)
