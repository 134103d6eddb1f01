//! `cargo xtask tables --headers DIR --source DIR`: writes the tables of crate `abi`.
//!
//! The first directory is the `usr/include` of an extracted `linux-libc-dev` package that is for all architectures
//! (Debian trixie or newer). The second is the kernel's source of the same version. To get them on Debian:
//!
//! ```text
//! apt-get download linux-libc-dev:all linux-source-7.3    # with trixie-backports or sid among the sources
//! dpkg-deb -x linux-libc-dev_*_all.deb headers
//! dpkg-deb -x linux-source-*.deb . && tar -xJf usr/src/linux-source-*.tar.xz
//! cargo xtask tables --headers headers/usr/include --source linux-source-7.3
//! ```
//!
//! The current tables are made from Linux 7.3.4. Numbers come from the headers; of the source, only
//! io_uring/opdef.c is read. If the audit user space has a different name for a system call than the kernel, its
//! name is used (logs and `auditctl -l` show it), and the kernel's is an alias: see `renamed` in [`SOURCES`].

use abi::{record_type, RecordType};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{bail, Context, Result};

/// An architecture: the generated module, the header, and the names that audit-userspace (`lib/*_table.h`) uses
/// instead of the kernel's or in addition.
struct KernelSource {
    module: &'static str,
    header: &'static str,
    renamed: &'static [Renamed],
}

