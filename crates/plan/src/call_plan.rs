//! What a plan says of one call.

use crate::shape::Shape;

/// What the plan says of one call.
#[derive(Clone, Debug)]
pub struct CallPlan {
    /// Its candidates: index into [`crate::Plan::lists`].
    pub list: usize,
    /// What it touches.
    pub shape: Shape,
    /// If it opens files: one that is opened for reading alone, with success, may be selected.
    pub plain_reads: bool,
}
