//! Reaction to lost events: auditctl's -f, see auditctl(8).

use crate::pipeline::Pipeline;
use crate::stderr::say;
use rustix::system::{reboot, RebootCommand};
use std::fs::{File, OpenOptions};
use std::io::Write;

/// The value of auditctl's -f.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub(crate) u32);

impl Default for Failure {
    /// The kernel's default.
    fn default() -> Failure {
        Failure(1)
    }
}

impl Failure {
    /// Reacts to events lost for these causes, if any: 1 reports them in the kernel's log; 2 also stops the machine,
    /// once the log is on the disk.
    pub(crate) fn act(self, causes: &str, pipeline: &mut Pipeline) {
        if causes.is_empty() || self.0 == 0 {
            return;
        }

        let is_last = self.0 == 2;
        let level = if is_last { 0 } else { 4 };
        let text = format!("<{level}>tarsier: audit events lost: {causes}\n");
        if let Err(error) = write_to("/dev/kmsg", &text) {
            say!("tarsier: events were lost ({causes}), and /dev/kmsg cannot be written: {error}");
        }

        if is_last {
            pipeline.commit();
            let log = File::open(pipeline.output().journal().path());
            if let Err(error) = log.and_then(|log| log.sync_all()) {
                say!("tarsier: the log is not on the disk: {error}");
            }
            stop_the_machine(pipeline);
        }
    }
}

/// Makes the kernel panic, as its own audit does with -f 2, so that what the administrator has set for that takes place
/// (kernel.panic, kdump). If it does not, the machine is halted.
fn stop_the_machine(pipeline: &Pipeline) {
    say!("tarsier: audit events were lost, and -f 2 asks for a panic");
    if let Err(error) = write_to("/proc/sysrq-trigger", "c") {
        say!("tarsier: /proc/sysrq-trigger: {error}; the machine is halted");
    }
    // Under systemd, the daemon has no right to.
    if reboot(RebootCommand::Halt).is_err() {
        let error = pipeline.output().halt();
        say!("tarsier: the machine cannot be halted: {error}");
    }
}

fn write_to(path: &str, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(path)?;
    file.write_all(text.as_bytes())
}
