//! A daemon with nothing to record costs nothing.

use crate::daemon::Daemon;
use crate::machine;
use std::path::Path;
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(5);
/// Largest use of the processor, in ticks of 10 ms. The daemon's check of its files, once a second, may use some.
const TICKS_MAX: u64 = 2;
const WINDOWS_MAX: usize = 4;
const RESIDENT_KIB_MAX: u64 = 32 * 1024;

/// Rules as security guides have them: many files, privileged programs, refused calls. All concern
/// logged-in users only, so that other activity on this machine is not recorded.
fn guide_rules() -> String {
    const USER: &str = "-F auid>=1000 -F auid!=unset";
    let mut rules = String::from("-D\n-b 8192\n-f 1\n");
    for file in ["passwd", "group", "shadow", "sudoers", "hosts", "hostname"] {
        rules += &format!("-a always,exit -F path=/etc/{file} -F perm=wa {USER} -k identity\n");
    }
    // A rule on a directory needs the directory.
    let dirs = ["/etc/audit", "/etc/pam.d", "/etc/security", "/etc/ssh"];
    for dir in dirs.iter().filter(|dir| Path::new(dir).is_dir()) {
        rules += &format!("-a always,exit -F dir={dir} -F perm=wa {USER} -k configuration\n");
    }
    for program in ["su", "sudo", "mount", "umount", "passwd", "chsh", "newgrp"] {
        rules +=
            &format!("-a always,exit -F path=/usr/bin/{program} -F perm=x {USER} -k privileged\n");
    }
    for width in ["b64", "b32"] {
        let rule = format!("-a always,exit -F arch={width}");
        for errno in ["EACCES", "EPERM"] {
            rules += &format!(
                "{rule} -S open,openat,creat,truncate,ftruncate -F exit=-{errno} {USER} -k access\n"
            );
        }
        for (calls, key) in [
            ("chmod,fchmod,fchmodat", "perm_mod"),
            ("chown,fchown,lchown,fchownat", "perm_mod"),
            ("setxattr,lsetxattr,fsetxattr,removexattr", "perm_mod"),
            ("unlink,unlinkat,rename,renameat", "delete"),
            ("mount", "mounts"),
            ("init_module,finit_module,delete_module", "modules"),
        ] {
            rules += &format!("{rule} -S {calls} {USER} -k {key}\n");
        }
        rules += &format!("{rule} -S adjtimex,settimeofday,clock_settime -k time-change\n");
        rules += &format!("{rule} -S sethostname,setdomainname -k system-locale\n");
    }
    rules
}

/// utime and stime of a process with all its threads, in ticks.
pub(crate) fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let (_, after_comm) = stat.rsplit_once(") ").expect("a comm");
    let fields: Vec<&str> = after_comm.split(' ').collect();
    let number = |i: usize| fields[i].parse::<u64>().expect("a number");
    number(11) + number(12)
}

fn resident_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.and_then(|n| n.parse().ok()).expect("a number")
}

#[test]
fn at_rest_it_uses_no_cpu_and_less_than_32_mib() {
    machine::test("at rest", |setup| {
        let daemon = setup.tarsier(&guide_rules()).start();
        let pid = daemon.pid();
        // Somebody may make calls on this machine that the rules select; then it is not at rest.
        let (used, events) = (0..WINDOWS_MAX)
            .map(|_| window(&daemon))
            .find(|(_, events)| *events == 0)
            .unwrap_or_else(|| window(&daemon));
        let resident = resident_kib(pid);
        let what = format!("{used} ticks, {resident} KiB, {events} events");
        println!("at rest: {what}");
        assert_eq!(events, 0, "no window of rest: {what}");
        assert!(used <= TICKS_MAX, "{what}");
        assert!(resident < RESIDENT_KIB_MAX, "{what}");
        daemon.stop();
    });
}

/// Ticks that the daemon uses within a window, and number of events that it gets.
fn window(daemon: &Daemon) -> (u64, u64) {
    let events = || {
        daemon.status()["events_selected"]
            .as_u64()
            .expect("a number")
    };
    let events_before = events();
    // The daemon has finished its start and this answer by then.
    let before = ticks(daemon.pid());
    std::thread::sleep(WINDOW);
    let used = ticks(daemon.pid()) - before;
    (used, events() - events_before)
}
