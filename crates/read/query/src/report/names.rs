//! Names of users and calls in reports.

use super::Request;
use crate::event::EventView;
use crate::facts::Facts;
use crate::filter::UserName;
use crate::interpret::call_name;
use crate::number::unescape;
use crate::{Dialect, Machine};
use std::collections::HashMap;

/// Gives names to numbers if `-i` asks for it.
pub(super) struct Names {
    interpret: bool,
    dialect: Dialect,
    user_name: UserName,
    users: HashMap<u32, Option<Vec<u8>>>,
}

impl Names {
    pub(super) fn new(request: &Request) -> Names {
        Names {
            interpret: request.interpret,
            dialect: request.dialect,
            user_name: request.user_name,
            users: HashMap::new(),
        }
    }

    /// The name of a user in at most `most` bytes, from `event` if its log is ENRICHED.
    pub(super) fn user(&mut self, id: u32, event: Option<EventView<'_>>, most: usize) -> Vec<u8> {
        let mut name = self.user_of(id, event.map(|event| (event, &b"auid"[..])));
        if self.dialect != Dialect::Own {
            name.truncate(most);
        }
        name
    }

    /// The name of a user, from the event's field if its log is ENRICHED.
    pub(super) fn user_of(&mut self, id: u32, event: Option<(EventView<'_>, &[u8])>) -> Vec<u8> {
        let signed = id as i32;
        if !self.interpret {
            return signed.to_string().into_bytes();
        }
        if id == u32::MAX {
            return b"unset".to_vec();
        }
        if let Some(name) = event.and_then(|(event, field)| self.interpretation(event, field)) {
            return unquoted(name);
        }

        let lookup = self.user_name;
        match self.users.entry(id).or_insert_with(|| lookup(id)) {
            Some(name) => name.clone(),
            None => format!("unknown({signed})").into_bytes(),
        }
    }

    /// The name of the event's call.
    pub(super) fn syscall(&self, event: EventView<'_>, facts: &Facts<'_>) -> Vec<u8> {
        if facts.call.syscall < 0 && self.dialect == Dialect::Own {
            return b"?".to_vec();
        }

        let number = || facts.call.syscall.to_string().into_bytes();
        if !self.interpret {
            return number();
        }
        if let Some(name) = self.interpretation(event, b"syscall") {
            return name.to_vec();
        }

        let machine = Machine::of_elf(facts.call.arch);
        if machine == Machine::Unset {
            return b"?".to_vec();
        }
        match call_name(machine, facts.call.syscall, self.dialect) {
            Some(name) => name.as_bytes().to_vec(),
            None => number(),
        }
    }

    /// The unchanged value that ENRICHED gives to a field.
    fn interpretation<'e>(&self, event: EventView<'e>, field: &[u8]) -> Option<&'e [u8]> {
        if self.dialect == Dialect::Own {
            return event.name_of(field);
        }

        let names = event.names()?;
        if names.starts_with(b"SADDR=") {
            return None;
        }

        names.split(|byte| *byte == b' ').find_map(|word| {
            let end = memchr::memchr(b'=', word)?;
            word[..end]
                .eq_ignore_ascii_case(field)
                .then_some(&word[end + 1..])
        })
    }
}

/// A value in quotes, in hex or as it is.
fn unquoted(value: &[u8]) -> Vec<u8> {
    match value {
        [b'"', rest @ ..] => match memchr::memchr(b'"', rest) {
            Some(end) => rest[..end].to_vec(),
            None => b" ".to_vec(),
        },
        [b'0', b'0', rest @ ..] => unescape(rest).unwrap_or_else(|| value.to_vec()),
        _ => unescape(value).unwrap_or_else(|| value.to_vec()),
    }
}
