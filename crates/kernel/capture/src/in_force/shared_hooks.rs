//! Shares the hooks with a thread that changes them while the rings are read.

use crate::error::CaptureError;
use crate::in_force::hook_change::HookChange;
use crate::in_force::hooks::Hooks;
use plan::Plan;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

/// The hooks. Only a replacement of the rules holds them for long.
pub(crate) struct SharedHooks {
    hooks: Arc<Mutex<Hooks>>,
    /// The last known count of missed calls.
    missed: AtomicU64,
    /// The last known count of missed changes of processes.
    changes_missed: AtomicU64,
}

/// A rule set that a thread is putting in force.
pub struct Replacement {
    outcome: Receiver<Result<HookChange, CaptureError>>,
}

impl Replacement {
    /// Waits at most this long for the end. `None` while it goes on; an error means that the old rule set stays in
    /// force.
    pub fn wait(&self, longest: Duration) -> Option<Result<HookChange, CaptureError>> {
        match self.outcome.recv_timeout(longest) {
            Ok(outcome) => Some(outcome),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(CaptureError::System {
                what: "the thread that changes hooks ended early".to_owned(),
                source: std::io::ErrorKind::BrokenPipe.into(),
            })),
        }
    }
}

impl SharedHooks {
    pub(crate) fn new(hooks: Hooks) -> SharedHooks {
        SharedHooks {
            hooks: Arc::new(Mutex::new(hooks)),
            missed: AtomicU64::new(0),
            changes_missed: AtomicU64::new(0),
        }
    }

    /// The hooks, after a replacement under way has ended.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Hooks> {
        self.hooks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The hooks, unless they are being replaced.
    pub(crate) fn if_unused(&self) -> Option<MutexGuard<'_, Hooks>> {
        match self.hooks.try_lock() {
            Ok(hooks) => Some(hooks),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Number of watched calls that programs missed; while hooks are being replaced, the number before.
    pub(crate) fn missed(&self) -> u64 {
        if let Some(hooks) = self.if_unused() {
            self.missed.store(hooks.missed(), Ordering::Relaxed);
        }
        self.missed.load(Ordering::Relaxed)
    }

    /// Number of changes of processes that programs missed; while hooks are being replaced, the number before.
    pub(crate) fn missed_changes(&self) -> u64 {
        if let Some(hooks) = self.if_unused() {
            let missed = hooks.programs.missed_changes();
            self.changes_missed.store(missed, Ordering::Relaxed);
        }
        self.changes_missed.load(Ordering::Relaxed)
    }

    /// See [`crate::in_force::engine::EbpfEngine::start_replacing`].
    pub(crate) fn start_replacing(
        &self,
        plan: impl Deref<Target = Plan> + Send + 'static,
        nice: i32,
    ) -> Result<Replacement, CaptureError> {
        let (sender, outcome) = channel();
        let hooks = Arc::clone(&self.hooks);

        let replace = move || {
            // Without permission it stays that of the reader.
            let _ = rustix::process::setpriority_process(None, nice);
            let replaced = hooks
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .replace(&plan);
            // Nobody waits any more if the engine has ended.
            let _ = sender.send(replaced);
        };

        let thread = std::thread::Builder::new().name("tarsier-arm".to_owned());
        match thread.spawn(replace) {
            Ok(_) => Ok(Replacement { outcome }),
            Err(source) => Err(CaptureError::System {
                what: "a thread that changes hooks".to_owned(),
                source,
            }),
        }
    }
}
