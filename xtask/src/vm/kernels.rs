//! Kernels: finds the package of a series and extracts its kernel image.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{bail, ensure, Context, Result};

use super::apt::{self, Apt};
use super::guest::Guest;
use super::modules;
use super::output_of;

/// Prefixes of the release in the names of Debian's kernel packages. If both packages exist, as since 6.19, the
/// second one has the image, and the first one depends on it.
const PREFIXES: [&str; 2] = ["linux-image-", "linux-binary-"];

/// A request for a kernel.
#[derive(Clone)]
pub(super) enum Wanted {
    /// The newest kernel of a series, given by its numbers: `[6, 12]`.
    Series(Vec<u64>),
    /// The newest kernel in the suites.
    Newest,
    /// A certain release: `6.1.0-56-cloud-amd64`.
    Release(String),
}

impl Wanted {
    /// Parses a word of the command line: `6.12`, `newest`, `linux-image-…-cloud-amd64`.
    pub(super) fn parse(word: &str) -> Result<Self> {
        if word == "newest" {
            return Ok(Wanted::Newest);
        }

        if let Some(release) = release_of(word) {
            ensure!(
                version(release).is_some(),
                "'{word}' names no kernel; expected {}VERSION{} or {0}VERSION{}",
                PREFIXES[0],
                Guest::Amd64.kernel_suffix(),
                Guest::Arm64.kernel_suffix()
            );
            return Ok(Wanted::Release(release.to_string()));
        }

        match word.split('.').map(str::parse).collect() {
            Ok(numbers) => Ok(Wanted::Series(numbers)),
            Err(_) => {
                bail!("--kernel takes a series (6.12), newest, or a package's name, not '{word}'")
            }
        }
    }

    /// The kernels that are tested when none is named.
    pub(super) fn usual(guest: Guest) -> Result<Vec<Self>> {
        let series: &[&str] = match guest {
            Guest::Amd64 => &["6.1", "6.12", "newest"],
            Guest::Arm64 => &["6.12", "newest"],
        };
        series.iter().map(|series| Wanted::parse(series)).collect()
    }

    /// Whether this can be a kernel of the guest's architecture.
    pub(super) fn may_be_of(&self, guest: Guest) -> bool {
        match self {
            Wanted::Release(name) => name.ends_with(guest.kernel_suffix()),
            Wanted::Series(_) | Wanted::Newest => true,
        }
    }

    /// Whether the release matches the request.
    fn takes(&self, release: &str) -> bool {
        match self {
            Wanted::Series(series) => version(release).is_some_and(|v| v.starts_with(series)),
            Wanted::Newest => version(release).is_some(),
            Wanted::Release(name) => name == release,
        }
    }

    /// The newest release that matches the request.
    fn newest<'a>(&self, releases: impl Iterator<Item = &'a str>) -> Option<&'a str> {
        let taken = releases.filter(|release| self.takes(release));
        taken.max_by_key(|release| version(release))
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
            Wanted::Release(name) => f.write_str(name),
        }
    }
}

/// A kernel that can be booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    /// The release as `uname -r` prints it: `6.1.0-56-cloud-amd64`.
    pub(super) release: String,
    /// The compressed image, named `linux-image-RELEASE_DEBVERSION_ARCH` whichever package contained it.
    pub(super) image: PathBuf,
}

impl Kernel {
    /// The first two numbers of its version.
    pub(super) fn series(&self) -> [u64; 2] {
        series(&self.release).unwrap_or_default()
    }

    /// Directory with those modules of its package that tests load; see [`modules`].
    pub(super) fn modules(&self) -> PathBuf {
        modules::directory(&self.image)
    }

    /// The version of its package: `7.3.4-1~bpo13+1`.
    pub(super) fn package_version(&self) -> String {
        let name = self.image.file_name().unwrap_or_default().to_string_lossy();
        name.split('_').nth(1).unwrap_or_default().to_owned()
    }
}

/// The source of kernels of one architecture: apt, and the images fetched before.
pub(super) struct Store {
    guest: Guest,
    /// The error says why apt cannot be used.
    apt: Result<Apt, String>,
    cache: PathBuf,
}

impl Store {
    /// Opens the store with lists in `dir/apt` and images in `dir/kernels`.
    pub(super) fn open(guest: Guest, dir: &Path) -> Result<Self> {
        let cache = dir.join("kernels");
        fs::create_dir_all(&cache).with_context(|| format!("creating {}", cache.display()))?;
        let apt = Apt::prepare(guest, &dir.join("apt")).map_err(|error| format!("{error:#}"));
        Ok(Store { guest, apt, cache })
    }

