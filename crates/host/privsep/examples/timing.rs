//! Timing.
use compose::System;
use std::ffi::OsStr;
fn main() {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() == Some(OsStr::new(privsep::lookup::COMMAND)) {
        let ended = privsep::lookup::serve_as(arguments.next().as_deref());
        std::process::exit(i32::from(ended.is_err()));
    }
    let (remote, started) = privsep::lookup::Remote::start(privsep::spawn::Launcher::Here, |_| false);
    started.expect("a helper");
    let long = std::ffi::CString::new(format!("/usr/{}bin/env", "./".repeat(500))).unwrap();
    for round in 0..6 {
        let mut line = String::new();
        for (name, path) in [("inode", c"/usr/bin/env"), ("long", &*long)] {
            let n = 100_000;
            let begin = std::time::Instant::now();
            for _ in 0..n { assert!(remote.inode(path, true).is_some()); }
            line += &format!("{name} {} ns  ", begin.elapsed().as_nanos() / n);
        }
        let n = 100_000;
        let begin = std::time::Instant::now();
        for _ in 0..n { assert!(!remote.directories_above(c"/usr/share/doc/x", 0).is_empty()); }
        line += &format!("above {} ns", begin.elapsed().as_nanos() / n);
        println!("round {round}: {line}");
    }
}
