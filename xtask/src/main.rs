//! Project tasks: `cargo xtask <task>`.
//!
//! * `tables --headers DIR --source DIR` writes `crates/abi/src/generated/*.rs` from a kernel's headers and source. See
//!   [`tables`].
//! * `bindings [--check]` writes `crates/event/src/wire/bindings.rs` from the event header. See [`bindings`].
//! * `systemd-sets --from FILE` writes `crates/seccomp/src/profile/sets.rs` from what
//!   `systemd-analyze syscall-filter` prints. See [`systemd_sets`].
//! * `vm [--kernel K]… [-- TEST…]` runs `tests/vm` in virtual machines with stock kernels, `vm --matrix` on all of them. See [`vm`].

mod bindings;
mod systemd_sets;
mod tables;
mod vm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str =
    "usage: cargo xtask tables --headers DIR --source DIR\n       cargo xtask bindings [--check]\n       \
     cargo xtask systemd-sets --from FILE";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["tables", "--headers", headers, "--source", source] => {
            tables::write(Path::new(headers), Path::new(source), &generated_dir())
        }
        ["systemd-sets", "--from", file] => systemd_sets::write(Path::new(file), &sets_file()),
        ["bindings"] => bindings::write(false),
        ["bindings", "--check"] => bindings::write(true),
        ["vm", rest @ ..] => match vm::run(rest) {
            Ok(code) => return code,
            Err(error) => Err(error),
        },
        _ => {
            eprintln!("{USAGE}\n       {}", vm::USAGE);
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Where the generated tables live, next to this crate in the source tree.
fn generated_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/abi/src/generated")
}

/// Where the sets of `SystemCallFilter=` live.
fn sets_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/seccomp/src/profile/sets.rs")
}
