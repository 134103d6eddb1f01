# Turns the scenarios of x86-64 into those for arm64, with sed -E.
#
# Rules name a call that arm64 has only with more arguments by the name of that form; `acts` makes the same form of it
# there (acts/forms.c).
/^-/ {
    :names
    s/(-S ([a-z0-9_]+,)*)(open|creat)([, ]|$)/\1openat\4/
    s/(-S ([a-z0-9_]+,)*)(unlink|rmdir)([, ]|$)/\1unlinkat\4/
    s/(-S ([a-z0-9_]+,)*)(rename)([, ]|$)/\1renameat\4/
    s/(-S ([a-z0-9_]+,)*)(link)([, ]|$)/\1linkat\4/
    s/(-S ([a-z0-9_]+,)*)(symlink)([, ]|$)/\1symlinkat\4/
    s/(-S ([a-z0-9_]+,)*)(mkdir)([, ]|$)/\1mkdirat\4/
    s/(-S ([a-z0-9_]+,)*)(mknod)([, ]|$)/\1mknodat\4/
    s/(-S ([a-z0-9_]+,)*)(chmod)([, ]|$)/\1fchmodat\4/
    s/(-S ([a-z0-9_]+,)*)(chown|lchown)([, ]|$)/\1fchownat\4/
    s/(-S ([a-z0-9_]+,)*)(utime|utimes|futimesat)([, ]|$)/\1utimensat\4/
    s/(-S ([a-z0-9_]+,)*)(stat)([, ]|$)/\1newfstatat\4/
    s/(-S ([a-z0-9_]+,)*)(readlink)([, ]|$)/\1readlinkat\4/
    s/(-S ([a-z0-9_]+,)*)(pipe)([, ]|$)/\1pipe2\4/
    s/(-S ([a-z0-9_]+,)*)(pause)([, ]|$)/\1ppoll\4/
    s/(-S ([a-z0-9_]+,)*)(fork|vfork)([, ]|$)/\1clone\4/
    # arm64 has neither ioperm nor sysfs.
    s/(-S ([a-z0-9_]+,)*)(ioperm|sysfs)([, ]|$)/\1vhangup\4/
    # pread64 and pwrite64, which auditctl calls by different names on each architecture.
    s/(-S ([a-z0-9_]+,)*)17([, ]|$)/\167\3/
    s/(-S ([a-z0-9_]+,)*)18([, ]|$)/\168\3/
    t names
}
s/ , ioperm -1 1 1 , sysfs 1 tmpfs//
# A rule on open does not select creat on x86-64. Here both are openat, and the file would stay from run to run.
s/ , creat \/f 0600//
# nanosleep, as /proc/PID/syscall prints it.
s/'\^35 '/'^101 '/
# getppid, in a filter.
s/150000016e000000/15000001ad000000/
# The 32-bit entry is an instruction of x86; on arm64 it takes a program of its own: see `scenarios` here.
/^\[compat32\]/,/^\[numbers\]/ {
    /^\[numbers\]/! d
}
