//! Rust's view of `include/tarsier_event.h`: frames as the BPF programs put them into a ring.
//!
//! Input is not trusted: sizes, counts, tags and struct parts are checked once, in [`Event::parse`], [`Chunk::parse`]
//! and [`OperationResult::parse`], and nothing here panics. Text is never copied: parts borrow from the frame.

#[rustfmt::skip]
mod bindings;
mod cgroup;
mod part;
mod path;
mod process;

pub use bindings::*;
pub use cgroup::CgroupFrame;
pub use part::{AliasPart, DirPart, ExecFile, ObjectPart, Part, Parts};
pub use path::{walked_path, WALK_DEPTH_MAX};
pub use process::{Executed, ProcessChange, ProcessFrame, ProcessId};

use core::mem::{offset_of, size_of};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Reason why a frame is not valid by `tarsier_event.h`. Offsets are in bytes from the start of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The frame is shorter than the fixed header of its kind.
    #[error("frame of {have} bytes, but its header alone needs {need}")]
    Short {
        /// Length of the frame, in bytes.
        have: usize,
        /// Length of the header, in bytes.
        need: usize,
    },
    /// `size` is not the length of the frame or not a multiple of 8.
    #[error("frame says it has {said} bytes (must be a multiple of 8), but {have} were given")]
    Size {
        /// `tarsier_frame.size`.
        said: u32,
        /// Length of the frame, in bytes.
        have: usize,
    },
    /// The frame was written by programs of another version.
    #[error("frame of wire version {0}, expected {TARSIER_WIRE_VERSION}")]
    Version(u16),
    /// The kind is not the expected one, or does not exist.
    #[error("frame of kind {0}, which is not the expected one")]
    Kind(u16),
    /// A part's header or data reaches past the end of the frame.
    #[error("part {part} at offset {at} reaches past the end of the frame")]
    PartBounds {
        /// Index of the part, from 0; in a CHUNK frame, its `seq`.
        part: u32,
        /// Offset of the part's header.
        at: usize,
    },
    /// The tag is not in `enum tarsier_part_tag`.
    #[error("part {part} at offset {at} has the unknown tag {tag}")]
    Tag {
        /// Index of the part, from 0; in a CHUNK frame, its `seq`.
        part: u32,
        /// Offset of the part's header.
        at: usize,
        /// The tag found.
        tag: u16,
    },
    /// The data of a part has a length that its tag does not allow.
    #[error("part {part} at offset {at}, tag {tag}, cannot have {len} bytes of data")]
    PartLength {
        /// Index of the part, from 0; in a CHUNK frame, its `seq`.
        part: u32,
        /// Offset of the part's header.
        at: usize,
        /// The part's tag.
        tag: u16,
        /// Length of the part's data, in bytes.
        len: usize,
    },
    /// A CGROUP frame says something else than that a cgroup was made or removed, or its name is none.
    #[error(
        "a cgroup with \"removed\" {0}, which is 0 or 1, and a name, which has no slash and no NUL"
    )]
    Cgroup(u16),
    /// A PROCESS frame tells of a change that does not exist.
    #[error("a process with change {0}, which does not exist")]
    Process(u32),
    /// Bytes remain after the last part.
    #[error("{0} bytes are left after the last part")]
    Trailing(usize),
}

/// The struct that a frame holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// [`Event`]
    Event,
    /// [`Chunk`]
    Chunk,
    /// [`OperationResult`]
    Result,
    /// A canary call, whose number is the frame's id.
    Canary,
    /// [`CgroupFrame`]
    Cgroup,
    /// [`ProcessFrame`]
    Process,
}

