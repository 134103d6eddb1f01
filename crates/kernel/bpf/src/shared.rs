//! Generated from programs/shared.h by gen/bindings.sh: do not edit.

#![allow(missing_docs, non_camel_case_types)]

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

pub const GATE_OPEN: u32 = 0;
pub const RULES_MAX: u32 = 8192;
pub const FUNCTIONS_MAX: u32 = 1024;
pub const PROBE_LINKS_MAX: u32 = 64;
pub const WORKS_PER_CPU: u32 = 4;
pub const DOORBELL_BYTES: u32 = 4096;
pub const OBJECT_OPERATIONS: u32 = 256;
pub const LOST_UIDS_MAX: u32 = 1024;
pub const MARKS_MAX: u32 = 16;
pub const BUDGET_COUNT_BITS: u32 = 32;
pub const HELPERS_MAX: u32 = 3;
pub const DCACHE_SAMPLES: u32 = 512;
pub const WORKLOADS_MAX: u32 = 65536;
pub const WORKLOAD_NAMES_MAX: u32 = 8192;
pub const WORKLOAD_SOME_CONTAINER: u32 = 1;
pub const PROCESS_CLASSES_MAX: u32 = 65536;
pub const PAST_NAMES_MAX: u32 = 32;
pub const ENTRY_URING: u32 = 2;
pub const MAKER_OPERATIONS_MAX: u32 = 16384;
pub const URING_PART_SHIFT: u32 = 8;
pub const FOLLOW_PATH_BYTES: u32 = 256;
pub const DENIAL_ALLOWED_TOO: u32 = 128;
pub const COUNTED_CALLS: u32 = 1024;
pub const PEEK_BYTES: u32 = 8192;
pub const SECCOMP_WORDS_MAX: u32 = 16;
pub type __u8 = ::core::ffi::c_uchar;
pub type __u32 = ::core::ffi::c_uint;
pub type __s64 = ::core::ffi::c_longlong;
pub type __u64 = ::core::ffi::c_ulonglong;
#[repr(C)]
#[repr(align(8))]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct tarsier_candidates {
    pub _bindgen_opaque_blob: [u64; 2usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of tarsier_candidates"][::core::mem::size_of::<tarsier_candidates>() - 16usize];
    ["Alignment of tarsier_candidates"][::core::mem::align_of::<tarsier_candidates>() - 8usize];
};
#[repr(C)]
#[repr(align(4))]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct table_call {
    pub _bindgen_opaque_blob: [u32; 4usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of table_call"][::core::mem::size_of::<table_call>() - 16usize];
    ["Alignment of table_call"][::core::mem::align_of::<table_call>() - 4usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct gate_range {
    pub first: __u32,
    pub span: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of gate_range"][::core::mem::size_of::<gate_range>() - 8usize];
    ["Alignment of gate_range"][::core::mem::align_of::<gate_range>() - 4usize];
    ["Offset of field: gate_range::first"][::core::mem::offset_of!(gate_range, first) - 0usize];
    ["Offset of field: gate_range::span"][::core::mem::offset_of!(gate_range, span) - 4usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct gate {
    pub fact: __u32,
    pub mask: __u32,
    pub range: [gate_range; 2usize],
    pub results: gate_range,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of gate"][::core::mem::size_of::<gate>() - 32usize];
    ["Alignment of gate"][::core::mem::align_of::<gate>() - 4usize];
    ["Offset of field: gate::fact"][::core::mem::offset_of!(gate, fact) - 0usize];
    ["Offset of field: gate::mask"][::core::mem::offset_of!(gate, mask) - 4usize];
    ["Offset of field: gate::range"][::core::mem::offset_of!(gate, range) - 8usize];
    ["Offset of field: gate::results"][::core::mem::offset_of!(gate, results) - 24usize];
};
#[repr(C)]
#[repr(align(1))]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct table_spec {
    pub _bindgen_opaque_blob: [u8; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of table_spec"][::core::mem::size_of::<table_spec>() - 16usize];
    ["Alignment of table_spec"][::core::mem::align_of::<table_spec>() - 1usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct marks {
    pub generation: __u64,
    pub known: __u32,
    pub count: __u32,
    pub sure: __u32,
    pub proven: __u32,
    pub objects: __u32,
    pub is_crossed: __u32,
    pub value: [__u32; 16usize],
    pub dentry_at: __u64,
    pub mnt_at: __u64,
    pub root_at: __u64,
    pub shown_at: __u64,
    pub how: __u32,
    pub parent: __u32,
    pub is_done: __u32,
    pub head: __u32,
    pub are_all: __u32,
    pub is_shown_elsewhere: __u32,
    pub pad: __u32,
    pub filter_first: __u32,
    pub filter_last: __u64,
    pub address: __u64,
    pub path: __u64,
    pub key: [__u64; 2usize],
    pub alias_at: __u64,
    pub inode_at: __u64,
    pub marked_at: __u64,
    pub name: [__u64; 32usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of marks"][::core::mem::size_of::<marks>() - 480usize];
    ["Alignment of marks"][::core::mem::align_of::<marks>() - 8usize];
    ["Offset of field: marks::generation"][::core::mem::offset_of!(marks, generation) - 0usize];
    ["Offset of field: marks::known"][::core::mem::offset_of!(marks, known) - 8usize];
    ["Offset of field: marks::count"][::core::mem::offset_of!(marks, count) - 12usize];
    ["Offset of field: marks::sure"][::core::mem::offset_of!(marks, sure) - 16usize];
    ["Offset of field: marks::proven"][::core::mem::offset_of!(marks, proven) - 20usize];
    ["Offset of field: marks::objects"][::core::mem::offset_of!(marks, objects) - 24usize];
    ["Offset of field: marks::is_crossed"][::core::mem::offset_of!(marks, is_crossed) - 28usize];
    ["Offset of field: marks::value"][::core::mem::offset_of!(marks, value) - 32usize];
    ["Offset of field: marks::dentry_at"][::core::mem::offset_of!(marks, dentry_at) - 96usize];
    ["Offset of field: marks::mnt_at"][::core::mem::offset_of!(marks, mnt_at) - 104usize];
    ["Offset of field: marks::root_at"][::core::mem::offset_of!(marks, root_at) - 112usize];
    ["Offset of field: marks::shown_at"][::core::mem::offset_of!(marks, shown_at) - 120usize];
    ["Offset of field: marks::how"][::core::mem::offset_of!(marks, how) - 128usize];
    ["Offset of field: marks::parent"][::core::mem::offset_of!(marks, parent) - 132usize];
    ["Offset of field: marks::is_done"][::core::mem::offset_of!(marks, is_done) - 136usize];
    ["Offset of field: marks::head"][::core::mem::offset_of!(marks, head) - 140usize];
    ["Offset of field: marks::are_all"][::core::mem::offset_of!(marks, are_all) - 144usize];
    ["Offset of field: marks::is_shown_elsewhere"]
        [::core::mem::offset_of!(marks, is_shown_elsewhere) - 148usize];
    ["Offset of field: marks::pad"][::core::mem::offset_of!(marks, pad) - 152usize];
    ["Offset of field: marks::filter_first"]
        [::core::mem::offset_of!(marks, filter_first) - 156usize];
    ["Offset of field: marks::filter_last"][::core::mem::offset_of!(marks, filter_last) - 160usize];
    ["Offset of field: marks::address"][::core::mem::offset_of!(marks, address) - 168usize];
    ["Offset of field: marks::path"][::core::mem::offset_of!(marks, path) - 176usize];
    ["Offset of field: marks::key"][::core::mem::offset_of!(marks, key) - 184usize];
    ["Offset of field: marks::alias_at"][::core::mem::offset_of!(marks, alias_at) - 200usize];
    ["Offset of field: marks::inode_at"][::core::mem::offset_of!(marks, inode_at) - 208usize];
    ["Offset of field: marks::marked_at"][::core::mem::offset_of!(marks, marked_at) - 216usize];
    ["Offset of field: marks::name"][::core::mem::offset_of!(marks, name) - 224usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct cpu_state {
    pub events: __u64,
    pub undecided: __u64,
    pub evaluated: __u64,
    pub lost: [__u64; 5usize],
    pub serial: __u64,
    pub unread_bound: __u64,
    pub waits: __u64,
    pub waited_ns: __u64,
    pub taken_seen: __u64,
    pub taken_ns: __u64,
    pub suppressed: __u64,
    pub cgroups_lost: __u64,
    pub canary: __u64,
    pub processes_lost: __u64,
    pub put_bytes: __u64,
    pub pad: [__u64; 5usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of cpu_state"][::core::mem::size_of::<cpu_state>() - 192usize];
    ["Alignment of cpu_state"][::core::mem::align_of::<cpu_state>() - 8usize];
    ["Offset of field: cpu_state::events"][::core::mem::offset_of!(cpu_state, events) - 0usize];
    ["Offset of field: cpu_state::undecided"]
        [::core::mem::offset_of!(cpu_state, undecided) - 8usize];
    ["Offset of field: cpu_state::evaluated"]
        [::core::mem::offset_of!(cpu_state, evaluated) - 16usize];
    ["Offset of field: cpu_state::lost"][::core::mem::offset_of!(cpu_state, lost) - 24usize];
    ["Offset of field: cpu_state::serial"][::core::mem::offset_of!(cpu_state, serial) - 64usize];
    ["Offset of field: cpu_state::unread_bound"]
        [::core::mem::offset_of!(cpu_state, unread_bound) - 72usize];
    ["Offset of field: cpu_state::waits"][::core::mem::offset_of!(cpu_state, waits) - 80usize];
    ["Offset of field: cpu_state::waited_ns"]
        [::core::mem::offset_of!(cpu_state, waited_ns) - 88usize];
    ["Offset of field: cpu_state::taken_seen"]
        [::core::mem::offset_of!(cpu_state, taken_seen) - 96usize];
    ["Offset of field: cpu_state::taken_ns"]
        [::core::mem::offset_of!(cpu_state, taken_ns) - 104usize];
    ["Offset of field: cpu_state::suppressed"]
        [::core::mem::offset_of!(cpu_state, suppressed) - 112usize];
    ["Offset of field: cpu_state::cgroups_lost"]
        [::core::mem::offset_of!(cpu_state, cgroups_lost) - 120usize];
    ["Offset of field: cpu_state::canary"][::core::mem::offset_of!(cpu_state, canary) - 128usize];
    ["Offset of field: cpu_state::processes_lost"]
        [::core::mem::offset_of!(cpu_state, processes_lost) - 136usize];
    ["Offset of field: cpu_state::put_bytes"]
        [::core::mem::offset_of!(cpu_state, put_bytes) - 144usize];
    ["Offset of field: cpu_state::pad"][::core::mem::offset_of!(cpu_state, pad) - 152usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct rule_count {
    pub selected: __u64,
    pub lost: __u64,
    pub suppressed: __u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of rule_count"][::core::mem::size_of::<rule_count>() - 24usize];
    ["Alignment of rule_count"][::core::mem::align_of::<rule_count>() - 8usize];
    ["Offset of field: rule_count::selected"]
        [::core::mem::offset_of!(rule_count, selected) - 0usize];
    ["Offset of field: rule_count::lost"][::core::mem::offset_of!(rule_count, lost) - 8usize];
    ["Offset of field: rule_count::suppressed"]
        [::core::mem::offset_of!(rule_count, suppressed) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct budget {
    pub spent: __u64,
    pub rate: __u32,
    pub pad: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of budget"][::core::mem::size_of::<budget>() - 16usize];
    ["Alignment of budget"][::core::mem::align_of::<budget>() - 8usize];
    ["Offset of field: budget::spent"][::core::mem::offset_of!(budget, spent) - 0usize];
    ["Offset of field: budget::rate"][::core::mem::offset_of!(budget, rate) - 8usize];
    ["Offset of field: budget::pad"][::core::mem::offset_of!(budget, pad) - 12usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct dcache_sample {
    pub pprev: __u64,
    pub hash: __u32,
    pub computed: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of dcache_sample"][::core::mem::size_of::<dcache_sample>() - 16usize];
    ["Alignment of dcache_sample"][::core::mem::align_of::<dcache_sample>() - 8usize];
    ["Offset of field: dcache_sample::pprev"]
        [::core::mem::offset_of!(dcache_sample, pprev) - 0usize];
    ["Offset of field: dcache_sample::hash"][::core::mem::offset_of!(dcache_sample, hash) - 8usize];
    ["Offset of field: dcache_sample::computed"]
        [::core::mem::offset_of!(dcache_sample, computed) - 12usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct dcache_samples {
    pub count: __u64,
    pub sample: [dcache_sample; 512usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of dcache_samples"][::core::mem::size_of::<dcache_samples>() - 8200usize];
    ["Alignment of dcache_samples"][::core::mem::align_of::<dcache_samples>() - 8usize];
    ["Offset of field: dcache_samples::count"]
        [::core::mem::offset_of!(dcache_samples, count) - 0usize];
    ["Offset of field: dcache_samples::sample"]
        [::core::mem::offset_of!(dcache_samples, sample) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct control {
    pub watched: [__u64; 32usize],
    pub every: __u32,
    pub daemon_tgid: __u32,
    pub reader_awake: __u32,
    pub watermark_bytes: __u32,
    pub use_task_list: __u32,
    pub exit_at_entry: __u32,
    pub ring_bytes: __u32,
    pub high_bytes: __u32,
    pub throttle: __u32,
    pub urgent_undecided: __u32,
    pub copies: __u32,
    pub x32: __u32,
    pub reserve_bytes: __u32,
    pub has_budgets: __u32,
    pub canary_call: __u32,
    pub muted: __u32,
    pub helper_tgid: [__u32; 3usize],
    pub pad_helper: __u32,
    pub daemon_start: __u64,
    pub helper_start: [__u64; 3usize],
    pub urgent: [__u64; 128usize],
    pub probe_links: __u64,
    pub workload_epoch: __u64,
    pub dcache_at: __u64,
    pub dcache_shift: __u32,
    pub label_places: __u32,
    pub frames_taken: __u64,
    pub pad_taken: [__u64; 7usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of control"][::core::mem::size_of::<control>() - 1488usize];
    ["Alignment of control"][::core::mem::align_of::<control>() - 8usize];
    ["Offset of field: control::watched"][::core::mem::offset_of!(control, watched) - 0usize];
    ["Offset of field: control::every"][::core::mem::offset_of!(control, every) - 256usize];
    ["Offset of field: control::daemon_tgid"]
        [::core::mem::offset_of!(control, daemon_tgid) - 260usize];
    ["Offset of field: control::reader_awake"]
        [::core::mem::offset_of!(control, reader_awake) - 264usize];
    ["Offset of field: control::watermark_bytes"]
        [::core::mem::offset_of!(control, watermark_bytes) - 268usize];
    ["Offset of field: control::use_task_list"]
        [::core::mem::offset_of!(control, use_task_list) - 272usize];
    ["Offset of field: control::exit_at_entry"]
        [::core::mem::offset_of!(control, exit_at_entry) - 276usize];
    ["Offset of field: control::ring_bytes"]
        [::core::mem::offset_of!(control, ring_bytes) - 280usize];
    ["Offset of field: control::high_bytes"]
        [::core::mem::offset_of!(control, high_bytes) - 284usize];
    ["Offset of field: control::throttle"][::core::mem::offset_of!(control, throttle) - 288usize];
    ["Offset of field: control::urgent_undecided"]
        [::core::mem::offset_of!(control, urgent_undecided) - 292usize];
    ["Offset of field: control::copies"][::core::mem::offset_of!(control, copies) - 296usize];
    ["Offset of field: control::x32"][::core::mem::offset_of!(control, x32) - 300usize];
    ["Offset of field: control::reserve_bytes"]
        [::core::mem::offset_of!(control, reserve_bytes) - 304usize];
    ["Offset of field: control::has_budgets"]
        [::core::mem::offset_of!(control, has_budgets) - 308usize];
    ["Offset of field: control::canary_call"]
        [::core::mem::offset_of!(control, canary_call) - 312usize];
    ["Offset of field: control::muted"][::core::mem::offset_of!(control, muted) - 316usize];
    ["Offset of field: control::helper_tgid"]
        [::core::mem::offset_of!(control, helper_tgid) - 320usize];
    ["Offset of field: control::pad_helper"]
        [::core::mem::offset_of!(control, pad_helper) - 332usize];
    ["Offset of field: control::daemon_start"]
        [::core::mem::offset_of!(control, daemon_start) - 336usize];
    ["Offset of field: control::helper_start"]
        [::core::mem::offset_of!(control, helper_start) - 344usize];
    ["Offset of field: control::urgent"][::core::mem::offset_of!(control, urgent) - 368usize];
    ["Offset of field: control::probe_links"]
        [::core::mem::offset_of!(control, probe_links) - 1392usize];
    ["Offset of field: control::workload_epoch"]
        [::core::mem::offset_of!(control, workload_epoch) - 1400usize];
    ["Offset of field: control::dcache_at"]
        [::core::mem::offset_of!(control, dcache_at) - 1408usize];
    ["Offset of field: control::dcache_shift"]
        [::core::mem::offset_of!(control, dcache_shift) - 1416usize];
    ["Offset of field: control::label_places"]
        [::core::mem::offset_of!(control, label_places) - 1420usize];
    ["Offset of field: control::frames_taken"]
        [::core::mem::offset_of!(control, frames_taken) - 1424usize];
    ["Offset of field: control::pad_taken"]
        [::core::mem::offset_of!(control, pad_taken) - 1432usize];
};
pub const WORKLOAD_UNIT: workload_kind = 0;
pub const WORKLOAD_SLICE: workload_kind = 1;
pub const WORKLOAD_CONTAINER: workload_kind = 2;
pub type workload_kind = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct workload_name {
    pub epoch: __u64,
    pub kind: __u32,
    pub pad: __u32,
    pub name: [::core::ffi::c_char; 256usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of workload_name"][::core::mem::size_of::<workload_name>() - 272usize];
    ["Alignment of workload_name"][::core::mem::align_of::<workload_name>() - 8usize];
    ["Offset of field: workload_name::epoch"]
        [::core::mem::offset_of!(workload_name, epoch) - 0usize];
    ["Offset of field: workload_name::kind"][::core::mem::offset_of!(workload_name, kind) - 8usize];
    ["Offset of field: workload_name::pad"][::core::mem::offset_of!(workload_name, pad) - 12usize];
    ["Offset of field: workload_name::name"]
        [::core::mem::offset_of!(workload_name, name) - 16usize];
};
pub const WORKLOAD_IS_SETTLED: workload_flags = 1;
pub const WORKLOAD_IS_LXC: workload_flags = 2;
pub const WORKLOAD_IS_MACHINE: workload_flags = 4;
pub const WORKLOAD_IS_DELEGATED: workload_flags = 8;
pub type workload_flags = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct workload {
    pub epoch: __u64,
    pub unit: __u32,
    pub slice: __u32,
    pub container: __u32,
    pub flags: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of workload"][::core::mem::size_of::<workload>() - 24usize];
    ["Alignment of workload"][::core::mem::align_of::<workload>() - 8usize];
    ["Offset of field: workload::epoch"][::core::mem::offset_of!(workload, epoch) - 0usize];
    ["Offset of field: workload::unit"][::core::mem::offset_of!(workload, unit) - 8usize];
    ["Offset of field: workload::slice"][::core::mem::offset_of!(workload, slice) - 12usize];
    ["Offset of field: workload::container"]
        [::core::mem::offset_of!(workload, container) - 16usize];
    ["Offset of field: workload::flags"][::core::mem::offset_of!(workload, flags) - 20usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct process_id {
    pub start_ns: __u64,
    pub pid: __u32,
    pub pad: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of process_id"][::core::mem::size_of::<process_id>() - 16usize];
    ["Alignment of process_id"][::core::mem::align_of::<process_id>() - 8usize];
    ["Offset of field: process_id::start_ns"]
        [::core::mem::offset_of!(process_id, start_ns) - 0usize];
    ["Offset of field: process_id::pid"][::core::mem::offset_of!(process_id, pid) - 8usize];
    ["Offset of field: process_id::pad"][::core::mem::offset_of!(process_id, pad) - 12usize];
};
pub const PROCESS_LABELS_ARE_OPEN: process_class_flags = 1;
pub const PROCESS_ANCESTORS_ARE_OPEN: process_class_flags = 2;
pub const PROCESS_OWN_IS_OPEN: process_class_flags = 4;
pub type process_class_flags = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct process_class {
    pub epoch: __u64,
    pub image: __u64,
    pub ancestors: __u32,
    pub own: __u32,
    pub labels: __u32,
    pub flags: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of process_class"][::core::mem::size_of::<process_class>() - 32usize];
    ["Alignment of process_class"][::core::mem::align_of::<process_class>() - 8usize];
    ["Offset of field: process_class::epoch"]
        [::core::mem::offset_of!(process_class, epoch) - 0usize];
    ["Offset of field: process_class::image"]
        [::core::mem::offset_of!(process_class, image) - 8usize];
    ["Offset of field: process_class::ancestors"]
        [::core::mem::offset_of!(process_class, ancestors) - 16usize];
    ["Offset of field: process_class::own"][::core::mem::offset_of!(process_class, own) - 20usize];
    ["Offset of field: process_class::labels"]
        [::core::mem::offset_of!(process_class, labels) - 24usize];
    ["Offset of field: process_class::flags"]
        [::core::mem::offset_of!(process_class, flags) - 28usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct labelling {
    pub generation: __u64,
    pub rule: __u32,
    pub pad: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of labelling"][::core::mem::size_of::<labelling>() - 16usize];
    ["Alignment of labelling"][::core::mem::align_of::<labelling>() - 8usize];
    ["Offset of field: labelling::generation"]
        [::core::mem::offset_of!(labelling, generation) - 0usize];
    ["Offset of field: labelling::rule"][::core::mem::offset_of!(labelling, rule) - 8usize];
    ["Offset of field: labelling::pad"][::core::mem::offset_of!(labelling, pad) - 12usize];
};
pub const OBJECTS_NONE: object_class = 0;
pub const OBJECTS_ENTRIES: object_class = 1;
pub const OBJECTS_OPEN: object_class = 2;
pub const OBJECTS_LOOKUP: object_class = 3;
pub const OBJECTS_DIRECTORY: object_class = 4;
pub const OBJECTS_MOUNT: object_class = 5;
pub const OBJECTS_ADDRESS: object_class = 6;
pub const OBJECTS_SIGNAL: object_class = 7;
pub const OBJECTS_IPC: object_class = 8;
pub const OBJECTS_TIME: object_class = 9;
pub const OBJECTS_OPEN_CHANGES: object_class = 10;
pub const OBJECTS_IPC_SEMAPHORES: object_class = 12;
pub const OBJECTS_IPC_MESSAGES: object_class = 13;
pub const OBJECTS_IPC_MEMORY: object_class = 14;
pub const OBJECTS_CONTROL: object_class = 16;
pub const OBJECTS_BEFORE: object_class = 15;
pub type object_class = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct object_calls {
    pub epoch: __u64,
    pub class: [[__u8; 2048usize]; 2usize],
    pub operations: [__u8; 256usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of object_calls"][::core::mem::size_of::<object_calls>() - 4360usize];
    ["Alignment of object_calls"][::core::mem::align_of::<object_calls>() - 8usize];
    ["Offset of field: object_calls::epoch"][::core::mem::offset_of!(object_calls, epoch) - 0usize];
    ["Offset of field: object_calls::class"][::core::mem::offset_of!(object_calls, class) - 8usize];
    ["Offset of field: object_calls::operations"]
        [::core::mem::offset_of!(object_calls, operations) - 4104usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct uring_control {
    pub watched: [__u64; 4usize],
    pub known: [__u64; 4usize],
    pub creds_bit: __u32,
    pub skip_bit: __u32,
    pub async_bit: __u32,
    pub unused: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of uring_control"][::core::mem::size_of::<uring_control>() - 80usize];
    ["Alignment of uring_control"][::core::mem::align_of::<uring_control>() - 8usize];
    ["Offset of field: uring_control::watched"]
        [::core::mem::offset_of!(uring_control, watched) - 0usize];
    ["Offset of field: uring_control::known"]
        [::core::mem::offset_of!(uring_control, known) - 32usize];
    ["Offset of field: uring_control::creds_bit"]
        [::core::mem::offset_of!(uring_control, creds_bit) - 64usize];
    ["Offset of field: uring_control::skip_bit"]
        [::core::mem::offset_of!(uring_control, skip_bit) - 68usize];
    ["Offset of field: uring_control::async_bit"]
        [::core::mem::offset_of!(uring_control, async_bit) - 72usize];
    ["Offset of field: uring_control::unused"]
        [::core::mem::offset_of!(uring_control, unused) - 76usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct maker {
    pub id: __u32,
    pub is_namespace: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of maker"][::core::mem::size_of::<maker>() - 8usize];
    ["Alignment of maker"][::core::mem::align_of::<maker>() - 4usize];
    ["Offset of field: maker::id"][::core::mem::offset_of!(maker, id) - 0usize];
    ["Offset of field: maker::is_namespace"][::core::mem::offset_of!(maker, is_namespace) - 4usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct uring_request {
    pub id: __u64,
    pub ctx: __u64,
    pub user_data: __u64,
    pub rule: __u32,
    pub tgid: __u32,
    pub opens: __u8,
    pub silent: __u8,
    pub has_file: __u8,
    pub has_result: __u8,
    pub pad: [__u8; 4usize],
    pub maker: maker,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of uring_request"][::core::mem::size_of::<uring_request>() - 48usize];
    ["Alignment of uring_request"][::core::mem::align_of::<uring_request>() - 8usize];
    ["Offset of field: uring_request::id"][::core::mem::offset_of!(uring_request, id) - 0usize];
    ["Offset of field: uring_request::ctx"][::core::mem::offset_of!(uring_request, ctx) - 8usize];
    ["Offset of field: uring_request::user_data"]
        [::core::mem::offset_of!(uring_request, user_data) - 16usize];
    ["Offset of field: uring_request::rule"]
        [::core::mem::offset_of!(uring_request, rule) - 24usize];
    ["Offset of field: uring_request::tgid"]
        [::core::mem::offset_of!(uring_request, tgid) - 28usize];
    ["Offset of field: uring_request::opens"]
        [::core::mem::offset_of!(uring_request, opens) - 32usize];
    ["Offset of field: uring_request::silent"]
        [::core::mem::offset_of!(uring_request, silent) - 33usize];
    ["Offset of field: uring_request::has_file"]
        [::core::mem::offset_of!(uring_request, has_file) - 34usize];
    ["Offset of field: uring_request::has_result"]
        [::core::mem::offset_of!(uring_request, has_result) - 35usize];
    ["Offset of field: uring_request::pad"][::core::mem::offset_of!(uring_request, pad) - 36usize];
    ["Offset of field: uring_request::maker"]
        [::core::mem::offset_of!(uring_request, maker) - 40usize];
};
pub const URING_PREP: uring_part = 0;
pub const URING_ISSUE: uring_part = 1;
pub const URING_FAILURE: uring_part = 2;
pub type uring_part = ::core::ffi::c_uint;
pub const VERDICT_DROP: verdict = 0;
pub const VERDICT_RECORD: verdict = 1;
pub const VERDICT_UNDECIDED: verdict = 2;
pub type verdict = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct call_key {
    pub arch: __u32,
    pub nr: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of call_key"][::core::mem::size_of::<call_key>() - 8usize];
    ["Alignment of call_key"][::core::mem::align_of::<call_key>() - 4usize];
    ["Offset of field: call_key::arch"][::core::mem::offset_of!(call_key, arch) - 0usize];
    ["Offset of field: call_key::nr"][::core::mem::offset_of!(call_key, nr) - 4usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct value_key {
    pub call: call_key,
    pub value: __u64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of value_key"][::core::mem::size_of::<value_key>() - 16usize];
    ["Alignment of value_key"][::core::mem::align_of::<value_key>() - 8usize];
    ["Offset of field: value_key::call"][::core::mem::offset_of!(value_key, call) - 0usize];
    ["Offset of field: value_key::value"][::core::mem::offset_of!(value_key, value) - 8usize];
};
pub const LEARN_MISSED_CALLS: learn_missed = 0;
pub const LEARN_MISSED_VALUES: learn_missed = 1;
pub const LEARN_MISSED_TASKS: learn_missed = 2;
pub const LEARN_MISSED_KINDS: learn_missed = 3;
pub type learn_missed = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct follow_state {
    pub missed: [__u64; 3usize],
    pub alive: __s64,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of follow_state"][::core::mem::size_of::<follow_state>() - 32usize];
    ["Alignment of follow_state"][::core::mem::align_of::<follow_state>() - 8usize];
    ["Offset of field: follow_state::missed"]
        [::core::mem::offset_of!(follow_state, missed) - 0usize];
    ["Offset of field: follow_state::alive"]
        [::core::mem::offset_of!(follow_state, alive) - 24usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct follow_options {
    pub cgroup_level: __u32,
    pub outer_mount_ns: __u32,
    pub cgroup_path: [::core::ffi::c_char; 256usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of follow_options"][::core::mem::size_of::<follow_options>() - 264usize];
    ["Alignment of follow_options"][::core::mem::align_of::<follow_options>() - 4usize];
    ["Offset of field: follow_options::cgroup_level"]
        [::core::mem::offset_of!(follow_options, cgroup_level) - 0usize];
    ["Offset of field: follow_options::outer_mount_ns"]
        [::core::mem::offset_of!(follow_options, outer_mount_ns) - 4usize];
    ["Offset of field: follow_options::cgroup_path"]
        [::core::mem::offset_of!(follow_options, cgroup_path) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct denial_key {
    pub call: call_key,
    pub args: [__u64; 6usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of denial_key"][::core::mem::size_of::<denial_key>() - 56usize];
    ["Alignment of denial_key"][::core::mem::align_of::<denial_key>() - 8usize];
    ["Offset of field: denial_key::call"][::core::mem::offset_of!(denial_key, call) - 0usize];
    ["Offset of field: denial_key::args"][::core::mem::offset_of!(denial_key, args) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct denial_value {
    pub count: __u64,
    pub args: [__u64; 6usize],
    pub ip: __u64,
    pub tid: __u32,
    pub comm: [::core::ffi::c_char; 16usize],
    pub padding: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of denial_value"][::core::mem::size_of::<denial_value>() - 88usize];
    ["Alignment of denial_value"][::core::mem::align_of::<denial_value>() - 8usize];
    ["Offset of field: denial_value::count"][::core::mem::offset_of!(denial_value, count) - 0usize];
    ["Offset of field: denial_value::args"][::core::mem::offset_of!(denial_value, args) - 8usize];
    ["Offset of field: denial_value::ip"][::core::mem::offset_of!(denial_value, ip) - 56usize];
    ["Offset of field: denial_value::tid"][::core::mem::offset_of!(denial_value, tid) - 64usize];
    ["Offset of field: denial_value::comm"][::core::mem::offset_of!(denial_value, comm) - 68usize];
    ["Offset of field: denial_value::padding"]
        [::core::mem::offset_of!(denial_value, padding) - 84usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct seccomp_record {
    pub tgid: __u32,
    pub tid: __u32,
    pub filters: __u32,
    pub native_bytes: __u32,
    pub compat_bytes: __u32,
    pub pad: __u32,
    pub native: [__u64; 16usize],
    pub compat: [__u64; 16usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of seccomp_record"][::core::mem::size_of::<seccomp_record>() - 280usize];
    ["Alignment of seccomp_record"][::core::mem::align_of::<seccomp_record>() - 8usize];
    ["Offset of field: seccomp_record::tgid"]
        [::core::mem::offset_of!(seccomp_record, tgid) - 0usize];
    ["Offset of field: seccomp_record::tid"][::core::mem::offset_of!(seccomp_record, tid) - 4usize];
    ["Offset of field: seccomp_record::filters"]
        [::core::mem::offset_of!(seccomp_record, filters) - 8usize];
    ["Offset of field: seccomp_record::native_bytes"]
        [::core::mem::offset_of!(seccomp_record, native_bytes) - 12usize];
    ["Offset of field: seccomp_record::compat_bytes"]
        [::core::mem::offset_of!(seccomp_record, compat_bytes) - 16usize];
    ["Offset of field: seccomp_record::pad"]
        [::core::mem::offset_of!(seccomp_record, pad) - 20usize];
    ["Offset of field: seccomp_record::native"]
        [::core::mem::offset_of!(seccomp_record, native) - 24usize];
    ["Offset of field: seccomp_record::compat"]
        [::core::mem::offset_of!(seccomp_record, compat) - 152usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct audited_task {
    pub tgid: __u32,
    pub tid: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of audited_task"][::core::mem::size_of::<audited_task>() - 8usize];
    ["Alignment of audited_task"][::core::mem::align_of::<audited_task>() - 4usize];
    ["Offset of field: audited_task::tgid"][::core::mem::offset_of!(audited_task, tgid) - 0usize];
    ["Offset of field: audited_task::tid"][::core::mem::offset_of!(audited_task, tid) - 4usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct test_call {
    pub fact: [__u64; 30usize],
    pub args: [__u64; 6usize],
    pub ret: __s64,
    pub absent: __u32,
    pub given: __u32,
    pub arch: __u32,
    pub pad: __u32,
    pub spec: table_spec,
    pub what: table_call,
    pub marks: marks,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of test_call"][::core::mem::size_of::<test_call>() - 824usize];
    ["Alignment of test_call"][::core::mem::align_of::<test_call>() - 8usize];
    ["Offset of field: test_call::fact"][::core::mem::offset_of!(test_call, fact) - 0usize];
    ["Offset of field: test_call::args"][::core::mem::offset_of!(test_call, args) - 240usize];
    ["Offset of field: test_call::ret"][::core::mem::offset_of!(test_call, ret) - 288usize];
    ["Offset of field: test_call::absent"][::core::mem::offset_of!(test_call, absent) - 296usize];
    ["Offset of field: test_call::given"][::core::mem::offset_of!(test_call, given) - 300usize];
    ["Offset of field: test_call::arch"][::core::mem::offset_of!(test_call, arch) - 304usize];
    ["Offset of field: test_call::pad"][::core::mem::offset_of!(test_call, pad) - 308usize];
    ["Offset of field: test_call::spec"][::core::mem::offset_of!(test_call, spec) - 312usize];
    ["Offset of field: test_call::what"][::core::mem::offset_of!(test_call, what) - 328usize];
    ["Offset of field: test_call::marks"][::core::mem::offset_of!(test_call, marks) - 344usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct test_verdict {
    pub verdict: __u32,
    pub rule: __u32,
    pub nundecided: __u32,
    pub pad: __u32,
    pub undecided: [tarsier_candidates; 64usize],
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of test_verdict"][::core::mem::size_of::<test_verdict>() - 1040usize];
    ["Alignment of test_verdict"][::core::mem::align_of::<test_verdict>() - 8usize];
    ["Offset of field: test_verdict::verdict"]
        [::core::mem::offset_of!(test_verdict, verdict) - 0usize];
    ["Offset of field: test_verdict::rule"][::core::mem::offset_of!(test_verdict, rule) - 4usize];
    ["Offset of field: test_verdict::nundecided"]
        [::core::mem::offset_of!(test_verdict, nundecided) - 8usize];
    ["Offset of field: test_verdict::pad"][::core::mem::offset_of!(test_verdict, pad) - 12usize];
    ["Offset of field: test_verdict::undecided"]
        [::core::mem::offset_of!(test_verdict, undecided) - 16usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct test_gate {
    pub gate: gate,
    pub ret: __s64,
    pub interpreted: __u32,
    pub own: [__u32; 2usize],
    pub pad: __u32,
}
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of test_gate"][::core::mem::size_of::<test_gate>() - 56usize];
    ["Alignment of test_gate"][::core::mem::align_of::<test_gate>() - 8usize];
    ["Offset of field: test_gate::gate"][::core::mem::offset_of!(test_gate, gate) - 0usize];
    ["Offset of field: test_gate::ret"][::core::mem::offset_of!(test_gate, ret) - 32usize];
    ["Offset of field: test_gate::interpreted"]
        [::core::mem::offset_of!(test_gate, interpreted) - 40usize];
    ["Offset of field: test_gate::own"][::core::mem::offset_of!(test_gate, own) - 44usize];
    ["Offset of field: test_gate::pad"][::core::mem::offset_of!(test_gate, pad) - 52usize];
};
