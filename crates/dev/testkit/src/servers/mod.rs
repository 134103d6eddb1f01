//! Servers that tests of the sender send to: real ones, fetched by `scripts/engines`, on loopback. A test of a server that
//! is not there is skipped.

use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

mod kafka;
mod nats;
mod otelcol;

pub use kafka::{Kafka, PARTITIONS, PARTITION_OF_WEB1};
pub use nats::Nats;
pub use otelcol::Collector;

/// A server to send to, and ways to control and ask it.
pub trait Engine: Send {
    /// Settings of a sender to it.
    fn settings(&self) -> String;

    /// Starts it, after [`Engine::kill`] with what it had stored.
    fn start(&mut self);

    /// kill -9, where the engine keeps what it has acknowledged.
    fn kill(&mut self);

    /// The text of every message that it has stored, in order, with positions before it: lines
    /// `from=… to=… events=… filtered=… kind=…`.
    fn stored(&mut self) -> String;
}

/// Path at which `scripts/engines` has put `name`; if it is not there, says why a test is skipped.
pub fn engine(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target/engines");
    let dir = std::env::var_os("TARSIER_ENGINES").map_or(root, PathBuf::from);
    let path = dir.join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: tests with {name}: it is not there; scripts/engines fetches it");
    None
}

/// A port that is free now.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A server process that is ended with its owner.
pub struct Server(Option<Child>);

impl Server {
    /// No process.
    pub fn none() -> Server {
        Server(None)
    }

    /// Starts the command; what it says is appended to `log`.
    pub fn start(command: &mut Command, log: &Path) -> Server {
        let file = File::options()
            .create(true)
            .append(true)
            .open(log)
            .expect("a file");
        let errors = file.try_clone().expect("a file");
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(errors)
            .spawn()
            .expect("start a server");
        Server(Some(child))
    }

    /// SIGTERM, and waits for the end.
    pub fn end(&mut self) {
        if let Some(child) = &mut self.0 {
            let pid = rustix::process::Pid::from_child(child);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            crate::wait::await_that("the server ends", || {
                child.try_wait().is_ok_and(|status| status.is_some())
            });
        }
        self.kill();
    }

    /// SIGKILL, and waits for the end.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until something listens on a port of loopback.
pub fn await_port(port: u16) {
    crate::wait::await_that("the server listens", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
}
