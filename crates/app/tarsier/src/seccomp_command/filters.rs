//! Filters from files, profiles and processes; filters to files.

use super::source;
use anyhow::{bail, Context, Result};
use cli::seccomp::FilterArgs;
use cli::seccomp::Format;
use seccomp::compile::Frequencies;
use seccomp::{live, text, Chain, Filter};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// A chain and the name of its owner.
pub(super) struct Named {
    pub(super) name: String,
    pub(super) chain: Chain,
}

/// The chains that the command line names. Threads of a process with equal filters share one.
pub(super) fn chains(args: &FilterArgs) -> Result<Vec<Named>> {
    if let Some(pid) = args.pid {
        return threads(pid, args.tid);
    }
    let (name, chain) = match &args.profile {
        Some(profile) => (profile.display().to_string(), of_profile(profile, args)?),
        None => (names(&args.filters), of_files(&args.filters)?),
    };
    Ok(vec![Named { name, chain }])
}

/// The one chain that the command line names; of a process, the filters that its threads share.
pub(super) fn one(args: &FilterArgs) -> Result<Named> {
    let mut found = chains(args)?;
    found.retain(|named| !named.chain.filters().is_empty());
    match (found.pop(), found.is_empty()) {
        (Some(named), true) => Ok(named),
        (Some(_), false) => bail!("the threads of this process have different filters (`tarsier seccomp disasm --pid` prints them); choose a thread with --tid"),
        (None, _) => bail!("there are no filters"),
    }
}

fn names(paths: &[PathBuf]) -> String {
    let names: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    names.join(" ")
}

fn of_profile(profile: &Path, args: &FilterArgs) -> Result<Chain> {
    let context = source::context(&args.with)?;
    let policy = source::policy(profile, &context)?;
    let filter = seccomp::compile::compile(&policy, &Frequencies::usual())
        .with_context(|| profile.display().to_string())?;
    Ok(Chain::from(filter))
}

fn of_files(paths: &[PathBuf]) -> Result<Chain> {
    let mut filters: Vec<Filter> = Vec::new();
    for path in paths {
        filters.extend_from_slice(of_file(path)?.filters());
    }
    Ok(Chain::new(filters))
}

/// A filter or chain from a file, or from standard input (`-`).
pub(super) fn of_file(path: &Path) -> Result<Chain> {
    text::read_chain(&bytes(path)?).with_context(|| path.display().to_string())
}

/// The contents of a file, or of standard input (`-`).
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::read(path).map(|read| bytes = read)
    };
    // Not as a cause: an I/O error of ours means output that nobody reads.
    read.map_err(|error| anyhow::anyhow!("cannot read {}: {error}", path.display()))?;
    Ok(bytes)
}

fn threads(pid: i32, tid: Option<i32>) -> Result<Vec<Named>> {
    let mut groups: Vec<(Vec<i32>, live::ThreadFilters)> = Vec::new();
    let mut dumped = live::dump(pid)?;
    if let Some(tid) = tid {
        dumped.retain(|thread| thread.tid == tid);
        if dumped.is_empty() {
            bail!("--tid {tid}: process {pid} has no such thread; see /proc/{pid}/task");
        }
    }

    for thread in dumped {
        match groups
            .iter_mut()
            .find(|group| group.1.chain == thread.chain)
        {
            Some(group) => group.0.push(thread.tid),
            None => groups.push((vec![thread.tid], thread)),
        }
    }

    let named = groups.into_iter().map(|(tids, thread)| {
        let list: Vec<String> = tids.iter().map(i32::to_string).collect();
        let threads = if tids.len() == 1 { "thread" } else { "threads" };
        Named {
            name: format!(
                "process {pid}, {threads} {} ({})",
                list.join(" "),
                thread.name
            ),
            chain: thread.chain,
        }
    });

    Ok(named.collect())
}

/// The bytes of a chain in a format; more than one filter is always written in hex.
pub(super) fn render(chain: &Chain, format: Format) -> Vec<u8> {
    match chain.filters() {
        [filter] => super::compile::render(filter, format),
        _ => text::chain_to_hex(chain).into_bytes(),
    }
}

/// Writes to a file, or to standard output.
pub(super) fn write(bytes: &[u8], output: Option<&Path>) -> Result<()> {
    match output {
        Some(path) => std::fs::write(path, bytes)
            .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display())),
        None => Ok(std::io::stdout().lock().write_all(bytes)?),
    }
}