/// A system call's number and audit's name for it.
type Renamed = (u32, &'static str);

const SOURCES: [KernelSource; 4] = [
    KernelSource {
        module: "x86_64",
        header: "x86_64-linux-gnu/asm/unistd_64.h",
        renamed: &[(17, "pread"), (18, "pwrite")],
    },
    KernelSource {
        module: "i386",
        header: "i386-linux-gnu/asm/unistd_32.h",
        renamed: &[(283, "sys_kexec_load"), (423, "sched_rr_get_interval64")],
    },
    KernelSource {
        module: "aarch64",
        header: "aarch64-linux-gnu/asm/unistd_64.h",
        renamed: &[
            (61, "getdents"),
            (67, "pread"),
            (68, "pwrite"),
            (80, "newfstat"),
        ],
    },
    KernelSource {
        module: "arm",
        header: "arm-linux-gnueabihf/asm/unistd-eabi.h",
        renamed: RENAMED_ARM,
    },
];

/// Machines that Tarsier does not run on. Their logs are read elsewhere: only names by number are needed.
const READ_ONLY: [KernelSource; 2] = [
    KernelSource {
        module: "ppc64",
        header: "powerpc64le-linux-gnu/asm/unistd_64.h",
        renamed: &[(179, "pread"), (180, "pwrite")],
    },
    KernelSource {
        module: "s390x",
        header: "s390x-linux-gnu/asm/unistd_64.h",
        renamed: &[(180, "pread"), (181, "pwrite")],
    },
];

/// Apart from different spellings, these are calls that only the old ARM ABI had.
const RENAMED_ARM: &[Renamed] = &[
    (13, "time"),
    (22, "umount"),
    (25, "stime"),
    (27, "alarm"),
    (30, "utime"),
    (76, "getrlimit"),
    (82, "select"),
    (89, "readdir"),
    (90, "mmap"),
    (102, "socketcall"),
    (113, "syscall"),
    (117, "ipc"),
    (140, "llseek"),
    (142, "newselect"),
    (149, "sysctl"),
    (270, "fadvise64_64"),
    (341, "sync_file_range"),
    (423, "sched_rr_get_interval64"),
];

/// Names that are accepted for a number, but never printed.
const ALIASES: [(&str, u32, &str); 1] = [("i386", 219, "madvise1")];

/// Record types below this are requests, not records (linux/audit.h).
const FIRST_RECORD: u32 = RecordType::FIRST_USER_MSG.0 as u32;

/// Writes every generated file below `out`.
///
/// # Errors
/// A header is missing or holds nothing that looks like a table.
pub(crate) fn write(headers: &Path, source: &Path, out: &Path) -> Result<()> {
    fs::create_dir_all(out).with_context(|| format!("cannot create {}", out.display()))?;
    for table in &SOURCES {
        save(out, table.module, &syscalls(headers, table, true)?)?;
    }
    for table in &READ_ONLY {
        save(out, table.module, &syscalls(headers, table, false)?)?;
    }
    save(out, "errno", &errnos(headers)?)?;
    save(out, "records", &records(headers)?)?;
    save(out, "uring", &uring_ops(headers, source)?)?;
    let modules: String = [
        "aarch64", "arm", "errno", "i386", "ppc64", "records", "s390x", "uring", "x86_64",
    ]
    .iter()
    .map(|module| format!("pub(crate) mod {module};\n"))
    .collect();
    let text = format!("//! Tables made by `cargo xtask tables`. Do not edit.\n\n{modules}");

    fs::write(out.join("mod.rs"), text).context("cannot write mod.rs")
}

fn save(out: &Path, module: &str, text: &str) -> Result<()> {
    let path = out.join(format!("{module}.rs"));
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn read(headers: &Path, file: &str) -> Result<String> {
    let path = headers.join(file);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// Lines `#define PREFIXname number`, where the number may be `(__NR_SYSCALL_BASE + number)`. For alias
/// definitions (`#define A B`) the value is a name.
fn defines<'a>(text: &'a str, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> + 'a {
    text.lines().filter_map(move |line| {
        let rest = line.strip_prefix("#define")?.trim_start();
        let (name, value) = rest.split_once(char::is_whitespace)?;
        let name = name.strip_prefix(prefix)?;
        let value = value.split("/*").next()?.trim();
        let value = value.strip_prefix("(__NR_SYSCALL_BASE + ").unwrap_or(value);
        Some((name, value.trim_end_matches(')')))
    })
}

/// The table of a machine's calls by number, and by name if anybody asks for numbers.
fn syscalls(headers: &Path, source: &KernelSource, by_names: bool) -> Result<String> {
    let text = read(headers, source.header)?;
    let mut by_number = BTreeMap::new();
    let mut by_name = BTreeMap::new();
    for (name, value) in defines(&text, "__NR_") {
        let Ok(number) = value.parse::<u32>() else {
            continue;
        };
        by_number.insert(number, name);
        by_name.insert(name, number);
    }

    if by_number.len() < 200 {
        bail!(
            "{} holds only {} system calls",
            source.header,
            by_number.len()
        );
    }

    for &(number, name) in source.renamed {
        by_number.insert(number, name);
        by_name.insert(name, number);
    }

    for (module, number, name) in ALIASES {
        if module == source.module {
            by_name.insert(name, number);
        }
    }

    // If audit and the kernel use a name for different numbers, audit's number counts.
    for &(number, name) in source.renamed {
        by_name.insert(name, number);
    }
    let mut out = header(source.header);
    table(
        &mut out,
        "By number, one name each.",
        "BY_NUMBER",
        by_number.into_iter(),
    );
    if by_names {
        table_by_name(&mut out, "By name, aliases included.", by_name.into_iter());
    }

    Ok(out)
}

fn errnos(headers: &Path) -> Result<String> {
    let mut by_number = BTreeMap::new();
    let mut by_name = BTreeMap::new();
    let texts = [
        read(headers, "asm-generic/errno-base.h")?,
        read(headers, "asm-generic/errno.h")?,
    ];

    for (name, value) in texts.iter().flat_map(|text| defines(text, "E")) {
        let number = match value.parse::<u32>() {
            Ok(number) => number,
            // An alias of a name that is already known, such as EWOULDBLOCK.
            Err(_) => match by_name.get(value) {
                Some(&number) => number,
                None => continue,
            },
        };
        let name = format!("E{name}");
        by_number.entry(number).or_insert_with(|| name.clone());
        by_name.insert(name, number);
    }

    if by_number.len() < 100 {
        bail!("asm-generic/errno*.h hold only {} errors", by_number.len());
    }

    let mut out = header("asm-generic/errno-base.h and errno.h");
    let numbers = by_number
        .iter()
        .map(|(number, name)| (*number, name.as_str()));
    table(&mut out, "By number, one name each.", "BY_NUMBER", numbers);
    let names = by_name
        .iter()
        .map(|(name, number)| (name.as_str(), *number));
    table_by_name(&mut out, "By name, aliases included.", names);

    Ok(out)
}

/// Record types of linux/audit.h: every `AUDIT_NAME number` from 1005 to 2099, except limits of ranges and netlink
/// requests.
fn records(headers: &Path) -> Result<String> {
    let text = read(headers, "linux/audit.h")?;
    let mut by_number = BTreeMap::new();
    for (name, value) in defines(&text, "AUDIT_") {
        let Ok(number) = value.parse::<u32>() else {
            continue;
        };
        let request = number < FIRST_RECORD && !matches!(name, "USER" | "LOGIN");
        let limit = name.starts_with("FIRST_") || name.starts_with("LAST_");
        let of_kernel = record_type::USER as u32..record_type::FIRST_ANOM_MSG as u32;
        if !of_kernel.contains(&number) || request || limit {
            continue;
        }
        by_number.insert(number, name);
    }

    if by_number.len() < 80 {
        bail!("linux/audit.h holds only {} record types", by_number.len());
    }

    let mut out = header("linux/audit.h");
    table(
        &mut out,
        "Record types that the kernel knows.",
        "BY_NUMBER",
        by_number.into_iter(),
    );

    Ok(out)
}

/// `enum io_uring_op`: lower-case names in order, and the numbers of those that io_uring/opdef.c does not mark
/// with `audit_skip`.
fn uring_ops(headers: &Path, source: &Path) -> Result<String> {
    let text = read(headers, "linux/io_uring.h")?;
    let (_, rest) = text
        .split_once("enum io_uring_op {")
        .context("no enum io_uring_op")?;
    let (body, _) = rest
        .split_once('}')
        .context("enum io_uring_op has no end")?;
    let mut names = Vec::new();
    for line in body.lines() {
        let name = line.trim().trim_end_matches(',');
        match name.strip_prefix("IORING_OP_") {
            Some("LAST") => break,
            Some(name) => names.push(name.to_lowercase()),
            None => continue,
        }
    }

    if names.len() < 50 {
        bail!("linux/io_uring.h holds only {} operations", names.len());
    }

    let mut out = header("linux/io_uring.h and io_uring/opdef.c");
    let rows = names
        .iter()
        .enumerate()
        .map(|(number, name)| (number as u32, name.as_str()));
    table(&mut out, "io_uring operations.", "BY_NUMBER", rows);
    let audited = audited_ops(&read(source, "io_uring/opdef.c")?, &names)?;
    let _ = writeln!(
        out,
        "\n/// Operations that the kernel's audit sees.\n#[rustfmt::skip]\npub(crate) static AUDITED: &[u32] = &{audited:?};"
    );

    Ok(out)
}

/// Numbers of the operations that are not marked with `audit_skip` in the table of their functions.
fn audited_ops(definitions: &str, names: &[String]) -> Result<Vec<u32>> {
    let (_, table) = definitions
        .split_once("io_issue_defs[] = {")
        .context("no io_issue_defs")?;
    let (table, _) = table
        .split_once("\n};")
        .context("io_issue_defs has no end")?;
    let mut audited = Vec::new();
    let mut found = 0;

    for row in table.split("\n\t[IORING_OP_").skip(1) {
        let (name, members) = row.split_once(']').context("a row without a name")?;
        let number = names.iter().position(|known| *known == name.to_lowercase());
        let number = number.with_context(|| format!("unknown operation {name}"))?;
        found += 1;
        if !members.contains(".audit_skip") {
            audited.push(number as u32);
        }
    }

    if found != names.len() {
        bail!("io_uring/opdef.c has {found} of {} operations", names.len());
    }

    audited.sort_unstable();

    Ok(audited)
}

fn header(from: &str) -> String {
    format!("//! From {from} by `cargo xtask tables`. Do not edit.\n")
}

fn table<'a>(out: &mut String, doc: &str, name: &str, rows: impl Iterator<Item = (u32, &'a str)>) {
    let _ = writeln!(
        out,
        "\n/// {doc}\n#[rustfmt::skip]\npub(crate) static {name}: &[(u32, &str)] = &["
    );
    for (number, text) in rows {
        let _ = writeln!(out, "    ({number}, {text:?}),");
    }
    out.push_str("];\n");
}

fn table_by_name<'a>(out: &mut String, doc: &str, rows: impl Iterator<Item = (&'a str, u32)>) {
    let _ = writeln!(
        out,
        "\n/// {doc}\n#[rustfmt::skip]\npub(crate) static BY_NAME: &[(&str, u32)] = &["
    );
    for (text, number) in rows {
        let _ = writeln!(out, "    ({text:?}, {number}),");
    }
    out.push_str("];\n");
}
