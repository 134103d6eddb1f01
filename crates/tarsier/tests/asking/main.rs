//! What `tarsier search` answers beyond ausearch, and its indexes.

mod follow;
mod indexes;
mod made;
mod questions;
