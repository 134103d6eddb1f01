//! `tarsier report --dialect 3` beside aureport 3.0.9: the same output, messages and exit status; and what
//! `tarsier report` does without the dialect.
//!
//! docs/reference/report.md lists the differences.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Reports that are made of every log, each in the forms of [`FORMS`].
const REPORTS: &[&str] = &[
    "-a",
    "-au",
    "-c",
    "--comm",
    "-cr",
    "-e",
    "-f",
    "-h",
    "--integrity",
    "-k",
    "-l",
    "-m",
    "-ma",
    "-n",
    "-p",
    "-r",
    "-s",
    "-t",
    "-tm",
    "--tty",
    "-u",
    "--virt",
    "-x",
    "",
];

const FORMS: &[&str] = &["", "--summary", "-i", "--summary -i", "--failed"];

/// Options that are tried on every log once.
const OPTIONS: &[&str] = &[
    "--success",
    "--success -e --summary",
    "--node one",
    "--node one --node two -k --summary -i",
    "-ts 11/21/26 02:53:50",
    "-ts 02:53 11/21/26 -te 11/21/26 02:53:50 -f",
    "-ts 11/21/26 -te today",
    "-c --add",
    "-c --delete --summary",
    "-ma --delete",
    "-m --add -i",
    "-c -nc",
    "-nc",
    "-f --escape raw",
    "-f --summary --escape shell",
    "-f --escape shell_quote",
    "-x --escape tty -i",
    "-k --eoe-timeout 1",
    "--auth --success",
    "--log",
];

/// Options that are wrong, and what else needs no log.
const WRONG: &[&str] = &[
    "-x -f",
    "-f word",
    "-f --summary word",
    "-i word",
    "-k word",
    "-e word",
    "--summary word",
    "-zz",
    "word",
    "-t --summary",
    "--tty --summary --failed",
    "--tty --summary --success",
    "--node",
    "--escape",
    "--escape none",
    "--escape shellfish",
    "--eoe-timeout",
    "--eoe-timeout x",
    "--eoe-timeout 0",
    "--eoe-timeout 99999999999999999999",
    "-ts",
    "-te",
    "-ts x",
    "-te x",
    "-ts checkpoint",
    "-ts 11/24/2026",
    "-ts 25:00",
    "-te 11/24/26 9",
    "-ts 11/24/99",
    "-v",
    "-if",
    "-if /nonexistent",
    "-if /nonexistent -x --summary",
];

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../event/tests/corpus")
}

fn read(name: &str) -> Vec<u8> {
    fs::read(corpus().join(name)).expect("a log of the corpus")
}

/// A program of the audit package in `root`.
fn peer(root: &Path, program: &str) -> Command {
    let mut command = Command::new(root.join(program));
    let arch = std::env::consts::ARCH;
    let root = root.display();
    let libraries = format!("{root}/usr/lib/{arch}-linux-gnu:{root}/lib/{arch}-linux-gnu");
    command.env("LD_LIBRARY_PATH", libraries);
    command
}

fn tarsier(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tarsier"));
    command.arg("report").args(words);
    command
}

/// Where and when a program runs.
#[derive(Clone, Copy, Debug)]
struct Place<'p> {
    zone: &'p str,
    locale: &'p str,
    /// Directory of locales that are made for the test.
    locales: &'p Path,
}

fn zone(zone: &str) -> Place<'_> {
    Place {
        zone,
        locale: "C",
        locales: Path::new("/nonexistent"),
    }
}

const UTC: &str = "UTC";

