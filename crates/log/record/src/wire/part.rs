//! The tagged parts that follow an event's header.

use core::mem::size_of;

use zerocopy::{FromBytes, Immutable, KnownLayout};

use super::*;

/// One part of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// `enum tarsier_part_tag`
    pub tag: tarsier_part_tag,
    /// Index of the path argument that the part belongs to; otherwise 0.
    pub index: u8,
    /// `enum tarsier_part_flags`
    pub flags: u8,
    /// The data, without padding.
    pub data: &'a [u8],
}

/// The content of a DIR, FILE or EXECUTED part: an inode and a walked path.
#[derive(Debug, Clone, Copy)]
pub struct DirPart<'a> {
    /// Identity; `valid` is 0 if there is no such object.
    pub inode: tarsier_inode,
    /// Names on the path, for [`walked_path`].
    pub walk: &'a [u8],
    /// `enum tarsier_part_flags`
    pub flags: u8,
}

/// The content of an ALIAS part: another entry of an object that the call has reached.
#[derive(Debug, Clone, Copy)]
pub struct AliasPart<'a> {
    /// Object and directory of the entry.
    pub entry: tarsier_alias,
    /// Name of the entry; empty if it is not known.
    pub name: &'a [u8],
    /// Whether rules may name other entries of the object, too.
    pub has_more: bool,
}

/// The content of an OBJECT part: an object that the call itself found, taken from kernel objects while it ran.
#[derive(Debug, Clone, Copy)]
pub struct ObjectPart<'a> {
    /// `enum tarsier_object_role`
    pub role: tarsier_object_role,
    /// Index of the path argument that the object belongs to.
    pub index: u8,
    /// Identity; `valid` is 0 if there is no such object.
    pub inode: tarsier_inode,
    /// With the role NAME, the path argument; with DELETE and CREATE, its last component; otherwise empty.
    pub name: &'a [u8],
    /// Names on the path, for [`walked_path`].
    pub walk: &'a [u8],
    /// `enum tarsier_part_flags`
    pub flags: u8,
}

/// The content of an EXEC_FILE part: the file that a successful execve runs.
#[derive(Debug, Clone, Copy)]
pub struct ExecFile<'a> {
    /// Identity of the file that runs: the one that execve named or, for a script, its interpreter.
    pub inode: tarsier_inode,
    /// Name of the interpreter; empty if the file that execve named runs by itself.
    pub interpreter: &'a [u8],
    /// `enum tarsier_part_flags`
    pub flags: u8,
}

impl<'a> Part<'a> {
    fn has(&self, flag: tarsier_part_flags) -> bool {
        u32::from(self.flags) & flag != 0
    }

    /// Whether user memory could not be read.
    pub fn is_unreadable(&self) -> bool {
        self.has(TARSIER_PART_UNREADABLE)
    }

    /// Whether the data was too long and was cut.
    pub fn is_cut(&self) -> bool {
        self.has(TARSIER_PART_CUT)
    }

    /// Whether the entry was unlinked.
    pub fn is_deleted(&self) -> bool {
        self.has(TARSIER_PART_DELETED)
    }

    /// Whether a FOUND part is about the time when the call began.
    pub fn is_of_begin(&self) -> bool {
        self.has(TARSIER_PART_BEFORE)
    }

    /// Whether the kernel may have used another socket address than this one, with the path of a UNIX socket.
    pub fn is_other_used(&self) -> bool {
        self.has(TARSIER_PART_OTHER_USED)
    }

    /// Whether the walk did not end at the root of the mount namespace.
    pub fn is_unreachable(&self) -> bool {
        self.has(TARSIER_PART_UNREACHABLE)
    }

    /// The start of the data as a fixed struct; `None` if the data is shorter.
    pub fn read<T: FromBytes + KnownLayout + Immutable>(&self) -> Option<T> {
        T::read_from_prefix(self.data).ok().map(|(value, _)| value)
    }

