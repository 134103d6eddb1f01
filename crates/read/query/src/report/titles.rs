//! Titles of reports: name, columns, and the length of the lines around them.

use super::{Kind, Request};

/// Name, column and length of the lines of a summary.
fn summary(kind: Kind) -> Option<(&'static str, &'static str, usize)> {
    Some(match kind {
        Kind::Main => ("", "", 22),
        Kind::Log | Kind::Tty => return None,
        Kind::Avc => ("Avc Object", "obj", 33),
        Kind::Mac => ("MAC", "type", 18),
        Kind::Integrity => ("Integrity", "type", 24),
        Kind::Virt => ("Virtualization", "type", 29),
        Kind::Config => ("Config Change", "type", 28),
        Kind::Auth => ("Authentication", "acct", 29),
        Kind::Login => ("Login", "auid", 28),
        Kind::Mods => ("Acct Modification", "type", 32),
        Kind::Event => ("Event", "type", 22),
        Kind::File => ("File", "file", 27),
        Kind::Host => ("Host", "host", 27),
        Kind::Pid => ("Pid", "pid", 26),
        Kind::Syscall => ("Syscall", "syscall", 26),
        Kind::Terminal => ("Terminal", "terminal", 31),
        Kind::User => ("User", "auid", 27),
        Kind::Exe => ("Executable", "file", 33),
        Kind::Comm => ("Command", "command", 33),
        Kind::Anomaly => ("Anomaly", "type", 22),
        Kind::Response => ("Anomaly Response", "type", 31),
        Kind::Crypto => ("Crypto", "type", 21),
        Kind::Key => ("Key", "key", 27),
    })
}

/// Name, columns, and the length of the lines above and below the columns.
fn detailed(kind: Kind) -> (&'static str, &'static str, [usize; 2]) {
    match kind {
        Kind::Main => ("Summary Report", "", [22, 0]),
        Kind::Log => ("Log Time Range Report", "", [21, 0]),
        Kind::Avc => (
            "AVC Report",
            "comm subj syscall class permission obj result event",
            [63, 63],
        ),
        Kind::Config => ("Config Change Report", "type auid success event", [35, 35]),
        Kind::Auth => (
            "Authentication Report",
            "acct host term exe success event",
            [44, 44],
        ),
        Kind::Login => ("Login Report", "auid host term exe success event", [44, 44]),
        Kind::Mods => (
            "Account Modifications Report",
            "auid addr term exe acct success event",
            [49, 49],
        ),
        Kind::Event => ("Event Report", "event type auid success", [35, 35]),
        Kind::File => (
            "File Report",
            "file syscall success exe auid event",
            [47, 47],
        ),
        Kind::Host => ("Host Report", "host syscall auid event", [35, 35]),
        Kind::Pid => ("Process ID Report", "pid exe syscall auid event", [38, 38]),
        Kind::Syscall => ("Syscall Report", "syscall pid comm auid event", [39, 39]),
        Kind::Terminal => ("Terminal Report", "term host exe auid event", [36, 36]),
        Kind::User => ("User ID Report", "auid term host exe event", [36, 36]),
        Kind::Exe => ("Executable Report", "exe term host auid event", [36, 36]),
        Kind::Comm => ("Command Report", "comm term host auid event", [36, 37]),
        Kind::Anomaly => ("Anomaly Report", "type exe term host auid event", [41, 41]),
        Kind::Response => ("Response to Anomaly Report", "type success event", [30, 30]),
        Kind::Mac => ("MAC Report", "auid type success event", [35, 35]),
        Kind::Integrity => ("Integrity Report", "type success event", [30, 30]),
        Kind::Virt => ("Virtualization Report", "type success event", [30, 30]),
        Kind::Crypto => ("Crypto Report", "auid type success event", [35, 35]),
        Kind::Key => ("Key Report", "key success exe auid event", [47, 47]),
        Kind::Tty => ("TTY Report", "event auid term sess comm data", [47, 47]),
    }
}

pub(super) fn title(request: &Request) -> Option<String> {
    let line = |length: usize| "=".repeat(length);
    if !request.is_summary {
        let (name, columns, lengths) = detailed(request.kind);
        let head = format!("\n{name}\n{}\n", line(lengths[0]));
        return Some(match columns {
            "" => head,
            _ => {
                let host = if request.has_hosts { " node" } else { "" };
                format!("{head}# date time {columns}{host}\n{}\n", line(lengths[1]))
            }
        });
    }

    let which = match request.success {
        Some(true) => "Success ",
        Some(false) => "Failed ",
        None => "",
    };

    let (name, column, length) = summary(request.kind)?;
    let line = line(length);
    Some(match request.kind {
        Kind::Main => format!("\n{which}Summary Report\n{line}\n"),
        _ => format!("\n{which}{name} Summary Report\n{line}\ntotal  {column}\n{line}\n"),
    })
}
