//! What a path stands for: a file, a log with its rotated files, directories of hosts, an archive.

use crate::decode::{decoded, peek};
use crate::hosts::{hosts, BELOW};
use crate::log::{is_tar, Log, TAR_BYTES};
use crate::names::{is_log_of_archive, rotated, Rotated, LIVE};
use crate::sniff::check;
use crate::LogError;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Ends of names of what Tarsier keeps beside a log.
const BESIDE: [&str; 4] = [".idx", ".seal", ".new", ".tmp"];
/// Directories between a directory of hosts and the logs of one.
const DEPTH_MAX: usize = 4;
/// A file that was not taken for part of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    /// File.
    pub path: PathBuf,
    /// Reason, for people.
    pub why: &'static str,
}

/// What a path stands for.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct LogSet {
    /// Logs, those of each host oldest first, with the host whose directory they are in, if there are several.
    pub logs: Vec<(Log, Option<String>)>,
    /// Files that look like part of the logs, and are not read.
    pub left_out: Vec<LeftOut>,
}

/// The logs that `path` stands for: a file, the set of a directory, those of hosts, or of an archive.
///
/// # Errors
/// The path cannot be read, or has no logs.
pub fn find(path: &Path) -> Result<LogSet, LogError> {
    let failed = |error| LogError::Io {
        path: path.to_owned(),
        error,
    };
    let metadata = fs::metadata(path).map_err(failed)?;
    if !metadata.is_dir() {
        return if metadata.is_file() && is_archive(path).map_err(failed)? {
            of_archive(path)
        } else {
            Ok(LogSet {
                logs: vec![(Log::File(path.to_owned()), None)],
                left_out: Vec::new(),
            })
        };
    }

    let mut found = LogSet::default();
    in_directory(path, "", 0, &mut found)?;
    if found.logs.is_empty() {
        return Err(LogError::NoLogs {
            path: path.to_owned(),
        });
    }

    // So far, each log has its directory below `path`.
    let below = found.logs.iter().map(|(_, below)| below.clone());
    let below: Vec<String> = below.map(Option::unwrap_or_default).collect();
    for ((_, host), its) in found.logs.iter_mut().zip(hosts(&below, true)) {
        *host = its;
    }
    Ok(found)
}

/// The log `live` with its rotated files, oldest first.
///
/// # Errors
/// The directory cannot be read.
pub fn set(live: &Path) -> Result<LogSet, LogError> {
    let directory = match live.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let name = live.file_name().unwrap_or_default().to_string_lossy();
    let mut found = LogSet::default();
    let names = names(directory)?;
    add_set(directory, &name, &names, None, &mut found);
    Ok(found)
}

/// Names in a directory, sorted.
fn names(directory: &Path) -> Result<Vec<String>, LogError> {
    let failed = |error| LogError::Io {
        path: directory.to_owned(),
        error,
    };
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        names.push(name.to_string_lossy().into_owned());
    }
    names.sort_unstable();
    Ok(names)
}

/// Adds the logs of a directory, each with its path `relative` to the directory that was asked for.
fn in_directory(
    directory: &Path,
    relative: &str,
    depth: usize,
    found: &mut LogSet,
) -> Result<(), LogError> {
    let names = names(directory)?;
    if add_set(directory, LIVE, &names, Some(relative), found) {
        leave_out_others(directory, &names, found);
        return Ok(());
    }

    for below in BELOW.map(|below| directory.join(below)) {
        if below.is_dir() && depth < DEPTH_MAX {
            let before = found.logs.len();
            in_directory(&below, relative, DEPTH_MAX, found)?;
            if found.logs.len() > before {
                return Ok(());
            }
        }
    }

    if depth >= DEPTH_MAX {
        return Ok(());
    }

    // A directory of hosts: a directory or a file for each.
    for name in &names {
        let path = directory.join(name);
        if path.is_dir() {
            in_directory(&path, &format!("{relative}/{name}"), depth + 1, found)?;
            continue;
        }
        let log = Log::File(path.clone());
        match path.is_file().then(|| check(&log)) {
            Some(Ok(_)) => found.logs.push((log, Some(relative.to_owned()))),
            Some(Err(LogError::NoRecords { .. })) => found.left_out.push(LeftOut {
                path,
                why: "no audit records in it",
            }),
            Some(Err(_)) => found.left_out.push(LeftOut {
                path,
                why: "it cannot be read",
            }),
            None => {}
        }
    }

    Ok(())
}

