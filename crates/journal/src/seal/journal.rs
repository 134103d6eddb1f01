//! Where the journal meets its seal.

use super::Sealer;
use crate::log::Journal;

impl Journal {
    /// Checkpoints that are due, and what the sealer has to say.
    pub(crate) fn seal_tick(&mut self) {
        if let Some(sealer) = &mut self.sealer {
            sealer.tick();
            for (severity, text) in sealer.take_messages() {
                self.say(severity, text);
            }
        }
    }

    /// Ends the seal in order, if there is one, and waits until it is durable.
    pub(crate) fn close_seal(&mut self) {
        if let Some(mut sealer) = self.sealer.take() {
            sealer.close();
            for (severity, text) in sealer.take_messages() {
                self.say(severity, text);
            }
            self.unwritten_seal = Some(sealer).filter(Sealer::is_waiting);
        }
    }

    /// Before the seal is opened anew: writes what it had no room for when it was closed.
    pub(crate) fn end_closed_seal(&mut self) {
        if let Some(mut sealer) = self.unwritten_seal.take() {
            sealer.write_waiting();
        }
    }
}
