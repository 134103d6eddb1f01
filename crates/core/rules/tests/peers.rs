//! Comparison with the distribution's auditctl and sample rules, found below `TARSIER_PEERS`.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::Mutex;

use abi::Arch;
use rules::{
    from_kernel, list_rule, merge_directory, merge_lines, parse_line_as, parse_text, to_kernel,
    Command, Dialect, ErrorKind, Host, ListStyle, PathKind, RuleSet, Source, StaticHost,
    SystemHost,
};
use rustix::net;

fn peers() -> Option<PathBuf> {
    testkit::peers("rules of the distribution's auditctl and samples")
}

/// Name and content of every sample, sorted.
fn samples(peers: &Path) -> BTreeMap<String, String> {
    let directory = peers.join("usr/share/doc/auditd/examples/rules");
    let samples: BTreeMap<String, String> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "rules")
        })
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).unwrap())
        })
        .collect();
    assert!(
        samples.len() >= 30,
        "only {} samples in {}",
        samples.len(),
        directory.display()
    );
    samples
}

#[test]
fn every_sample_of_the_distribution_is_taken() {
    let Some(peers) = peers() else { return };
    let host = StaticHost::new(Arch::X86_64).user("chrony", 994);
    for (name, text) in samples(&peers) {
        for dialect in [Dialect::V3, Dialect::V4] {
            let parsed = parse_text(dialect, &name, &text, &host);
            assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
            let lines = text
                .lines()
                .filter(|line| line.trim_start().starts_with('-'))
                .count();
            let commands: Vec<u32> = parsed.commands.iter().map(|row| row.0.line).collect();
            let mut distinct = commands.clone();
            distinct.dedup();
            assert_eq!(distinct.len(), lines, "{name}: {commands:?}");
            let set = RuleSet::build(parsed);
            // Two samples of 3.0.9 repeat a rule; the kernel refuses the second one too.
            if let Err(errors) = set {
                assert!(
                    errors.iter().all(|error| error.kind == ErrorKind::Exists),
                    "{errors:?}"
                );
            }
        }
    }
}

#[test]
fn files_are_merged_in_the_order_of_ls() {
    let directory = tempfile::tempdir().unwrap();
    let names = [
        "10-base.rules",
        "9-a.rules",
        "09-a.rules",
        "1.rules",
        "a.rules",
        "A.rules",
        "a1.rules",
        "a10.rules",
        "a2.rules",
        "a2.x.rules",
        "a-2.rules",
        "a_2.rules",
        "a~.rules",
        "a.b.c.rules",
        "a.1.rules",
        "1.10.rules",
        "1.9.rules",
        "30-ospp-v42.rules",
        "30-ospp-v42-1-x.rules",
        "z.~1.rules",
        "b+.rules",
        "b.rules",
        "0.rules",
        "00.rules",
        "x.y1.rules",
        "é.rules",
    ];
    for name in names {
        fs::write(directory.path().join(name), "-w /x\n").unwrap();
    }
    let output = Process::new("ls")
        .arg("-1v")
        .arg(directory.path())
        .env("LC_ALL", "C")
        .output();
    let expected = String::from_utf8(output.unwrap().stdout).unwrap();
    let expected: Vec<&str> = expected.lines().collect();
    let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, "-w /x\n")).collect();
    let merged: Vec<&str> = merge_lines(&files).iter().map(|line| line.file).collect();
    assert_eq!(merged, expected);
}

#[test]
fn merged_text_is_what_augenrules_writes() {
    let Some(peers) = peers() else { return };
    let place = tempfile::tempdir().unwrap();
    let source = place.path().join("rules.d");
    let target = place.path().join("audit.rules");
    fs::create_dir(&source).unwrap();
    let mut files: Vec<(String, String)> = samples(&peers).into_iter().collect();
    files.push((
        "9-x.rules".to_owned(),
        "\n-D -k x\n-D\n-b 5\n-b 6\n-e 1\n-f 0\n".to_owned(),
    ));
    files.push(("100-y.rules".to_owned(), "-e 2\n-w /y\n".to_owned()));
    for (name, text) in &files {
        fs::write(source.join(name), text).unwrap();
    }
    // No blanks before options and comments or after `-D`: under mawk, Debian's awk, the script's
    // patterns do not match those although they are meant to.
    // The script has its paths built in.
    let script = fs::read_to_string(peers.join("sbin/augenrules"))
        .unwrap()
        .replace("=/etc/audit/audit.rules", &format!("={}", target.display()))
        .replace("=/etc/audit/rules.d", &format!("={}", source.display()));
    let script_path = place.path().join("augenrules");
    fs::write(&script_path, script).unwrap();
    let output = Process::new("sh")
        .arg(&script_path)
        .env("LC_ALL", "C")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let expected = fs::read_to_string(&target).unwrap();
    let merged = merge_directory(&source.to_string_lossy(), &files);
    let merged = String::from_utf8(merged).unwrap();
    for (number, (ours, theirs)) in merged.lines().zip(expected.lines()).enumerate() {
        assert_eq!(ours, theirs, "line {}", number + 1);
    }
    assert_eq!(merged.len(), expected.len());
}

