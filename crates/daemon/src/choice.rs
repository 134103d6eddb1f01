//! Which engine runs.

use crate::stderr::say;
use anyhow::{bail, Result};
use cli::Engine;

/// Whether the trampoline engine is the one; says which is taken when the choice is ours.
pub fn is_trampoline(engine: Engine) -> Result<bool> {
    if engine != Engine::Kernel && capture::probe::is_too_old() {
        bail!(
            "Linux {} is too old for the eBPF engines, which work from {} on: boot a newer kernel, or let the kernel's \
             own audit match the rules with --engine kernel",
            rustix::system::uname().release().to_string_lossy(),
            capture::probe::OLDEST_KERNEL
        );
    }
    let refusal = match engine {
        Engine::Tracepoint | Engine::Kernel => return Ok(false),
        Engine::Trampoline | Engine::Auto => capture::probe::trampoline_refusal(),
    };
    match (refusal, engine) {
        (None, _) => Ok(true),
        (Some(reason), Engine::Trampoline) => bail!(
            "the trampoline engine does not work here: {reason}; \
             --engine auto takes the one that does"
        ),
        (Some(reason), _) => {
            say!("tarsier: engine tracepoint: {reason}");
            Ok(false)
        }
    }
}
