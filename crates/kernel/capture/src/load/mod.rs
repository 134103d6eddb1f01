//! Loads the programs: what of them this kernel can run, with its types, and no larger than needed.

pub(crate) mod dead_code;
mod instruction_codes;
pub(crate) mod instructions;
pub(crate) mod kernel_types;
pub(crate) mod map_options;
pub(crate) mod needs;
pub(crate) mod object;
pub(crate) mod options;
mod register_use;
pub(crate) mod rehearsal;
