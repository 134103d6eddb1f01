//! Tells the service manager that the daemon is ready, reloads, stops, and is alive.
//!
//! The protocol of sd_notify(3): datagrams of `KEY=VALUE` lines to the socket that `NOTIFY_SOCKET`
//! names. The daemon does not wait to send one: a datagram that finds the socket full is left out.

use crate::clock::monotonic_ns;
use crate::protocol::beginning;
use std::env::VarError;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;
use thiserror::Error;

/// The manager's socket could not be used.
#[derive(Debug, Error)]
pub(crate) enum ServiceError {
    /// Neither a path nor an abstract name.
    #[error("NOTIFY_SOCKET={0}: expected an absolute path, or @NAME")]
    Address(String),
    /// A system call failed.
    #[error("NOTIFY_SOCKET={address}: {source}")]
    Socket {
        /// The value.
        address: String,
        /// The error.
        source: std::io::Error,
    },
    /// No number.
    #[error("WATCHDOG_USEC={0}: expected a number of microseconds above 0")]
    Watchdog(String),
}

/// systemd ignores a datagram of more than 4096 bytes, READY=1 included.
const STATUS_BYTES_MAX: usize = 1000;

/// The service manager that started this process, if one did and asked to be told.
#[derive(Default)]
pub(crate) struct Service {
    socket: Option<UnixDatagram>,
    /// Interval at which it is told that the daemon is alive: half the time after which it kills the daemon.
    interval_ns: Option<u64>,
    /// Time at which it was last told so (CLOCK_MONOTONIC); `None` before the first.
    fed_ns: Option<u64>,
}

impl Service {
    /// The manager that the environment names, or none.
    ///
    /// # Errors
    /// The variables are there and wrong, or the socket does not exist.
    pub(crate) fn of_environment() -> Result<Service, ServiceError> {
        let own = std::process::id();
        Service::with(own, |name| match std::env::var(name) {
            Ok(value) => Some(value),
            Err(VarError::NotPresent) => None,
            Err(VarError::NotUnicode(bytes)) => Some(bytes.to_string_lossy().into_owned()),
        })
    }

    /// The manager that the environment of the process `own` names. `variable` returns the value of
    /// a variable.
    fn with(own: u32, variable: impl Fn(&str) -> Option<String>) -> Result<Service, ServiceError> {
        let Some(address) = variable("NOTIFY_SOCKET") else {
            return Ok(Service::default());
        };

        let socket = connect(&address)?;
        // A parent's watchdog is not ours.
        let is_ours = variable("WATCHDOG_PID").is_none_or(|pid| pid == own.to_string());
        let interval_ns = match variable("WATCHDOG_USEC") {
            Some(text) if is_ours => match text.parse::<u64>().ok().filter(|&us| us > 0) {
                Some(us) => Some(us.saturating_mul(1000) / 2),
                None => return Err(ServiceError::Watchdog(text)),
            },
            _ => None,
        };

        Ok(Service {
            socket: Some(socket),
            interval_ns,
            fed_ns: None,
        })
    }

    /// Reports that everything is armed, or that a reload has ended. `status` is shown by `systemctl status`; only its
    /// first 1000 bytes are sent.
    pub(crate) fn ready(&self, status: &str) {
        let status = status.replace('\n', " ");
        let status = beginning(&status, STATUS_BYTES_MAX);
        self.notify(&format!("READY=1\nSTATUS={status}\n"));
    }

    /// A reload begins; [`Service::ready`] ends it.
    pub(crate) fn reloading(&self) {
        let now_us = Duration::from_nanos(monotonic_ns()).as_micros();
        self.notify(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}\n"));
    }

    /// The daemon is about to end.
    pub(crate) fn stopping(&self) {
        self.notify("STOPPING=1\n");
    }

    /// Call this after each pass over the rings: says that the daemon is alive, if it is time to.
    pub(crate) fn alive(&mut self) {
        let Some(interval_ns) = self.interval_ns else {
            return;
        };
        let now_ns = monotonic_ns();
        let is_due = |fed_ns| now_ns.saturating_sub(fed_ns) >= interval_ns;
        if self.fed_ns.is_none_or(is_due) {
            self.fed_ns = Some(now_ns);
            self.notify("WATCHDOG=1\n");
        }
    }

    fn notify(&self, text: &str) {
        if let Some(socket) = &self.socket {
            // A manager that does not read must not hold up the rings: the socket does not block.
            let _ = socket.send(text.as_bytes());
        }
    }
}

