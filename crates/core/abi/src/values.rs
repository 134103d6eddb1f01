//! Named values of the fields `perm=`, `filetype=` and `fstype=`.

/// `x` of `perm=`: `AUDIT_PERM_EXEC`.
pub const PERM_EXEC: u32 = 1;
/// `w` of `perm=`: `AUDIT_PERM_WRITE`.
pub const PERM_WRITE: u32 = 2;
/// `r` of `perm=`: `AUDIT_PERM_READ`.
pub const PERM_READ: u32 = 4;
/// `a` of `perm=`: `AUDIT_PERM_ATTR`.
pub const PERM_ATTR: u32 = 8;

/// `S_IFMT` values, as `filetype=` names them (audit-userspace lib/ftypetab.h).
const FILE_TYPES: [(u32, &str); 7] = [
    (0o010_000, "fifo"),
    (0o020_000, "character"),
    (0o040_000, "dir"),
    (0o060_000, "block"),
    (0o100_000, "file"),
    (0o120_000, "link"),
    (0o140_000, "socket"),
];

/// Super-block magic numbers, as `fstype=` names them (audit-userspace lib/fstypetab.h). audit knows
/// the last two since 4.0.
const FS_TYPES: [(u32, &str); 4] = [
    (0x6462_6720, "debugfs"),
    (0x7472_6163, "tracefs"),
    (0x0027_e0eb, "cgroup"),
    (0x6367_7270, "cgroup2"),
];

/// The name of the `S_IFMT` bits `mode`.
pub fn file_type_name(mode: u32) -> Option<&'static str> {
    FILE_TYPES.iter().find(|row| row.0 == mode).map(|row| row.1)
}

/// The `S_IFMT` bits of the file type `name`.
pub fn file_type_number(name: &str) -> Option<u32> {
    FILE_TYPES.iter().find(|row| row.1 == name).map(|row| row.0)
}

/// The name of a file system's magic number.
pub fn fs_type_name(magic: u32) -> Option<&'static str> {
    FS_TYPES.iter().find(|row| row.0 == magic).map(|row| row.1)
}

/// The magic number of the file system `name`.
pub fn fs_type_number(name: &str) -> Option<u32> {
    FS_TYPES.iter().find(|row| row.1 == name).map(|row| row.0)
}
