//! Serves connections as systemd does for a socket unit with `Accept=yes`.

use rustix::net::{
    accept_with, bind, listen, socket_with, AddressFamily, SocketAddrUnix, SocketFlags, SocketType,
};
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// Listens at `path` until this process ends, and starts `program` with `args` for each connection, which is its
/// descriptor 3. Descriptors of one program are not open in another.
///
/// # Panics
/// Nobody can listen there.
pub fn serve_connections(path: &Path, program: &Path, args: &[&OsStr]) {
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).expect("a socket");
    let address = SocketAddrUnix::new(path).expect("a short path");
    bind(&socket, &address).expect("bound");
    listen(&socket, 8).expect("listening");
    let program = program.to_owned();
    let args: Vec<_> = args.iter().map(|arg| arg.to_os_string()).collect();

    std::thread::spawn(move || loop {
        let connection = accept_with(&socket, SocketFlags::CLOEXEC).expect("a connection");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "exec \"$0\" \"$@\" 3<&0 0</dev/null"]);
        shell.arg(&program).args(&args);
        shell.stdin(Stdio::from(connection)).stdout(Stdio::null());
        let mut child = shell.spawn().expect("a shell");
        std::thread::spawn(move || child.wait());
    });
}
