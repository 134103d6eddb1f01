//! Where the journal meets its seal.

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
        }
    }
}
