//! Files and file systems, as the headers of Linux name them.
//! A table `LATER_…` has what audit 4.0.2 knows and 3.0.9 does not.

use super::Names;

/// Flags of open(2), in the order in which audit lists them.
#[rustfmt::skip]
pub static OPEN_FLAGS: Names = &[
    (0x1, "O_WRONLY"), (0x2, "O_RDWR"), (0x40, "O_CREAT"), (0x80, "O_EXCL"), (0x100, "O_NOCTTY"),
    (0x200, "O_TRUNC"), (0x400, "O_APPEND"), (0x800, "O_NONBLOCK"), (0x1000, "O_DSYNC"),
    (0x2000, "O_ASYNC"), (0x4000, "O_DIRECT"), (0x10000, "O_DIRECTORY"), (0x20000, "O_NOFOLLOW"),
    (0x40000, "O_NOATIME"), (0x80000, "O_CLOEXEC"), (0x100000, "__O_SYNC"), (0x200000, "O_PATH"),
    (0x400000, "__O_TMPFILE"),
];

/// `resolve` of openat2(2).
#[rustfmt::skip]
pub static RESOLVE_FLAGS: Names = &[
    (0x1, "RESOLVE_NO_XDEV"), (0x2, "RESOLVE_NO_MAGICLINKS"), (0x4, "RESOLVE_NO_SYMLINKS"),
    (0x8, "RESOLVE_BENEATH"), (0x10, "RESOLVE_IN_ROOT"), (0x20, "RESOLVE_CACHED"),
];

/// Modes of access(2).
#[rustfmt::skip]
pub static ACCESS_MODES: Names = &[
    (1, "X_OK"), (2, "W_OK"), (4, "R_OK"),
];

/// Commands of fcntl(2).
#[rustfmt::skip]
pub static FCNTL_COMMANDS: Names = &[
    (0, "F_DUPFD"), (1, "F_GETFD"), (2, "F_SETFD"), (3, "F_GETFL"), (4, "F_SETFL"), (5, "F_GETLK"),
    (6, "F_SETLK"), (7, "F_SETLKW"), (8, "F_SETOWN"), (9, "F_GETOWN"), (10, "F_SETSIG"),
    (11, "F_GETSIG"), (12, "F_GETLK64"), (13, "F_SETLK64"), (14, "F_SETLKW64"), (15, "F_SETOWN_EX"),
    (16, "F_GETOWN_EX"), (17, "F_GETOWNER_UIDS"), (1024, "F_SETLEASE"), (1025, "F_GETLEASE"),
    (1026, "F_NOTIFY"), (1029, "F_CANCELLK"), (1030, "F_DUPFD_CLOEXEC"), (1031, "F_SETPIPE_SZ"),
    (1032, "F_GETPIPE_SZ"), (1033, "F_ADD_SEALS"), (1034, "F_GET_SEALS"), (1035, "F_GET_RW_HINT"),
    (1036, "F_SET_RW_HINT"), (1037, "F_GET_FILE_RW_HINT"), (1038, "F_SET_FILE_RW_HINT"),
];

/// `whence` of lseek(2).
#[rustfmt::skip]
pub static SEEK_ORIGINS: Names = &[
    (0, "SEEK_SET"), (1, "SEEK_CUR"), (2, "SEEK_END"), (3, "SEEK_DATA"), (4, "SEEK_HOLE"),
];

/// Flags of mount(2).
#[rustfmt::skip]
pub static MOUNT_FLAGS: Names = &[
    (0x1, "MS_RDONLY"), (0x2, "MS_NOSUID"), (0x4, "MS_NODEV"), (0x8, "MS_NOEXEC"),
    (0x10, "MS_SYNCHRONOUS"), (0x20, "MS_REMOUNT"), (0x40, "MS_MANDLOCK"), (0x80, "MS_DIRSYNC"),
    (0x400, "MS_NOATIME"), (0x800, "MS_NODIRATIME"), (0x1000, "MS_BIND"), (0x2000, "MS_MOVE"),
    (0x4000, "MS_REC"), (0x8000, "MS_SILENT"), (0x10000, "MS_POSIXACL"), (0x20000, "MS_UNBINDABLE"),
    (0x40000, "MS_PRIVATE"), (0x80000, "MS_SLAVE"), (0x100000, "MS_SHARED"),
    (0x200000, "MS_RELATIME"), (0x400000, "MS_KERNMOUNT"), (0x800000, "MS_I_VERSION"),
    (0x1000000, "MS_STRICTATIME"), (0x2000000, "MS_LAZYTIME"), (0x4000000, "MS_SUBMOUNT"),
    (0x8000000, "MS_SNAP_STABLE"), (0x10000000, "MS_NOSEC"), (0x20000000, "MS_BORN"),
    (0x40000000, "MS_ACTIVE"), (0x80000000, "MS_NOUSER"),
];

