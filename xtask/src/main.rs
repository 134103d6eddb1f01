//! Project tasks: `cargo xtask <task>`.
//!
//! * `tables --headers DIR --source DIR` writes `crates/core/abi/src/generated/*.rs` from a kernel's headers and
//!   source. See [`tables`].
//! * `bindings [--check]` writes `crates/log/record/src/wire/bindings.rs` and `crates/kernel/bpf/src/shared.rs` from C
//!   headers. See [`bindings`].
//! * `systemd-sets --from FILE` writes `crates/seccomp/seccomp/src/profile/sets.rs` from the output of
//!   `systemd-analyze syscall-filter`. See [`systemd_sets`].
//! * `docs` writes the generated parts of the manual's pages; `book DIR` lays them out for mdBook. See [`docs`].
//! * `tidy` checks the code against the rules of [`tidy`], as a test does, too.
//! * `man [DIR]` writes manual pages to DIR/man and shell completions to DIR/completions (DIR: `target`). See
//!   [`man`].
//! * `dist DIR TRIPLE TIME` writes the files that packages contain in addition to the programs. See
//!   [`dist`].
//! * `vm [--kernel K]… [-- TEST…]` runs `tests/vm` in virtual machines with stock kernels, `vm --matrix` on all of
//!   them. See [`vm`].

mod bindings;
mod command;
mod dist;
mod docs;
mod man;
mod systemd_sets;
mod tables;
mod tidy;
mod vm;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str =
    "usage: cargo xtask tables --headers DIR --source DIR\n       cargo xtask bindings [--check]\n       \
     cargo xtask systemd-sets --from FILE\n       cargo xtask docs [--check]\n       cargo xtask book DIR\n       \
     cargo xtask tidy\n       cargo xtask man [DIR]\n       cargo xtask dist DIR TRIPLE TIME";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["tables", "--headers", headers, "--source", source] => {
            tables::write(Path::new(headers), Path::new(source), &generated_dir())
        }
        ["systemd-sets", "--from", file] => systemd_sets::write(Path::new(file), &sets_file()),
        ["bindings"] => bindings::write(&source_root(), false),
        ["bindings", "--check"] => bindings::write(&source_root(), true),
        ["docs", "--check"] => docs::check(&source_root()),
        ["docs"] => docs::write(&source_root()),
        ["book", directory] => docs::stage(&source_root(), Path::new(directory)),
        ["tidy"] => tidy::check(&source_root()),
        ["man"] => man::write(&source_root().join("target")),
        ["man", directory] => man::write(Path::new(directory)),
        ["dist", directory, triple, created] => {
            dist::write(&source_root(), Path::new(directory), triple, created)
        }
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

/// The root of the source tree.
fn source_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Directory of the generated tables.
fn generated_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/core/abi/src/generated")
}

/// File with the sets of `SystemCallFilter=`.
fn sets_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/seccomp/seccomp/src/profile/sets.rs")
}