    /// Splits a DIR or FILE part; `None` if it is too short for one.
    pub fn inode_and_walk(&self) -> Option<DirPart<'a>> {
        let (inode, walk) = tarsier_inode::read_from_prefix(self.data).ok()?;
        Some(DirPart {
            inode,
            walk,
            flags: self.flags,
        })
    }

    /// Splits an ALIAS part; `None` if it is too short for one.
    pub fn alias(&self) -> Option<AliasPart<'a>> {
        let (entry, name) = tarsier_alias::read_from_prefix(self.data).ok()?;
        Some(AliasPart {
            entry,
            name,
            has_more: u32::from(self.flags) & TARSIER_PART_MORE != 0,
        })
    }

    /// Splits an OBJECT part; `None` if it is not one, or its name reaches past its end.
    pub fn object(&self) -> Option<ObjectPart<'a>> {
        if self.tag != TARSIER_PART_OBJECT {
            return None;
        }

        let (object, rest) = tarsier_object::read_from_prefix(self.data).ok()?;
        let (name, walk) = rest.split_at_checked(object.name_len as usize)?;
        Some(ObjectPart {
            role: object.role,
            index: self.index,
            inode: object.inode,
            name,
            walk,
            flags: self.flags,
        })
    }

    pub(super) fn exec_file(&self) -> Option<ExecFile<'a>> {
        let (inode, name) = tarsier_inode::read_from_prefix(self.data).ok()?;
        Some(ExecFile {
            inode,
            interpreter: until_nul(name),
            flags: self.flags,
        })
    }

    /// Appends this walked path (EXE, CWD, ROOT): see [`walked_path`].
    pub fn walked(&self, out: &mut Vec<u8>) {
        walked_path(self.data, self.flags, out);
    }
}

impl DirPart<'_> {
    /// Whether the path is not whole: it was cut, or could not be read.
    pub fn is_incomplete(&self) -> bool {
        u32::from(self.flags) & (TARSIER_PART_CUT | TARSIER_PART_UNREADABLE) != 0
    }

    /// Whether the file was opened before the call that gave the descriptor, since something else holds it, too.
    pub fn is_held(&self) -> bool {
        u32::from(self.flags) & TARSIER_PART_HELD != 0
    }

    /// Whether the descriptor may stand for another file than when the call used it.
    pub fn is_unsure(&self) -> bool {
        u32::from(self.flags) & TARSIER_PART_UNSURE != 0
    }

    /// Appends the path: see [`walked_path`].
    pub fn walked(&self, out: &mut Vec<u8>) {
        walked_path(self.walk, self.flags, out);
    }
}

impl ObjectPart<'_> {
    fn has(&self, flag: tarsier_part_flags) -> bool {
        u32::from(self.flags) & flag != 0
    }

    /// Whether the call created the file.
    pub fn is_created(&self) -> bool {
        self.has(TARSIER_PART_CREATED)
    }

    /// Whether the name or path is not complete: it was cut, or could not be read.
    pub fn is_incomplete(&self) -> bool {
        self.has(TARSIER_PART_CUT | TARSIER_PART_UNREADABLE)
    }

    /// Appends the path: see [`walked_path`].
    pub fn walked(&self, out: &mut Vec<u8>) {
        walked_path(self.walk, self.flags, out);
    }
}

/// Iterator over the parts of a checked event.
#[derive(Debug, Clone)]
pub struct Parts<'a> {
    rest: &'a [u8],
    start: usize,
}

impl<'a> Parts<'a> {
    pub(super) fn new(rest: &'a [u8]) -> Parts<'a> {
        Parts {
            rest,
            start: rest.len(),
        }
    }

    /// Number of bytes that are left.
    pub(super) fn left(&self) -> usize {
        self.rest.len()
    }

    /// The next part, checked as [`Event::parse`] checks parts. `part` is its index, for errors.
    pub(super) fn checked_next(&mut self, part: u32) -> Result<Part<'a>, WireError> {
        let at = size_of::<tarsier_event>() + self.start - self.rest.len();
        let next = self.next().ok_or(WireError::PartBounds { part, at })?;
        let len = next.data.len();
        match data_length(next.tag) {
            None => Err(WireError::Tag {
                part,
                at,
                tag: next.tag as u16,
            }),
            Some(length) if length.allows(len) || next.is_unreadable() && len == 0 => Ok(next),
            Some(_) => Err(WireError::PartLength {
                part,
                at,
                tag: next.tag as u16,
                len,
            }),
        }
    }
}

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let (head, body) = tarsier_part::read_from_prefix(self.rest).ok()?;
        let len = usize::try_from(head.len).ok()?;
        let padded = len.checked_next_multiple_of(8)?;
        if padded > body.len() {
            return None;
        }

        self.rest = &body[padded..];
        Some(Part {
            tag: head.tag.into(),
            index: head.index,
            flags: head.flags,
            data: &body[..len],
        })
    }
}

