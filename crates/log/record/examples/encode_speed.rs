//! Measures how long the encoder alone takes for an ordinary event of one call. `bench/run flush` runs it.
//! Prints `FORMAT NANOSECONDS BYTES` for each format, the fastest of several rounds.

use record::record::{Proctitle, Syscall};
use record::{Encoder, Format, NameTable, Stamp};
use std::time::Instant;

const EVENTS: u32 = 200_000;
const ROUNDS: u32 = 7;

const CALL: Syscall<'static> = Syscall {
    arch: 0xc000_003e,
    nr: 110,
    personality: 0,
    exit: Some(1),
    a: [0x7a53, 1, 2, u64::MAX],
    items: 0,
    is_cut: false,
    ppid: 1,
    pid: 3983,
    auid: 1000,
    uid: 0,
    gid: 61234,
    euid: 0,
    suid: 0,
    fsuid: 0,
    egid: 61234,
    sgid: 61234,
    fsgid: 61234,
    tty: b"pts0",
    ses: 3,
    comm: b"hammer",
    exe: Some(b"/usr/bin/hammer"),
    subj: None,
    key: Some(b"bench"),
};

/// Encodes [`EVENTS`] events; returns the nanoseconds and bytes per event.
fn round(encoder: &mut Encoder, out: &mut Vec<u8>) -> (f64, usize) {
    let started = Instant::now();
    for serial in 0..EVENTS {
        out.clear();
        let stamp = Stamp {
            sec: 1_795_229_646,
            msec: 7,
            serial,
        };
        let mut event = encoder.begin(out, stamp);
        event.syscall(&CALL);
        event.put(&Proctitle {
            title: Some(b"hammer\0calls\x0061234"),
        });
        event.end();
        std::hint::black_box(&*out);
    }

    let ns = started.elapsed().as_nanos() as f64 / f64::from(EVENTS);
    (ns, out.len())
}

fn main() {
    for (name, format) in [
        ("RAW", Format::Raw),
        ("ENRICHED", Format::Enriched),
        ("JSON", Format::Json),
    ] {
        let names = NameTable::parse("root:x:0:0::/:\nalice:x:1000:1000::/:", "root:x:0:");
        let mut encoder = Encoder::new(format, Box::new(names));
        let mut out = Vec::with_capacity(4096);
        let rounds = (0..ROUNDS).map(|_| round(&mut encoder, &mut out));
        let best = rounds.min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((ns, bytes)) = best {
            println!("{name} {ns:.0} {bytes}");
        }
    }
}