/// Flags of umount2(2).
#[rustfmt::skip]
pub static UMOUNT_FLAGS: Names = &[
    (0x1, "MNT_FORCE"), (0x2, "MNT_DETACH"), (0x4, "MNT_EXPIRE"), (0x8, "UMOUNT_NOFOLLOW"),
    (0x80000000, "UMOUNT_UNUSED"),
];

/// Commands of fsconfig(2).
#[rustfmt::skip]
pub static FSCONFIG_COMMANDS: Names = &[
    (0, "FSCONFIG_SET_FLAG"), (1, "FSCONFIG_SET_STRING"), (2, "FSCONFIG_SET_BINARY"),
    (3, "FSCONFIG_SET_PATH"), (4, "FSCONFIG_SET_PATH_EMPTY"), (5, "FSCONFIG_SET_FD"),
    (6, "FSCONFIG_CMD_CREATE"), (7, "FSCONFIG_CMD_RECONFIGURE"), (8, "FSCONFIG_CMD_CREATE_EXCL"),
];

/// Operations of epoll_ctl(2).
#[rustfmt::skip]
pub static EPOLL_OPERATIONS: Names = &[
    (1, "EPOLL_CTL_ADD"), (2, "EPOLL_CTL_DEL"), (3, "EPOLL_CTL_MOD"),
];

/// Requests of ioctl(2) that audit names.
#[rustfmt::skip]
pub static IOCTL_REQUESTS: Names = &[
    (0x4b3a, "KDSETMODE"), (0x4b3b, "KDGETMODE"), (0x5309, "CDROMEJECT"), (0x530f, "CDROMEJECT_SW"),
    (0x5311, "CDROM_GET_UPC"), (0x5316, "CDROMSEEK"), (0x5401, "TCGETS"), (0x5402, "TCSETS"),
    (0x5403, "TCSETSW"), (0x5404, "TCSETSF"), (0x5409, "TCSBRK"), (0x540b, "TCFLSH"),
    (0x540e, "TIOCSCTTY"), (0x540f, "TIOCGPGRP"), (0x5410, "TIOCSPGRP"), (0x5413, "TIOCGWINSZ"),
    (0x5414, "TIOCSWINSZ"), (0x541b, "TIOCINQ"), (0x5421, "FIONBIO"), (0x5422, "TIOCNOTTY"),
    (0x8901, "FIOSETOWN"), (0x8903, "FIOGETOWN"), (0x8910, "SIOCGIFNAME"),
    (0x8927, "SIOCGIFHWADDR"), (0x8933, "SIOCGIFINDEX"), (0x89a2, "SIOCBRADDIF"),
    (0x40045431, "TIOCSPTLCK"), (0x80045430, "TIOCGPTN"), (0x80045431, "TIOCSPTLCK"),
    (0xc01c64a3, "DRM_IOCTL_MODE_CURSOR"), (0xc01864b0, "DRM_IOCTL_MODE_PAGE_FLIP"),
    (0xc01864b1, "DRM_IOCTL_MODE_DIRTYFB"),
];

/// Flags of shmget(2) above the permissions.
#[rustfmt::skip]
pub static SHM_MODES: Names = &[
    (0x200, "SHM_DEST"), (0x400, "SHM_LOCKED"), (0x800, "SHM_HUGETLB"), (0x1000, "SHM_NORESERVE"),
];

/// Flags of shmget(2) that all System V IPC shares.
#[rustfmt::skip]
pub static IPC_FLAGS: Names = &[
    (0x200, "IPC_CREAT"), (0x400, "IPC_EXCL"), (0x800, "IPC_NOWAIT"),
];

/// Flags of a PATH record, as kernels 2.6.9 wrote them.
#[rustfmt::skip]
pub static LOOKUP_FLAGS: Names = &[
    (0x1, "follow"), (0x2, "directory"), (0x4, "continue"), (0x10, "parent"), (0x20, "noalt"),
    (0x40, "atomic"), (0x100, "open"), (0x200, "create"), (0x400, "access"),
];