    /// Finds the kernel, and downloads it unless it is in the cache. The inner error says why it is unavailable.
    pub(super) fn fetch(&self, wanted: &Wanted) -> Result<Result<Kernel, String>> {
        let reason = match self.try_fetch(wanted) {
            Ok(kernel) => return Ok(Ok(kernel)),
            Err(reason) => format!("{reason:#}"),
        };
        Ok(match self.newest_cached(wanted)? {
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

    /// The series from `lowest` on that the suites have or, if they cannot be queried, the cache.
    pub(super) fn series_from(&self, lowest: [u64; 2]) -> Result<BTreeSet<[u64; 2]>> {
        let packages = match self.listed(&Wanted::Newest) {
            Ok(packages) if !packages.is_empty() => packages,
            _ => self.cached()?,
        };
        let releases = packages.iter().filter_map(|package| {
            let release = release_of(package.split('_').next()?)?;
            version(release).and(series(release))
        });
        Ok(releases.filter(|series| *series >= lowest).collect())
    }

    fn try_fetch(&self, wanted: &Wanted) -> Result<Kernel> {
        let own = self.apt()?;
        let packages = self.listed(wanted)?;
        let Some(release) = wanted.newest(releases(&packages)) else {
            bail!("none in the suites {}", apt::suites().join(", "));
        };

        let package = package_of(release, &packages);
        let file = own.file_of(&package)?;
        let image = self.cache.join(image_name(&file, &package)?);
        if !image.exists() || !modules::are_taken(&image) {
            println!("fetching {package}");
            extract(own, &package, release, &image, &self.cache.join("unpacked"))
                .with_context(|| file)?;
        }

        Ok(Kernel {
            release: release.to_string(),
            image,
        })
    }

    fn apt(&self) -> Result<&Apt> {
        match &self.apt {
            Ok(apt) => Ok(apt),
            Err(reason) => bail!("{reason}"),
        }
    }

    /// The kernel packages in the suites. The lists are refreshed if they lack the requested kernel, and for the
    /// newest kernel if they are a day old.
    fn listed(&self, wanted: &Wanted) -> Result<Vec<String>> {
        let apt = self.apt()?;
        let pattern = format!(
            "^linux-(image|binary)-[0-9].*{}$",
            self.guest.kernel_suffix()
        );
        let is_old = matches!(wanted, Wanted::Newest) && !apt.is_fresh();
        let packages = apt.names(&pattern)?;
        if !is_old && wanted.newest(releases(&packages)).is_some() {
            return Ok(packages);
        }

        println!("refreshing the lists of kernels");
        if let Err(error) = apt.refresh() {
            let text = format!("{error:#}");
            println!(
                "note: lists of kernels not refreshed: {}",
                first_complaint(&text)
            );
        }

        apt.names(&pattern)
    }

    /// The names of the images in the cache.
    fn cached(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        let listed = fs::read_dir(&self.cache);
        for entry in listed.with_context(|| format!("reading {}", self.cache.display()))? {
            names.push(entry?.file_name().to_string_lossy().into_owned());
        }
        Ok(names)
    }

    /// The newest image in the cache that matches the request.
    fn newest_cached(&self, wanted: &Wanted) -> Result<Option<Kernel>> {
        let names = self.cached()?;
        let release_of = |name: &'_ str| release_of(name)?.split('_').next().map(str::to_owned);
        let releases: Vec<String> = names.iter().filter_map(|name| release_of(name)).collect();
        let Some(release) = wanted.newest(releases.iter().map(String::as_str)) else {
            return Ok(None);
        };
        let of_release = |name: &&String| release_of(name).as_deref() == Some(release);
        Ok(names.iter().filter(of_release).max().map(|file| Kernel {
            release: release.to_string(),
            image: self.cache.join(file),
        }))
    }
}

/// apt's first error, or the first line if there is none.
fn first_complaint(text: &str) -> &str {
    let mut lines = text.lines();
    let error = lines.clone().find(|line| line.starts_with("E:"));
    error.or(lines.next()).unwrap_or_default()
}

/// Downloads a package into `scratch`, moves its kernel image to `image`, and takes its modules.
fn extract(apt: &Apt, package: &str, release: &str, image: &Path, scratch: &Path) -> Result<()> {
    if scratch.exists() {
        fs::remove_dir_all(scratch)?;
    }
    let downloaded = scratch.join("deb");
    fs::create_dir_all(&downloaded)?;
    apt.download(package, &downloaded)?;

    // Since 7.2 modules are in a package of their own.
    let modules = format!("linux-modules-{release}");
    let pattern = format!("^{}$", modules.replace('+', "[+]"));
    if apt.names(&pattern)?.contains(&modules) {
        apt.download(&modules, &downloaded)?;
    }
    for deb in fs::read_dir(&downloaded)? {
        output_of(Command::new("dpkg").arg("-x").arg(deb?.path()).arg(scratch))?;
    }

    // Kernels since 7.2 have the image in the second place.
    let places = [
        format!("boot/vmlinuz-{release}"),
        format!("usr/lib/modules/{release}/vmlinuz"),
    ];
    let Some(unpacked) = places
        .iter()
        .map(|place| scratch.join(place))
        .find(|p| p.exists())
    else {
        bail!("{package} has neither {} nor {}", places[0], places[1]);
    };

    modules::take(scratch, release, &modules::directory(image))?;
    fs::rename(&unpacked, image).with_context(|| format!("taking {}", unpacked.display()))?;

    fs::remove_dir_all(scratch).with_context(|| format!("removing {}", scratch.display()))
}

/// Name of the image in the cache, from the package's file name: `linux-image-RELEASE_DEBVERSION_ARCH`.
fn image_name(file: &str, package: &str) -> Result<String> {
    let release = release_of(package).context("a package of a kernel")?;
    let rest = file.strip_prefix(package);
    let rest = rest.and_then(|rest| rest.strip_suffix(".deb"));
    let rest = rest.with_context(|| format!("{package} is in a file of another name: {file}"))?;
    Ok(format!("{}{release}{rest}", PREFIXES[0]))
}

/// Name of the package that contains the image of a release.
fn package_of(release: &str, packages: &[String]) -> String {
    let names = PREFIXES.map(|prefix| format!("{prefix}{release}"));
    let [image, binary] = names;
    if packages.contains(&binary) {
        binary
    } else {
        image
    }
}

fn releases(packages: &[String]) -> impl Iterator<Item = &str> {
    packages.iter().filter_map(|package| release_of(package))
}

/// The release in a package's name: `6.1.0-56-cloud-amd64` of `linux-image-6.1.0-56-cloud-amd64`.
fn release_of(package: &str) -> Option<&str> {
    PREFIXES
        .iter()
        .find_map(|prefix| package.strip_prefix(prefix))
}

/// The numbers of a kernel's release: `[6, 12, 117, 12]` for `6.12.117+deb12-cloud-amd64`. `None` for packages
/// that only depend on a kernel, and for release candidates, which have fewer than three numbers.
fn version(release: &str) -> Option<Vec<u64>> {
    let text = Guest::EVERY
        .iter()
        .find_map(|guest| release.strip_suffix(guest.kernel_suffix()))?;
    let numbers: Vec<u64> = text
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect();
    (numbers.len() >= 3).then_some(numbers)
}

/// The first two numbers of a release.
fn series(release: &str) -> Option<[u64; 2]> {
    let mut numbers = release.split(['.', '-', '+']);
    let mut next = || numbers.next()?.parse().ok();
    Some([next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: [&str; 9] = [
        "linux-image-6.12-cloud-amd64",
        "linux-image-6.12.9+bpo-cloud-amd64",
        "linux-image-6.12.117+deb12-cloud-amd64",
        "linux-image-6.1.0-9-cloud-amd64",
        "linux-image-6.1.0-56-cloud-amd64",
        "linux-image-cloud-amd64",
        "linux-image-7.3.4+deb13-cloud-amd64",
        "linux-binary-7.3.4+deb13-cloud-amd64",
        "linux-binary-7.4-cloud-amd64",
    ];

    fn chosen(word: &str) -> Option<String> {
        let wanted = Wanted::parse(word).expect("a kernel's name");
        let listed = LISTED.map(str::to_owned);
        let release = wanted.newest(releases(&listed))?;
        Some(package_of(release, &listed))
    }

    #[test]
    fn the_newest_of_a_series_is_found_by_number_not_by_letter() {
        assert_eq!(chosen("6.1").as_deref(), Some(LISTED[4]));
        assert_eq!(chosen("6.12").as_deref(), Some(LISTED[2]));
        assert_eq!(chosen("newest").as_deref(), Some(LISTED[7]));
        assert_eq!(chosen(LISTED[3]).as_deref(), Some(LISTED[3]));
        assert_eq!(chosen("6.2"), None);
    }

    #[test]
    fn an_image_has_one_name_whichever_package_it_is_from() {
        let named = |file| image_name(file, file.split('_').next().unwrap_or_default());
        for file in [
            "linux-binary-7.3.4+deb13-cloud-amd64_7.3.4-1~bpo13+1_amd64.deb",
            "linux-image-7.3.4+deb13-cloud-amd64_7.3.4-1~bpo13+1_amd64.deb",
        ] {
            let name = named(file).expect("a name");
            assert_eq!(
                name,
                "linux-image-7.3.4+deb13-cloud-amd64_7.3.4-1~bpo13+1_amd64"
            );
        }
        assert!(named("linux-image-6.1_1_amd64.tar").is_err());
    }

    #[test]
    fn what_names_no_kernel_is_refused() {
        for word in ["", "six", "6.", "linux-image-cloud-amd64"] {
            assert!(Wanted::parse(word).is_err(), "{word}");
        }
    }
}