/// The real auditctl and the real kernel. Audit stays disabled, so rules have no effect, and each
/// rule is deleted before the next is loaded.
struct Auditctl {
    peers: PathBuf,
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

impl Auditctl {
    /// `None`, with the reason printed, if auditctl cannot or must not be used on this machine.
    fn new(peers: PathBuf) -> Option<Auditctl> {
        let auditctl = Auditctl { peers };
        let (status, _) = auditctl.run(&["-s"]);
        let (rules, _) = auditctl.run(&["-l"]);
        let reason = if !rustix::process::geteuid().is_root() {
            "not root"
        } else if !status.lines().any(|line| line == "enabled 0") {
            "kernel audit is enabled, or there is none"
        } else if rules.trim() != "No rules" {
            "the kernel has audit rules"
        } else {
            return Some(auditctl);
        };
        println!("skipped: {reason}");
        None
    }

    /// Runs auditctl and returns its standard output and standard error.
    fn run(&self, args: &[&str]) -> (String, String) {
        let libraries = format!(
            "{0}/usr/lib/x86_64-linux-gnu:{0}/lib/x86_64-linux-gnu",
            self.peers.display()
        );
        let output = Process::new(self.peers.join("sbin/auditctl"))
            .args(args)
            .env("LD_LIBRARY_PATH", libraries)
            .output();
        let Ok(output) = output else {
            return (String::new(), "cannot be run".to_owned());
        };
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        (text(&output.stdout), text(&output.stderr))
    }
}

impl Drop for Auditctl {
    fn drop(&mut self) {
        self.run(&["-D"]);
    }
}

/// Numbers of lines by outcome.
#[derive(Default, Debug)]
struct Tally {
    same: u32,
    refused_by_both: u32,
    refused_by_security_module: u32,
}

/// Loads one line with auditctl, parses it with this crate, and compares the outcomes.
fn compare(auditctl: &Auditctl, line: &str, host: &dyn Host, tally: &mut Tally) {
    let words: Vec<&str> = line.split_whitespace().collect();
    let (_, said) = auditctl.run(&words);
    let parsed = parse_line_as(Dialect::V3, line, &Source::default(), host);
    let warnings: Vec<&str> = parsed.warnings.iter().map(|w| w.message.as_str()).collect();
    let said: Vec<&str> = said
        .lines()
        .filter(|said| !said.is_empty() && !warnings.contains(said))
        .collect();
    let (listed, _) = auditctl.run(&["-l"]);
    auditctl.run(&["-D"]);
    match (parsed.error, said.as_slice()) {
        (Some(error), [said]) => {
            println!("refused: {line}: {said}");
            assert_eq!(error.message, *said, "{line}");
            tally.refused_by_both += 1;
        }
        (None, []) => {
            let mut set = RuleSet::default();
            for command in parsed.commands {
                assert!(
                    matches!(command, Command::Append(_) | Command::Prepend(_)),
                    "{line}"
                );
                set.run(&Source::default(), command).unwrap();
            }
            assert_eq!(
                set.list(&rules::ListStyle::default(), None),
                listed,
                "{line}"
            );
            tally.same += 1;
        }
        (None, [said]) if line.contains("subj_") || line.contains("obj_") => {
            println!("refused by the security module: {line}: {said}");
            tally.refused_by_security_module += 1;
        }
        (error, said) => panic!("{line}\nauditctl: {said:?}\nhere: {error:?}"),
    }
}

#[test]
fn every_rule_of_every_sample_is_listed_as_auditctl_lists_it() {
    let _guard = ONE_AT_A_TIME.lock().unwrap();
    let Some(peers) = peers() else { return };
    let samples = samples(&peers);
    let Some(auditctl) = Auditctl::new(peers) else {
        return;
    };
    let mut tally = Tally::default();
    for text in samples.values() {
        for line in text.lines().map(str::trim) {
            if ["-a", "-A", "-w"]
                .iter()
                .any(|option| line.starts_with(option))
            {
                compare(&auditctl, line, &SystemHost, &mut tally);
            }
        }
    }
    println!("{tally:?}");
    assert!(tally.same > 100, "{tally:?}");
}

/// Rules beyond those of the samples: every field, operator and list.
const MORE: &[&str] = &[
    "-a always,exit -S 2047 -F pid=1",
    "-a always,exit -F arch=b64 -S 2045,2043,2041,2039 -F pid=1",
    "-a always,exit -F arch=b32 -S 2046,2044,2042,2040,2038 -F pid=1",
    "-a always,exit -F arch=b32 -S madvise1,sys_kexec_load,lchown32 -F pid=1",
    "-a always,exit -F arch=aarch64 -S newfstat,getdents,pread,renameat -F pid=1",
    "-a always,exit -F arch=armv7l -S llseek,newselect -F pid=1",
    "-a always,exit -F arch=0x80000016 -S all -F pid=1",
    "-a always,exit -F arch=c000003e -S openat -F pid=1",
    "-a always,exit -F uid!=0 -F euid>=5 -F suid<=6 -F fsuid>7 -F pid=1",
    "-a always,exit -F gid=1 -F egid!=2 -F sgid>3 -F fsgid<4 -F obj_gid<=5 -F pid=1",
    "-a always,exit -F uid=-1 -F pid=1",
    "-a always,exit -F uid=4294967294 -F pid=1",
    "-a always,exit -F auid>unset -F pid=1",
    "-a always,exit -F auid=unset -F pid=1",
    "-a always,exit -F pers&8 -F devminor&=1 -F pid=1",
    "-a always,exit -F devmajor&8 -F pid=1",
    "-a always,exit -F exit=-4095 -F pid=1",
    "-a always,exit -F exit!=-EWOULDBLOCK -F exit<=-1 -F exit>=5 -F pid=1",
    "-a always,exit -F filetype!=socket -F pid=1",
    "-a always,exit -F field_compare!=25 -F pid=1",
    "-a always,exit -F field_compare=26 -F pid=1",
    "-a always,exit -F saddr_fam>=10 -F pid=1",
    "-a always,exit -F saddr_fam=inet -F pid=1",
    "-a always,exit -F sessionid=bogus -F pid=1",
    "-a always,exit -F a0=-1 -F a1&0x10 -F a2&=010 -F a3<5 -F pid=1",
    "-a always,exit -F inode=5 -F inode=6 -F pid=1",
    "-a always,exit -F inode!=4294967295 -F pid=1",
    "-a always,exit -F success=0 -F ppid=1 -F pid=1",
    "-a always,exit -F dir=/etc/ -F pid=1",
    "-a always,exit -F path=/etc/passwd -F inode=5 -F pid=1",
    "-a always,exit -F exe=relative -F pid=1",
    "-a always,exit -F exe=/bin/ -F pid=1",
    "-a never,exit -F path=/etc/passwd -F perm=r",
    "-a always,exit -F path=/etc/passwd -F perm=xawr -F key=a -F key=b",
    "-a always,exit -F perm=w -k k -F pid=1",
    "-a exit,always -S all -F pid=1 -k all",
    "-a always,exit -C fsgid=egid -C auid!=suid -F pid=1",
    "-a never,task -F pid=1 -F uid=5",
    "-a always,user -F pid=1 -F auid=7 -F msgtype=USER_LOGIN",
    "-a always,user -F sessionid=3",
    "-a always,exclude -F msgtype>=1100 -F msgtype<=1199",
    "-a never,exclude -F msgtype=9999",
    "-a always,exclude -F pid=1 -F gid=5 -F auid!=6",
    "-a never,filesystem -F fstype!=debugfs -k fs",
    "-a never,filesystem -F fstype=0xcafe4a11",
    "-a always,filesystem -F uid=0",
    "-A always,exit -F arch=b64 -S unlink -F pid=1",
    "-w /etc/passwd -k one -k two",
    "-w /etc/// -p r",
    "-w /etc/passwd/ -p a",
    "-w //",
    "-w /etc/passwd -F uid=0 -F pid=1",
    "-a always,exit -S , -F pid=1",
    "-a always,exit -F key=a>=b -F pid=1 -S open",
    "-a always,exit -S open -F key=a=b -F pid=1",
    "-a always,exit -S open -F key!=x -F pid=1",
    "-a always,exit -F pid=1 -p rw",
    "-a always,exit -p rw",
    "-a possible,exit -S open",
    "-a always,exit -a never,task",
    "-d always,exit -S open -w /etc/passwd",
    "-S open",
    "-F arch=b64",
    "-C uid=euid",
    "-a task,always -C uid=euid",
    "-k x",
    "-w /etc/passwd -q /a,/b",
    "-q /a,/b,/c",
    "-b",
    "-Sopen -Z",
    "--reset",
];

#[test]
fn rules_beyond_the_samples_fare_as_with_auditctl() {
    let _guard = ONE_AT_A_TIME.lock().unwrap();
    let Some(auditctl) = peers().and_then(Auditctl::new) else {
        return;
    };
    let mut tally = Tally::default();
    for line in MORE {
        compare(&auditctl, line, &SystemHost, &mut tally);
    }
    println!("{tally:?}");
    assert_eq!((tally.same + tally.refused_by_both) as usize, MORE.len());
    assert_eq!(SystemHost.path_kind(b"/etc"), PathKind::Dir);
}

/// Requests of linux/audit.h and linux/netlink.h.
const ADD_RULE: u16 = 1011;
const DEL_RULE: u16 = 1012;
const LIST_RULES: u16 = 1013;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;

/// The kernel's audit socket.
struct Kernel {
    socket: OwnedFd,
}

impl Kernel {
    fn new() -> Kernel {
        let protocol = Some(net::netlink::AUDIT);
        let socket = net::socket(net::AddressFamily::NETLINK, net::SocketType::RAW, protocol);
        Kernel {
            socket: socket.unwrap(),
        }
    }

