//! Equivalent, cheaper rules.

pub(crate) mod residual;
