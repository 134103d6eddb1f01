//! Finds the messages of a store, host by host.

use super::fetch::{self, server_name};
use super::store::Store;
use super::stored;
use super::{Origin, Request, StoreError};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Finds the messages that are asked for.
pub(super) fn collect(request: &Request) -> Result<Store, StoreError> {
    let (mut store, name) = match &request.from {
        Origin::Files(path) => (of_files(path, &request.hosts)?, path.display().to_string()),
        Origin::Server(config) => (fetch::fetch(config)?, server_name(config)),
    };
    let is_asked = |host: &String| request.hosts.is_empty() || request.hosts.contains(host);
    store.hosts.retain(|host, _| is_asked(host));

    for host in &request.hosts {
        let arrived = store.hosts.entry(host.clone()).or_default();
        if arrived.messages.is_empty() && arrived.error.is_none() {
            arrived.error = Some(format!("{name}: no message of it"));
        }
    }

    match (&request.from, store.hosts.is_empty()) {
        (_, false) => Ok(store),
        (Origin::Files(path), true) => Err(StoreError::NoHost { path: path.clone() }),
        (Origin::Server(_), true) => Err(StoreError::Empty(name)),
    }
}

fn of_files(path: &Path, hosts: &[String]) -> Result<Store, StoreError> {
    let mut store = Store::default();
    if path.is_file() {
        store.file(path, None);
        return Ok(store);
    }

    let entries = entries(path).map_err(|source| StoreError::Io {
        path: path.to_owned(),
        source,
    })?;
    for path in entries {
        store.entry(&path, hosts);
    }
    Ok(store)
}

/// Paths in a directory, in the order of their names.
fn entries(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}

impl Store {
    /// A file whose messages name their hosts, or the directory of a host.
    fn entry(&mut self, path: &Path, hosts: &[String]) {
        if path.is_file() {
            return self.file(path, None);
        }

        let name = path.file_name().unwrap_or_default();
        let host = name.to_string_lossy().into_owned();
        if !hosts.is_empty() && !hosts.contains(&host) {
            return;
        }

        match entries(path) {
            Ok(files) => {
                for file in files.iter().filter(|file| file.is_file()) {
                    self.file(file, Some(&host));
                }
                let arrived = self.hosts.entry(host).or_default();
                if arrived.messages.is_empty() && arrived.error.is_none() {
                    arrived.error = Some(format!("{}: no message in it", path.display()));
                }
            }
            Err(error) => {
                let arrived = self.hosts.entry(host).or_default();
                arrived.error = Some(format!("{}: {error}", path.display()));
            }
        }
    }

    fn file(&mut self, path: &Path, host: Option<&str>) {
        let source = self.sources.len();
        self.sources.push(path.to_owned());
        let hosts = &mut self.hosts;
        let outcome = stored::read(path, source, |named, message| {
            let name = match (&named, host) {
                (Some(named), Some(host)) if named != host => {
                    return Err("messages of the host whose directory it is");
                }
                (_, Some(host)) => host,
                (Some(named), None) => named,
                (None, None) => return Err("the name of the host: host=NAME, or a directory HOST"),
            };
            if !hosts.contains_key(name) {
                hosts.insert(name.to_owned(), Default::default());
            }
            if let Some(arrived) = hosts.get_mut(name) {
                arrived.messages.push(message);
            }
            Ok(())
        });

        if let Err(error) = outcome {
            // Of a file for several hosts, nobody knows whose messages could not be read.
            let name = host.map_or_else(|| path.display().to_string(), str::to_owned);
            let arrived = self.hosts.entry(name).or_default();
            arrived.error.get_or_insert(error.to_string());
        }
    }
}