/// Names the files beside a log that have records, but no name by which they would be part of it.
fn leave_out_others(directory: &Path, names: &[String], found: &mut LogSet) {
    let others = names.iter().filter(|name| !name.starts_with(LIVE));
    for path in others.map(|name| directory.join(name)) {
        let has_records = |log: &Log| check(log).is_ok_and(|contents| contents.first.is_some());
        if path.is_file() && has_records(&Log::File(path.clone())) {
            found.left_out.push(LeftOut {
                path,
                why: "it has audit records, but no name of a rotated file: name it with -if",
            });
        }
    }
}

/// Adds the log `live` of a directory with its rotated files. Returns whether there are any.
fn add_set(
    directory: &Path,
    live: &str,
    names: &[String],
    host: Option<&str>,
    found: &mut LogSet,
) -> bool {
    let mut files: BTreeMap<Rotated, (bool, &String)> = BTreeMap::new();
    let begins = names.iter().filter(|name| name.starts_with(live));
    for name in begins.filter(|name| !directory.join(name).is_dir()) {
        let mut leave_out = |name: &String, why| {
            found.left_out.push(LeftOut {
                path: directory.join(name),
                why,
            });
        };
        let Some((kind, is_compressed)) = rotated(name, live) else {
            if !BESIDE.iter().any(|end| name.ends_with(end)) {
                leave_out(name, "its name is not that of a rotated file");
            }
            continue;
        };
        let twice = "the same file is there in another form";
        match files.get(&kind) {
            // While a file is compressed there are both.
            Some((true, other)) if !is_compressed => {
                leave_out(other, twice);
                files.insert(kind, (false, name));
            }
            Some(_) => leave_out(name, twice),
            None => drop(files.insert(kind, (is_compressed, name))),
        }
    }

    let has_dates = files.keys().any(|kind| matches!(kind, Rotated::Date(_)));
    let has_numbers = files.keys().any(|kind| matches!(kind, Rotated::Number(_)));
    let mut paths: Vec<PathBuf> = files
        .values()
        .map(|(_, name)| directory.join(name))
        .collect();
    if has_dates && has_numbers {
        // Somebody has changed the way of rotation: only the contents tell the order.
        let first = |path: &PathBuf| {
            let contents = check(&Log::File(path.clone())).unwrap_or_default();
            contents.first.unwrap_or((u64::MAX, 0))
        };
        paths.sort_by_cached_key(first);
    }

    let is_any = !paths.is_empty();
    let logs = paths.into_iter().map(Log::File);
    found
        .logs
        .extend(logs.map(|log| (log, host.map(str::to_owned))));
    is_any
}

fn is_archive(path: &Path) -> io::Result<bool> {
    // A file that is no archive says why it cannot be read when it is read.
    let Ok((text, _)) = decoded(File::open(path)?) else {
        return Ok(false);
    };
    Ok(is_tar(&peek(text, TAR_BYTES).0))
}

/// The logs of a tar archive, oldest first, those of each directory together.
fn of_archive(path: &Path) -> Result<LogSet, LogError> {
    let failed = |error| LogError::Io {
        path: path.to_owned(),
        error,
    };

    let list = || -> io::Result<Vec<String>> {
        let mut archive = tar::Archive::new(decoded(File::open(path)?)?.0);
        let mut names = Vec::new();
        for entry in archive.entries()? {
            let entry = entry?;
            let name = entry.path()?.to_string_lossy().into_owned();
            if entry.header().entry_type().is_file() && is_log_of_archive(&name) {
                names.push(name);
            }
        }
        Ok(names)
    };

    let mut members: Vec<(String, Rotated, String)> = list()
        .map_err(failed)?
        .into_iter()
        .map(|name| {
            let (directory, file) = name.rsplit_once('/').unwrap_or(("", &name));
            let kind = rotated(file, LIVE).map_or(Rotated::Live, |(kind, _)| kind);
            (directory.to_owned(), kind, name)
        })
        .collect();
    members.sort();

    if members.is_empty() {
        return Err(LogError::NoLogs {
            path: path.to_owned(),
        });
    }

    let directories: Vec<String> = members.iter().map(|member| member.0.clone()).collect();
    let named = members.into_iter().zip(hosts(&directories, false));
    let logs = named.map(|((_, _, name), host)| {
        let archive = path.to_owned();
        (Log::Member { archive, name }, host)
    });
    Ok(LogSet {
        logs: logs.collect(),
        left_out: Vec::new(),
    })
}
