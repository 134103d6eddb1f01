//! `tarsier seccomp explain`: verdicts and why.

use super::{denials, filters, source};
use abi::Arch;
use anyhow::{bail, Context, Result};
use cli::seccomp::ExplainArgs;
use seccomp::policy::Abi;
use seccomp::{text, CacheTable, SeccompData, Verdict};
use std::io::Write;

/// Bit 30 of x32 numbers.
const X32: u32 = 0x4000_0000;

/// Prints the verdict on one call and the way through every filter.
pub(super) fn explain(args: &ExplainArgs) -> Result<u8> {
    let data = call(args)?;
    let mut out = std::io::stdout().lock();
    let native = CacheTable::newest(Arch::native(), true);
    if data.arch == native.arch.audit_arch() && native.exempt.contains(&data.nr) {
        writeln!(
            out,
            "the kernel lets this call through, whatever filters say (seccomp_uprobe_exception)"
        )?;
    }

    if let Some(profile) = &args.source.profile {
        by_profile(&mut out, profile, &args.source.with, &data)?;
    }

    for named in filters::chains(&args.source)? {
        let decision = named.chain.run(&data);
        writeln!(
            out,
            "{}: {}: {}",
            named.name,
            shown(&data),
            decision.verdict
        )?;
        if decision.verdict == Verdict::ALLOW && decision.filter.is_none() {
            writeln!(out, "no filter says anything stricter than ALLOW")?;
        }
        // Newest first, as the kernel runs them.
        for (index, filter) in named.chain.filters().iter().enumerate().rev() {
            let decides = decision.filter == Some(index);
            let mut lines = Vec::new();
            let run = filter.trace(&data, |step| {
                lines.push((step.at, step.a));
            });
            writeln!(
                out,
                "filter {index}{}: {} after {} instructions",
                if decides { " (decides)" } else { "" },
                run.verdict,
                run.insns
            )?;
            if decides || named.chain.filters().len() == 1 {
                for (at, a) in lines {
                    writeln!(out, "{:<60} A={a:#x}", text::listing_line(filter, at))?;
                }
            }
        }
    }

    Ok(0)
}

/// Prints the entry of a profile that decides about a call, with its line.
fn by_profile(
    out: &mut impl Write,
    profile: &std::path::Path,
    with: &cli::seccomp::ProfileArgs,
    data: &SeccompData,
) -> Result<()> {
    let context = source::context(with)?;
    let text = source::text(profile)?;
    let policy = source::quiet_policy(profile, &text, &context)?;
    let name = profile.display().to_string();
    let Some(ruling) = policy.decide(data) else {
        return Ok(());
    };
    let reporter = denials::Reporter::new(&policy, &name).with_text(&text);
    writeln!(out, "{name}: {}: {}", shown(data), ruling.verdict)?;
    writeln!(out, "    rule: {}", reporter.rule(data, &ruling))?;
    Ok(())
}

fn call(args: &ExplainArgs) -> Result<SeccompData> {
    // A profile that is read for a machine is asked about calls of that machine.
    let (option, name) = match (&args.call_arch, &args.source.with.arch) {
        (Some(name), _) => ("--call-arch", Some(name)),
        (None, name) => ("--arch", name.as_ref()),
    };
    let abi = match name {
        None => Abi::native(),
        Some(name) => Abi::from_name(name).with_context(|| {
            format!("{option} {name}: no such architecture; take x86_64, x32, i386, aarch64 or arm")
        })?,
    };

    let with_bit = |nr| if abi == Abi::X32 { nr | X32 } else { nr };
    let nr = abi
        .number(&args.syscall)
        .or_else(|| Some(with_bit(u32::try_from(number(&args.syscall)?).ok()?)))
        .with_context(|| {
            format!(
                "--syscall {}: {} has no such system call; give its name or number",
                args.syscall,
                name.map_or(Arch::native().name(), String::as_str)
            )
        })?;

    let mut data = SeccompData {
        nr,
        arch: abi.audit_arch(),
        instruction_pointer: number(&args.ip)
            .with_context(|| format!("--ip {}: expected a number", args.ip))?,
        ..SeccompData::default()
    };

    for text in &args.args {
        let parsed = text.split_once('=').and_then(|(index, value)| {
            let slot = data.args.get_mut(index.parse::<usize>().ok()?)?;
            *slot = number(value)?;
            Some(())
        });
        if parsed.is_none() {
            bail!("--arg {text}: expected N=VALUE with N from 0 to 5, such as 1=0x80000");
        }
    }

    Ok(data)
}

/// Decimal, negative decimal, or 0x.
fn number(text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    match text.strip_prefix('-') {
        Some(digits) => digits.parse::<u64>().ok().map(u64::wrapping_neg),
        None => text.parse().ok(),
    }
}

/// A call, arguments up to the last that is not 0.
pub(super) fn shown(data: &SeccompData) -> String {
    let arch = Arch::from_audit_arch(data.arch);
    let arch_name = arch.map_or_else(|| format!("{:#x}", data.arch), |arch| arch.name().into());
    let abi = Abi::of(data.arch, data.nr);
    let is_x32 = abi == Some(Abi::X32);
    let nr = if is_x32 { data.nr & !X32 } else { data.nr };
    let name = abi
        .and_then(|abi| abi.name_of(data.nr))
        .map_or_else(|| (nr as i32).to_string(), str::to_owned);
    let count = data
        .args
        .iter()
        .rposition(|&arg| arg != 0)
        .map_or(0, |at| at + 1);
    let args: Vec<String> = data.args[..count]
        .iter()
        .map(|arg| format!("{arg:#x}"))
        .collect();
    let ip = match data.instruction_pointer {
        0 => String::new(),
        ip => format!(" at {ip:#x}"),
    };
    let x32 = if is_x32 { " (x32)" } else { "" };

    format!("{arch_name}{x32} {name}({}){ip}", args.join(", "))
}