/// Checks the common header of the frame `bytes`, and returns the frame's kind and that header.
pub fn frame_kind(bytes: &[u8]) -> Result<(FrameKind, tarsier_frame), WireError> {
    let frame: tarsier_frame = read(bytes)?;
    if frame.version as u32 != TARSIER_WIRE_VERSION {
        return Err(WireError::Version(frame.version));
    }

    if frame.size as usize != bytes.len() || !frame.size.is_multiple_of(8) {
        return Err(WireError::Size {
            said: frame.size,
            have: bytes.len(),
        });
    }

    match frame.kind as u32 {
        TARSIER_FRAME_EVENT => Ok((FrameKind::Event, frame)),
        TARSIER_FRAME_CHUNK => Ok((FrameKind::Chunk, frame)),
        TARSIER_FRAME_RESULT => Ok((FrameKind::Result, frame)),
        TARSIER_FRAME_CANARY => Ok((FrameKind::Canary, frame)),
        TARSIER_FRAME_CGROUP => Ok((FrameKind::Cgroup, frame)),
        TARSIER_FRAME_PROCESS => Ok((FrameKind::Process, frame)),
        _ => Err(WireError::Kind(frame.kind)),
    }
}

/// Splits bytes into the frames that they consist of. After an error there are no more.
pub fn frames(mut bytes: &[u8]) -> impl Iterator<Item = Result<&[u8], WireError>> {
    core::iter::from_fn(move || {
        let said = match read::<tarsier_frame>(bytes) {
            _ if bytes.is_empty() => return None,
            Ok(head) => head.size,
            Err(error) => {
                bytes = &[];
                return Some(Err(error));
            }
        };
        let len = (said as usize).max(size_of::<tarsier_frame>());
        let Some((frame, rest)) = bytes.split_at_checked(len) else {
            let have = bytes.len();
            bytes = &[];
            return Some(Err(WireError::Size { said, have }));
        };
        bytes = rest;
        Some(Ok(frame))
    })
}

fn read<T: FromBytes + KnownLayout + Immutable>(bytes: &[u8]) -> Result<T, WireError> {
    match T::read_from_prefix(bytes) {
        Ok((value, _)) => Ok(value),
        Err(_) => Err(WireError::Short {
            have: bytes.len(),
            need: size_of::<T>(),
        }),
    }
}

/// Number of arguments of each call of socketcall(2), SYS_SOCKET = 1 to SYS_SENDMMSG = 20 (`nargs[]`, net/socket.c).
const SOCKETCALL_ARGS: [u32; 21] = [
    0, 3, 3, 3, 2, 3, 3, 3, 4, 4, 4, 6, 6, 2, 5, 5, 3, 3, 4, 5, 4,
];

/// An EVENT frame whose header and parts have been checked.
#[derive(Debug, Clone, Copy)]
pub struct Event<'a> {
    header: tarsier_event,
    frame: &'a [u8],
    /// One bit for each tag in the frame, because most queries are for parts that it does not have.
    tags: u64,
}

impl<'a> Event<'a> {
    /// Checks the whole frame `bytes`, which must be exactly one EVENT frame. Any alignment will do.
    pub fn parse(bytes: &'a [u8]) -> Result<Event<'a>, WireError> {
        let (kind, frame) = frame_kind(bytes)?;
        if kind != FrameKind::Event {
            return Err(WireError::Kind(frame.kind));
        }
        let header: tarsier_event = read(bytes)?;
        let tags = check_parts(&bytes[size_of::<tarsier_event>()..], header.parts)?;
        Ok(Event {
            header,
            frame: bytes,
            tags,
        })
    }

    /// The fixed header. For `comm` and `tty`, [`Event::comm`] and [`Event::tty`] are easier to use.
    pub fn header(&self) -> &tarsier_event {
        &self.header
    }

    /// Whether all of the given `enum tarsier_event_flags` are set.
    pub fn has_flag(&self, flag: tarsier_event_flags) -> bool {
        self.header.flags & flag == flag
    }

    /// Name of the thread, without NUL.
    pub fn comm(&self) -> &'a [u8] {
        self.fixed_text(offset_of!(tarsier_event, comm), TARSIER_COMM_LEN as usize)
    }

