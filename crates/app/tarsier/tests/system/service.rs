//! Tests of the messages that a service manager gets from the daemon: sd_notify(3).

use crate::daemon::{Daemon, Setup};
use crate::{log, machine};
use rustix::process::Signal;
use std::os::unix::net::UnixDatagram;
use std::process::{Command, Stdio};
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
fn records_of_signals_name_who_sent_them_without_the_kernel_s_records_too() {
    machine::test("senders of signals", |setup| {
        for options in [&["--no-kernel-records"][..], &[]] {
            let run = setup.tarsier(RULES).format("raw");
            let run = options.iter().fold(run, |run, option| run.option(option));
            let daemon = run.start();
            let sent = [
                ("USR1", "DAEMON_ROTATE"),
                ("USR2", "DAEMON_RESUME"),
                ("HUP", "DAEMON_CONFIG"),
                ("TERM", "DAEMON_END"),
            ];
            let senders = sent.map(|(signal, kind)| {
                // It stays until the signal is handled, so that its login uid can be read, too.
                let script = format!("kill -{signal} {}; read -r line", daemon.pid());
                let mut shell = Command::new("sh");
                let shell = shell.args(["-c", &script]).stdin(Stdio::piped());
                let mut shell = shell.spawn().expect("sh runs");
                daemon.wait_for_record(&format!("type={kind} "));
                drop(shell.stdin.take());
                shell.wait().expect("its end");
                (kind, shell.id())
            });
            let ended = daemon.wait();
            let events: Vec<log::Event> = ["audit.log", "audit.log.1"]
                .iter()
                .map(|name| setup.path(name))
                .filter(|path| path.exists())
                .flat_map(|path| log::events(&path))
                .collect();
            for (kind, pid) in senders {
                let records = log::records(&events, kind);
                let record = records.last().expect("a record");
                assert_eq!(
                    record.number("pid"),
                    Some(i64::from(pid)),
                    "{kind}: {}",
                    ended.said
                );
            }
            for name in ["audit.log", "audit.log.1"] {
                let _ = std::fs::remove_file(setup.path(name));
            }
        }
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