    /// Sends a request that the kernel acknowledges.
    fn send(&self, request: u16, payload: &[u8]) {
        const REQUEST_AND_ACK: u16 = 1 | 4;
        let mut message = (16 + payload.len() as u32).to_ne_bytes().to_vec();
        message.extend_from_slice(&request.to_ne_bytes());
        message.extend_from_slice(&REQUEST_AND_ACK.to_ne_bytes());
        message.extend_from_slice(&[0; 8]);
        message.extend_from_slice(payload);
        let kernel = net::netlink::SocketAddrNetlink::new(0, 0);
        net::sendto(&self.socket, &message, net::SendFlags::empty(), &kernel).unwrap();
    }

    /// The next message's type and payload.
    fn receive(&self) -> (u16, Vec<u8>) {
        let mut buffer = vec![0u8; 16384];
        let (len, _) = net::recv(&self.socket, &mut buffer[..], net::RecvFlags::empty()).unwrap();
        let kind = u16::from_ne_bytes([buffer[4], buffer[5]]);
        (kind, buffer[16..len].to_vec())
    }

    /// Sends a request and returns the errno of its acknowledgement, 0 if it was carried out.
    fn request(&self, request: u16, payload: &[u8]) -> i32 {
        self.send(request, payload);
        let (kind, answer) = self.receive();
        assert_eq!(kind, NLMSG_ERROR);
        -i32::from_ne_bytes(answer[..4].try_into().unwrap())
    }

