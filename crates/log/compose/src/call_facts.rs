//! Name and shape of each system call, looked up once per number.

use plan::Shape;
use record::wire::{self, Event};
use std::collections::HashMap;
use std::sync::Arc;

/// Facts about a system call or an io_uring operation.
pub(crate) struct CallFacts {
    /// Name of the call; `io_uring:NAME` for an operation, `?` if the call is not known.
    pub(crate) name: String,
    /// Arguments that are paths, descriptors and addresses.
    pub(crate) shape: Shape,
}

/// Architecture (`AUDIT_ARCH_*`, 0 for io_uring operations) and number.
type Number = (u32, u32);

/// Cache of the calls that have had events.
#[derive(Default)]
pub(crate) struct Calls {
    known: HashMap<Number, Arc<CallFacts>>,
    /// The call that was looked up last: the next one is often the same.
    last: Option<(Number, Arc<CallFacts>)>,
}

impl Calls {
    /// The facts about the call of `event`.
    pub(crate) fn of(&mut self, event: &Event<'_>) -> Arc<CallFacts> {
        let header = event.header();
        // io_uring operations have the same numbers on every architecture.
        let arch = if event.has_flag(wire::TARSIER_URING) {
            0
        } else {
            header.arch
        };

        let number = (arch, event.call_number());
        match &self.last {
            Some((last, call)) if *last == number => Arc::clone(call),
            _ => {
                let call = self.known.entry(number);
                let call = Arc::clone(call.or_insert_with(|| Arc::new(CallFacts::of(event))));
                self.last = Some((number, Arc::clone(&call)));
                call
            }
        }
    }
}

impl CallFacts {
    fn of(event: &Event<'_>) -> CallFacts {
        let header = event.header();
        let nr = event.call_number();
        if event.has_flag(wire::TARSIER_URING) {
            let name = abi::uring_op_name(nr).map_or_else(|| nr.to_string(), str::to_owned);
            return CallFacts {
                name: format!("io_uring:{name}"),
                shape: plan::uring::shape_of_op(nr),
            };
        }

        let arch = abi::Arch::from_audit_arch(header.arch);
        let name = arch.and_then(|arch| abi::syscall_name(arch, nr));
        CallFacts {
            name: name.unwrap_or("?").to_owned(),
            shape: arch.map_or(Shape::PLAIN, |arch| plan::shape(arch, nr)),
        }
    }
}
