//! The users of this machine.

/// Names and ids of all users, in the order of getpwent(3). No other thread may ask for users meanwhile.
pub(crate) fn all() -> Vec<(Vec<u8>, u32)> {
    let mut users = Vec::new();
    // SAFETY: the program has one thread here. Each entry, and the name it points to, are valid until the next call.
    unsafe {
        libc::setpwent();
        loop {
            let entry = libc::getpwent();
            if entry.is_null() {
                break;
            }
            let name = std::ffi::CStr::from_ptr((*entry).pw_name);
            users.push((name.to_bytes().to_vec(), (*entry).pw_uid));
        }
        libc::endpwent();
    }
    users
}
