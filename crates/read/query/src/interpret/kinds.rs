//! Types of fields, by record type and name.

use abi::record_type as kinds;

/// Kind of value that a field has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // named after the fields and arguments that have them
pub enum FieldType {
    A0,
    A1,
    A2,
    A3,
    Address,
    Arch,
    CapBitmap,
    Capability,
    Errno,
    Escaped,
    EscapedFile,
    EscapedKey,
    Exit,
    FanInfo,
    FanType,
    Fanotify,
    Flags,
    Gid,
    Hook,
    IcmpType,
    IoctlRequest,
    List,
    MacLabel,
    MacProtocol,
    Mmap,
    Mode,
    ModeShort,
    MulticastGroup,
    NetAction,
    NetfilterProtocol,
    OpenFlags,
    Perm,
    Personality,
    Proctitle,
    Promiscuous,
    Protocol,
    Resolve,
    Seccomp,
    Session,
    Signal,
    Sockaddr,
    Success,
    Syscall,
    Trust,
    TtyData,
    Uid,
    Unclassified,
}

/// The type of the field `name` of a record of type `kind`. Some depend on the value.
pub fn field_type(kind: i32, name: &[u8], value: &[u8]) -> FieldType {
    use FieldType::*;

    let is_text = value.first() == Some(&b'"');
    let is_hex = value.iter().all(u8::is_ascii_hexdigit);
    match (kind, name) {
        (kinds::EXECVE, [b'a', ..]) if name != b"argc" && !has(name, b"_len") => Escaped,
        (kinds::AVC, b"saddr") => Unclassified,
        (kinds::USER_TTY, b"msg") => Escaped,
        (kinds::NETFILTER_PKT, b"saddr") => Address,
        (_, b"acct") if is_text || is_hex => Escaped,
        (_, b"acct") => Unclassified,
        (kinds::PATH, b"flags") => Flags,
        (kinds::MQ_OPEN, b"mode") => ModeShort,
        (kinds::CRYPTO_KEY_USER, b"fp") => Unclassified,
        (kinds::ADD_GROUP | kinds::GRP_MGMT | kinds::DEL_GROUP, b"id") => Gid,
        (kinds::TRUSTED_APP, _) => of_application(name, value),
        (kinds::KERN_MODULE, b"name") => Escaped,
        _ => by_name(name),
    }
}

/// The type of an application's field, guessed from its value, which may be anything.
fn of_application(name: &[u8], value: &[u8]) -> FieldType {
    let is_hex = value.iter().all(u8::is_ascii_hexdigit);
    match by_name(name) {
        FieldType::Unclassified if value.first() == Some(&b'"') => FieldType::Escaped,
        FieldType::Unclassified if is_hex && name != b"pid" => FieldType::Escaped,
        known => known,
    }
}

fn has(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

fn by_name(name: &[u8]) -> FieldType {
    use FieldType::*;

    match name {
        b"auid" | b"uid" | b"euid" | b"suid" | b"fsuid" | b"ouid" | b"oauid" | b"old-auid"
        | b"iuid" | b"id" | b"inode_uid" | b"sauid" | b"obj_uid" => Uid,
        b"obj_gid" | b"gid" | b"egid" | b"sgid" | b"fsgid" | b"ogid" | b"igid" | b"inode_gid"
        | b"new_gid" => Gid,
        b"path" | b"comm" | b"exe" | b"file" | b"watch" | b"cwd" | b"cmd" | b"dir" | b"vm"
        | b"old-chardev" | b"new-chardev" | b"old-disk" | b"new-disk" | b"old-fs" | b"new-fs"
        | b"old-net" | b"new-net" | b"device" | b"cgroup" | b"apparmor" | b"operation"
        | b"denied_mask" | b"info" | b"profile" | b"requested_mask" | b"old-rng" | b"new-rng"
        | b"ocomm" | b"grp" | b"new_group" | b"invalid_context" | b"sw" | b"root_dir" => Escaped,
        b"cap_pi" | b"cap_pe" | b"cap_pp" | b"cap_pa" | b"cap_fi" | b"cap_fp" | b"fp" | b"fi"
        | b"old_pp" | b"old_pi" | b"old_pe" | b"old_pa" | b"new_pp" | b"new_pi" | b"new_pe"
        | b"pp" | b"pi" | b"pe" | b"pa" => CapBitmap,
        b"subj" | b"obj" | b"scontext" | b"tcontext" | b"vm-ctx" | b"img-ctx" => MacLabel,
        b"syscall" => Syscall,
        b"arch" => Arch,
        b"exit" => Exit,
        b"name" => EscapedFile,
        b"key" => EscapedKey,
        b"perm" | b"perm_mask" => Perm,
        b"mode" => Mode,
        b"saddr" => Sockaddr,
        b"prom" | b"old_prom" => Promiscuous,
        b"capability" => Capability,
        b"res" | b"result" => Success,
        b"a0" => A0,
        b"a1" => A1,
        b"a2" => A2,
        b"a3" => A3,
        b"sig" | b"sigev_signo" => Signal,
        b"list" => List,
        b"data" => TtyData,
        b"ses" => Session,
        b"family" => NetfilterProtocol,
        b"icmptype" => IcmpType,
        b"proto" => Protocol,
        b"addr" => Address,
        b"per" => Personality,
        b"code" => Seccomp,
        b"oflag" => OpenFlags,
        b"flags" => Mmap,
        b"proctitle" => Proctitle,
        b"hook" => Hook,
        b"action" => NetAction,
        b"macproto" => MacProtocol,
        b"ioctlcmd" => IoctlRequest,
        b"resp" => Fanotify,
        b"nl-mcgrp" => MulticastGroup,
        b"resolve" => Resolve,
        b"uring_op" => Syscall,
        b"subj_trust" | b"obj_trust" => Trust,
        b"fan_type" => FanType,
        b"fan_info" => FanInfo,
        b"errno" => Errno,
        _ => Unclassified,
    }
}
