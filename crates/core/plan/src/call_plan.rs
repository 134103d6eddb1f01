//! The plan for one call.

use abi::Shape;

/// The plan for one call or operation.
#[derive(Clone, Debug)]
pub struct CallPlan {
    /// Index of its candidates in [`crate::Plan::lists`].
    pub list: usize,
    /// Objects that the call touches.
    pub shape: Shape,
    /// Whether, for a call that opens files, a rule may select a successful open for reading only.
    pub plain_reads: bool,
}
