//! Debian's audit programs, in the two versions with which tests compare.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// The audit package of a version, and the dialect that matches it.
#[derive(Debug)]
pub struct AuditPackage {
    root: PathBuf,
    /// `3` for 3.0.9, `4` for 4.0.2: the value of `--dialect`.
    pub dialect: &'static str,
}

impl AuditPackage {
    /// The packages that are there. For each that is missing, prints that `what` is skipped.
    pub fn all(what: &str) -> Vec<AuditPackage> {
        let three = crate::peers(what).map(|root| AuditPackage { root, dialect: "3" });
        let four = std::env::var_os("TARSIER_PEERS4").map(|root| AuditPackage {
            root: root.into(),
            dialect: "4",
        });
        if four.is_none() {
            println!("skipped: {what}, 4.0.2: TARSIER_PEERS4 is not set");
        }
        three.into_iter().chain(four).collect()
    }

    /// A command that runs one of its programs with the package's libraries.
    ///
    /// # Panics
    /// The package of 4.0.2 has no C library.
    pub fn command(&self, program: &str) -> Command {
        let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
        let root = self.root.display();
        let is_for_root = ["ausearch", "aureport"].contains(&program);
        if self.dialect == "3" {
            let directory = if is_for_root { "sbin" } else { "usr/bin" };
            let mut command = Command::new(self.root.join(directory).join(program));
            let libraries = format!("{root}/usr/lib/{triplet}:{root}/lib/{triplet}");
            command.env("LD_LIBRARY_PATH", libraries);
            return command;
        }
        // It needs a newer C library than Debian 12 has.
        let libraries = self.root.join("usr/lib").join(&triplet);
        let loader = fs::read_dir(&libraries)
            .expect("libraries")
            .map(|entry| entry.expect("an entry").path())
            .find(|path| path.to_string_lossy().contains("/ld-linux"))
            .expect("a loader");
        let directory = if is_for_root { "usr/sbin" } else { "usr/bin" };
        let mut command = Command::new(loader);
        command.arg("--library-path").arg(libraries);
        command.arg(self.root.join(directory).join(program));
        command
    }
}