    /// Name of the controlling terminal ("pts0"), without NUL; empty if there is none.
    pub fn tty(&self) -> &'a [u8] {
        self.fixed_text(offset_of!(tarsier_event, tty), TARSIER_TTY_LEN as usize)
    }

    fn fixed_text(&self, at: usize, len: usize) -> &'a [u8] {
        until_nul(&self.frame[at..at + len])
    }

    /// The number under which the call is known: that of the 64-bit call for one of x32. For an operation of io_uring
    /// its opcode.
    pub fn call_number(&self) -> u32 {
        let number = self.header.nr as u32;
        let is_x86_64 = self.header.arch == abi::Arch::X86_64.audit_arch();
        let twin = || abi::twin_of_x32(number);
        if is_x86_64 && !self.has_flag(TARSIER_URING) {
            twin().unwrap_or(number)
        } else {
            number
        }
    }

    /// The result as the kernel returned it, ERESTART* included; `None` for calls that do not return.
    pub fn exit(&self) -> Option<i64> {
        (!self.has_flag(TARSIER_NO_RETURN)).then_some(self.header.exit)
    }

    /// All parts in the order of the frame.
    pub fn parts(&self) -> Parts<'a> {
        Parts::new(&self.frame[size_of::<tarsier_event>()..])
    }

    /// The first part with this tag, whatever its index.
    pub fn part(&self, tag: tarsier_part_tag) -> Option<Part<'a>> {
        self.with_tag(tag).next()
    }

    fn with_tag(&self, tag: tarsier_part_tag) -> impl Iterator<Item = Part<'a>> {
        let is_there = self.tags & tag_bit(tag) != 0;
        let parts = is_there.then(|| self.parts()).into_iter().flatten();
        parts.filter(move |part| part.tag == tag)
    }

    /// The part with this tag and index.
    pub fn indexed(&self, tag: tarsier_part_tag, index: u8) -> Option<Part<'a>> {
        self.with_tag(tag).find(|part| part.index == index)
    }

    /// Walked path of the executable.
    pub fn exe(&self) -> Option<Part<'a>> {
        self.part(TARSIER_PART_EXE)
    }

    /// Walked path of the current directory.
    pub fn cwd(&self) -> Option<Part<'a>> {
        self.part(TARSIER_PART_CWD)
    }

    /// Identity of the current directory.
    pub fn cwd_inode(&self) -> Option<tarsier_inode> {
        self.part(TARSIER_PART_CWD_INODE)?.read()
    }

    /// Walked path of the root directory, if it is not that of the mount namespace.
    pub fn root(&self) -> Option<Part<'a>> {
        self.part(TARSIER_PART_ROOT)
    }

    /// Inode number and device of directories of file systems of which a mount shows only a part: the highest directory
    /// that is shown, and all directories above it. One series for each path of the call that led through such a mount, or
    /// that was found in the kernel's cache of names.
    pub fn above(&self) -> impl Iterator<Item = (u64, u32)> + 'a {
        let parts = self.with_tag(TARSIER_PART_ABOVE);
        parts.flat_map(|part| {
            let ids = part.data.chunks_exact(size_of::<[u64; 2]>());
            ids.filter_map(|id| <[u64; 2]>::read_from_bytes(id).ok())
                .map(|[ino, dev]| (ino, dev as u32))
        })
    }

    /// Whether a series of [`Event::above`] does not reach the root of its file system.
    pub fn is_above_cut(&self) -> bool {
        self.with_tag(TARSIER_PART_ABOVE).any(|part| part.is_cut())
    }

    /// Path argument `index` as user space passed it.
    pub fn path(&self, index: u8) -> Option<Part<'a>> {
        self.indexed(TARSIER_PART_PATH, index)
    }

    /// What path argument `index` led to when the call was over, as far as the kernel's cache of names knew.
    pub fn found(&self, index: u8) -> Option<tarsier_found> {
        self.found_when(index, false)
    }

    /// What path argument `index` led to when the call began; without a path, the object of the call's descriptor.
    pub fn before(&self, index: u8) -> Option<tarsier_found> {
        self.found_when(index, true)
    }

    fn found_when(&self, index: u8, is_before: bool) -> Option<tarsier_found> {
        let is_it = |part: &Part<'a>| part.index == index && part.is_of_begin() == is_before;
        self.with_tag(TARSIER_PART_FOUND).find(is_it)?.read()
    }

    /// Directory that path argument `index` is relative to, if that is not the current directory.
    pub fn dir(&self, index: u8) -> Option<DirPart<'a>> {
        self.indexed(TARSIER_PART_DIR, index)?.inode_and_walk()
    }

    /// The file that the call opened (`index` 0), or that a descriptor argument refers to (`index` 1): the last such part,
    /// since the event of an io_uring operation has the file that was used after the one that its descriptor stood for.
    pub fn file(&self, index: u8) -> Option<DirPart<'a>> {
        let files = self.with_tag(TARSIER_PART_FILE);
        let file = files.filter(|part| part.index == index).last()?;
        file.inode_and_walk()
    }

    /// The bytes of a `struct sockaddr`: the last such part, since the event of an io_uring operation has the address
    /// that was used after the address that it was submitted with.
    pub fn sockaddr(&self) -> Option<Part<'a>> {
        let addresses = self.with_tag(TARSIER_PART_SOCKADDR);
        addresses.filter(|part| part.index == 0).last()
    }

    /// The addresses of the messages of a sendmmsg(2) on a UNIX socket, in their order; the last one is cut if there
    /// are more.
    pub fn message_addresses(&self) -> impl Iterator<Item = Part<'a>> {
        let addresses = self.with_tag(TARSIER_PART_SOCKADDR);
        addresses.filter(|part| part.index != 0)
    }

    /// Start of the command line: arguments separated by NUL.
    pub fn proctitle(&self) -> Option<Part<'a>> {
        self.part(TARSIER_PART_PROCTITLE)
    }

    /// Length in bytes and number (0: not known) of the arguments of a successful execve, which are in CHUNK frames.
    pub fn arguments(&self) -> Option<[u64; 2]> {
        self.part(TARSIER_PART_ARGUMENTS)?.read()
    }

    /// Descriptors that pipe or socketpair created.
    pub fn fd_pair(&self) -> Option<[i32; 2]> {
        self.part(TARSIER_PART_FD_PAIR)?.read()
    }

    /// The first process that the call acted on. For all of them, use [`Event::parts`].
    pub fn obj_pid(&self) -> Option<tarsier_obj_pid> {
        self.part(TARSIER_PART_OBJ_PID)?.read()
    }

    /// Capabilities after a successful capset.
    pub fn capset(&self) -> Option<tarsier_caps> {
        self.part(TARSIER_PART_CAPSET)?.read()
    }

    /// Capabilities before and after a successful execve; those of the file are left zero.
    pub fn fcaps(&self) -> Option<tarsier_fcaps> {
        self.part(TARSIER_PART_BPRM_FCAPS)?.read()
    }

    /// Name of the module loaded or removed.
    pub fn module(&self) -> Option<Part<'a>> {
        self.part(TARSIER_PART_MODULE)
    }

    /// The flags that the kernel used of openat2's `struct open_how`, and the bits of them that are known.
    pub fn opened(&self) -> Option<[u32; 2]> {
        self.part(TARSIER_PART_OPENED)?.read()
    }

    /// The flags, mode and resolve members of openat2's `struct open_how`, as they were after the call.
    pub fn open_how(&self) -> Option<[u64; 3]> {
        self.part(TARSIER_PART_OPEN_HOW)?.read()
    }

    /// The rules that may still be the first match, in pages of 64.
    pub fn candidates(&self) -> impl Iterator<Item = tarsier_candidates> + 'a {
        let data = self
            .part(TARSIER_PART_CANDIDATES)
            .map_or(&[][..], |part| part.data);
        data.chunks_exact(size_of::<tarsier_candidates>())
            .filter_map(|bytes| read(bytes).ok())
    }

    /// The file that a successful execve runs, and the name of the interpreter if that is what runs.
    pub fn exec_file(&self) -> Option<ExecFile<'a>> {
        self.part(TARSIER_PART_EXEC_FILE)?.exec_file()
    }

    /// The files that an execve has opened: for each the index, with those of `enum tarsier_executed` last, and the file.
    pub fn executed(&self) -> impl Iterator<Item = (u8, DirPart<'a>)> {
        self.with_tag(TARSIER_PART_EXECUTED)
            .filter_map(|part| Some((part.index, part.inode_and_walk()?)))
    }

    /// Other entries, which rules name, of objects that the call has reached.
    pub fn aliases(&self) -> impl Iterator<Item = AliasPart<'a>> {
        self.with_tag(TARSIER_PART_ALIAS)
            .filter_map(|part| part.alias())
    }

    /// The file with this index among [`Event::executed`].
    pub fn executed_as(&self, index: tarsier_executed) -> Option<DirPart<'a>> {
        let mut executed = self.executed();
        let file = executed.find(|&(own, _)| u32::from(own) == index);
        file.map(|(_, file)| file)
    }

    /// The kernel objects that hooks saw during the call; empty if no object hooks are attached.
    pub fn objects(&self) -> impl Iterator<Item = ObjectPart<'a>> {
        self.with_tag(TARSIER_PART_OBJECT)
            .filter_map(|part| part.object())
    }

    /// The object with this role that belongs to path argument `index`.
    pub fn object(&self, role: tarsier_object_role, index: u8) -> Option<ObjectPart<'a>> {
        self.objects()
            .find(|object| object.role == role && object.index == index)
    }

    /// The System V object of the call.
    pub fn ipc(&self) -> Option<tarsier_ipc> {
        self.part(TARSIER_PART_IPC)?.read()
    }

    /// The permissions that IPC_SET requests.
    pub fn ipc_set_perm(&self) -> Option<tarsier_ipc_perm> {
        self.part(TARSIER_PART_IPC_SET_PERM)?.read()
    }

    /// A structure that an argument points to, of the length in the shape of the call; `None` if it could not be read.
    pub fn memory(&self) -> Option<&'a [u8]> {
        let part = self.part(TARSIER_PART_MEMORY)?;
        (!part.is_unreadable()).then_some(part.data)
    }

    /// The changes that the call made to the clock: see TARSIER_PART_TIME.
    pub fn time(&self) -> Option<[i64; TARSIER_TIME_VALUES as usize]> {
        self.part(TARSIER_PART_TIME)?.read()
    }

    /// Number of the SELinux label of the task, in the call; `None` where the programs read no labels.
    pub fn subject(&self) -> Option<u32> {
        self.part(TARSIER_PART_SUBJECT)?.read()
    }

    /// Id of the BPF program that the call has loaded.
    pub fn program(&self) -> Option<u32> {
        self.part(TARSIER_PART_PROGRAM)?.read()
    }

    /// Number of arguments of a 32-bit socketcall, and all six slots. `None` if the event is no valid socketcall.
    pub fn socketcall(&self) -> Option<(u32, [u32; 6])> {
        let args: [u32; 6] = self.part(TARSIER_PART_SOCKETCALL)?.read()?;
        let call = usize::try_from(self.header.args[0]).ok()?;
        let count = SOCKETCALL_ARGS.get(call).filter(|count| **count > 0)?;
        Some((*count, args))
    }
}

