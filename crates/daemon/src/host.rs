//! The system that this program runs on, for questions of the composer.

use capture::probe;
use compose::{Host, Sign};

/// This machine.
pub const HOST: Host = Host::new(kernel_has);

fn kernel_has(sign: Sign<'_>) -> bool {
    match sign {
        Sign::Function(name) => probe::has_function(name),
        Sign::Enumerator { of, name } => probe::has_enumerator(of, name),
        Sign::Parameter { function, name } => probe::has_parameter(function, name),
    }
}
