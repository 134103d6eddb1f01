//! The fields of rules (`AUDIT_*` of linux/audit.h).

/// A field of a rule. The discriminant is the kernel's number; Tarsier's own fields, which no kernel knows, have
/// numbers far above those.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Field {
    /// `pid`: Process id; the thread-group id at system-call exit.
    Pid = 0,
    /// `uid`: Real user id.
    Uid = 1,
    /// `euid`: Effective user id.
    Euid = 2,
    /// `suid`: Saved user id.
    Suid = 3,
    /// `fsuid`: File-system user id.
    Fsuid = 4,
    /// `gid`: Real group id, or a supplementary one.
    Gid = 5,
    /// `egid`: Effective group id, or a supplementary one.
    Egid = 6,
    /// `sgid`: Saved group id.
    Sgid = 7,
    /// `fsgid`: File-system group id.
    Fsgid = 8,
    /// `auid`: Audit (login) user id.
    Loginuid = 9,
    /// `pers`: Personality.
    Pers = 10,
    /// `arch`: Architecture, an `AUDIT_ARCH_*` number.
    Arch = 11,
    /// `msgtype`: Record type.
    Msgtype = 12,
    /// `subj_user`: User of the task's security label.
    SubjUser = 13,
    /// `subj_role`: Role of the task's security label.
    SubjRole = 14,
    /// `subj_type`: Type of the task's security label.
    SubjType = 15,
    /// `subj_sen`: Sensitivity of the task's security label.
    SubjSen = 16,
    /// `subj_clr`: Clearance of the task's security label.
    SubjClr = 17,
    /// `ppid`: Parent's process id.
    Ppid = 18,
    /// `obj_user`: User of the object's security label.
    ObjUser = 19,
    /// `obj_role`: Role of the object's security label.
    ObjRole = 20,
    /// `obj_type`: Type of the object's security label.
    ObjType = 21,
    /// `obj_lev_low`: Low level of the object's security label.
    ObjLevLow = 22,
    /// `obj_lev_high`: High level of the object's security label.
    ObjLevHigh = 23,
    /// `loginuid_set`: Whether the audit user id was ever set; the kernel's own form of `auid=unset`.
    /// auditctl has no name for it.
    LoginuidSet = 24,
    /// `sessionid`: Number of the login session.
    Sessionid = 25,
    /// `fstype`: File system's magic number.
    Fstype = 26,
    /// `devmajor`: Major number of the device that holds a file, or that a device file stands for.
    Devmajor = 100,
    /// `devminor`: Minor number of the device that holds a file, or that a device file stands for.
    Devminor = 101,
    /// `inode`: Inode number of a file.
    Inode = 102,
    /// `exit`: Result of the system call.
    Exit = 103,
    /// `success`: Whether the system call succeeded.
    Success = 104,
    /// `path`: Path of a file.
    Watch = 105,
    /// `perm`: Kind of access, `PERM_*` bits.
    Perm = 106,
    /// `dir`: Path of a directory and everything below.
    Dir = 107,
    /// `filetype`: `S_IFMT` bits of a file.
    Filetype = 108,
    /// `obj_uid`: Owner of a file.
    ObjUid = 109,
    /// `obj_gid`: Group of a file.
    ObjGid = 110,
    /// `field_compare`: Two fields compared with each other, see [`Compare`](crate::Compare).
    FieldCompare = 111,
    /// `exe`: Program that the task runs.
    Exe = 112,
    /// `saddr_fam`: Address family of a socket address.
    SaddrFam = 113,
    /// `a0`: First argument.
    Arg0 = 200,
    /// `a1`: Second argument.
    Arg1 = 201,
    /// `a2`: Third argument.
    Arg2 = 202,
    /// `a3`: Fourth argument.
    Arg3 = 203,
    /// `key`: Keys of the rule.
    FilterKey = 210,
    /// `unit`: System unit of the task, read from the path of its cgroup. Tarsier's own.
    Unit = OWN_FIRST,
    /// `slice`: Slice that the unit is in. Tarsier's own.
    Slice = OWN_FIRST + 1,
    /// `container`: Innermost container of the task. Tarsier's own.
    Container = OWN_FIRST + 2,
    /// `label`: Label of the process (`label_keys`). Tarsier's own.
    Label = OWN_FIRST + 3,
    /// `ancestor_exe`: Executable of a process that the process descends from. Tarsier's own.
    AncestorExe = OWN_FIRST + 4,
}

/// Number of the first of Tarsier's own fields.
const OWN_FIRST: u32 = 0x7461_0000;

/// Tarsier's own fields, which only `*.tarsier` files of rules may name.
pub const OWN_FIELDS: [(Field, &str); 5] = [
    (Field::Unit, "unit"),
    (Field::Slice, "slice"),
    (Field::Container, "container"),
    (Field::Label, "label"),
    (Field::AncestorExe, "ancestor_exe"),
];

