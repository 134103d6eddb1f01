//! Generated from include/tarsier_event.h by gen/bindings.sh: do not edit.

#![allow(missing_docs, non_camel_case_types)]

pub const TARSIER_WIRE_VERSION: u32 = 3;
pub const TARSIER_COMM_LEN: u32 = 16;
pub const TARSIER_TTY_LEN: u32 = 32;
pub const TARSIER_NO_RULE: u32 = 4294967295;
pub const TARSIER_PATH_MAX: u32 = 4096;
pub const TARSIER_CHUNK_MAX: u32 = 16384;
pub const TARSIER_ARGUMENTS_MAX: u32 = 8388608;
pub const TARSIER_GROUPS_MAX: u32 = 65536;
pub const TARSIER_PROCTITLE_MAX: u32 = 128;
pub const TARSIER_MEMORY_MAX: u32 = 64;
pub const TARSIER_TIME_VALUES: u32 = 14;
pub const TARSIER_PENDING_MAX: u32 = 65536;
pub const TARSIER_EVENT_MAX: u32 = 65536;
pub const TARSIER_RING_MIN: u32 = 131072;
pub const TARSIER_INODE_VALID: u32 = 1;
pub type __u8 = ::core::ffi::c_uchar;
pub type __u16 = ::core::ffi::c_ushort;
pub type __s32 = ::core::ffi::c_int;
pub type __u32 = ::core::ffi::c_uint;
pub type __s64 = ::core::ffi::c_longlong;
pub type __u64 = ::core::ffi::c_ulonglong;
pub const TARSIER_FRAME_EVENT: tarsier_frame_kind = 1;
pub const TARSIER_FRAME_CHUNK: tarsier_frame_kind = 2;
pub const TARSIER_FRAME_RESULT: tarsier_frame_kind = 3;
pub const TARSIER_FRAME_CGROUP: tarsier_frame_kind = 4;
pub const TARSIER_FRAME_CANARY: tarsier_frame_kind = 5;
pub const TARSIER_FRAME_PROCESS: tarsier_frame_kind = 6;
pub type tarsier_frame_kind = ::core::ffi::c_uint;
pub const TARSIER_NO_RETURN: tarsier_event_flags = 1;
pub const TARSIER_COMPAT: tarsier_event_flags = 2;
pub const TARSIER_UNDECIDED: tarsier_event_flags = 4;
pub const TARSIER_TRUNCATED: tarsier_event_flags = 8;
pub const TARSIER_URING: tarsier_event_flags = 16;
pub const TARSIER_ENTRY_ARGS: tarsier_event_flags = 32;
pub const TARSIER_PENDING: tarsier_event_flags = 64;
pub const TARSIER_SILENT: tarsier_event_flags = 128;
pub type tarsier_event_flags = ::core::ffi::c_uint;
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_frame {
    pub size: __u32,
    pub kind: __u16,
    pub version: __u16,
    pub id: __u64,
    pub time_ns: __u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_frame"][::core::mem::size_of::<tarsier_frame>() - 24usize];
    ["Alignment of tarsier_frame"][::core::mem::align_of::<tarsier_frame>() - 8usize];
    ["Offset of field: tarsier_frame::size"][::core::mem::offset_of!(tarsier_frame, size) - 0usize];
    ["Offset of field: tarsier_frame::kind"][::core::mem::offset_of!(tarsier_frame, kind) - 4usize];
    ["Offset of field: tarsier_frame::version"]
        [::core::mem::offset_of!(tarsier_frame, version) - 6usize];
    ["Offset of field: tarsier_frame::id"][::core::mem::offset_of!(tarsier_frame, id) - 8usize];
    ["Offset of field: tarsier_frame::time_ns"]
        [::core::mem::offset_of!(tarsier_frame, time_ns) - 16usize];
};
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_inode {
    pub ino: __u64,
    pub dev: __u32,
    pub rdev: __u32,
    pub mode: __u32,
    pub uid: __u32,
    pub gid: __u32,
    pub valid: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_inode"][::core::mem::size_of::<tarsier_inode>() - 32usize];
    ["Alignment of tarsier_inode"][::core::mem::align_of::<tarsier_inode>() - 8usize];
    ["Offset of field: tarsier_inode::ino"][::core::mem::offset_of!(tarsier_inode, ino) - 0usize];
    ["Offset of field: tarsier_inode::dev"][::core::mem::offset_of!(tarsier_inode, dev) - 8usize];
    ["Offset of field: tarsier_inode::rdev"]
        [::core::mem::offset_of!(tarsier_inode, rdev) - 12usize];
    ["Offset of field: tarsier_inode::mode"]
        [::core::mem::offset_of!(tarsier_inode, mode) - 16usize];
    ["Offset of field: tarsier_inode::uid"][::core::mem::offset_of!(tarsier_inode, uid) - 20usize];
    ["Offset of field: tarsier_inode::gid"][::core::mem::offset_of!(tarsier_inode, gid) - 24usize];
    ["Offset of field: tarsier_inode::valid"]
        [::core::mem::offset_of!(tarsier_inode, valid) - 28usize];
};
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_event {
    pub frame: tarsier_frame,
    pub generation: __u64,
    pub rule: __u32,
    pub flags: __u32,
    pub cpu: __u32,
    pub parts: __u32,
    pub arch: __u32,
    pub nr: __s32,
    pub exit: __s64,
    pub args: [__u64; 6usize],
    pub start_time_ns: __u64,
    pub cgroup_id: __u64,
    pub pid: __u32,
    pub tid: __u32,
    pub ppid: __u32,
    pub auid: __u32,
    pub ses: __u32,
    pub uid: __u32,
    pub gid: __u32,
    pub euid: __u32,
    pub suid: __u32,
    pub fsuid: __u32,
    pub egid: __u32,
    pub sgid: __u32,
    pub fsgid: __u32,
    pub personality: __u32,
    pub chunks: __u32,
    pub mnt_ns: __u32,
    pub comm: [::core::ffi::c_char; 16usize],
    pub tty: [::core::ffi::c_char; 32usize],
    pub exe: tarsier_inode,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_event"][::core::mem::size_of::<tarsier_event>() - 272usize];
    ["Alignment of tarsier_event"][::core::mem::align_of::<tarsier_event>() - 8usize];
    ["Offset of field: tarsier_event::frame"]
        [::core::mem::offset_of!(tarsier_event, frame) - 0usize];
    ["Offset of field: tarsier_event::generation"]
        [::core::mem::offset_of!(tarsier_event, generation) - 24usize];
    ["Offset of field: tarsier_event::rule"]
        [::core::mem::offset_of!(tarsier_event, rule) - 32usize];
    ["Offset of field: tarsier_event::flags"]
        [::core::mem::offset_of!(tarsier_event, flags) - 36usize];
    ["Offset of field: tarsier_event::cpu"][::core::mem::offset_of!(tarsier_event, cpu) - 40usize];
    ["Offset of field: tarsier_event::parts"]
        [::core::mem::offset_of!(tarsier_event, parts) - 44usize];
    ["Offset of field: tarsier_event::arch"]
        [::core::mem::offset_of!(tarsier_event, arch) - 48usize];
    ["Offset of field: tarsier_event::nr"][::core::mem::offset_of!(tarsier_event, nr) - 52usize];
    ["Offset of field: tarsier_event::exit"]
        [::core::mem::offset_of!(tarsier_event, exit) - 56usize];
    ["Offset of field: tarsier_event::args"]
        [::core::mem::offset_of!(tarsier_event, args) - 64usize];
    ["Offset of field: tarsier_event::start_time_ns"]
        [::core::mem::offset_of!(tarsier_event, start_time_ns) - 112usize];
    ["Offset of field: tarsier_event::cgroup_id"]
        [::core::mem::offset_of!(tarsier_event, cgroup_id) - 120usize];
    ["Offset of field: tarsier_event::pid"][::core::mem::offset_of!(tarsier_event, pid) - 128usize];
    ["Offset of field: tarsier_event::tid"][::core::mem::offset_of!(tarsier_event, tid) - 132usize];
    ["Offset of field: tarsier_event::ppid"]
        [::core::mem::offset_of!(tarsier_event, ppid) - 136usize];
    ["Offset of field: tarsier_event::auid"]
        [::core::mem::offset_of!(tarsier_event, auid) - 140usize];
    ["Offset of field: tarsier_event::ses"][::core::mem::offset_of!(tarsier_event, ses) - 144usize];
    ["Offset of field: tarsier_event::uid"][::core::mem::offset_of!(tarsier_event, uid) - 148usize];
    ["Offset of field: tarsier_event::gid"][::core::mem::offset_of!(tarsier_event, gid) - 152usize];
    ["Offset of field: tarsier_event::euid"]
        [::core::mem::offset_of!(tarsier_event, euid) - 156usize];
    ["Offset of field: tarsier_event::suid"]
        [::core::mem::offset_of!(tarsier_event, suid) - 160usize];
    ["Offset of field: tarsier_event::fsuid"]
        [::core::mem::offset_of!(tarsier_event, fsuid) - 164usize];
    ["Offset of field: tarsier_event::egid"]
        [::core::mem::offset_of!(tarsier_event, egid) - 168usize];
    ["Offset of field: tarsier_event::sgid"]
        [::core::mem::offset_of!(tarsier_event, sgid) - 172usize];
    ["Offset of field: tarsier_event::fsgid"]
        [::core::mem::offset_of!(tarsier_event, fsgid) - 176usize];
    ["Offset of field: tarsier_event::personality"]
        [::core::mem::offset_of!(tarsier_event, personality) - 180usize];
    ["Offset of field: tarsier_event::chunks"]
        [::core::mem::offset_of!(tarsier_event, chunks) - 184usize];
    ["Offset of field: tarsier_event::mnt_ns"]
        [::core::mem::offset_of!(tarsier_event, mnt_ns) - 188usize];
    ["Offset of field: tarsier_event::comm"]
        [::core::mem::offset_of!(tarsier_event, comm) - 192usize];
    ["Offset of field: tarsier_event::tty"][::core::mem::offset_of!(tarsier_event, tty) - 208usize];
    ["Offset of field: tarsier_event::exe"][::core::mem::offset_of!(tarsier_event, exe) - 240usize];
};
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_part {
    pub tag: __u16,
    pub index: __u8,
    pub flags: __u8,
    pub len: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_part"][::core::mem::size_of::<tarsier_part>() - 8usize];
    ["Alignment of tarsier_part"][::core::mem::align_of::<tarsier_part>() - 4usize];
    ["Offset of field: tarsier_part::tag"][::core::mem::offset_of!(tarsier_part, tag) - 0usize];
    ["Offset of field: tarsier_part::index"][::core::mem::offset_of!(tarsier_part, index) - 2usize];
    ["Offset of field: tarsier_part::flags"][::core::mem::offset_of!(tarsier_part, flags) - 3usize];
    ["Offset of field: tarsier_part::len"][::core::mem::offset_of!(tarsier_part, len) - 4usize];
};
pub const TARSIER_PART_EXE: tarsier_part_tag = 1;
pub const TARSIER_PART_CWD: tarsier_part_tag = 2;
pub const TARSIER_PART_PATH: tarsier_part_tag = 3;
pub const TARSIER_PART_DIR: tarsier_part_tag = 4;
pub const TARSIER_PART_FILE: tarsier_part_tag = 5;
pub const TARSIER_PART_SOCKADDR: tarsier_part_tag = 6;
pub const TARSIER_PART_PROCTITLE: tarsier_part_tag = 7;
pub const TARSIER_PART_ARGUMENTS: tarsier_part_tag = 8;
pub const TARSIER_PART_FD_PAIR: tarsier_part_tag = 9;
pub const TARSIER_PART_OBJ_PID: tarsier_part_tag = 10;
pub const TARSIER_PART_CAPSET: tarsier_part_tag = 11;
pub const TARSIER_PART_BPRM_FCAPS: tarsier_part_tag = 12;
pub const TARSIER_PART_MODULE: tarsier_part_tag = 13;
pub const TARSIER_PART_OPEN_HOW: tarsier_part_tag = 14;
pub const TARSIER_PART_CANDIDATES: tarsier_part_tag = 15;
pub const TARSIER_PART_EXEC_FILE: tarsier_part_tag = 16;
pub const TARSIER_PART_CWD_INODE: tarsier_part_tag = 17;
pub const TARSIER_PART_ROOT: tarsier_part_tag = 18;
pub const TARSIER_PART_SOCKETCALL: tarsier_part_tag = 19;
pub const TARSIER_PART_OBJECT: tarsier_part_tag = 20;
pub const TARSIER_PART_IPC: tarsier_part_tag = 21;
pub const TARSIER_PART_IPC_SET_PERM: tarsier_part_tag = 22;
pub const TARSIER_PART_MEMORY: tarsier_part_tag = 23;
pub const TARSIER_PART_TIME: tarsier_part_tag = 24;
pub const TARSIER_PART_ABOVE: tarsier_part_tag = 25;
pub const TARSIER_PART_OPENED: tarsier_part_tag = 26;
pub const TARSIER_PART_PROGRAM: tarsier_part_tag = 27;
pub const TARSIER_PART_FOUND: tarsier_part_tag = 28;
pub const TARSIER_PART_EXECUTED: tarsier_part_tag = 29;
pub const TARSIER_PART_ALIAS: tarsier_part_tag = 30;
pub const TARSIER_PART_SUBJECT: tarsier_part_tag = 31;
pub type tarsier_part_tag = ::core::ffi::c_uint;
pub const TARSIER_EXECUTED_KEPT: tarsier_executed = 64;
pub const TARSIER_EXECUTED_IMAGE: tarsier_executed = 65;
pub const TARSIER_EXECUTED_LOADER: tarsier_executed = 66;
pub type tarsier_executed = ::core::ffi::c_uint;
pub const TARSIER_PART_UNREADABLE: tarsier_part_flags = 1;
pub const TARSIER_PART_CUT: tarsier_part_flags = 2;
pub const TARSIER_PART_DELETED: tarsier_part_flags = 4;
pub const TARSIER_PART_UNREACHABLE: tarsier_part_flags = 8;
pub const TARSIER_PART_CREATED: tarsier_part_flags = 16;
pub const TARSIER_PART_BEFORE: tarsier_part_flags = 32;
pub const TARSIER_PART_UNSURE: tarsier_part_flags = 64;
pub const TARSIER_PART_HELD: tarsier_part_flags = 128;
pub const TARSIER_PART_OTHER_USED: tarsier_part_flags = 128;
pub const TARSIER_PART_MORE: tarsier_part_flags = 64;
pub type tarsier_part_flags = ::core::ffi::c_uint;
pub const TARSIER_OBJECT_NAME: tarsier_object_role = 1;
pub const TARSIER_OBJECT_PARENT: tarsier_object_role = 2;
pub const TARSIER_OBJECT_PARENT_PATH: tarsier_object_role = 3;
pub const TARSIER_OBJECT_DELETE: tarsier_object_role = 4;
pub const TARSIER_OBJECT_CREATE: tarsier_object_role = 5;
pub const TARSIER_OBJECT_TARGET: tarsier_object_role = 6;
pub const TARSIER_OBJECT_OPENED: tarsier_object_role = 7;
pub const TARSIER_OBJECT_CWD: tarsier_object_role = 8;
pub const TARSIER_OBJECT_ROLES: tarsier_object_role = 9;
pub type tarsier_object_role = ::core::ffi::c_uint;
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_object {
    pub inode: tarsier_inode,
    pub role: __u32,
    pub name_len: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_object"][::core::mem::size_of::<tarsier_object>() - 40usize];
    ["Alignment of tarsier_object"][::core::mem::align_of::<tarsier_object>() - 8usize];
    ["Offset of field: tarsier_object::inode"]
        [::core::mem::offset_of!(tarsier_object, inode) - 0usize];
    ["Offset of field: tarsier_object::role"]
        [::core::mem::offset_of!(tarsier_object, role) - 32usize];
    ["Offset of field: tarsier_object::name_len"]
        [::core::mem::offset_of!(tarsier_object, name_len) - 36usize];
};
pub const TARSIER_FOUND_PARENT: tarsier_found_what = 1;
pub const TARSIER_FOUND_ENTRY: tarsier_found_what = 2;
pub const TARSIER_FOUND_NO_ENTRY: tarsier_found_what = 4;
pub const TARSIER_FOUND_TARGET: tarsier_found_what = 8;
pub const TARSIER_FOUND_COVERED: tarsier_found_what = 16;
pub const TARSIER_FOUND_NOT_CACHED: tarsier_found_what = 32;
pub const TARSIER_FOUND_DIRECT: tarsier_found_what = 64;
pub const TARSIER_FOUND_ABOVE: tarsier_found_what = 128;
pub const TARSIER_FOUND_MISSING: tarsier_found_what = 256;
pub const TARSIER_FOUND_SEARCHABLE: tarsier_found_what = 512;
pub const TARSIER_FOUND_WRITABLE: tarsier_found_what = 1024;
pub const TARSIER_FOUND_BARRED: tarsier_found_what = 2048;
pub type tarsier_found_what = ::core::ffi::c_uint;
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_alias {
    pub object: tarsier_inode,
    pub directory: tarsier_inode,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_alias"][::core::mem::size_of::<tarsier_alias>() - 64usize];
    ["Alignment of tarsier_alias"][::core::mem::align_of::<tarsier_alias>() - 8usize];
    ["Offset of field: tarsier_alias::object"]
        [::core::mem::offset_of!(tarsier_alias, object) - 0usize];
    ["Offset of field: tarsier_alias::directory"]
        [::core::mem::offset_of!(tarsier_alias, directory) - 32usize];
};
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_found {
    pub known: __u32,
    pub reserved: __u32,
    pub parent: tarsier_inode,
    pub entry: tarsier_inode,
    pub target: tarsier_inode,
    pub covered: tarsier_inode,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_found"][::core::mem::size_of::<tarsier_found>() - 136usize];
    ["Alignment of tarsier_found"][::core::mem::align_of::<tarsier_found>() - 8usize];
    ["Offset of field: tarsier_found::known"]
        [::core::mem::offset_of!(tarsier_found, known) - 0usize];
    ["Offset of field: tarsier_found::reserved"]
        [::core::mem::offset_of!(tarsier_found, reserved) - 4usize];
    ["Offset of field: tarsier_found::parent"]
        [::core::mem::offset_of!(tarsier_found, parent) - 8usize];
    ["Offset of field: tarsier_found::entry"]
        [::core::mem::offset_of!(tarsier_found, entry) - 40usize];
    ["Offset of field: tarsier_found::target"]
        [::core::mem::offset_of!(tarsier_found, target) - 72usize];
    ["Offset of field: tarsier_found::covered"]
        [::core::mem::offset_of!(tarsier_found, covered) - 104usize];
};
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_ipc {
    pub uid: __u32,
    pub gid: __u32,
    pub mode: __u32,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_ipc"][::core::mem::size_of::<tarsier_ipc>() - 16usize];
    ["Alignment of tarsier_ipc"][::core::mem::align_of::<tarsier_ipc>() - 4usize];
    ["Offset of field: tarsier_ipc::uid"][::core::mem::offset_of!(tarsier_ipc, uid) - 0usize];
    ["Offset of field: tarsier_ipc::gid"][::core::mem::offset_of!(tarsier_ipc, gid) - 4usize];
    ["Offset of field: tarsier_ipc::mode"][::core::mem::offset_of!(tarsier_ipc, mode) - 8usize];
    ["Offset of field: tarsier_ipc::reserved"]
        [::core::mem::offset_of!(tarsier_ipc, reserved) - 12usize];
};
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_ipc_perm {
    pub qbytes: __u64,
    pub uid: __u32,
    pub gid: __u32,
    pub mode: __u32,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_ipc_perm"][::core::mem::size_of::<tarsier_ipc_perm>() - 24usize];
    ["Alignment of tarsier_ipc_perm"][::core::mem::align_of::<tarsier_ipc_perm>() - 8usize];
    ["Offset of field: tarsier_ipc_perm::qbytes"]
        [::core::mem::offset_of!(tarsier_ipc_perm, qbytes) - 0usize];
    ["Offset of field: tarsier_ipc_perm::uid"]
        [::core::mem::offset_of!(tarsier_ipc_perm, uid) - 8usize];
    ["Offset of field: tarsier_ipc_perm::gid"]
        [::core::mem::offset_of!(tarsier_ipc_perm, gid) - 12usize];
    ["Offset of field: tarsier_ipc_perm::mode"]
        [::core::mem::offset_of!(tarsier_ipc_perm, mode) - 16usize];
    ["Offset of field: tarsier_ipc_perm::reserved"]
        [::core::mem::offset_of!(tarsier_ipc_perm, reserved) - 20usize];
};
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_obj_pid {
    pub pid: __u32,
    pub auid: __u32,
    pub uid: __u32,
    pub ses: __u32,
    pub comm: [::core::ffi::c_char; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_obj_pid"][::core::mem::size_of::<tarsier_obj_pid>() - 32usize];
    ["Alignment of tarsier_obj_pid"][::core::mem::align_of::<tarsier_obj_pid>() - 4usize];
    ["Offset of field: tarsier_obj_pid::pid"]
        [::core::mem::offset_of!(tarsier_obj_pid, pid) - 0usize];
    ["Offset of field: tarsier_obj_pid::auid"]
        [::core::mem::offset_of!(tarsier_obj_pid, auid) - 4usize];
    ["Offset of field: tarsier_obj_pid::uid"]
        [::core::mem::offset_of!(tarsier_obj_pid, uid) - 8usize];
    ["Offset of field: tarsier_obj_pid::ses"]
        [::core::mem::offset_of!(tarsier_obj_pid, ses) - 12usize];
    ["Offset of field: tarsier_obj_pid::comm"]
        [::core::mem::offset_of!(tarsier_obj_pid, comm) - 16usize];
};
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_caps {
    pub pid: __u32,
    pub reserved: __u32,
    pub inheritable: __u64,
    pub permitted: __u64,
    pub effective: __u64,
    pub ambient: __u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_caps"][::core::mem::size_of::<tarsier_caps>() - 40usize];
    ["Alignment of tarsier_caps"][::core::mem::align_of::<tarsier_caps>() - 8usize];
    ["Offset of field: tarsier_caps::pid"][::core::mem::offset_of!(tarsier_caps, pid) - 0usize];
    ["Offset of field: tarsier_caps::reserved"]
        [::core::mem::offset_of!(tarsier_caps, reserved) - 4usize];
    ["Offset of field: tarsier_caps::inheritable"]
        [::core::mem::offset_of!(tarsier_caps, inheritable) - 8usize];
    ["Offset of field: tarsier_caps::permitted"]
        [::core::mem::offset_of!(tarsier_caps, permitted) - 16usize];
    ["Offset of field: tarsier_caps::effective"]
        [::core::mem::offset_of!(tarsier_caps, effective) - 24usize];
    ["Offset of field: tarsier_caps::ambient"]
        [::core::mem::offset_of!(tarsier_caps, ambient) - 32usize];
};
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_fcaps {
    pub file_permitted: __u64,
    pub file_inheritable: __u64,
    pub file_effective: __u32,
    pub file_version: __u32,
    pub old: tarsier_caps,
    pub new: tarsier_caps,
    pub file_rootid: __u32,
    pub reserved: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_fcaps"][::core::mem::size_of::<tarsier_fcaps>() - 112usize];
    ["Alignment of tarsier_fcaps"][::core::mem::align_of::<tarsier_fcaps>() - 8usize];
    ["Offset of field: tarsier_fcaps::file_permitted"]
        [::core::mem::offset_of!(tarsier_fcaps, file_permitted) - 0usize];
    ["Offset of field: tarsier_fcaps::file_inheritable"]
        [::core::mem::offset_of!(tarsier_fcaps, file_inheritable) - 8usize];
    ["Offset of field: tarsier_fcaps::file_effective"]
        [::core::mem::offset_of!(tarsier_fcaps, file_effective) - 16usize];
    ["Offset of field: tarsier_fcaps::file_version"]
        [::core::mem::offset_of!(tarsier_fcaps, file_version) - 20usize];
    ["Offset of field: tarsier_fcaps::old"][::core::mem::offset_of!(tarsier_fcaps, old) - 24usize];
    ["Offset of field: tarsier_fcaps::new"][::core::mem::offset_of!(tarsier_fcaps, new) - 64usize];
    ["Offset of field: tarsier_fcaps::file_rootid"]
        [::core::mem::offset_of!(tarsier_fcaps, file_rootid) - 104usize];
    ["Offset of field: tarsier_fcaps::reserved"]
        [::core::mem::offset_of!(tarsier_fcaps, reserved) - 108usize];
};
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_candidates {
    pub page: __u32,
    pub list: __u32,
    pub mask: __u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_candidates"][::core::mem::size_of::<tarsier_candidates>() - 16usize];
    ["Alignment of tarsier_candidates"][::core::mem::align_of::<tarsier_candidates>() - 8usize];
    ["Offset of field: tarsier_candidates::page"]
        [::core::mem::offset_of!(tarsier_candidates, page) - 0usize];
    ["Offset of field: tarsier_candidates::list"]
        [::core::mem::offset_of!(tarsier_candidates, list) - 4usize];
    ["Offset of field: tarsier_candidates::mask"]
        [::core::mem::offset_of!(tarsier_candidates, mask) - 8usize];
};
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_chunk {
    pub frame: tarsier_frame,
    pub at: __u64,
    pub seq: __u32,
    pub len: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_chunk"][::core::mem::size_of::<tarsier_chunk>() - 40usize];
    ["Alignment of tarsier_chunk"][::core::mem::align_of::<tarsier_chunk>() - 8usize];
    ["Offset of field: tarsier_chunk::frame"]
        [::core::mem::offset_of!(tarsier_chunk, frame) - 0usize];
    ["Offset of field: tarsier_chunk::at"][::core::mem::offset_of!(tarsier_chunk, at) - 24usize];
    ["Offset of field: tarsier_chunk::seq"][::core::mem::offset_of!(tarsier_chunk, seq) - 32usize];
    ["Offset of field: tarsier_chunk::len"][::core::mem::offset_of!(tarsier_chunk, len) - 36usize];
};
pub const TARSIER_RESULT_MORE: tarsier_result_flags = 1;
pub const TARSIER_RESULT_ASSUMED: tarsier_result_flags = 2;
pub const TARSIER_RESULT_UNKNOWN: tarsier_result_flags = 4;
pub type tarsier_result_flags = ::core::ffi::c_uint;
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_result {
    pub frame: tarsier_frame,
    pub exit: __s64,
    pub flags: __u32,
    pub parts: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_result"][::core::mem::size_of::<tarsier_result>() - 40usize];
    ["Alignment of tarsier_result"][::core::mem::align_of::<tarsier_result>() - 8usize];
    ["Offset of field: tarsier_result::frame"]
        [::core::mem::offset_of!(tarsier_result, frame) - 0usize];
    ["Offset of field: tarsier_result::exit"]
        [::core::mem::offset_of!(tarsier_result, exit) - 24usize];
    ["Offset of field: tarsier_result::flags"]
        [::core::mem::offset_of!(tarsier_result, flags) - 32usize];
    ["Offset of field: tarsier_result::parts"]
        [::core::mem::offset_of!(tarsier_result, parts) - 36usize];
};
pub const TARSIER_CGROUP_REMOVED: tarsier_cgroup_flags = 1;
pub const TARSIER_CGROUP_OF_ROOT: tarsier_cgroup_flags = 2;
pub type tarsier_cgroup_flags = ::core::ffi::c_uint;
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_cgroup {
    pub frame: tarsier_frame,
    pub id: __u64,
    pub parent: __u64,
    pub cpu: __u32,
    pub len: __u16,
    pub flags: __u16,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_cgroup"][::core::mem::size_of::<tarsier_cgroup>() - 48usize];
    ["Alignment of tarsier_cgroup"][::core::mem::align_of::<tarsier_cgroup>() - 8usize];
    ["Offset of field: tarsier_cgroup::frame"]
        [::core::mem::offset_of!(tarsier_cgroup, frame) - 0usize];
    ["Offset of field: tarsier_cgroup::id"][::core::mem::offset_of!(tarsier_cgroup, id) - 24usize];
    ["Offset of field: tarsier_cgroup::parent"]
        [::core::mem::offset_of!(tarsier_cgroup, parent) - 32usize];
    ["Offset of field: tarsier_cgroup::cpu"]
        [::core::mem::offset_of!(tarsier_cgroup, cpu) - 40usize];
    ["Offset of field: tarsier_cgroup::len"]
        [::core::mem::offset_of!(tarsier_cgroup, len) - 44usize];
    ["Offset of field: tarsier_cgroup::flags"]
        [::core::mem::offset_of!(tarsier_cgroup, flags) - 46usize];
};
pub const TARSIER_PROCESS_MADE: tarsier_process_change = 1;
pub const TARSIER_PROCESS_EXECUTED: tarsier_process_change = 2;
pub const TARSIER_PROCESS_ENDED: tarsier_process_change = 3;
pub const TARSIER_PROCESS_FOUND: tarsier_process_change = 4;
pub const TARSIER_PROCESS_KERNEL: tarsier_process_change = 5;
pub const TARSIER_PROCESS_ABOVE: tarsier_process_change = 6;
pub type tarsier_process_change = ::core::ffi::c_uint;
#[repr(C)]
#[derive(
    Debug,
    Default,
    Copy,
    Clone,
    zerocopy :: FromBytes,
    zerocopy :: IntoBytes,
    zerocopy :: Immutable,
    zerocopy :: KnownLayout,
)]
pub struct tarsier_process {
    pub frame: tarsier_frame,
    pub start_time_ns: __u64,
    pub pid: __u32,
    pub flags: __u32,
    pub cpu: __u32,
    pub parts: __u32,
    pub image: __u64,
    pub maker_start_ns: __u64,
    pub maker: __u32,
    pub change: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_process"][::core::mem::size_of::<tarsier_process>() - 72usize];
    ["Alignment of tarsier_process"][::core::mem::align_of::<tarsier_process>() - 8usize];
    ["Offset of field: tarsier_process::frame"]
        [::core::mem::offset_of!(tarsier_process, frame) - 0usize];
    ["Offset of field: tarsier_process::start_time_ns"]
        [::core::mem::offset_of!(tarsier_process, start_time_ns) - 24usize];
    ["Offset of field: tarsier_process::pid"]
        [::core::mem::offset_of!(tarsier_process, pid) - 32usize];
    ["Offset of field: tarsier_process::flags"]
        [::core::mem::offset_of!(tarsier_process, flags) - 36usize];
    ["Offset of field: tarsier_process::cpu"]
        [::core::mem::offset_of!(tarsier_process, cpu) - 40usize];
    ["Offset of field: tarsier_process::parts"]
        [::core::mem::offset_of!(tarsier_process, parts) - 44usize];
    ["Offset of field: tarsier_process::image"]
        [::core::mem::offset_of!(tarsier_process, image) - 48usize];
    ["Offset of field: tarsier_process::maker_start_ns"]
        [::core::mem::offset_of!(tarsier_process, maker_start_ns) - 56usize];
    ["Offset of field: tarsier_process::maker"]
        [::core::mem::offset_of!(tarsier_process, maker) - 64usize];
    ["Offset of field: tarsier_process::change"]
        [::core::mem::offset_of!(tarsier_process, change) - 68usize];
};
pub const TARSIER_LOSS_RING_FULL: tarsier_loss = 0;
pub const TARSIER_LOSS_TOO_BIG: tarsier_loss = 1;
pub const TARSIER_LOSS_NO_MEMORY: tarsier_loss = 2;
pub const TARSIER_LOSS_OVER_SHARE: tarsier_loss = 3;
pub const TARSIER_LOSS_BUSY: tarsier_loss = 4;
pub const TARSIER_LOSS_CAUSES: tarsier_loss = 5;
pub type tarsier_loss = ::core::ffi::c_uint;