fn connect(address: &str) -> Result<UnixDatagram, ServiceError> {
    let place = match address.as_bytes() {
        [b'@', name @ ..] if !name.is_empty() => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(address),
        _ => return Err(ServiceError::Address(address.to_owned())),
    };
    let connected = || {
        let socket = UnixDatagram::unbound()?;
        socket.connect_addr(&place?)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };

    connected().map_err(|source| ServiceError::Socket {
        address: address.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    /// The socket of a service manager.
    fn manager() -> (tempfile::TempDir, UnixDatagram, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        (dir, socket, path.to_str().unwrap().to_owned())
    }

    fn told(socket: &UnixDatagram) -> Option<String> {
        let mut buffer = [0; 512];
        match socket.recv(&mut buffer) {
            Ok(len) => Some(String::from_utf8(buffer[..len].to_vec()).unwrap()),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                None
            }
        }
    }

    #[test]
    fn each_step_of_a_daemons_life_is_told() {
        let (_dir, socket, path) = manager();
        let service = Service::with(7, |name| (name == "NOTIFY_SOCKET").then(|| path.clone()));
        let mut service = service.unwrap();
        service.ready("3 rules\nengine tracepoint");
        let text = told(&socket).unwrap();
        assert_eq!(text, "READY=1\nSTATUS=3 rules engine tracepoint\n");
        service.reloading();
        let text = told(&socket).unwrap();
        let time = text.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        assert!(time.trim_end().parse::<u64>().unwrap() > 0);
        service.stopping();
        assert_eq!(told(&socket).unwrap(), "STOPPING=1\n");
        service.alive();
        assert_eq!(told(&socket), None, "no watchdog was asked for");
    }

    #[test]
    fn a_long_status_does_not_hide_that_the_daemon_is_ready() {
        let (_dir, socket, path) = manager();
        let service = Service::with(7, |name| (name == "NOTIFY_SOCKET").then(|| path.clone()));
        service.unwrap().ready(&"é".repeat(5000));
        let mut buffer = [0; 5000];
        let len = socket.recv(&mut buffer).unwrap();
        let text = String::from_utf8(buffer[..len].to_vec()).unwrap();
        assert_eq!(text, format!("READY=1\nSTATUS={}\n", "é".repeat(500)));
    }

    #[test]
    fn the_watchdog_is_fed_once_per_half_of_its_time() {
        let (_dir, socket, path) = manager();
        let with = |pid: &'static str, time: &'static str| {
            let path = path.clone();
            Service::with(7, move |name| match name {
                "NOTIFY_SOCKET" => Some(path.clone()),
                "WATCHDOG_PID" => Some(pid.to_owned()),
                "WATCHDOG_USEC" => Some(time.to_owned()),
                _ => None,
            })
        };
        let mut service = with("7", "3600000000").unwrap();
        service.alive();
        assert_eq!(told(&socket).unwrap(), "WATCHDOG=1\n");
        service.alive();
        assert_eq!(told(&socket), None, "half an hour is not over");
        service.interval_ns = Some(1_000_000_000);
        service.fed_ns = Some(monotonic_ns() - 1_000_000_001);
        service.alive();
        assert_eq!(told(&socket).unwrap(), "WATCHDOG=1\n");
        let mut of_parent = with("8", "1").unwrap();
        of_parent.alive();
        assert_eq!(told(&socket), None, "the watchdog is another process's");
        for wrong in ["0", "-1", "soon"] {
            let error = with("7", wrong).err().unwrap().to_string();
            assert!(error.contains(&format!("WATCHDOG_USEC={wrong}")), "{error}");
        }
    }

    #[test]
    fn abstract_sockets_work_and_other_addresses_are_refused() {
        let name = format!("tarsier-test-{}", std::process::id());
        let place = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&place).unwrap();
        let address = format!("@{name}");
        let with = |address: String| {
            Service::with(7, move |name| {
                (name == "NOTIFY_SOCKET").then(|| address.clone())
            })
        };
        with(address).unwrap().stopping();
        assert_eq!(told(&socket).unwrap(), "STOPPING=1\n");
        for wrong in ["", "@", "relative", "vsock:2:1", "/nowhere/at/all"] {
            let error = with(wrong.to_owned()).err().unwrap().to_string();
            assert!(error.starts_with("NOTIFY_SOCKET="), "{wrong}: {error}");
        }
        assert!(Service::with(7, |_| None).unwrap().socket.is_none());
    }

    #[test]
    fn a_manager_that_does_not_read_is_not_waited_for() {
        let (_dir, _socket, path) = manager();
        let service = Service::with(7, |name| (name == "NOTIFY_SOCKET").then(|| path.clone()));
        let service = service.unwrap();
        // Far more than fit: net.unix.max_dgram_qlen is 10 by default.
        for _ in 0..10_000 {
            service.stopping();
        }
    }
}
