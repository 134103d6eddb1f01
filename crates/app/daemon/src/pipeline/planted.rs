//! Calls that tests plant, like an attacker whose code runs in the daemon: only in builds for tests (debug assertions).

use crate::stderr::say;
use std::io;

/// Names the calls to make, separated by commas.
const VARIABLE: &str = "TARSIER_PLANTED";

/// Makes the planted calls, and says what came of each.
pub(crate) fn make() {
    let names = std::env::var(VARIABLE).unwrap_or_default();
    for name in names.split(',').filter(|name| !name.is_empty()) {
        match call(name) {
            Ok(()) => say!("tarsier: planted {name}: possible"),
            Err(error) => say!("tarsier: planted {name}: {error}"),
        }
    }
}

fn call(name: &str) -> io::Result<()> {
    match name {
        "network" => drop(std::net::UdpSocket::bind("127.0.0.1:0")?),
        "shadow" => drop(std::fs::File::options().write(true).open("/etc/shadow")?),
        _ => system_call(name)?,
    }
    Ok(())
}

fn system_call(name: &str) -> io::Result<()> {
    let argv = [
        c"/bin/sh".as_ptr(),
        c"-c".as_ptr(),
        c"true".as_ptr(),
        std::ptr::null(),
    ];

    // SAFETY: all pointers are to texts and lists that end with null; a child would end at once.
    let result = unsafe {
        match name {
            "execve" => libc::syscall(libc::SYS_execve, argv[0], argv.as_ptr(), &raw const argv[3]),
            "process" => {
                let pid = libc::syscall(libc::SYS_clone, libc::SIGCHLD, 0, 0, 0, 0);
                if pid == 0 {
                    libc::_exit(0);
                }
                pid
            }
            "ptrace" => libc::syscall(libc::SYS_ptrace, libc::PTRACE_SEIZE, 1, 0, 0),
            "mount" => libc::syscall(
                libc::SYS_mount,
                c"none".as_ptr(),
                c"/nonexistent".as_ptr(),
                c"tmpfs".as_ptr(),
                0,
                0,
            ),
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        }
    };

    match result {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
