//! Labels of processes: names that rules give them (`label_keys`).

/// Most labels that can be told apart: one bit each.
const NAMES_MAX: usize = u64::BITS as usize;

/// The labels of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessLabels {
    /// One bit for each, by place in [`LabelNames`].
    pub(crate) bits: u64,
    /// Whether it may have others: it is not known what its makers had.
    pub(crate) is_partial: bool,
}

impl ProcessLabels {
    /// Labels of a process of whose makers nothing is known.
    pub(crate) const UNKNOWN: ProcessLabels = ProcessLabels {
        bits: 0,
        is_partial: true,
    };
}

/// The names of labels, by bit.
#[derive(Debug, Default)]
pub(crate) struct LabelNames {
    names: Vec<String>,
}

impl LabelNames {
    /// The bit of a label. If all bits have names, one that no process has is used again; `used` tells which processes
    /// have. `None` if there is none.
    pub(crate) fn bit(&mut self, name: &str, used: impl FnOnce() -> u64) -> Option<u64> {
        if let Some(place) = self.names.iter().position(|known| known == name) {
            return Some(1 << place);
        }
        if self.names.len() < NAMES_MAX {
            self.names.push(name.to_owned());
            return Some(1 << (self.names.len() - 1));
        }
        let free = (!used()).trailing_zeros() as usize;
        let known = self.names.get_mut(free)?;
        name.clone_into(known);
        Some(1 << free)
    }

    /// The names of these labels.
    pub(crate) fn of(&self, labels: ProcessLabels) -> impl Iterator<Item = &str> {
        let names = self.names.iter().enumerate();
        let has = move |place: usize| labels.bits & 1 << place != 0;
        names.filter_map(move |(place, name)| has(place).then_some(name.as_str()))
    }
}
