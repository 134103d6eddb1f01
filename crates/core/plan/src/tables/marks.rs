//! The marks in the tables.

use super::{Builder, Row, EXECUTABLES, MARKS, MARK_FILTER, MARK_KEY};
use crate::marks::Marks;

impl Builder {
    /// Adds the marks of paths, and those of executables, with the key of their hashes.
    pub(crate) fn all_marks(&mut self, names: &Marks, executables: &Marks) {
        let [a, b] = names.key.words();
        self.set(MARK_KEY, Row { a, b });
        self.marks(MARKS, names);
        self.mark_filter(names);
        self.marks(EXECUTABLES, executables);
    }

    /// Adds marks, whose place is then in row `head`.
    fn marks(&mut self, head: usize, marks: &Marks) {
        let (slots, taken) = marks.placed();
        if slots == 0 {
            return;
        }

        let first = self.rows.len();
        self.rows.resize(first + slots, Row::default());
        for (slot, [a, b]) in taken {
            self.rows[first + slot] = Row { a, b };
        }

        self.rows[head] = Row {
            a: first as u64,
            b: slots as u64 - 1,
        };
    }

    /// Adds the filter of marks, whose place is then in row [`MARK_FILTER`].
    fn mark_filter(&mut self, marks: &Marks) {
        let words = marks.filter();
        let first = self.rows.len() as u64;
        let pairs = words.chunks_exact(2).map(|pair| Row {
            a: pair[0],
            b: pair[1],
        });
        self.rows.extend(pairs);
        self.rows[MARK_FILTER] = Row {
            a: first * 2,
            b: words.len() as u64 - 1,
        };
    }
}
