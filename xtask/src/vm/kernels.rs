//! Kernels: from a series to a file, through the distribution's packages.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};

use super::guest::Guest;
use super::output_of;

/// What comes before the version in the names of Debian's packages; behind it comes [`Guest::kernel_suffix`].
const PREFIX: &str = "linux-image-";

/// Which kernel is asked for.
pub(super) enum Wanted {
    /// The newest of a series: its numbers, `[6, 12]`.
    Series(Vec<u64>),
    /// The newest that the sources have.
    Newest,
    /// A package.
    Package(String),
}

impl Wanted {
    /// From a word of the command line: `6.12`, `newest`, `linux-image-…-cloud-amd64`.
    pub(super) fn parse(word: &str) -> Result<Self> {
        if word == "newest" {
            return Ok(Wanted::Newest);
        }
        if word.starts_with(PREFIX) {
            ensure!(
                version(word).is_some(),
                "'{word}' names no kernel; expected {PREFIX}VERSION{} or {PREFIX}VERSION{}",
                Guest::Amd64.kernel_suffix(),
                Guest::Arm64.kernel_suffix()
            );
            return Ok(Wanted::Package(word.to_string()));
        }
        match word.split('.').map(str::parse).collect() {
            Ok(numbers) => Ok(Wanted::Series(numbers)),
            Err(_) => {
                bail!("--kernel takes a series (6.12), newest, or a package's name, not '{word}'")
            }
        }
    }

    /// Whether the package is one that was asked for.
    fn takes(&self, package: &str) -> bool {
        match self {
            Wanted::Series(series) => version(package).is_some_and(|v| v.starts_with(series)),
            Wanted::Newest => version(package).is_some(),
            Wanted::Package(name) => name == package,
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Series(numbers) => {
                let words: Vec<String> = numbers.iter().map(u64::to_string).collect();
                f.write_str(&words.join("."))
            }
            Wanted::Newest => f.write_str("newest"),
            Wanted::Package(name) => f.write_str(name),
        }
    }
}

/// A kernel that can be booted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    /// As `uname -r` says it: `6.1.0-56-cloud-amd64`.
    pub(super) release: String,
    /// The compressed image.
    pub(super) image: PathBuf,
}

/// Finds and, unless it is in `cache`, downloads the kernel. The inner error says why it cannot be had.
/// A cache holds kernels of one architecture.
pub(super) fn fetch(guest: Guest, wanted: &Wanted, cache: &Path) -> Result<Result<Kernel, String>> {
    fs::create_dir_all(cache).with_context(|| format!("creating {}", cache.display()))?;
    let first = try_fetch(guest, wanted, cache);
    // The lists may be older than the archive, or not there at all.
    let second = match first {
        Err(_) if refresh_lists(guest) => try_fetch(guest, wanted, cache),
        other => other,
    };
    let reason = match second {
        Ok(kernel) => return Ok(Ok(kernel)),
        Err(error) => format!("{error:#}"),
    };
    Ok(match newest_cached(wanted, cache)? {
        Some(kernel) => {
            println!(
                "note: kernel {wanted}: taken from {}: {reason}",
                kernel.image.display()
            );
            Ok(kernel)
        }
        None => Err(reason),
    })
}

fn try_fetch(guest: Guest, wanted: &Wanted, cache: &Path) -> Result<Kernel> {
    let suffix = guest.kernel_suffix();
    let listed = output_of(guest.apt("apt-cache").args([
        "search",
        "--names-only",
        &format!("^{PREFIX}[0-9].*{suffix}$"),
    ]))?;
    let packages = listed.lines().filter_map(|line| line.split(' ').next());
    let Some(package) = newest(packages, wanted) else {
        bail!(
            "not in the apt sources (of Debian 12: bookworm for 6.1, bookworm-security for 6.12)"
        );
    };
    // 'URI' FILE SIZE HASH
    let uris = output_of(
        guest
            .apt("apt-get")
            .args(["download", "--print-uris", package]),
    )?;
    let deb = uris.split_whitespace().nth(1).unwrap_or_default();
    let Some(stem) = deb.strip_suffix(".deb") else {
        bail!("apt-get download --print-uris {package} names no file: {uris}");
    };
    let image = cache.join(stem);
    if !image.exists() {
        println!("fetching {package}");
        extract(guest, package, deb, &image, &cache.join("unpacked"))?;
    }
    Ok(Kernel {
        release: release(package),
        image,
    })
}

