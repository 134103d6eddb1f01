//! Derives from a filter the terms that a block must hold for one of its events to match.

use super::terms::{number_bit, pieces, Class, Filters, Terms, KINDS_MAX};
use crate::facts::NO_LOGIN;
use crate::filter::Filter;
use crate::literal::part_of_file;
use memchr::memmem::find;

/// Terms that a block must hold for one of its events to match.
#[derive(Debug, Clone, Default)]
pub struct Needed {
    /// Pieces of text.
    texts: Vec<u16>,
    numbers: Vec<u16>,
    kinds: Vec<i32>,
}

impl Needed {
    /// Terms that the filter needs.
    pub fn of(filter: &Filter) -> Needed {
        let mut needed = Needed {
            kinds: filter.kinds.clone(),
            ..Needed::default()
        };

        let texts = [
            &filter.key,
            &filter.exe,
            &filter.comm,
            &filter.vm,
            &filter.uuid,
            &filter.host,
            &filter.terminal,
        ];

        for text in texts.into_iter().flatten() {
            needed.add_text(text);
        }
        if let Some(text) = &filter.file {
            needed.add_text(part_of_file(text));
        }

        needed.add_numbers(filter);
        needed
    }

    /// Adds a text that lines of every matching event have, plain or in hex.
    pub fn add_text(&mut self, text: &[u8]) {
        // Values that stand for a field without one are not in the log.
        if [&b"(null)"[..], b"(none)"]
            .iter()
            .any(|none| find(none, text).is_some())
        {
            return;
        }
        pieces(text, |bit| self.texts.push(bit));
    }

    fn add_numbers(&mut self, filter: &Filter) {
        if let Some(serial) = filter.serial {
            self.numbers
                .push(number_bit(Class::Serial, i64::from(serial)));
        }

        let is_by_name = filter.names.iter().any(Option::is_some);
        let id = |id: Option<u32>| id.map(i64::from);
        let user = |wanted| if is_by_name { None } else { id(wanted) };
        let numbers = [
            (Class::Pid, filter.pid.map(|pid| i64::from(pid as u32))),
            (Class::Ppid, filter.ppid.map(|pid| i64::from(pid as u32))),
            (Class::Session, id(filter.session)),
            (Class::Exit, filter.exit),
            (
                Class::Syscall,
                filter.syscall.map(|call| i64::from(call as u32)),
            ),
        ];

        let users = if filter.is_any_user {
            vec![(Class::Uid, user(filter.uid))]
        } else {
            vec![
                (Class::Uid, user(filter.uid)),
                (Class::Auid, user(filter.auid)),
                (Class::Euid, user(filter.euid)),
            ]
        };

        for (class, value) in numbers.into_iter().chain(users) {
            // These stand for a field that a record does not have, too.
            let is_told = |value: &i64| {
                class == Class::Exit
                    || ![0, i64::from(u32::MAX), i64::from(NO_LOGIN)].contains(value)
            };
            if let Some(value) = value.filter(is_told) {
                self.numbers.push(number_bit(class, value));
            }
        }
    }

    /// Whether nothing is needed, so that every block counts.
    pub fn is_nothing(&self) -> bool {
        self.texts.is_empty() && self.numbers.is_empty() && self.kinds.is_empty()
    }

    /// Whether a block, or several whose events may meet, can hold an event that matches.
    pub fn may_be_in(&self, terms: &Terms) -> bool {
        self.answer(terms).is_yes()
    }

    /// Which of the needed terms a block may hold.
    pub fn answer(&self, terms: &Terms) -> Answer {
        self.ask(terms)
    }

    pub(super) fn ask(&self, terms: &impl Filters) -> Answer {
        let has_kind = self.kinds.is_empty()
            || terms.kinds().len() > KINDS_MAX
            || terms.kinds().any(|kind| self.kinds.contains(&kind));
        let texts = self.texts.iter().map(|bit| terms.has_text(*bit));
        let numbers = self.numbers.iter().map(|bit| terms.has_number(*bit));
        let has_kind = std::iter::once(has_kind);
        Answer(has_kind.chain(texts).chain(numbers).collect())
    }
}

/// Which of the terms that a filter needs a block may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer(Vec<bool>);

impl Answer {
    /// Adds the terms of another block.
    pub fn merge(&mut self, other: &Answer) {
        let pairs = self.0.iter_mut().zip(&other.0);
        pairs.for_each(|(mine, its)| *mine |= its);
    }

    /// Whether an event that matches may be there.
    pub fn is_yes(&self) -> bool {
        self.0.iter().all(|has| *has)
    }
}
