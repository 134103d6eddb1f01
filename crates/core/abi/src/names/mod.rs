//! Names of numbers in the arguments of system calls and in the fields of records.
//!
//! The numbers are those of x86 and ARM, which agree in all of them. Flags are in the order in which
//! audit lists them.

mod files;
mod keys;
mod net;
mod process;

pub use files::*;
pub use keys::TERMINAL_KEYS;
pub use net::*;
pub use process::*;

/// Numbers and their names.
pub type Names = &'static [(u32, &'static str)];

/// The name of `number` in a table: that of its first entry.
pub fn find(names: Names, number: u32) -> Option<&'static str> {
    names.iter().find(|row| row.0 == number).map(|row| row.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_the_manual_pages() {
        assert_eq!(find(SIGNALS, 9), Some("SIGKILL"));
        assert_eq!(find(CAPABILITIES, 21), Some("sys_admin"));
        assert_eq!(find(ADDRESS_FAMILIES, 1), Some("local"));
        assert_eq!(find(PRCTL_OPTIONS, 0xffff), None);
    }
}