/// Downloads a package into `scratch` and moves its kernel image to `image`.
fn extract(guest: Guest, package: &str, deb: &str, image: &Path, scratch: &Path) -> Result<()> {
    if scratch.exists() {
        fs::remove_dir_all(scratch)?;
    }
    fs::create_dir_all(scratch)?;
    output_of(
        guest
            .apt("apt-get")
            .args(["download", "-qq", package])
            .current_dir(scratch),
    )?;
    output_of(
        Command::new("dpkg")
            .args(["-x", deb, "."])
            .current_dir(scratch),
    )?;
    let unpacked = scratch.join(format!("boot/vmlinuz-{}", release(package)));
    fs::rename(&unpacked, image)
        .with_context(|| format!("taking {} out of {deb}", unpacked.display()))?;
    fs::remove_dir_all(scratch).with_context(|| format!("removing {}", scratch.display()))
}

/// Downloads the lists of packages anew, those of this system only as root. Whether that was done.
fn refresh_lists(guest: Guest) -> bool {
    output_of(guest.apt("apt-get").args(["update", "-qq"])).is_ok()
}

/// The newest image in the cache that was asked for.
fn newest_cached(wanted: &Wanted, cache: &Path) -> Result<Option<Kernel>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(cache).with_context(|| format!("reading {}", cache.display()))? {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let packages = names.iter().filter_map(|name| name.split('_').next());
    let Some(package) = newest(packages, wanted) else {
        return Ok(None);
    };
    let file = names
        .iter()
        .filter(|name| name.split('_').next() == Some(package))
        .max();
    Ok(file.map(|file| Kernel {
        release: release(package),
        image: cache.join(file),
    }))
}

/// The newest of the packages that was asked for.
fn newest<'a>(packages: impl Iterator<Item = &'a str>, wanted: &Wanted) -> Option<&'a str> {
    packages
        .filter(|package| wanted.takes(package))
        .max_by_key(|package| version(package))
}

/// `linux-image-6.1.0-56-cloud-amd64`: `6.1.0-56-cloud-amd64`.
fn release(package: &str) -> String {
    package.trim_start_matches(PREFIX).to_string()
}

/// The numbers of a kernel package's name, `[6, 12, 117, 12]` of
/// `linux-image-6.12.117+deb12-cloud-amd64`. None for packages that only depend on one (three numbers
/// at least make a kernel) and for other names.
fn version(package: &str) -> Option<Vec<u64>> {
    let text = package.strip_prefix(PREFIX)?;
    let text = Guest::EVERY
        .iter()
        .find_map(|guest| text.strip_suffix(guest.kernel_suffix()))?;
    let numbers: Vec<u64> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    (numbers.len() >= 3).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: [&str; 6] = [
        "linux-image-6.12-cloud-amd64",
        "linux-image-6.12.9+bpo-cloud-amd64",
        "linux-image-6.12.117+deb12-cloud-amd64",
        "linux-image-6.1.0-9-cloud-amd64",
        "linux-image-6.1.0-56-cloud-amd64",
        "linux-image-cloud-amd64",
    ];

    fn chosen(word: &str) -> Option<&'static str> {
        let wanted = Wanted::parse(word).expect("a kernel's name");
        newest(LISTED.into_iter(), &wanted)
    }

    #[test]
    fn the_newest_of_a_series_is_found_by_number_not_by_letter() {
        assert_eq!(chosen("6.1"), Some("linux-image-6.1.0-56-cloud-amd64"));
        assert_eq!(
            chosen("6.12"),
            Some("linux-image-6.12.117+deb12-cloud-amd64")
        );
        assert_eq!(chosen("newest"), chosen("6.12"));
        assert_eq!(chosen(LISTED[3]), Some(LISTED[3]));
        assert_eq!(chosen("6.2"), None);
    }

    #[test]
    fn what_names_no_kernel_is_refused() {
        for word in ["", "six", "6.", "linux-image-cloud-amd64"] {
            assert!(Wanted::parse(word).is_err(), "{word}");
        }
    }
}
