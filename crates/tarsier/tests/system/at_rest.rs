//! A daemon with nothing to record costs nothing.

use crate::machine;
use std::time::Duration;

const WINDOW: Duration = Duration::from_secs(5);
/// Ticks of 10 ms: 0.0 % of the window, rounded as top(1) does, with one for good measure.
const TICKS_MAX: u64 = 2;
const RESIDENT_KIB_MAX: u64 = 32 * 1024;

/// Rules as the security guides have them: many watches, privileged programs, refused opens.
fn guide_rules() -> String {
    let mut rules = String::from("-D\n-b 8192\n-f 1\n");
    for file in [
        "passwd", "group", "shadow", "gshadow", "sudoers", "hosts", "hostname",
    ] {
        rules += &format!("-w /etc/{file} -p wa -k identity\n");
    }
    for dir in ["/etc/ssh", "/etc/sudoers.d", "/etc/audit", "/etc/selinux"] {
        rules += &format!("-w {dir} -p wa -k configuration\n");
    }
    for program in [
        "su", "sudo", "mount", "umount", "passwd", "chsh", "chfn", "newgrp",
    ] {
        rules += &format!(
            "-a always,exit -F path=/usr/bin/{program} -F perm=x -F auid>=1000 \
             -F auid!=unset -k privileged\n"
        );
    }
    for width in ["b64", "b32"] {
        let rule = format!("-a always,exit -F arch={width}");
        let user = "-F auid>=1000 -F auid!=unset";
        for errno in ["EACCES", "EPERM"] {
            rules += &format!(
                "{rule} -S open,openat,creat,truncate,ftruncate -F exit=-{errno} {user} -k access\n"
            );
        }
        for (calls, key) in [
            ("chmod,fchmod,fchmodat", "perm_mod"),
            ("chown,fchown,lchown,fchownat", "perm_mod"),
            ("setxattr,lsetxattr,fsetxattr,removexattr", "perm_mod"),
            ("unlink,unlinkat,rename,renameat", "delete"),
            ("mount,umount2", "mounts"),
            ("init_module,finit_module,delete_module", "modules"),
        ] {
            rules += &format!("{rule} -S {calls} {user} -k {key}\n");
        }
        rules += &format!("{rule} -S adjtimex,settimeofday,clock_settime -k time-change\n");
        rules += &format!("{rule} -S sethostname,setdomainname -k system-locale\n");
    }
    rules.replace("-S mount,umount2 ", "-S mount ")
}

/// utime and stime of a process, all its threads, in ticks.
fn ticks(pid: u32) -> u64 {
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
        // What the start itself left to do is done when it answers.
        let before = (daemon.status(), ticks(pid));
        std::thread::sleep(WINDOW);
        let used = ticks(pid) - before.1;
        let resident = resident_kib(pid);
        let after = daemon.status();
        let events = |status: &serde_json::Value| status["events_selected"].as_u64();
        let what = format!(
            "{used} ticks, {resident} KiB, events {:?} to {:?}",
            events(&before.0),
            events(&after)
        );
        println!("at rest: {what}");
        assert!(used <= TICKS_MAX, "{what}");
        assert!(resident < RESIDENT_KIB_MAX, "{what}");
        daemon.stop();
    });
}