/// A CHUNK frame: a slice of the arguments of the EVENT frame with the same id.
#[derive(Debug, Clone, Copy)]
pub struct Chunk<'a> {
    /// Common header; `id` is that of the event.
    pub frame: tarsier_frame,
    /// Number of the chunk within the event: 0, 1, 2, …
    pub seq: u32,
    /// Place of the bytes in the arguments, in bytes.
    pub at: u64,
    /// The bytes.
    pub data: &'a [u8],
}

impl<'a> Chunk<'a> {
    /// Checks the whole frame `bytes`, which must be exactly one CHUNK frame.
    pub fn parse(bytes: &'a [u8]) -> Result<Chunk<'a>, WireError> {
        let (kind, frame) = frame_kind(bytes)?;
        if kind != FrameKind::Chunk {
            return Err(WireError::Kind(frame.kind));
        }

        let header: tarsier_chunk = read(bytes)?;
        let body = &bytes[size_of::<tarsier_chunk>()..];
        let len = header.len as usize;
        if len > TARSIER_CHUNK_MAX as usize || len > body.len() {
            let at = size_of::<tarsier_chunk>();
            return Err(WireError::PartBounds {
                part: header.seq,
                at,
            });
        }

        Ok(Chunk {
            frame,
            seq: header.seq,
            at: header.at,
            data: &body[..len],
        })
    }
}

/// Checks `count` parts, and returns a bit for each tag that they have.
fn check_parts(bytes: &[u8], count: u32) -> Result<u64, WireError> {
    let mut parts = Parts::new(bytes);
    let mut tags = 0;
    for number in 0..count {
        tags |= tag_bit(parts.checked_next(number)?.tag);
    }
    match parts.left() {
        0 => Ok(tags),
        left => Err(WireError::Trailing(left)),
    }
}

fn tag_bit(tag: tarsier_part_tag) -> u64 {
    1 << (tag % u64::BITS)
}

/// A RESULT frame: the result of an io_uring operation whose EVENT frame came earlier.
#[derive(Debug, Clone, Copy)]
pub struct OperationResult<'a> {
    /// The fixed header; `frame.id` is that of the event.
    pub header: tarsier_result,
    parts: &'a [u8],
}

