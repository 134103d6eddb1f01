//! Tests of the answers of `tarsier search` beyond ausearch's, and of its indexes.

mod follow;
mod indexes;
mod made;
mod questions;
