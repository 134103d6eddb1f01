//! `tarsier seccomp check`: which calls the kernel answers from its bitmap, what the others cost,
//! and what lost their bits.

use super::{compare, filters};
use abi::Arch;
use anyhow::{bail, Context, Result};
use cli::messages::report;
use cli::seccomp::CheckArgs;
use seccomp::policy::Abi;
use seccomp::{CacheTable, Chain, ConstantAllow, CostModel, LostBit};
use seccomp_kernel::bitmaps::{SeccompCaches, TaskCache};
use std::collections::BTreeMap;
use std::io::Write;

/// Prints the report.
pub(super) fn check(args: &CheckArgs) -> Result<u8> {
    let mut out = std::io::stdout().lock();
    if let (Some(pid), true) = (args.source.pid, args.bitmap) {
        return bitmaps(&mut out, pid);
    }

    let other = other_kernel(args)?;
    let chains = filters::chains(&args.source)?;
    if args.denied {
        return denied(&mut out, &chains, other);
    }

    let tables = tables(args, other);
    let model = if args.measure {
        measured(&mut out)?
    } else {
        CostModel::default()
    };

    for named in &chains {
        if !args.kernel_format || chains.len() > 1 {
            let count = named.chain.filters().len();
            writeln!(
                out,
                "{}: {count} filters, {} instructions",
                named.name,
                named.chain.insns()
            )?;
        }
        if named.chain.filters().is_empty() {
            writeln!(out, "  no filters: nothing is restricted, nothing is paid")?;
            continue;
        }
        for table in &tables {
            let allow = ConstantAllow::of(&named.chain, table);
            if args.kernel_format {
                write!(out, "{}", allow.kernel_format())?;
            } else {
                report(&mut out, &named.chain, &allow, &model, args.all)?;
            }
        }
        if !args.kernel_format && tables.iter().any(|table| table.arch == Arch::X86_64) {
            report_x32(&mut out, &named.chain, &model)?;
        }
    }

    Ok(0)
}

/// Lists the calls that are denied, for some arguments at least.
fn denied(out: &mut impl Write, chains: &[filters::Named], other: Option<Arch>) -> Result<u8> {
    let native = other.unwrap_or(Arch::native());
    let served = |arch: u32| {
        let arch = Arch::from_audit_arch(arch);
        arch == Some(native) || arch.is_some() && arch == native.compat()
    };
    for named in chains {
        if chains.len() > 1 {
            writeln!(out, "{}", named.name)?;
        }
        let mut found = seccomp::uncovered(&named.chain, &Chain::default())?;
        found.retain(|denial| served(denial.data.arch));
        for group in compare::grouped(&found) {
            let denial = group.first;
            let call = Abi::of(denial.data.arch, denial.data.nr)
                .and_then(|abi| Some((abi, abi.name_of(denial.data.nr)?)));
            let Some((abi, name)) = call else { continue };
            let name = group.every_call_of.map_or(name, |_| "(every call)");
            writeln!(
                out,
                "{:<8} {name:<24} {:<20} {}",
                abi.systemd_name(),
                denial.left.to_string(),
                denial.arguments
            )?;
        }
    }

    Ok(0)
}

/// The costs of this machine, which are printed.
fn measured(out: &mut impl Write) -> Result<CostModel> {
    let model = CostModel::measure()
        .map_err(|error| anyhow::anyhow!("--measure: {error}; leave it out"))?;
    writeln!(
        out,
        "measured: from the bitmap {:.0} ns, first filter {:.0} ns, each further one {:.0} ns, an instruction {:.2} ns",
        model.bitmap_ns, model.first_filter_ns, model.further_filter_ns, model.insn_ns
    )?;
    Ok(model)
}

/// The bitmaps of the running kernel if they can be measured, else those of the newest known; with
/// `--arch`, those of the kernel that serves such programs.
fn tables(args: &CheckArgs, other: Option<Arch>) -> Vec<CacheTable> {
    if let Some(other) = other {
        return CacheTable::newest_pair(other);
    }

    let native = Arch::native();
    let measured = SeccompCaches::load().and_then(|caches| caches.sizes());
    let sizes = match measured {
        Ok(sizes) => sizes,
        Err(error) => {
            if args.source.pid.is_some() {
                report!("tarsier: note: sizes of the bitmaps are those of the newest known kernel, since the running one's cannot be read: {error}");
            }
            return CacheTable::newest_pair(native);
        }
    };

    let mut tables = vec![CacheTable {
        arch: native,
        size: sizes.native,
        exempt: sizes.exempt,
    }];
    if sizes.compat > 0 {
        tables.extend(native.compat().map(|arch| CacheTable {
            arch,
            size: sizes.compat,
            exempt: Vec::new(),
        }));
    }

    tables
}

/// The kernel that `--arch` asks for, unless it is this machine's.
fn other_kernel(args: &CheckArgs) -> Result<Option<Arch>> {
    let wanted = super::source::context(&args.source.with)?.native;
    if Abi::native().family().contains(&wanted) {
        return Ok(None);
    }
    if args.source.pid.is_some() {
        bail!(
            "--arch {}: this machine has no such processes; leave it out",
            wanted.systemd_name()
        );
    }
    Ok(Arch::from_audit_arch(wanted.audit_arch()))
}

