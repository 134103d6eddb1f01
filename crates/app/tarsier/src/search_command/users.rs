//! Users and groups of this machine, as getpwnam(3) and its relatives know them.

use query::MachineNames;
use std::collections::HashMap;
use std::ffi::CString;
use std::mem::MaybeUninit;
use std::sync::OnceLock;

/// Size of the buffer for an entry's texts; users with longer entries count as unknown.
const TEXT_BYTES: usize = 1 << 16;

macro_rules! lookup {
    ($function:ident, $entry:ty, $key:expr) => {{
        let mut entry = MaybeUninit::<$entry>::zeroed();
        let mut text = vec![0; TEXT_BYTES];
        let mut found = std::ptr::null_mut();
        // SAFETY: all pointers are to valid objects, and the buffer has the length that is given.
        // The entry that is found is `entry`, whose texts are in `text`.
        unsafe {
            let (into, out) = (entry.as_mut_ptr(), text.as_mut_ptr());
            let _ = libc::$function($key, into, out, text.len(), &mut found);
            (!found.is_null()).then(|| (entry.assume_init(), text))
        }
    }};
}

/// The id of a user by name.
pub(crate) fn user_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    lookup!(getpwnam_r, libc::passwd, name.as_ptr()).map(|(entry, _)| entry.pw_uid)
}

/// The id of a group by name.
pub(crate) fn group_id(name: &str) -> Option<u32> {
    let name = CString::new(name).ok()?;
    lookup!(getgrnam_r, libc::group, name.as_ptr()).map(|(entry, _)| entry.gr_gid)
}

/// The name of a user by id.
pub(crate) fn user_name(id: u32) -> Option<Vec<u8>> {
    let (entry, _text) = lookup!(getpwuid_r, libc::passwd, id)?;
    // SAFETY: the name is a C string in `_text`, which lives until the end of this function.
    Some(
        unsafe { std::ffi::CStr::from_ptr(entry.pw_name) }
            .to_bytes()
            .to_vec(),
    )
}

/// The name of a group by id.
pub(crate) fn group_name(id: u32) -> Option<Vec<u8>> {
    let (entry, _text) = lookup!(getgrgid_r, libc::group, id)?;
    // SAFETY: the name is a C string in `_text`, which lives until the end of this function.
    Some(
        unsafe { std::ffi::CStr::from_ptr(entry.gr_name) }
            .to_bytes()
            .to_vec(),
    )
}

/// Protocols by number, as /etc/protocols names them.
fn protocols() -> &'static HashMap<i32, Vec<u8>> {
    static PROTOCOLS: OnceLock<HashMap<i32, Vec<u8>>> = OnceLock::new();

    PROTOCOLS.get_or_init(|| {
        let text = std::fs::read_to_string("/etc/protocols").unwrap_or_default();
        let mut known = HashMap::new();
        for line in text.lines() {
            let mut words = line
                .split('#')
                .next()
                .unwrap_or_default()
                .split_whitespace();
            if let (Some(name), Some(Ok(number))) = (words.next(), words.next().map(str::parse)) {
                known.entry(number).or_insert_with(|| name.into());
            }
        }
        known
    })
}

/// The name of a network interface.
fn interface(number: u32) -> Option<Vec<u8>> {
    use rustix::net::{netdevice, socket, AddressFamily, SocketType};
    let any = socket(AddressFamily::UNIX, SocketType::DGRAM, None).ok()?;
    let name = netdevice::index_to_name(&any, number).ok()?;
    Some(name.into_bytes())
}

/// Names that this machine has for ids.
pub(crate) fn names() -> MachineNames {
    MachineNames {
        user: user_name,
        group: group_name,
        protocol: |number| protocols().get(&number).cloned(),
        interface,
        user_id: |name| user_id(std::str::from_utf8(name).ok()?),
    }
}
