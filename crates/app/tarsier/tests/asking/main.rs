//! Tests of the answers of `tarsier search` beyond ausearch's, and of its indexes.

mod follow;
mod forms;
mod indexes;
mod made;
mod others;
mod questions;
mod reference;
mod threads;
mod truth;
