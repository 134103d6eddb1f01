//! Filled in by its first commit.
