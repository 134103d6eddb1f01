//! Records in the kernel of the calls that filters deny to a program and its descendants, without
//! any effect on them.

use crate::error::SeccompKernelError;
use crate::follow::Follower;
use bpf::shared::{call_key, denial_key, denial_value};
use seccomp::SeccompData;
use std::collections::HashMap;
use std::os::fd::AsFd;
use zerocopy::IntoBytes;

/// Records denials. Dropping the recorder removes the hooks.
pub struct DenialRecorder {
    follower: Follower,
    /// The denials that [`DenialRecorder::news`] has returned, with their counts.
    known: HashMap<(u32, u32, [u64; 6]), u64>,
}

/// What is to be recorded of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LookedAt {
    /// Arguments that tell denials of the call apart, a bit each.
    pub args: u8,
    /// Whether the call is recorded where it is allowed, too: SECCOMP_RET_LOG allows it.
    pub when_allowed: bool,
}

/// Equal calls that filters denied, or allowed and logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The first of the calls.
    pub data: SeccompData,
    /// Name and id of the thread that made it.
    pub thread: (String, u32),
    /// Number of calls since they were last asked for.
    pub times: u64,
}

impl DenialRecorder {
    /// Loads the programs. Of calls that are not in `looked_at`, all denials are equal.
    ///
    /// # Errors
    /// The kernel refuses the programs, or the caller may not load any.
    pub fn start(
        looked_at: impl IntoIterator<Item = ((u32, u32), LookedAt)>,
    ) -> Result<DenialRecorder, SeccompKernelError> {
        let follower = Follower::start(bpf::DENIED, |follower| {
            for ((arch, nr), looked_at) in looked_at {
                let allowed_too = if looked_at.when_allowed {
                    bpf::shared::DENIAL_ALLOWED_TOO as u8
                } else {
                    0
                };
                let bits = looked_at.args & 0x3f | allowed_too;
                follower.set("looked_at", call_key { arch, nr }.as_bytes(), &[bits])?;
            }
            Ok(())
        })?;

        Ok(DenialRecorder {
            follower,
            known: HashMap::new(),
        })
    }

    /// Records what is denied to the task of `process` (a pidfd), which waits for its start, and to
    /// all that it starts.
    ///
    /// # Errors
    /// The task has ended.
    pub fn follow(&self, process: impl AsFd) -> Result<(), SeccompKernelError> {
        self.follower.follow(process, false)
    }

    /// Whether a process that is followed has not ended yet.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn is_busy(&self) -> Result<bool, SeccompKernelError> {
        Ok(self.follower.state()?.1 + 1 > 0)
    }

    /// What has come since the last call of this function, and the number of denials that found no
    /// room so far.
    ///
    /// # Errors
    /// A map cannot be read.
    pub fn news(&mut self) -> Result<(Vec<Denial>, u64), SeccompKernelError> {
        let mut news = Vec::new();
        for (key, value) in self
            .follower
            .entries::<denial_key, denial_value>("denials")?
        {
            let call = (key.call.arch, key.call.nr, key.args);
            let before = self.known.insert(call, value.count).unwrap_or(0);
            if value.count > before {
                news.push(denial(&key, &value, value.count - before));
            }
        }
        let (missed, _) = self.follower.state()?;

        Ok((news, missed[0]))
    }
}

fn denial(key: &denial_key, value: &denial_value, times: u64) -> Denial {
    let name = value.comm.iter().map(|&byte| byte as u8);
    let name: Vec<u8> = name.take_while(|&byte| byte != 0).collect();
    Denial {
        data: SeccompData {
            nr: key.call.nr,
            arch: key.call.arch,
            instruction_pointer: value.ip,
            args: value.args,
        },
        thread: (String::from_utf8_lossy(&name).into_owned(), value.tid),
        times,
    }
}
