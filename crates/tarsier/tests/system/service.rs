//! Tests of the messages that a service manager gets from the daemon: sd_notify(3).

use crate::daemon::{Daemon, Setup};
use crate::machine;
use rustix::process::Signal;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

const RULES: &str = "-a always,exit -F arch=b64 -S getppid -F gid=61236 -k service\n";
/// The manager's patience; the daemon speaks twice in this time.
const WATCHDOG_US: u64 = 4_000_000;
/// Longer than the pause between two signs of life: half of that, and a pass over idle rings.
const SILENCE: Duration = Duration::from_secs(4);

/// A manager that has started the daemon.
struct Manager {
    socket: UnixDatagram,
    daemon: Daemon,
}

impl Manager {
    fn start(setup: &Setup) -> Manager {
        let path = setup.path("notify");
        let socket = UnixDatagram::bind(&path).expect("a socket");
        let run = setup.tarsier(RULES).environment("NOTIFY_SOCKET", &path);
        let run = run.environment("WATCHDOG_USEC", WATCHDOG_US.to_string());
        let daemon = run.start();
        Manager { socket, daemon }
    }

    /// The next datagram, if one comes within `time`.
    fn hears_within(&self, time: Duration) -> Option<String> {
        let mut buffer = [0; 512];
        self.socket.set_read_timeout(Some(time)).expect("a timeout");
        let len = self.socket.recv(&mut buffer).ok()?;
        Some(String::from_utf8_lossy(&buffer[..len]).into_owned())
    }

    /// The next datagram that is no sign of life.
    fn hears(&self) -> String {
        loop {
            let text = self.hears_within(Duration::from_secs(60));
            let text = text.expect("the daemon says something within a minute");
            if text != "WATCHDOG=1\n" {
                return text;
            }
        }
    }
}

#[test]
fn a_service_manager_hears_of_start_reload_and_end() {
    machine::test("sd_notify", |setup| {
        let manager = Manager::start(setup);
        let ready = manager.hears();
        assert!(
            ready.starts_with("READY=1\nSTATUS=1 rules armed, engine "),
            "{ready}"
        );
        manager.daemon.signal(Signal::HUP);
        let reloading = manager.hears();
        assert!(
            reloading.starts_with("RELOADING=1\nMONOTONIC_USEC="),
            "{reloading}"
        );
        assert!(manager.hears().starts_with("READY=1\n"));
        setup.write("test.rules", "-a always,nowhere -S getppid\n");
        manager.daemon.signal(Signal::HUP);
        assert!(manager.hears().starts_with("RELOADING=1\n"));
        let refused = manager.hears();
        assert!(refused.starts_with("READY=1\n"), "what was in force stays");
        manager.daemon.signal(Signal::TERM);
        assert_eq!(manager.hears(), "STOPPING=1\n");
        assert_eq!(manager.daemon.wait().status.code(), Some(0));
    });
}

#[test]
fn a_loop_that_hangs_is_not_said_to_be_alive() {
    machine::test("watchdog", |setup| {
        let manager = Manager::start(setup);
        manager.hears();
        let alive = Some("WATCHDOG=1\n".to_owned());
        assert_eq!(manager.hears_within(SILENCE), alive);
        assert_eq!(manager.hears_within(SILENCE), alive, "also an idle one");
        manager.daemon.signal(Signal::STOP);
        // One may be under way.
        let _ = manager.hears_within(Duration::from_millis(500));
        assert_eq!(manager.hears_within(SILENCE), None, "it stands still");
        manager.daemon.signal(Signal::CONT);
        assert_eq!(manager.hears_within(SILENCE), alive);
        manager.daemon.stop();
    });
}
