//! ENRICHED: names for the numbers of a record, as auditd 3.0.9 appends them.
//!
//! Sources: format_enrich() of src/auditd-event.c, parse_up_record() of auparse/ellist.c, and auparse/typetab.h. The
//! body is split at blanks; each `name=value` whose name has the type user, group, arch, syscall or socket address is
//! interpreted, in order. Two things differ on purpose: a user or group id that is not a number becomes `?` (`root` in
//! auditd), and nothing is cut at 8970 bytes.

use abi::Arch;

use crate::{put, sockaddr, text, Names, RecordType};

#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldType {
    User,
    Group,
    Arch,
    Syscall,
    Sockaddr,
}

fn field_type(kind: RecordType, name: &[u8]) -> Option<FieldType> {
    if !matches!(name, [.., b'd' | b'h' | b'l' | b'r']) {
        return None;
    }

    Some(match name {
        b"auid" | b"uid" | b"euid" | b"suid" | b"fsuid" | b"ouid" | b"oauid" | b"old-auid"
        | b"iuid" | b"inode_uid" | b"sauid" | b"obj_uid" => FieldType::User,
        b"gid" | b"egid" | b"sgid" | b"fsgid" | b"ogid" | b"igid" | b"inode_gid" | b"new_gid"
        | b"obj_gid" => FieldType::Group,
        b"id" => match kind {
            RecordType::ADD_GROUP | RecordType::DEL_GROUP | RecordType::GRP_MGMT => {
                FieldType::Group
            }
            _ => FieldType::User,
        },
        b"arch" => FieldType::Arch,
        b"syscall" => FieldType::Syscall,
        b"saddr" if kind != RecordType::AVC && kind != RecordType::NETFILTER_PKT => {
            FieldType::Sockaddr
        }
        _ => return None,
    })
}

/// Whether records of this type never have a field to interpret.
fn has_nothing(kind: RecordType) -> bool {
    matches!(
        kind,
        RecordType::CWD
            | RecordType::EXECVE
            | RecordType::PROCTITLE
            | RecordType::MMAP
            | RecordType::FD_PAIR
            | RecordType::SOCKETCALL
            | RecordType::CAPSET
            | RecordType::BPRM_FCAPS
            | RecordType::KERN_MODULE
            | RecordType::OPENAT2
    )
}

/// Appends the separator and the interpretations of the body that starts at `start` in `out`, if it has any.
pub(crate) fn append(out: &mut Vec<u8>, start: usize, kind: RecordType, names: &mut dyn Names) {
    if has_nothing(kind) {
        return;
    }

    let end = out.len();
    let mut arch = None;
    let mut shown = Shown {
        user: None,
        group: None,
    };
    let mut at = start;

    while at < end {
        let token_len = memchr::memchr(b' ', &out[at..end]).unwrap_or(end - at);
        let token = at..at + token_len;
        at += token_len + 1;
        let Some((name, value)) = split(out, token) else {
            continue;
        };
        let Some(field) = field_type(kind, &out[name.clone()]) else {
            continue;
        };
        let Some(value) = trimmed(out, value) else {
            continue;
        };
        out.push(if out.len() == end {
            text::SEPARATOR
        } else {
            b' '
        });
        let name_at = out.len();
        out.extend_from_within(name);
        out[name_at..].make_ascii_uppercase();
        out.push(b'=');
        match field {
            FieldType::User => {
                push_name(out, value, &mut shown.user, |id, out| {
                    push_id(out, id, asked(id).and_then(|id| names.user(id)))
                });
            }
            FieldType::Group => {
                push_name(out, value, &mut shown.group, |id, out| {
                    push_id(out, id, asked(id).and_then(|id| names.group(id)))
                });
            }
            FieldType::Arch => arch = push_arch(out, value),
            FieldType::Syscall => push_syscall(out, start..end, value, arch),
            FieldType::Sockaddr => push_sockaddr(out, value),
        }
    }
}

type Span = core::ops::Range<usize>;

/// The ids interpreted last, and the place of their names in the line: most ids of a record are the same.
struct Shown {
    user: Option<(u32, Span)>,
    group: Option<(u32, Span)>,
}

/// Splits a token into name and value as parse_up_record() does, without `msg='` or a bracket before the name.
fn split(text: &[u8], token: Span) -> Option<(Span, Span)> {
    let mut name_at = token.start;
    if text[token.clone()].starts_with(b"msg='") {
        name_at += 5;
    }
    let equals = name_at + memchr::memchr(b'=', &text[name_at..token.end])?;
    if text[name_at] == b'(' {
        name_at += 1;
    }
    (name_at <= equals).then_some((name_at..equals, equals + 1..token.end))
}

/// The value without the punctuation that parse_up_record() removes from its end; `None` if nothing is left.
fn trimmed(text: &[u8], mut value: Span) -> Option<Span> {
    for mark in *b":,')" {
        if text[value.clone()].ends_with(&[mark]) {
            value.end -= 1;
        }
    }
    (!value.is_empty()).then_some(value)
}

