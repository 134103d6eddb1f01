//! Parses the command line of `cargo xtask vm`.

use anyhow::{bail, ensure, Context, Result};

use super::guest::Guest;
use super::judges::{self, Test};
use super::kernels::Wanted;
use super::plan::Extent;
use super::variant::{self, Variant};

/// Usage of the task.
pub(crate) const USAGE: &str =
    "cargo xtask vm [--arch amd64|arm64] [--kernel 6.1|newest|PACKAGE]… [--variant NAME]… [--jobs N] [--long | -- TEST…]
           (default: kernels 6.1, 6.12 and the newest, and for each the tests that make test has time for; --long: those
           with TARSIER_LONG_TESTS; arm64: 6.12 and the newest)
       cargo xtask vm --matrix [--arch A] [--kernel K]… [--continue] [--write]
           (every kernel and variant of both architectures, or of these; --continue: but what has passed already;
           --write: and the documents)
       cargo xtask vm --tables   the documents' tables from docs/reference/kernels.json";

/// The parsed command line.
pub(super) struct Request {
    /// `None`: both architectures for a matrix, otherwise this system's.
    arch: Option<Guest>,
    /// Empty: the kernels of the extent.
    pub(super) kernels: Vec<Wanted>,
    pub(super) is_matrix: bool,
    /// Whether the tests are those of the long form of `make test`.
    is_long: bool,
    /// Whether machines whose tests have passed are not run again.
    pub(super) continues: bool,
    /// Whether results are written to the documents.
    pub(super) writes: bool,
    /// Whether to run nothing and only write the documents' tables.
    pub(super) only_tables: bool,
    /// Number of machines that run at the same time.
    pub(super) jobs: usize,
    tests: Vec<&'static Test>,
    variants: Vec<&'static Variant>,
}

impl Request {
    pub(super) fn parse(words: &[&str]) -> Result<Self> {
        let mut request = Request {
            arch: None,
            kernels: Vec::new(),
            is_matrix: false,
            is_long: false,
            continues: false,
            writes: false,
            only_tables: false,
            // A guest is idle for a third of its time.
            jobs: std::thread::available_parallelism().map_or(1, usize::from) + 1,
            tests: Vec::new(),
            variants: Vec::new(),
        };

        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = |what| words.next().with_context(|| format!("{word} takes {what}"));
            match *word {
                "--arch" => request.arch = Some(Guest::named(value("amd64 or arm64")?)?),
                "--kernel" => {
                    let kernel = value("a series (6.12), newest, or a package's name")?;
                    request.kernels.push(Wanted::parse(kernel)?);
                }
                "--variant" => {
                    let name = value("a variant's name")?;
                    request.variants.push(variant::named(name)?);
                }
                "--jobs" => {
                    let text = value("a number of machines")?;
                    let count = text.parse().ok().filter(|count| *count > 0);
                    request.jobs = count.with_context(|| {
                        format!("--jobs takes a number of machines, not '{text}'")
                    })?;
                }
                "--matrix" => request.is_matrix = true,
                "--long" => request.is_long = true,
                "--continue" => request.continues = true,
                "--write" => request.writes = true,
                "--tables" => request.only_tables = true,
                "--" => {
                    for name in words.by_ref() {
                        request.tests.push(judges::named(name)?);
                    }
                }
                other => bail!("unknown argument '{other}'\nusage: {USAGE}"),
            }
        }

        let is_named = !request.tests.is_empty() || !request.variants.is_empty();
        ensure!(
            !(request.is_matrix && is_named),
            "--matrix knows its tests and variants; only kernels and an architecture can be named beside it"
        );
        ensure!(
            !(request.is_long && (is_named || request.is_matrix)),
            "--long knows its tests and variants; leave it out beside others"
        );
        ensure!(
            request.is_matrix || !(request.writes || request.continues),
            "--write and --continue are for --matrix"
        );
        for variant in &request.variants {
            ensure!(
                request.guests().contains(&variant.guest),
                "{}: that is a variant of --arch {}",
                variant.name,
                variant.guest.debian_name()
            );
        }

        Ok(request)
    }

    /// The architectures of the requested machines.
    pub(super) fn guests(&self) -> Vec<Guest> {
        match (self.arch, self.is_matrix) {
            (Some(guest), _) => vec![guest],
            (None, true) => {
                let is_asked_for = |guest: &Guest| {
                    let mut kernels = self.kernels.iter();
                    self.kernels.is_empty() || kernels.any(|kernel| kernel.may_be_of(*guest))
                };
                Guest::EVERY.into_iter().filter(is_asked_for).collect()
            }
            (None, false) => vec![Guest::Amd64],
        }
    }

    /// Whether other results of the matrix are kept.
    pub(super) fn is_part(&self) -> bool {
        self.continues || self.arch.is_some() || !self.kernels.is_empty()
    }

    /// Whether a test is asked for by its name.
    pub(super) fn names(&self, test: &str) -> bool {
        self.tests.iter().any(|named| named.name == test)
    }

    pub(super) fn extent(&self) -> Extent<'_> {
        if self.is_matrix {
            return Extent::Matrix;
        }
        match self.tests.is_empty() && self.variants.is_empty() {
            true if self.is_long => Extent::Long,
            true => Extent::Usual,
            false => Extent::Named(&self.tests, &self.variants),
        }
    }
}

#[cfg(test)]
mod tests_of_words {
    use super::*;

    #[test]
    fn a_matrix_takes_kernels_and_nothing_else() {
        let parse = |line: &str| Request::parse(&line.split(' ').collect::<Vec<_>>());
        let request = parse("--matrix --kernel 6.12 --write --jobs 1").expect("a request");
        assert!(request.is_matrix && request.writes && request.jobs == 1);
        assert!(request.guests() == Guest::EVERY && request.is_part());
        assert!(!parse("--matrix").expect("a request").is_part());
        let request = parse("--matrix --continue").expect("a request");
        assert!(request.is_part() && request.continues);
        let line = "--matrix --kernel linux-image-6.12.9-cloud-arm64";
        assert_eq!(parse(line).expect("a request").guests(), [Guest::Arm64]);

        for line in [
            "--matrix -- rings",
            "--matrix --variant lockdown",
            "--write",
            "--continue",
            "--variant arm64",
            "--long -- rings",
            "--long --matrix",
            "--arch arm64 --variant cpus-1",
            "--jobs 0",
            "--variant none",
            "--kernel",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
