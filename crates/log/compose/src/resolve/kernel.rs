//! Differences between kernels in the names that they collect for audit.

use crate::system::{Sign, System};
use abi::exit::{EACCES, EDQUOT, ENOSPC, EPERM, EROFS};

/// Collection of names by the running kernel, as its release and BTF types show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    /// newfstatat(2) with an empty path, which stands for the descriptor alone, collects no name (`vfs_fstatat()`,
    /// fs/stat.c).
    pub(super) fstatat_takes_descriptor: bool,
    /// statx(2) with an empty path, which stands for the descriptor alone, collects no name.
    pub(super) statx_takes_descriptor: bool,
    /// open(2) with O_CREAT first looks for an existing file, and records the directory only if it creates the file.
    pub(super) opens_first: bool,
    /// rename, link and symlink read their second name from user memory before the first.
    pub(super) last_name_first: bool,
    /// sysfs(2) reads the name of a file system as a path.
    pub(super) sysfs_takes_path: bool,
    /// move_mount(2) reads and looks up its target first, and collects no name for an empty path that stands for a
    /// descriptor.
    pub(super) target_first: bool,
    /// An open that is not permitted to create its file still records the entry that it would have created.
    pub(super) tells_denied_creation: bool,
    /// The hooks see every search of a directory: what they have not noted was not searched.
    pub(super) shows_parents: bool,
}

/// Whether the calls of `do_renameat2()`, `do_linkat()` and `do_symlinkat()` in fs/namei.c before Linux 7.0 evaluate
/// their last argument first. C leaves the order to the compiler: in Debian's x86 kernels the last argument comes
/// first, in its arm64 kernels the first.
const LAST_ARGUMENT_FIRST: bool = cfg!(any(target_arch = "x86_64", target_arch = "x86"));

impl Kernel {
    /// The kernel of `system`; if its types cannot be read, it is taken to have none of the changes.
    pub(super) fn of(system: &dyn System) -> Kernel {
        // `filename_renameat2()`, whose callers read the names in order, came with the same patch series that reads
        // the argument of sysfs(2) as plain text.
        let reads_in_order = system.kernel_has(Sign::Function("filename_renameat2"));
        // `fstatat_takes_descriptor` and `opens_first`: these changes have no sign in the kernel's types.
        let release = system.release();
        Kernel {
            fstatat_takes_descriptor: release >= (6, 6),
            statx_takes_descriptor: system.kernel_has(Sign::Function("do_statx_fd")),
            opens_first: release >= (6, 12),
            last_name_first: LAST_ARGUMENT_FIRST && !reads_in_order,
            sysfs_takes_path: !reads_in_order,
            target_first: system.kernel_has(Sign::Enumerator {
                of: "mnt_tree_flags_t",
                name: "MNT_TREE_PROPAGATION",
            }),
            tells_denied_creation: system.kernel_has(Sign::Parameter {
                function: "atomic_open",
                name: "create_error",
            }),
            shows_parents: system.kernel_has(Sign::Function(plan::PARENT_LOOKUP)),
        }
    }

    /// Whether an open with O_CREAT that failed with `exit` records the entry that it did not create. The kernel
    /// records it before it calls the file system, but older kernels after they have checked permissions
    /// (`lookup_open()`, fs/namei.c).
    pub(super) fn tells_failed_creation(self, exit: i64) -> bool {
        match exit {
            ENOSPC | EDQUOT => true,
            EPERM | EACCES | EROFS => self.tells_denied_creation,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_system::StaticSystem;

    const READS_IN_ORDER: Sign<'_> = Sign::Function("filename_renameat2");
    const STATX_OF_DESCRIPTOR: Sign<'_> = Sign::Function("do_statx_fd");
    const TARGET_FIRST: Sign<'_> = Sign::Enumerator {
        of: "mnt_tree_flags_t",
        name: "MNT_TREE_PROPAGATION",
    };
    const DENIED_CREATION: Sign<'_> = Sign::Parameter {
        function: "atomic_open",
        name: "create_error",
    };

    /// A kernel of this release that has only these signs.
    fn with(release: (u32, u32), signs: &[Sign<'static>]) -> Kernel {
        Kernel::of(&StaticSystem {
            release,
            signs: signs.to_vec(),
            ..StaticSystem::default()
        })
    }

    #[test]
    fn a_kernel_without_signs_is_as_before_the_changes() {
        let near = [
            Sign::Function("atomic_open"),
            Sign::Function("mnt_tree_flags_t"),
        ];
        let kernel = with((6, 12), &near);
        assert_eq!(kernel, with((6, 12), &[]));
        assert_eq!(kernel.last_name_first, LAST_ARGUMENT_FIRST);
        assert!(kernel.sysfs_takes_path);
        assert!(!kernel.target_first);
        assert!(!kernel.tells_denied_creation);
        assert!(!kernel.statx_takes_descriptor);
    }

    #[test]
    fn what_shows_in_no_type_goes_by_the_release() {
        let before = with((6, 5), &[]);
        assert!(!before.fstatat_takes_descriptor && !before.opens_first);
        let between = with((6, 11), &[]);
        assert!(between.fstatat_takes_descriptor && !between.opens_first);
        assert!(with((6, 12), &[]).opens_first);
    }

    #[test]
    fn each_change_has_a_sign_of_its_own() {
        let before = with((7, 3), &[]);
        assert_eq!(
            with((7, 3), &[READS_IN_ORDER]),
            Kernel {
                last_name_first: false,
                sysfs_takes_path: false,
                ..before
            }
        );
        let expected = Kernel {
            statx_takes_descriptor: true,
            ..before
        };
        assert_eq!(with((7, 3), &[STATX_OF_DESCRIPTOR]), expected);
        let expected = Kernel {
            target_first: true,
            ..before
        };
        assert_eq!(with((7, 3), &[TARGET_FIRST]), expected);
        let expected = Kernel {
            tells_denied_creation: true,
            ..before
        };
        assert_eq!(with((7, 3), &[DENIED_CREATION]), expected);
    }

    #[test]
    fn a_file_that_may_not_be_made_is_named_where_the_kernel_does() {
        let before = with((7, 2), &[]);
        let since = with((7, 3), &[DENIED_CREATION]);
        for denied in [EPERM, EACCES, EROFS] {
            assert!(!before.tells_failed_creation(denied));
            assert!(since.tells_failed_creation(denied));
        }
        for (exit, is_told) in [(-28, true), (-122, true), (-24, false), (-4, false)] {
            assert_eq!(before.tells_failed_creation(exit), is_told);
            assert_eq!(since.tells_failed_creation(exit), is_told);
        }
    }
}
