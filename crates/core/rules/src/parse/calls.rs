//! `-S`: system calls and io_uring operations.

use abi::Arch;

use super::draft::Draft;
use super::{Next, Site};
use crate::fault::Fault;
use crate::words::Word;
use crate::{number, List, SyscallSet};

/// Adds the calls that `-S` names.
pub(super) fn add_names(
    draft: &mut Draft,
    argument: &Word,
    site: Site<'_>,
    warnings: &mut Vec<Fault>,
) -> Result<Next, Fault> {
    if draft.is_on(List::IoUring) {
        return add_uring_ops(draft, argument);
    }

    let refused = [
        (
            List::Task,
            "Error: syscall auditing being added to task list",
        ),
        (
            List::User,
            "Error: syscall auditing being added to user list",
        ),
        (
            List::Filesystem,
            "Error: syscall auditing being added to filesystem list",
        ),
        (
            List::Exclude,
            "Error: syscall auditing cannot be put on exclude list",
        ),
    ];

    if let Some((_, message)) = refused.into_iter().find(|row| draft.is_on(row.0)) {
        return Err(Fault::at(argument, message));
    }

    // Without -F arch before it, the names are those of the machine; auditctl does the same.
    let is_arch_unknown = draft.facts.arch.is_none();
    let number = *draft
        .facts
        .arch
        .get_or_insert(site.host.arch().audit_arch());
    for item in items(argument) {
        add_syscall(draft, &item, number)?;
    }

    draft.facts.has_syscalls = true;
    if is_arch_unknown && draft.add.is_some() {
        warnings.extend(mismatch_warning(&draft.syscalls, argument, site));
    }

    Ok(Next::Go)
}

fn add_syscall(draft: &mut Draft, item: &Word, audit_arch: u32) -> Result<(), Fault> {
    let text = item.text();
    if text == "all" {
        draft.syscalls = SyscallSet::ALL;
        return Ok(());
    }

    let arch = Arch::from_audit_arch(audit_arch);
    let number = arch
        .and_then(|arch| syscall_number(arch, &text))
        .or_else(|| number_of(item));
    match number.filter(|&number| number < 2048) {
        Some(number) => {
            draft.syscalls.insert(number);
            Ok(())
        }
        None => {
            let fault = Fault::at(item, format!("Syscall name unknown: {text}"));
            Err(match arch {
                Some(arch) => fault
                    .expected(format!("a system call of {}, `all`, or a number below 2048", arch.name()))
                    .nearest(&text, abi::syscalls(arch).map(|row| row.1)),
                None => fault.expected("`all` or a number below 2048: names of calls are not known for this architecture"),
            })
        }
    }
}

fn add_uring_ops(draft: &mut Draft, argument: &Word) -> Result<Next, Fault> {
    for item in items(argument) {
        let text = item.text().to_ascii_lowercase();
        if text == "all" {
            abi::uring_ops()
                .map(|row| row.0)
                .filter(|&op| abi::uring_op_is_audited(op))
                .for_each(|op| draft.syscalls.insert(op));
            continue;
        }
        let op = abi::uring_op_number(&text).or_else(|| number_of(&item));
        let Some(op) = op.filter(|&op| op < 2048) else {
            return Err(
                Fault::at(&item, format!("io_uring op unknown: {}", argument.text()))
                    .expected("an io_uring operation, `all`, or a number below 2048")
                    .nearest(&text, abi::uring_ops().map(|row| row.1)),
            );
        };
        draft.syscalls.insert(op);
    }

    draft.facts.has_syscalls = true;
    Ok(Next::Go)
}

/// The warning that the same names have other numbers in 32-bit programs (check_rule_mismatch() in
/// audit-userspace src/auditctl.c).
fn mismatch_warning(syscalls: &SyscallSet, argument: &Word, site: Site<'_>) -> Option<Fault> {
    if site.host.arch() != Arch::X86_64 {
        return None;
    }
    let mut compat = SyscallSet::EMPTY;
    for item in items(argument) {
        let text = item.text();
        match syscall_number(Arch::I386, &text).or_else(|| number_of(&item)) {
            _ if text == "all" => compat = SyscallSet::ALL,
            Some(number) => compat.insert(number),
            None => {}
        }
    }
    // audit 3.0.9 compares 64 bytes by mistake; no call has a number beyond those.
    if compat.0[..16] == syscalls.0[..16] {
        return None;
    }
    let place = match site.source.line {
        0 => String::new(),
        line => format!(" in line {line}"),
    };
    let message =
        format!("WARNING - 32/64 bit syscall mismatch{place}, you should specify an arch");
    Some(Fault::at(argument, message).help(
        "the numbers are those of 64-bit calls, and 32-bit programs use others: \
         write one rule with -F arch=b64 and one with -F arch=b32",
    ))
}

/// The items of a comma-separated list, without empty ones.
fn items(argument: &Word) -> Vec<Word> {
    if !argument.bytes.contains(&b',') {
        return vec![argument.clone()];
    }

    let mut at = 0;
    let mut items = Vec::new();
    for part in argument.bytes.split(|&byte| byte == b',') {
        if !part.is_empty() {
            items.push(argument.part(at, part.len()));
        }
        // Positions count the commas, so that an error points at its item.
        at += part.len() + 1;
    }

    items
}

fn syscall_number(arch: Arch, name: &str) -> Option<u32> {
    abi::syscall_number(arch, &name.to_ascii_lowercase())
}

/// The number that `item` stands for; `None` unless it starts with a digit.
fn number_of(item: &Word) -> Option<u32> {
    item.bytes.first().filter(|byte| byte.is_ascii_digit())?;
    u32::try_from(number::signed(&item.bytes)).ok()
}
