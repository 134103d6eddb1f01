//! The choice of the engine.

use crate::stderr::say;
use anyhow::{bail, Result};
use cli::Engine;

/// Whether to use the trampoline engine. Prints why the tracepoint engine is used instead if
/// `engine` is `auto`.
///
/// # Errors
/// The kernel is too old for eBPF engines, or refuses the trampoline engine that was asked for.
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
             --engine auto selects one that does"
        ),
        (Some(reason), _) => {
            say!("tarsier: engine tracepoint: {reason}");
            Ok(false)
        }
    }
}
