//! The lines of aulast.

use super::session::{Session, Status};
use crate::time;

/// Appends a text of at most `most` bytes in at least as many columns.
fn column(text: &[u8], most: usize, out: &mut Vec<u8>) {
    let text = &text[..text.len().min(most)];
    out.extend_from_slice(text);
    out.resize(out.len() + most - text.len(), b' ');
}

/// Appends a session. `is_running` if its end is only that of the report; texts are not cut if `is_own`.
pub(super) fn write_session(
    session: &Session,
    is_running: bool,
    has_proof: bool,
    is_own: bool,
    out: &mut Vec<u8>,
) {
    let wide = |text: &[u8], most: usize| if is_own { text.len().max(most) } else { most };
    let who = match (&session.name, session.auid) {
        (Some(name), _) => name.clone(),
        // As C prints a zero without digits.
        (None, 0) if !is_own => Vec::new(),
        (None, auid) => auid.to_string().into_bytes(),
    };
    let length = if session.name.is_some() { 8 } else { who.len() };
    column(&who, wide(&who, length.max(8)), out);
    let terminal = session.terminal.as_deref().unwrap_or(b"?");
    let terminal = terminal.strip_prefix(b"/dev/").unwrap_or(terminal);
    let host = session.host.as_deref().unwrap_or(b"?");
    for (text, most) in [(terminal, 12), (host, 16)] {
        out.push(b' ');
        column(text, wide(text, most), out);
    }
    out.push(b' ');
    let mut start = Vec::new();
    time::write_ctime(session.start, &mut start);
    column(&start, 16, out);
    out.push(b' ');
    out.extend_from_slice(match session.status {
        Status::Started => b"  still logged in\n",
        Status::Down => b"- down\n",
        Status::Crash => b"- crash\n",
        Status::Gone => b"  gone - no logout\n",
        Status::LoggedIn => b"\n",
        Status::LoggedOut => b"- ",
    });
    if session.status == Status::LoggedOut {
        write_end(session, is_running, out);
    }
    if has_proof {
        write_proof(session, out);
    }
}

fn write_end(session: &Session, is_running: bool, out: &mut Vec<u8>) {
    let mut end = Vec::new();
    time::write_ctime(session.end, &mut end);
    let clock = match end.get(11..16) {
        _ if is_running => &b" "[..],
        Some(clock) => clock,
        None => b"bad v",
    };
    column(clock, 7, out);
    let seconds = session.end as i64 - session.start as i64;
    let (minutes, hours) = (seconds / 60 % 60, seconds / 3600 % 24);
    let text = match seconds / 86400 {
        0 => format!("({hours:02}:{minutes:02})\n"),
        days => format!("({days}+{hours:02}:{minutes:02})\n"),
    };
    out.extend_from_slice(text.as_bytes());
}

fn write_proof(session: &Session, out: &mut Vec<u8>) {
    let [login, user_login, end] = session.proofs;
    let is_failed = login == 0 && session.result == 1;
    let serials = match is_failed {
        true => format!("    audit event proof serial number: {user_login}\n"),
        false => format!("    audit event proof serial numbers: {login}, {user_login}, {end}\n"),
    };
    out.extend_from_slice(serials.as_bytes());
    out.extend_from_slice(
        b"    Session data can be found with this search:\n    ausearch --start ",
    );
    time::write_date_time(session.start, out);
    if session.end != 0 {
        out.extend_from_slice(b" --end ");
        time::write_date_time(session.end, out);
    }
    if session.name.is_none() {
        out.extend_from_slice(format!(" --session {}", session.number).as_bytes());
    }
    if is_failed {
        out.extend_from_slice(format!(" -a {user_login}").as_bytes());
    }
    out.extend_from_slice(b"\n\n");
}