/// x32 calls have no bitmap: their numbers are beyond its end.
fn report_x32(out: &mut impl Write, chain: &Chain, model: &CostModel) -> Result<()> {
    let calls = Abi::X32.calls();
    let cost = |(nr, name)| (seccomp::worst_path(chain, Abi::X32.audit_arch(), nr), name);
    let Some((insns, name)) = calls.map(cost).max() else {
        return Ok(());
    };
    let ns = model.filtered_ns(chain.filters().len(), insns);
    writeln!(
        out,
        "x32: no call is in a bitmap: all run every filter, at worst {insns} instructions, about {ns:.0} ns ({name})"
    )?;
    Ok(())
}

fn report(
    out: &mut impl Write,
    chain: &Chain,
    allow: &ConstantAllow,
    model: &CostModel,
    all: bool,
) -> Result<()> {
    let table = allow.table();
    let arch = table.arch.audit_arch();
    let worst = allow
        .lost()
        .map(|bit| (seccomp::worst_path(chain, arch, bit.nr), bit.nr))
        .max();
    writeln!(
        out,
        "{}: {} of {} system calls are always allowed: from the bitmap, about {:.0} ns",
        table.kernel_name(),
        allow.allowed(),
        table.size,
        model.bitmap_ns
    )?;
    let Some((insns, nr)) = worst else {
        return Ok(());
    };

    let ns = model.filtered_ns(chain.filters().len(), insns);
    writeln!(
        out,
        "  the others run every filter: at worst {insns} instructions, about {ns:.0} ns ({}); lost by",
        name(table, nr)
    )?;
    let mut causes: BTreeMap<(usize, usize, String), Vec<&LostBit>> = BTreeMap::new();
    for bit in allow.lost() {
        let cause = (bit.filter, bit.at, bit.loss.to_string());
        causes.entry(cause).or_default().push(bit);
    }

    for ((filter, at, loss), bits) in causes {
        writeln!(
            out,
            "  filter {filter}, instruction {at}: {loss}: {} calls",
            bits.len()
        )?;
        if all {
            for bit in bits {
                let insns = seccomp::worst_path(chain, arch, bit.nr);
                let ns = model.worst_ns(chain, allow, bit.nr);
                writeln!(
                    out,
                    "    {:<24} {insns:5} instructions {ns:6.0} ns",
                    name(table, bit.nr)
                )?;
            }
        } else {
            let names: Vec<String> = bits.iter().map(|bit| name(table, bit.nr)).collect();
            write_wrapped(out, &names)?;
        }
    }

    Ok(())
}

fn name(table: &CacheTable, nr: u32) -> String {
    abi::syscall_name(table.arch, nr).map_or_else(|| nr.to_string(), str::to_owned)
}

/// Words in lines of at most 100 columns, the first 60 of them.
fn write_wrapped(out: &mut impl Write, words: &[String]) -> Result<()> {
    const SHOWN: usize = 60;

    let mut line = String::from("   ");
    for word in words.iter().take(SHOWN) {
        if line.len() + 1 + word.len() > 100 {
            writeln!(out, "{line}")?;
            line = String::from("   ");
        }
        line.push(' ');
        line.push_str(word);
    }

    if words.len() > SHOWN {
        line.push_str(" … (--all lists them)");
    }
    writeln!(out, "{line}")?;

    Ok(())
}

/// The kernel's own bitmaps of a process, in the format of /proc/PID/seccomp_cache.
fn bitmaps(out: &mut impl Write, pid: i32) -> Result<u8> {
    if !std::path::Path::new(&format!("/proc/{pid}")).exists() {
        bail!("process {pid} does not exist");
    }

    let caches = SeccompCaches::load().context(
        "reading the kernel's bitmaps needs CAP_BPF and CAP_PERFMON, as root has them; \
         `check --pid` without --bitmap computes them",
    )?;
    let sizes = caches.sizes()?;
    let native = CacheTable::newest(Arch::native(), true);
    let compat = Arch::native().compat();
    let threads = caches.read()?;
    let mut threads: Vec<TaskCache> = threads
        .into_iter()
        .filter(|cache| cache.pid == pid as u32)
        .collect();
    threads.sort_by_key(|cache| cache.tid);
    if threads.is_empty() {
        bail!("process {pid} has no seccomp filters, or ended");
    }

    for thread in &threads {
        if threads.len() > 1 {
            writeln!(out, "thread {}: {} filters", thread.tid, thread.filters)?;
        }
        write_bits(out, native.kernel_name(), &thread.native, sizes.native)?;
        if let Some(compat) = compat {
            let name = CacheTable::newest(compat, false).kernel_name();
            write_bits(out, name, &thread.compat, sizes.compat)?;
        }
    }

    Ok(0)
}

fn write_bits(out: &mut impl Write, name: &str, bitmap: &[u8], size: u32) -> Result<()> {
    for nr in 0..size {
        let allowed = TaskCache::bit(bitmap, nr);
        writeln!(
            out,
            "{name} {nr} {}",
            if allowed { "ALLOW" } else { "FILTER" }
        )?;
    }
    Ok(())
}
