//! The destination: its sink, the text that is sent to it, and the amount at once.

use crate::batch::Recipe;
use crate::config::{is_of_host_name, Config};
use crate::sink::{self, Limits, Sink, SinkError};

/// File with the system's name.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Sink and recipe of a configuration.
pub(super) struct Target {
    pub(super) sink: Box<dyn Sink>,
    recipe: Recipe,
    /// Fewer than the sink's own limit while something of the log is refused.
    messages_max: usize,
}

impl Target {
    /// Connects to nothing.
    pub(super) fn open(config: &Config) -> Result<Target, SinkError> {
        let host = host_name(config);
        Ok(Target {
            sink: sink::open(config, &host)?,
            recipe: Recipe::new(config, &host),
            messages_max: usize::MAX,
        })
    }

    pub(super) fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// Limits of the next batch.
    pub(super) fn limits(&self) -> Limits {
        let limits = self.sink.limits();
        Limits {
            messages: limits.messages.min(self.messages_max),
            ..limits
        }
    }

    /// A batch arrived: the next one may be twice as large.
    pub(super) fn took_all(&mut self) {
        self.messages_max = self.messages_max.saturating_mul(2);
    }

    /// A batch of so many messages was refused: the next one is half as large.
    pub(super) fn refused(&mut self, messages: usize) {
        self.messages_max = (messages / 2).max(1);
    }
}

/// The name of this host at the destination.
pub fn host_name(config: &Config) -> String {
    config.host.clone().unwrap_or_else(|| {
        let name = std::fs::read_to_string(HOST_NAME).unwrap_or_default();
        let text = name.trim();
        text.chars()
            .map(|c| if is_of_host_name(c) { c } else { '_' })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_halved_until_one_message_is_left_and_grow_again() {
        let mut target = Target::open(&Config::unset()).expect("a target");
        let whole = target.limits().messages;
        for (messages, expected) in [(9, 4), (4, 2), (2, 1), (1, 1)] {
            target.refused(messages);
            assert_eq!(target.limits().messages, expected);
        }
        target.took_all();
        assert_eq!(target.limits().messages, 2);
        for _ in 0..64 {
            target.took_all();
        }
        assert_eq!(target.limits().messages, whole);
    }
}