    fn list(&self) -> Vec<Vec<u8>> {
        assert_eq!(self.request(LIST_RULES, &[]), 0);
        let mut rules = Vec::new();
        loop {
            match self.receive() {
                (NLMSG_DONE, _) => return rules,
                (LIST_RULES, rule) => rules.push(rule),
                (other, _) => panic!("message {other}"),
            }
        }
    }
}

#[test]
fn the_kernel_takes_lists_and_deletes_rules_by_our_bytes() {
    let _guard = ONE_AT_A_TIME.lock().unwrap();
    let Some(peers) = peers() else { return };
    let samples = samples(&peers);
    let Some(auditctl) = Auditctl::new(peers) else {
        return;
    };
    let kernel = Kernel::new();
    let mut count = 0;
    for line in samples
        .values()
        .flat_map(|text| text.lines())
        .chain(MORE.iter().copied())
    {
        let parsed = parse_line_as(Dialect::V3, line, &Source::default(), &SystemHost);
        let Some(Command::Append(rule)) = parsed.commands.into_iter().next() else {
            continue;
        };
        let bytes = to_kernel(&rule);
        assert_eq!(kernel.request(ADD_RULE, &bytes), 0, "{line}");
        let listed = kernel.list();
        let (text, _) = auditctl.run(&["-l"]);
        assert_eq!(kernel.request(DEL_RULE, &bytes), 0, "{line}");
        let [listed] = listed.as_slice() else {
            panic!("{line}: {} rules", listed.len())
        };
        let mut again = from_kernel(listed).unwrap();
        // The kernel resolves class selectors.
        let mut rule = rule;
        rule.syscalls = rule
            .syscalls
            .expand_classes(SystemHost.arch(), abi::PermLists::default());
        assert_eq!(
            text.trim_end_matches('\n'),
            list_rule(&again, &ListStyle::default())
        );
        again.source = rule.source.clone();
        assert!(again.same(&rule), "{line}\n{rule:?}\n{again:?}");
        count += 1;
    }
    println!("{count} rules");
    assert!(count > 200, "{count}");
    assert_eq!(auditctl.run(&["-l"]).0, "No rules\n");
}
