//! Free space on the log's file system, compared with the configured limits.

use std::fs::File;
use std::io;

use conf::{Config, SpaceLimit};

pub(crate) const MIB: u64 = 1 << 20;

/// auditd considers a file system with fewer free blocks than this full.
const BLOCKS_MIN: u64 = 5;

/// Sizes from fstatvfs(3).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    pub(crate) total_bytes: u64,
    pub(crate) available_bytes: u64,
    pub(crate) available_blocks: u64,
}

impl Space {
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let stat = rustix::fs::fstatvfs(file)?;
        Ok(Space {
            total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
            available_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
            available_blocks: stat.f_bavail,
        })
    }

    pub(crate) fn is_full(&self) -> bool {
        self.available_blocks < BLOCKS_MIN
    }
}

/// `space_left` and `admin_space_left` in bytes; percentages are of the whole file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) space_left_bytes: u64,
    pub(crate) admin_space_left_bytes: u64,
}

impl Limits {
    pub(crate) fn of(config: &Config, space: &Space) -> Self {
        let bytes = |limit| match limit {
            SpaceLimit::Mib(mib) => mib.saturating_mul(MIB),
            SpaceLimit::Percent(percent) => space.total_bytes / 100 * u64::from(percent),
        };
        Limits {
            space_left_bytes: bytes(config.space_left),
            admin_space_left_bytes: bytes(config.admin_space_left),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_of_the_whole_file_system() {
        let space = Space {
            total_bytes: 2048 * MIB,
            available_bytes: MIB,
            available_blocks: 256,
        };
        let config = Config {
            space_left: SpaceLimit::Percent(25),
            admin_space_left: SpaceLimit::Mib(7),
            ..Config::default()
        };
        let limits = Limits::of(&config, &space);
        assert_eq!(limits.space_left_bytes / MIB, 511);
        assert_eq!(limits.admin_space_left_bytes, 7 * MIB);
    }
}
