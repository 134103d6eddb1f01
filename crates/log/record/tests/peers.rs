//! The distribution's ausearch reads what the encoder writes, without dropping an event.

use std::path::Path;
use std::process::Command;

use record::record::*;
use record::{Encoder, Format, NameTable, RecordType, Stamp};

fn syscall<'a>(nr: i32, exit: Option<i64>, key: Option<&'a [u8]>) -> Syscall<'a> {
    Syscall {
        arch: 0xc000_003e,
        nr,
        personality: 0,
        exit,
        a: [0xffff_ff9c, 1, 2, 3],
        items: 2,
        is_cut: false,
        ppid: 1,
        pid: 3983,
        auid: 1000,
        uid: 0,
        gid: 0,
        euid: 0,
        suid: 0,
        fsuid: 0,
        egid: 0,
        sgid: 0,
        fsgid: 0,
        tty: b"",
        ses: u32::MAX,
        comm: b"two words",
        exe: Some(b"/usr/bin/cat"),
        subj: None,
        key,
    }
}

fn stamp(serial: u32) -> Stamp {
    Stamp {
        sec: 1_795_229_646,
        msec: 7,
        serial,
    }
}

/// Events of every shape that Tarsier itself makes.
fn write_log(encoder: &mut Encoder, out: &mut Vec<u8>) {
    let start = DaemonStart {
        ver: "0.1.0",
        format: "raw",
        kernel: "6.1.0",
        auid: u32::MAX,
        pid: 7,
        uid: 0,
        ses: u32::MAX,
        subj: None,
        extra: &[("engine", "tracepoint")],
        res: "success",
    };
    encoder.begin(out, stamp(1)).put(&start);
    write_execve(encoder, out);
    write_calls(encoder, out);
    write_operation(encoder, out);
    encoder.raw(
        out,
        1123,
        format!(
            "audit(1795229647.000:{}): pid=1 uid=0 msg='res=success'",
            99
        )
        .as_bytes(),
    );
    let action = DaemonAction {
        kind: RecordType::DAEMON_END,
        op: "terminate",
        state: None,
        auid: 0,
        uid: Some(0),
        ses: Some(u32::MAX),
        pid: 1,
        subj: None,
        extra: &[],
        res: "success",
    };
    encoder.begin(out, stamp(6)).put(&action);
}

/// An execve with a long command line, and files with odd names.
fn write_execve(encoder: &mut Encoder, out: &mut Vec<u8>) {
    let inode = Inode {
        ino: 5,
        dev: 0x19,
        mode: 0o100644,
        ouid: 1000,
        ogid: 0,
        rdev: 0,
        label: 0,
    };
    let mut args = b"cat\0a b\0".to_vec();
    for number in 0..10_000 {
        args.extend_from_slice(format!("argument-{number}\0").as_bytes());
    }
    args.extend([b'x'; 20_000]);
    args.push(0);
    let mut event = encoder.begin(out, stamp(2));
    event.put(&syscall(59, Some(0), Some(b"k1\x01k2")));
    event.put(&BprmFcaps {
        fver: 2,
        fp: 0x3000,
        fi: 0,
        fe: 1,
        old: Capabilities::default(),
        new: Capabilities {
            permitted: 0x3000,
            ..Capabilities::default()
        },
        frootid: 0,
    });
    event.execve(&Execve::whole(&args));
    event.put(&Cwd {
        cwd: b"/gone (deleted)",
    });
    event.put(&PathItem {
        name: Some(b"/tmp/\xff\n"),
        inode: Some(inode),
        ..PathItem::default()
    });
    event.put(&PathItem {
        item: 1,
        nametype: NameType::Create,
        ..PathItem::default()
    });
    event.put(&Proctitle {
        title: Some(b"cat\0a b"),
    });
    event.end();
}

/// A call that fails, and one that does not return.
fn write_calls(encoder: &mut Encoder, out: &mut Vec<u8>) {
    let mut event = encoder.begin(out, stamp(3));
    event.put(&syscall(42, Some(-512), None));
    event.put(&Sockaddr {
        saddr: b"\x01\0/run/a socket\0",
    });
    event.put(&Proctitle { title: None });
    event.end();

    let mut event = encoder.begin(out, stamp(4));
    event.put(&syscall(231, None, Some(b"gone")));
    event.put(&ObjPid {
        opid: 9,
        oauid: u32::MAX,
        ouid: 0,
        oses: u32::MAX,
        obj: None,
        ocomm: b"x y",
    });
    event.put(&Proctitle { title: Some(b"x") });
    event.end();
}

fn write_operation(encoder: &mut Encoder, out: &mut Vec<u8>) {
    let mut event = encoder.begin(out, stamp(5));
    event.put(&UringOp {
        op: 18,
        result: Some((false, -13)),
        items: 0,
        is_cut: false,
        is_pending: true,
        result_of: Some(stamp(4)),
        ppid: 1,
        pid: 2,
        uid: 0,
        gid: 0,
        euid: 0,
        suid: 0,
        fsuid: 0,
        egid: 0,
        sgid: 0,
        fsgid: 0,
        doer: Some(Doer {
            auid: 1000,
            ses: 3,
            comm: b"x y",
            exe: Some(b"/bin/x"),
        }),
        subj: None,
        key: Some(b"iou"),
    });
    event.put(&Proctitle { title: Some(b"x") });
    event.end();
}

fn ausearch(peers: &Path, log: &Path, options: &[&str]) -> (String, String) {
    let libraries =
        ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|folder| peers.join(folder));
    let output = Command::new(peers.join("sbin/ausearch"))
        .env(
            "LD_LIBRARY_PATH",
            std::env::join_paths(libraries).expect("paths"),
        )
        .arg("-if")
        .arg(log)
        .args(options)
        .output()
        .expect("ausearch runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (text(output.stdout), text(output.stderr))
}

/// The records of a log, sorted by their text. ausearch appends a useless separator to lines without interpretations.
fn sorted(text: &str) -> Vec<&str> {
    let records = text.lines().filter(|line| line.starts_with("type="));
    let mut lines: Vec<&str> = records.map(|line| line.trim_end_matches('\x1d')).collect();
    lines.sort_unstable();
    lines
}

#[test]
fn ausearch_reads_every_event() {
    let Some(peers) = testkit::peers("ausearch on what the encoder writes") else {
        return;
    };
    let peers = peers.as_path();
    for format in [Format::Raw, Format::Enriched] {
        let names = NameTable::parse("alice:x:1000:1000::/:", "");
        let (mut encoder, mut log) = (Encoder::new(format, Box::new(names)), Vec::new());
        write_log(&mut encoder, &mut log);
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("peers-{format:?}.log"));
        std::fs::write(&path, &log).expect("the log is written");
        let (raw, complaints) = ausearch(peers, &path, &["--raw", "--debug"]);
        assert!(!complaints.contains("alformed"), "{complaints}");
        assert_eq!(
            sorted(&raw),
            sorted(&String::from_utf8_lossy(&log)),
            "{format:?}"
        );
        let (keyed, _) = ausearch(peers, &path, &["-k", "k2", "-i"]);
        for text in [
            "syscall=execve",
            "success=yes",
            "argument-9999",
            "name=/tmp/",
            "key=k1 key=k2",
        ] {
            assert!(keyed.contains(text), "{text} of {keyed:.2000}");
        }
        let (refused, _) = ausearch(peers, &path, &["-sc", "connect", "-sv", "no", "-i"]);
        assert!(
            refused.contains("exit=EINTR") && refused.contains("/run/a socket"),
            "{refused}"
        );
    }
}