fn output(command: &mut Command, place: Place<'_>) -> Output {
    command
        .env("LC_ALL", place.locale)
        .env("TZ", place.zone)
        .env("LOCPATH", place.locales)
        .stdin(Stdio::null())
        .output()
        .expect("it runs")
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Both programs with the same words say the same.
fn compare(root: &Path, words: &[&str], place: Place<'_>) {
    let expected = output(peer(root, "sbin/aureport").args(words), place);
    let found = output(tarsier(&["--dialect", "3"]).args(words), place);
    let status = (found.status.code(), expected.status.code());
    assert_eq!(status.0, status.1, "{words:?} {place:?}");
    // Complaints of addresses are a difference that the page lists.
    let errors = |output: &Output| -> Vec<String> {
        let text = shown(&output.stderr);
        let lines = text.lines().filter(|line| !line.ends_with("len too short"));
        lines.map(str::to_owned).collect()
    };
    assert_eq!(errors(&found), errors(&expected), "{words:?} {place:?}");
    if found.stdout != expected.stdout {
        let (found, expected) = (shown(&found.stdout), shown(&expected.stdout));
        let different = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
        panic!("{words:?} {place:?}: found and expected: {different:?}");
    }
}

fn words_of<'w>(log: &'w str, options: &[&'w str]) -> Vec<&'w str> {
    let options = options.iter().flat_map(|words| words.split_whitespace());
    ["-if", log].into_iter().chain(options).collect()
}

fn compare_all(root: &Path, log: &Path, zone_name: &str) {
    let place = zone(zone_name);
    let log = log.to_str().expect("paths are text");
    for report in REPORTS {
        for form in FORMS {
            // aureport prints memory that nobody has written for calls of an unknown architecture.
            let is_unknown = *report == "-s" && *form == "--summary -i" && log.contains("flipped");
            if !is_unknown {
                compare(root, &words_of(log, &[report, form]), place);
            }
        }
    }
    for options in OPTIONS {
        compare(root, &words_of(log, &[options]), place);
    }
}

/// Lines of logs: calls with many records, messages of user space in ENRICHED, addresses, changes of
/// configuration, and what calls do not have.
fn mixed() -> Vec<Vec<u8>> {
    [
        "06-exec.raw.log",
        "20-norules-hardwired.enriched.log",
        "10-net-saddrfam.raw.log",
        "other-kinds.raw.log",
        "19-bpf-seccomp-abend.enriched.log",
        "56-config-change.raw.log",
    ]
    .iter()
    .flat_map(|name| {
        let lines: Vec<_> = read(name)
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        lines
    })
    .collect()
}

/// A generator of numbers that are the same in every run (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }
}

fn write(dir: &TempDir, name: &str, text: &[u8]) -> PathBuf {
    let path = dir.path().join(name);
    fs::write(&path, text).expect("a written log");
    path
}

#[test]
fn logs_of_the_kernel_have_the_reports_of_aureport() {
    let Some(root) = testkit::peers("reports beside aureport") else {
        return;
    };
    for name in [
        "01-file-mod.raw.log",
        "06-exec.enriched.log",
        "10-net-saddrfam.raw.log",
        "27-compat32.raw.log",
        "28-x32-badnr.raw.log",
    ] {
        compare_all(&root, &corpus().join(name), UTC);
    }
    let log = corpus().join("16-ids.enriched.log");
    compare_all(&root, &log, "America/St_Johns");
}

#[test]
fn messages_of_user_space_have_the_reports_of_aureport() {
    let Some(root) = testkit::peers("reports beside aureport") else {
        return;
    };
    compare_all(&root, &corpus().join("other-kinds.raw.log"), UTC);
    compare_all(
        &root,
        &corpus().join("20-norules-hardwired.enriched.log"),
        UTC,
    );
    let dir = TempDir::new().expect("a directory");
    compare_all(&root, &write(&dir, "messages", MESSAGES.as_bytes()), UTC);
}

/// Records that the corpus does not have.
const MESSAGES: &str = "\
type=TTY msg=audit(1795229630.000:1): tty pid=5 uid=0 auid=0 ses=1 major=136 minor=0 comm=\"bash\" data=6C730D031B5B41229B8022
type=USER_TTY msg=audit(1795229630.001:2): pid=5 uid=0 auid=0 ses=1 data=1B4F501B5B32347E61 x
type=TTY msg=audit(1795229630.002:3): tty pid=5 uid=0 auid=0 ses=1 comm=\"bash\" data=(null)
type=ADD_USER msg=audit(1795229630.003:4): pid=5 uid=0 auid=0 ses=1 msg='op=adding user id=1001 exe=\"/usr/sbin/useradd\" hostname=h addr=? terminal=pts/0 res=success'
type=DEL_GROUP msg=audit(1795229630.004:5): pid=5 uid=0 auid=1000 ses=1 msg='op=x id=7 exe=\"/usr/sbin/groupdel\" hostname=? addr=1.2.3.4 terminal=pts/0 res=failed'
type=USER_LOGIN msg=audit(1795229630.005:6): pid=6 uid=0 auid=1000 ses=2 msg='op=login id=1000 exe=\"/usr/sbin/sshd\" hostname=h addr=10.0.0.1 terminal=ssh res=success'
type=USER_LOGIN msg=audit(1795229630.006:7): pid=6 uid=0 auid=4294967295 ses=4294967295 msg='op=login acct=\"bad\" exe=\"/usr/sbin/sshd\" hostname=? addr=10.0.0.2 terminal=ssh res=failed'
type=USER_AUTH msg=audit(1795229630.007:8): pid=6 uid=0 auid=4294967295 ses=4294967295 msg='op=PAM:authentication acct=\"root\" exe=\"/usr/bin/su\" hostname=? addr=? terminal=pts/1 res=failed'
type=USER_AUTH msg=audit(1795229630.008:9): pid=6 uid=0 auid=1000 ses=3 msg='op=PAM:authentication acct=726F6F7421 exe=\"/usr/bin/su\" hostname=? addr=? terminal=pts/1 res=success'\x1dUID=\"root\" AUID=\"somebody\"
type=USER_MGMT msg=audit(1795229630.009:10): pid=6 uid=0 auid=1000 ses=3 msg='op=x acct=\"a b\" exe=\"/usr/sbin/usermod\" hostname=? addr=? terminal=? res=failed'
type=ANOM_ABEND msg=audit(1795229630.010:11): auid=1000 uid=1000 gid=1000 ses=3 pid=77 comm=\"crash\" exe=\"/bin/crash\" sig=11 res=1
type=RESP_ACCT_LOCK msg=audit(1795229630.011:12): pid=6 uid=0 auid=1000 ses=3 msg='acct=\"x\" exe=\"/bin/pam\" hostname=? addr=? terminal=? res=success'
type=CRYPTO_KEY_USER msg=audit(1795229630.012:13): pid=6 uid=0 auid=1000 ses=3 msg='op=destroy exe=\"/usr/sbin/sshd\" hostname=? addr=? terminal=? res=success'
type=VIRT_CONTROL msg=audit(1795229630.013:14): pid=6 uid=0 auid=1000 ses=3 msg='virt=kvm op=start vm=\"guest\" uuid=aa-bb exe=\"/usr/sbin/libvirtd\" hostname=? addr=? terminal=? res=success'
type=INTEGRITY_DATA msg=audit(1795229630.014:15): pid=7 uid=0 auid=1000 ses=3 op=appraise_data cause=invalid-hash comm=\"cat\" name=\"/etc/x\" dev=\"sda\" ino=5 res=0
type=MAC_POLICY_LOAD msg=audit(1795229630.015:16): auid=1000 ses=3 lsm=selinux res=1
type=MAC_MAP_ADD msg=audit(1795229630.016:17): auid=1000 ses=3 subj=x nlbl_protocol=unlbl res=1
type=MAC_UNLBL_STCDEL msg=audit(1795229630.017:18): auid=1000 ses=3 subj=x res=0
type=ROLE_ASSIGN msg=audit(1795229630.018:19): pid=6 uid=0 auid=1000 ses=3 msg='op=x acct=\"u\" exe=\"/bin/semanage\" hostname=? addr=? terminal=pts/0 res=success'
type=AVC msg=audit(1795229630.019:20): avc:  denied  { read write } for  pid=9 comm=\"httpd\" name=\"x\" dev=\"sda\" ino=1 scontext=a:b:c tcontext=d:e:f tclass=file permissive=0
type=SYSCALL msg=audit(1795229630.019:20): arch=c000003e syscall=2 success=no exit=-13 a0=1 a1=2 a2=0 a3=0 items=0 ppid=1 pid=9 auid=1000 uid=0 gid=0 euid=0 suid=0 fsuid=0 egid=0 sgid=0 fsgid=0 tty=(none) ses=3 comm=\"httpd\" exe=\"/usr/sbin/httpd\" subj=a:b:c key=(null)
type=USER_AVC msg=audit(1795229630.020:21): pid=1 uid=0 auid=4294967295 ses=4294967295 subj=s msg='avc:  granted  { start } for auid=0 scontext=g:h scontext=i tcontext=j:k tclass=service  exe=\"/lib/systemd\" hostname=? addr=? terminal=?'
type=NETFILTER_CFG msg=audit(1795229630.021:22): table=filter family=2 entries=4
type=DAEMON_CONFIG msg=audit(1795229630.022:23): op=reconfigure state=changed auid=0 pid=1 subj=x res=success
type=USYS_CONFIG msg=audit(1795229630.023:24): pid=6 uid=0 auid=1000 ses=3 msg='op=clock exe=\"/sbin/hwclock\" hostname=? addr=? terminal=? res=success'
type=NOBODY_KNOWS msg=audit(1795229630.024:25): pid=6 uid=0
type=UNKNOWN[1999] msg=audit(1795229630.025:26): pid=6 uid=0
";

#[test]
fn disordered_and_damaged_logs_have_the_reports_of_aureport() {
    let Some(root) = testkit::peers("reports beside aureport") else {
        return;
    };
    let rounds = std::env::var("TARSIER_REPORT_ROUNDS").map_or(1, |rounds| {
        rounds.parse().expect("TARSIER_REPORT_ROUNDS: a number")
    });
    for round in 0..rounds {
        let dir = TempDir::new().expect("a directory");
        for (name, log) in damaged(&mixed(), &mut Numbers(9 + round)) {
            compare_all(&root, &write(&dir, name, &log), UTC);
        }
    }
}

/// The lines in other orders, from two nodes, with other bits, and cut.
fn damaged(lines: &[Vec<u8>], numbers: &mut Numbers) -> Vec<(&'static str, Vec<u8>)> {
    let mut shuffled = lines.to_vec();
    for at in (1..shuffled.len()).rev() {
        shuffled.swap(at, numbers.below(at + 1));
    }
    let half = lines.len() / 2;
    let nodes: Vec<u8> = (0..half)
        .flat_map(|at| {
            let (one, two) = (&lines[at], &lines[half + at]);
            [&b"node=one "[..], one, b"node=two ", two].concat()
        })
        .collect();
    let mut flipped = lines.concat();
    for _ in 0..flipped.len() / 150 {
        let at = numbers.below(flipped.len());
        let changed = flipped[at] ^ 1 << numbers.below(7);
        if changed != 0 {
            flipped[at] = changed;
        }
    }
    let mut cut = Vec::new();
    for line in lines {
        cut.extend_from_slice(&line[..numbers.below(line.len())]);
        cut.push(b'\n');
    }
    vec![
        ("shuffled", shuffled.concat()),
        ("nodes", nodes),
        ("flipped", flipped),
        ("cut", cut),
    ]
}

#[test]
fn wrong_options_have_the_messages_of_aureport() {
    let Some(root) = testkit::peers("messages beside aureport") else {
        return;
    };
    for words in WRONG {
        let words: Vec<&str> = words.split_whitespace().collect();
        let expected = output(peer(&root, "sbin/aureport").args(&words), zone(UTC));
        let found = output(tarsier(&["--dialect", "3"]).args(&words), zone(UTC));
        let said = |output: &Output| (output.status.code(), shown(&output.stderr));
        let trimmed = |output: &Output| {
            let (status, text) = said(output);
            // Where aureport does not end its line.
            (status, text.trim_end().to_owned())
        };
        assert_eq!(trimmed(&found), trimmed(&expected), "{words:?}");
        // The help is not aureport's text.
        if !shown(&expected.stdout).contains("usage:") {
            assert_eq!(shown(&found.stdout), shown(&expected.stdout), "{words:?}");
        }
    }
}

#[test]
fn rotated_sets_and_pipes_are_read_as_by_aureport() {
    let Some(root) = testkit::peers("reports beside aureport") else {
        return;
    };
    let dir = TempDir::new().expect("a directory");
    let lines = mixed();
    for (number, part) in lines.chunks(lines.len() / 3 + 1).rev().enumerate() {
        let name = match number {
            0 => "audit.log".to_owned(),
            _ => format!("audit.log.{number}"),
        };
        write(&dir, &name, &part.concat());
    }
    compare_all(&root, dir.path(), UTC);

    let piped = |mut command: Command| {
        let mut child = command
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it runs");
        let mut input = child.stdin.take().expect("a pipe");
        let text = lines.concat();
        let writer = std::thread::spawn(move || input.write_all(&text));
        let output = child.wait_with_output().expect("an end");
        writer.join().expect("no panic").expect("all is read");
        shown(&output.stdout)
    };
    for words in [&["-t"][..], &["-x", "--summary"], &[]] {
        let mut expected = peer(&root, "sbin/aureport");
        expected.args(words);
        let found = piped(tarsier(&[&["--dialect", "3"], words].concat()));
        assert_eq!(found, piped(expected), "{words:?}");
    }
}

#[test]
fn dates_of_other_locales_are_those_of_aureport() {
    let Some(root) = testkit::peers("reports beside aureport") else {
        return;
    };
    let dir = TempDir::new().expect("a directory");
    for name in ["de_DE", "en_US"] {
        let locale = format!("{name}.UTF-8");
        let made = Command::new("localedef")
            .args(["-i", name, "-f", "UTF-8"])
            .arg(dir.path().join(&locale))
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            println!("skipped: dates of {locale}: localedef(1) cannot make it");
            continue;
        }
        let place = Place {
            zone: "Europe/Berlin",
            locale: &locale,
            locales: dir.path(),
        };
        let log = corpus().join("06-exec.raw.log");
        let log = log.to_str().expect("paths are text");
        let date = if name == "de_DE" {
            "21.11.2026"
        } else {
            "11/21/2026"
        };
        for report in REPORTS {
            compare(&root, &words_of(log, &[report]), place);
        }
        let since = ["-x", "-ts", date, "03:53:51"];
        compare(&root, &words_of(log, &since), place);
        let found = output(
            tarsier(&["--dialect", "3"]).args(words_of(log, &["-x"])),
            place,
        );
        assert!(
            shown(&found.stdout).contains(date),
            "{locale}: another date"
        );
    }
}