/// Appends `"NAME"`, or hex if the name has a byte that is not allowed in quotes (audit_encode_nv_string()).
fn push_name(
    out: &mut Vec<u8>,
    value: Span,
    shown: &mut Option<(u32, Span)>,
    name: impl FnOnce(u32, &mut Vec<u8>),
) {
    let Some(id) = text::leading_number(&out[value]) else {
        return put::text(out, "\"?\"");
    };

    match shown {
        Some((last, span)) if *last == id => return out.extend_from_within(span.clone()),
        _ => {}
    }

    let start = out.len();
    name(id, out);
    let end = out.len();
    let odd = |&byte: &u8| byte == b'"' || !(0x21..0x7f).contains(&byte);
    if out[start..].iter().any(odd) {
        for place in start..end {
            let byte = out[place];
            put::hex_bytes(out, &[byte]);
        }
        out.drain(start..end);
    } else {
        out.push(b'"');
        out.insert(start, b'"');
    }

    *shown = Some((id, start..out.len()));
}

/// The id, if its name has to be looked up.
fn asked(id: u32) -> Option<u32> {
    (id != 0 && id != u32::MAX).then_some(id)
}

fn push_id(out: &mut Vec<u8>, id: u32, name: Option<&str>) {
    match (id, name) {
        (0, _) => put::text(out, "root"),
        (u32::MAX, _) => put::text(out, "unset"),
        (_, Some(name)) => put::text(out, name),
        (_, None) => {
            put::text(out, "unknown(");
            put::signed(out, (id as i32).into());
            out.push(b')');
        }
    }
}

fn push_arch(out: &mut Vec<u8>, value: Span) -> Option<Arch> {
    let number = text::number(&out[value.clone()], 16);
    let arch = number
        .and_then(|number| u32::try_from(number).ok())
        .and_then(Arch::from_audit_arch);
    match arch {
        Some(arch) => put::text(out, arch.name()),
        None => {
            put::text(out, "unknown-elf-type(");
            out.extend_from_within(value);
            out.push(b')');
        }
    }

    arch
}

fn push_syscall(out: &mut Vec<u8>, body: Span, value: Span, arch: Option<Arch>) {
    let number = text::leading_number(&out[value]).unwrap_or(u32::MAX);
    let arch = arch.unwrap_or(Arch::native());
    let Some(name) = abi::syscall_name(arch, number) else {
        put::text(out, "unknown-syscall(");
        put::signed(out, (number as i32).into());
        return out.push(b')');
    };

    put::text(out, name);
    let inner = match name {
        "socketcall" => socketcall_name(first_argument(&out[body])),
        "ipc" => ipc_name(first_argument(&out[body])),
        _ => None,
    };

    if let Some(inner) = inner {
        out.push(b'(');
        put::text(out, inner);
        out.push(b')');
    }
}

/// The value of a0 of a SYSCALL record.
fn first_argument(body: &[u8]) -> Option<u64> {
    text::fields(body)
        .find(|field| field.name == b"a0")
        .and_then(|field| text::number(field.value, 16))
}

/// Name of a function of socketcall(2): linux/net.h.
pub(crate) fn socketcall_name(call: Option<u64>) -> Option<&'static str> {
    const NAMES: [&str; 20] = [
        "socket",
        "bind",
        "connect",
        "listen",
        "accept",
        "getsockname",
        "getpeername",
        "socketpair",
        "send",
        "recv",
        "sendto",
        "recvfrom",
        "shutdown",
        "setsockopt",
        "getsockopt",
        "sendmsg",
        "recvmsg",
        "accept4",
        "recvmmsg",
        "sendmmsg",
    ];

    NAMES
        .get(usize::try_from(call?).ok()?.checked_sub(1)?)
        .copied()
}

/// Name of a function of ipc(2): linux/ipc.h.
fn ipc_name(call: Option<u64>) -> Option<&'static str> {
    Some(match call? {
        1 => "semop",
        2 => "semget",
        3 => "semctl",
        4 => "semtimedop",
        11 => "msgsnd",
        12 => "msgrcv",
        13 => "msgget",
        14 => "msgctl",
        21 => "shmat",
        22 => "shmdt",
        23 => "shmget",
        24 => "shmctl",
        _ => return None,
    })
}

fn push_sockaddr(out: &mut Vec<u8>, value: Span) {
    let mut bytes = [0; 128];
    let mut len = 0;
    for (byte, pair) in bytes.iter_mut().zip(out[value.clone()].chunks_exact(2)) {
        let Some(read) = text::hex_byte(pair) else {
            break;
        };
        *byte = read;
        len += 1;
    }

    if len == 0 || (len < 128 && len * 2 < value.len()) {
        put::text(out, "malformed-host(");
        out.extend_from_within(value);
        return out.push(b')');
    }

    sockaddr::interpret(out, &bytes[..len]);
}
