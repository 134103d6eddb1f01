//! Tests of the answers of `tarsier search` beyond ausearch's, and of its indexes.

mod follow;
mod forms;
mod indexes;
mod made;
mod questions;
mod threads;
mod truth;
