//! Checks that nothing depends on the kernel's version: distributions backport features to earlier kernels. What a
//! kernel can do is probed.

use super::source::{without_comments_and_literals, Language, Source};
use super::Offence;

/// Files that may read or compare the kernel's version, and why.
const ALLOWED: [(&str, &str); 4] = [
    (
        "crates/kernel/capture/src/kernel/probe.rs",
        "a reason shows it",
    ),
    (
        "crates/app/daemon/src/account/daemon_records.rs",
        "DAEMON_START has it",
    ),
    (
        "crates/app/tarsier/src/seccomp_command/source.rs",
        "reads it for Docker's profiles",
    ),
    (
        "crates/seccomp/seccomp/src/profile/oci.rs",
        "minKernel of Docker's profiles is a version",
    ),
];

/// Operands of comparisons that contain a kernel version.
const VERSIONS: [&str; 4] = ["release", "kernel", "kernel_release", "kernel_version"];
/// Macros that C code compares.
const MACROS: [&str; 3] = [
    "KERNEL_VERSION",
    "LINUX_KERNEL_VERSION",
    "LINUX_VERSION_CODE",
];

/// Code in crates that reads the kernel's version or compares with one.
pub(super) fn offences(sources: &[Source]) -> Vec<Offence> {
    let is_judged = |source: &&Source| {
        source.path.starts_with("crates/")
            && !source.path.contains("/tests/")
            && matches!(source.language, Language::Rust | Language::C)
    };
    let mut offences = Vec::new();
    for Source { path, text, .. } in sources.iter().filter(is_judged) {
        let code = without_comments_and_literals(text);
        let is_reader = code.contains("uname()");
        for (number, line) in (1..).zip(code.lines()) {
            let reads = is_reader && line.contains(".release()");
            if reads || compares_version(line) {
                offences.push(Offence {
                    place: path.clone(),
                    error: format!(
                        "{path}:{number}: depends on the version of the kernel; probe what the kernel can do"
                    ),
                });
            }
        }
    }

    let (allowed, mut offences): (Vec<_>, Vec<_>) = offences
        .into_iter()
        .partition(|offence| ALLOWED.iter().any(|(path, _)| *path == offence.place));
    let is_needed = |path: &str| allowed.iter().any(|offence| offence.place == path);
    let is_read = |path: &str| sources.iter().any(|source| source.path == path);
    for (path, _) in ALLOWED {
        if is_read(path) && !is_needed(path) {
            offences.push(Offence {
                place: path.to_owned(),
                error: format!("{path}: does not depend on the kernel's version any more; take it from the exceptions"),
            });
        }
    }

    offences
}

/// Whether one side of a comparison is a version: `(6, 12)`, or a name in [`VERSIONS`].
fn compares_version(code: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut words = code.split(|c| !is_part(c));
    if words.any(|word| MACROS.contains(&word)) {
        return true;
    }

    let mut operands = code.match_indices(' ').filter_map(|(at, _)| {
        let operator = code[at + 1..].split(' ').next()?;
        let after = code.get(at + 2 + operator.len()..)?;
        matches!(operator, "<" | ">" | "<=" | ">=").then_some((&code[..at], after))
    });

    operands.any(|(left, right)| {
        let name = left.rsplit(|c| !is_part(c)).next();
        let tuple = left.rfind('(').map(|begin| &left[begin..]);
        name.is_some_and(|name| VERSIONS.contains(&name))
            || tuple.is_some_and(|tuple| tuple.ends_with(')') && is_version(tuple))
            || is_version(right)
    })
}

/// Whether the text begins with two numbers in parentheses.
fn is_version(text: &str) -> bool {
    let Some((inside, _)) = text.strip_prefix('(').and_then(|rest| rest.split_once(')')) else {
        return false;
    };
    let is_number = |part: &str| {
        let part = part.trim();
        !part.is_empty() && part.chars().all(|c| c.is_ascii_digit())
    };
    inside.contains(',') && inside.split(',').all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comparisons_of_versions_are_seen() {
        for code in [
            "if release >= (6, 11) {",
            "    self.release < oldest",
            "(6, 1) <= found",
            "#if LINUX_VERSION_CODE < 1",
            "if (bpf_core_version() >= KERNEL_VERSION(6, 6, 0))",
        ] {
            assert!(compares_version(code), "{code}");
        }
        for code in [
            "if size >= (a, b) {",
            "let kernel = (6, 12);",
            "x < y(1, 2)",
            "Vec<(u32, u32)>",
        ] {
            assert!(!compares_version(code), "{code}");
        }
    }

    #[test]
    fn reading_the_release_is_an_offence_outside_tests_and_files_that_show_it() {
        let text = "fn f() {\n    let u = uname();\n    u.release()\n}\n";
        let source = |path: &str| Source {
            path: path.into(),
            language: Language::Rust,
            text: text.into(),
        };
        let sources = [
            source("crates/a/src/b.rs"),
            source("crates/a/tests/b.rs"),
            source("crates/kernel/capture/src/kernel/probe.rs"),
            source("xtask/src/b.rs"),
        ];
        let found: Vec<String> = offences(&sources)
            .into_iter()
            .map(|offence| offence.error)
            .collect();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("crates/a/src/b.rs:3: "), "{found:?}");
    }
}