/// Every field of the kernel's with its name, by ascending number.
#[rustfmt::skip]
pub const FIELDS: [(Field, &str); 46] = [
    (Field::Pid, "pid"),
    (Field::Uid, "uid"),
    (Field::Euid, "euid"),
    (Field::Suid, "suid"),
    (Field::Fsuid, "fsuid"),
    (Field::Gid, "gid"),
    (Field::Egid, "egid"),
    (Field::Sgid, "sgid"),
    (Field::Fsgid, "fsgid"),
    (Field::Loginuid, "auid"),
    (Field::Pers, "pers"),
    (Field::Arch, "arch"),
    (Field::Msgtype, "msgtype"),
    (Field::SubjUser, "subj_user"),
    (Field::SubjRole, "subj_role"),
    (Field::SubjType, "subj_type"),
    (Field::SubjSen, "subj_sen"),
    (Field::SubjClr, "subj_clr"),
    (Field::Ppid, "ppid"),
    (Field::ObjUser, "obj_user"),
    (Field::ObjRole, "obj_role"),
    (Field::ObjType, "obj_type"),
    (Field::ObjLevLow, "obj_lev_low"),
    (Field::ObjLevHigh, "obj_lev_high"),
    (Field::LoginuidSet, "loginuid_set"),
    (Field::Sessionid, "sessionid"),
    (Field::Fstype, "fstype"),
    (Field::Devmajor, "devmajor"),
    (Field::Devminor, "devminor"),
    (Field::Inode, "inode"),
    (Field::Exit, "exit"),
    (Field::Success, "success"),
    (Field::Watch, "path"),
    (Field::Perm, "perm"),
    (Field::Dir, "dir"),
    (Field::Filetype, "filetype"),
    (Field::ObjUid, "obj_uid"),
    (Field::ObjGid, "obj_gid"),
    (Field::FieldCompare, "field_compare"),
    (Field::Exe, "exe"),
    (Field::SaddrFam, "saddr_fam"),
    (Field::Arg0, "a0"),
    (Field::Arg1, "a1"),
    (Field::Arg2, "a2"),
    (Field::Arg3, "a3"),
    (Field::FilterKey, "key"),
];

impl Field {
    /// The kernel's number.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// The field that the kernel numbers `number`.
    pub fn from_number(number: u32) -> Option<Field> {
        every()
            .map(|row| row.0)
            .find(|field| field.number() == number)
    }

    /// The name that auditctl lists (`auid`, `path`, `a0`, …).
    pub fn name(self) -> &'static str {
        every().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The field that auditctl knows as `name`, any case. `loginuid` is another name of `auid`;
    /// `loginuid_set`, which auditctl has no name for, is not accepted.
    pub fn from_name(name: &str) -> Option<Field> {
        if name.eq_ignore_ascii_case("loginuid") {
            return Some(Field::Loginuid);
        }
        FIELDS
            .iter()
            .find(|row| row.1.eq_ignore_ascii_case(name) && row.0 != Field::LoginuidSet)
            .map(|row| row.0)
    }

    /// Tarsier's own field of this name, any case.
    pub fn from_own_name(name: &str) -> Option<Field> {
        let mut own = OWN_FIELDS.iter();
        own.find(|row| row.1.eq_ignore_ascii_case(name))
            .map(|row| row.0)
    }

    /// Whether it is one of Tarsier's own fields, which the kernel's audit cannot match.
    pub const fn is_own(self) -> bool {
        self.is_of_cgroup() || self.is_of_process()
    }

    /// Whether it asks about the cgroup of the task.
    pub const fn is_of_cgroup(self) -> bool {
        matches!(self, Field::Unit | Field::Slice | Field::Container)
    }

    /// Whether it asks about the past of the task's process.
    pub const fn is_of_process(self) -> bool {
        matches!(self, Field::Label | Field::AncestorExe)
    }

    /// Whether its value is text, kept in `audit_rule_data.buf`.
    pub const fn is_text(self) -> bool {
        matches!(
            self,
            Field::SubjUser
                | Field::SubjRole
                | Field::SubjType
                | Field::SubjSen
                | Field::SubjClr
                | Field::ObjUser
                | Field::ObjRole
                | Field::ObjType
                | Field::ObjLevLow
                | Field::ObjLevHigh
                | Field::Watch
                | Field::Dir
                | Field::Exe
                | Field::FilterKey
                | Field::Unit
                | Field::Slice
                | Field::Container
                | Field::Label
                | Field::AncestorExe
        )
    }
}

fn every() -> impl Iterator<Item = &'static (Field, &'static str)> {
    FIELDS.iter().chain(&OWN_FIELDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_found_by_its_name_and_number() {
        for (field, name) in FIELDS {
            assert_eq!(field.name(), name);
            assert_eq!(Field::from_number(field.number()), Some(field));
            if field != Field::LoginuidSet {
                assert_eq!(Field::from_name(name), Some(field));
            }
        }
        assert_eq!(Field::from_name("loginuid"), Some(Field::Loginuid));
        assert_eq!(Field::from_name("AUID"), Some(Field::Loginuid));
        assert_eq!(Field::from_name("bogus"), None);
        assert_eq!(Field::from_number(27), None);
    }

    #[test]
    fn own_fields_are_apart_from_those_that_auditctl_knows() {
        for (field, name) in OWN_FIELDS {
            assert_eq!(field.name(), name);
            assert_eq!(Field::from_number(field.number()), Some(field));
            assert_eq!(Field::from_own_name(name), Some(field));
            assert_eq!(Field::from_name(name), None);
            assert!(field.is_own() && field.is_text());
        }
        assert!(FIELDS.iter().all(|row| !row.0.is_own()));
        assert_eq!(Field::from_own_name("uid"), None);
    }
}