impl<'a> OperationResult<'a> {
    /// Checks the whole frame `bytes`, which must be exactly one RESULT frame.
    pub fn parse(bytes: &'a [u8]) -> Result<OperationResult<'a>, WireError> {
        let (kind, frame) = frame_kind(bytes)?;
        if kind != FrameKind::Result {
            return Err(WireError::Kind(frame.kind));
        }
        let header: tarsier_result = read(bytes)?;
        let parts = &bytes[size_of::<tarsier_result>()..];
        check_parts(parts, header.parts)?;
        Ok(OperationResult { header, parts })
    }

    /// Whether all of the given `enum tarsier_result_flags` are set.
    pub fn has_flag(&self, flag: tarsier_result_flags) -> bool {
        self.header.flags & flag == flag
    }

    /// Whether it has objects that the operation used, as hooks on kernel functions saw them.
    pub fn has_objects(&self) -> bool {
        Parts::new(self.parts).any(|part| part.tag == TARSIER_PART_OBJECT)
    }

    /// Completes the PENDING EVENT frame `event` in place: sets the result, appends the parts and, if it is given, sets the time.
    pub fn complete(&self, event: &mut Vec<u8>, time_ns: Option<u64>) -> Result<(), WireError> {
        let is_known = !self.has_flag(TARSIER_RESULT_UNKNOWN);
        end_pending(event, is_known.then_some(self.header.exit))?;
        let mut header: tarsier_event = read(event)?;
        header.frame.time_ns = time_ns.unwrap_or(header.frame.time_ns);
        header.parts += self.header.parts;
        event.extend_from_slice(self.parts);
        header.frame.size = event.len() as u32;
        event[..size_of::<tarsier_event>()].copy_from_slice(header.as_bytes());
        Ok(())
    }
}

/// Marks a PENDING EVENT frame as having no result so far. It stays PENDING.
pub fn without_result(event: &mut [u8]) -> Result<(), WireError> {
    let mut header: tarsier_event = read(event)?;
    header.flags |= TARSIER_NO_RETURN;
    event[..size_of::<tarsier_event>()].copy_from_slice(header.as_bytes());
    Ok(())
}

/// Ends the wait of a PENDING EVENT frame for its result: sets `exit`, or marks it as having no result.
pub fn end_pending(event: &mut [u8], exit: Option<i64>) -> Result<(), WireError> {
    let mut header: tarsier_event = read(event)?;
    header.flags &= !(TARSIER_PENDING | TARSIER_SILENT);
    match exit {
        Some(exit) => header.exit = exit,
        None => header.flags |= TARSIER_NO_RETURN,
    }
    event[..size_of::<tarsier_event>()].copy_from_slice(header.as_bytes());
    Ok(())
}

/// The text in a C array: the bytes before the first NUL, or all of them.
pub fn until_nul(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .position(|&byte| byte == 0)
        .unwrap_or(text.len());
    &text[..end]
}
