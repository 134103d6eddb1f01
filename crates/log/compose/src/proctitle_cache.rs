//! Command lines of tasks, cached as in the kernel (`audit_log_proctitle()`, kernel/auditsc.c): all events of a task
//! have the command line of its first event, even after it has executed another program. The cache holds the text of
//! the records.

use record::record::{Body, Proctitle};
use std::collections::HashMap;
use std::rc::Rc;

/// A task: thread id, and start time of its process in nanoseconds.
pub(crate) type Task = (u32, u64);

/// Number of tasks in one cache generation; those without an event for two generations are forgotten.
const TASKS_MAX: usize = 8192;

/// The titles of tasks that have had events lately.
#[derive(Default)]
pub(crate) struct ProctitleCache {
    recent: HashMap<Task, Rc<[u8]>>,
    older: HashMap<Task, Rc<[u8]>>,
    /// The task of the last request: the next event is often of the same task.
    last: Option<(Task, Rc<[u8]>)>,
}

impl ProctitleCache {
    /// The body of the PROCTITLE record for an event of `task`, whose command line is now `now`; `None` if no event of
    /// the task had a command line.
    pub(crate) fn of(&mut self, task: Task, now: Option<&[u8]>) -> Option<&[u8]> {
        if self.last.as_ref().is_none_or(|(last, _)| *last != task) {
            let title = self.find(task, now)?;
            self.last = Some((task, title));
        }
        self.last.as_ref().map(|(_, title)| &title[..])
    }

    fn find(&mut self, task: Task, now: Option<&[u8]>) -> Option<Rc<[u8]>> {
        if let Some(title) = self.recent.get(&task) {
            return Some(Rc::clone(title));
        }
        let title = self.older.remove(&task).or_else(|| now.map(record_body))?;
        if self.recent.len() >= TASKS_MAX {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(task, Rc::clone(&title));
        Some(title)
    }
}

fn record_body(title: &[u8]) -> Rc<[u8]> {
    let mut text = Vec::new();
    Proctitle { title: Some(title) }.write(&mut text);
    text.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_keeps_the_title_of_its_first_event() {
        let mut cache = ProctitleCache::default();
        assert_eq!(cache.of((1, 5), None), None);
        assert_eq!(
            cache.of((1, 5), Some(b"sh")),
            Some(&b"proctitle=\"sh\""[..])
        );
        assert_eq!(
            cache.of((1, 5), Some(b"true")),
            Some(&b"proctitle=\"sh\""[..])
        );
        // Another process with the same number.
        assert_eq!(
            cache.of((1, 6), Some(b"true")),
            Some(&b"proctitle=\"true\""[..])
        );
    }

    #[test]
    fn tasks_that_have_events_are_not_forgotten_and_memory_is_bounded() {
        let mut cache = ProctitleCache::default();
        cache.of((0, 0), Some(b"kept"));
        for tid in 1..10 * TASKS_MAX as u32 {
            cache.of((tid, 0), Some(b"other"));
            if tid % 1000 == 0 {
                assert_eq!(cache.of((0, 0), None), Some(&b"proctitle=\"kept\""[..]));
            }
        }
        assert!(cache.recent.len() + cache.older.len() <= 2 * TASKS_MAX);
    }
}