/// The lengths that the data of a tag may have, in bytes.
enum Length {
    UpTo(usize),
    Exactly(usize),
    AtLeast(usize),
    MultipleOf(usize),
}

impl Length {
    fn allows(&self, len: usize) -> bool {
        match *self {
            Length::UpTo(most) => len <= most,
            Length::Exactly(size) => len == size,
            Length::AtLeast(least) => len >= least,
            Length::MultipleOf(size) => len.is_multiple_of(size),
        }
    }
}

/// The lengths allowed for the tags of `enum tarsier_part_tag`; `None` for a tag that does not exist.
fn data_length(tag: tarsier_part_tag) -> Option<Length> {
    Some(match tag {
        TARSIER_PART_EXE | TARSIER_PART_CWD | TARSIER_PART_ROOT => {
            Length::UpTo(TARSIER_EVENT_MAX as usize)
        }
        TARSIER_PART_ARGUMENTS => Length::Exactly(size_of::<[u64; 2]>()),
        TARSIER_PART_PATH | TARSIER_PART_MODULE => Length::UpTo(TARSIER_PATH_MAX as usize),
        TARSIER_PART_SOCKADDR => Length::UpTo(size_of::<[u8; 128]>()),
        TARSIER_PART_PROCTITLE => Length::UpTo(TARSIER_PROCTITLE_MAX as usize),
        TARSIER_PART_DIR | TARSIER_PART_FILE | TARSIER_PART_EXEC_FILE | TARSIER_PART_EXECUTED => {
            Length::AtLeast(size_of::<tarsier_inode>())
        }
        TARSIER_PART_CWD_INODE => Length::Exactly(size_of::<tarsier_inode>()),
        TARSIER_PART_FD_PAIR => Length::Exactly(size_of::<[i32; 2]>()),
        TARSIER_PART_OBJ_PID => Length::Exactly(size_of::<tarsier_obj_pid>()),
        TARSIER_PART_CAPSET => Length::Exactly(size_of::<tarsier_caps>()),
        TARSIER_PART_BPRM_FCAPS => Length::Exactly(size_of::<tarsier_fcaps>()),
        TARSIER_PART_OPEN_HOW => Length::Exactly(size_of::<[u64; 3]>()),
        TARSIER_PART_OPENED => Length::Exactly(size_of::<[u32; 2]>()),
        TARSIER_PART_PROGRAM | TARSIER_PART_SUBJECT => Length::Exactly(size_of::<u32>()),
        TARSIER_PART_CANDIDATES => Length::MultipleOf(size_of::<tarsier_candidates>()),
        TARSIER_PART_OBJECT => Length::AtLeast(size_of::<tarsier_object>()),
        TARSIER_PART_IPC => Length::Exactly(size_of::<tarsier_ipc>()),
        TARSIER_PART_IPC_SET_PERM => Length::Exactly(size_of::<tarsier_ipc_perm>()),
        TARSIER_PART_MEMORY => Length::UpTo(TARSIER_MEMORY_MAX as usize),
        TARSIER_PART_TIME => Length::Exactly(TARSIER_TIME_VALUES as usize * size_of::<i64>()),
        TARSIER_PART_ALIAS => Length::AtLeast(size_of::<tarsier_alias>()),
        TARSIER_PART_FOUND => Length::Exactly(size_of::<tarsier_found>()),
        TARSIER_PART_ABOVE => Length::MultipleOf(size_of::<[u64; 2]>()),
        TARSIER_PART_SOCKETCALL => Length::Exactly(size_of::<[u32; 6]>()),
        _ => return None,
    })
}
