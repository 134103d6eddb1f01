//! Where kernels differ in the names that they collect for audit.

use crate::types::{self, Types};
use libbpf_rs::btf::types::{Enum, FuncProto};
use libbpf_rs::btf::TypeId;

/// What the running kernel does, as its types tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kernel {
    /// Major and minor number.
    pub(super) release: (u32, u32),
    /// rename, link and symlink take the second of their names from user memory first.
    pub(super) last_name_first: bool,
    /// sysfs(2) takes the name of a file system for a path.
    pub(super) sysfs_takes_path: bool,
    /// move_mount(2) takes and looks up the target first, and collects no name where a descriptor alone is meant.
    pub(super) target_first: bool,
    /// An open that may not make the file names the entry that it would have made.
    pub(super) tells_denied_creation: bool,
}

/// Which argument of a function is evaluated first is the compiler's choice, and what builds Debian's x86 kernels begins
/// with the last, its arm64 kernels with the first: `do_renameat2()`, `do_linkat()`, `do_symlinkat()` as called in
/// fs/namei.c before Linux 7.0.
const LAST_ARGUMENT_FIRST: bool = cfg!(any(target_arch = "x86_64", target_arch = "x86"));

/// What tells of a change is a function, an enumerator or a parameter that came with it.
trait Signs {
    fn has_function(&self, name: &str) -> bool;
    fn has_enumerator(&self, of: &str, name: &str) -> bool;
    fn has_parameter(&self, function: &str, name: &str) -> bool;
}

impl Signs for Types {
    fn has_function(&self, name: &str) -> bool {
        self.functions().contains_key(name)
    }

    fn has_enumerator(&self, of: &str, name: &str) -> bool {
        let found = self.btf().type_by_name::<Enum<'_>>(of);
        found.is_some_and(|found| {
            found
                .iter()
                .any(|member| member.name.is_some_and(|known| known == name))
        })
    }

    fn has_parameter(&self, function: &str, name: &str) -> bool {
        let prototype = self.functions().get(function).and_then(|known| {
            let id = TypeId::from(known.prototype);
            self.btf().type_by_id::<FuncProto<'_>>(id)
        });
        prototype.is_some_and(|prototype| {
            prototype
                .iter()
                .any(|parameter| parameter.name.is_some_and(|known| known == name))
        })
    }
}

impl Kernel {
    /// The running kernel; one whose types cannot be read counts as one without the changes.
    pub(super) fn running() -> Kernel {
        let release = super::view::release();
        match types::of_this_kernel() {
            Some(types) => Kernel::with(release, &*types),
            None => Kernel::with(release, &Nothing),
        }
    }

    fn with(release: (u32, u32), signs: &impl Signs) -> Kernel {
        // The functions that take names which their callers have read, one after the other, came with the series that
        // reads the argument of sysfs(2) as plain text.
        let reads_in_order = signs.has_function("filename_renameat2");
        Kernel {
            release,
            last_name_first: LAST_ARGUMENT_FIRST && !reads_in_order,
            sysfs_takes_path: !reads_in_order,
            target_first: signs.has_enumerator("mnt_tree_flags_t", "MNT_TREE_PROPAGATION"),
            tells_denied_creation: signs.has_parameter("atomic_open", "create_error"),
        }
    }

    /// open(2) with O_CREAT notes the directory for what it makes only: since Linux 6.12, which looks
    /// for the file first.
    pub(super) fn opens_first(self) -> bool {
        self.release >= (6, 12)
    }

    /// Whether an open with O_CREAT that failed with `exit` names the entry that it did not make: the file system is
    /// asked behind that, permissions before it on older kernels (`lookup_open()`, fs/namei.c).
    pub(super) fn tells_failed_creation(self, exit: i64) -> bool {
        const EPERM: i64 = -1;
        const EACCES: i64 = -13;
        const ENOSPC: i64 = -28;
        const EROFS: i64 = -30;
        const EDQUOT: i64 = -122;
        match exit {
            ENOSPC | EDQUOT => true,
            EPERM | EACCES | EROFS => self.tells_denied_creation,
            _ => false,
        }
    }
}

/// No types.
struct Nothing;

impl Signs for Nothing {
    fn has_function(&self, _: &str) -> bool {
        false
    }

    fn has_enumerator(&self, _: &str, _: &str) -> bool {
        false
    }

    fn has_parameter(&self, _: &str, _: &str) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel with these, and nothing else.
    struct Having(&'static [&'static str]);

    impl Signs for Having {
        fn has_function(&self, name: &str) -> bool {
            self.0.contains(&name)
        }

        fn has_enumerator(&self, of: &str, name: &str) -> bool {
            self.0.contains(&of) && self.0.contains(&name)
        }

        fn has_parameter(&self, function: &str, name: &str) -> bool {
            self.0.contains(&function) && self.0.contains(&name)
        }
    }

    #[test]
    fn a_kernel_without_signs_is_as_before_the_changes() {
        let kernel = Kernel::with((6, 12), &Having(&["atomic_open", "mnt_tree_flags_t"]));
        assert_eq!(kernel, Kernel::with((6, 12), &Nothing));
        assert_eq!(kernel.last_name_first, LAST_ARGUMENT_FIRST);
        assert!(kernel.sysfs_takes_path);
        assert!(!kernel.target_first);
        assert!(!kernel.tells_denied_creation);
    }

    #[test]
    fn each_change_has_a_sign_of_its_own() {
        let before = Kernel::with((7, 3), &Nothing);
        let names = Kernel::with((7, 3), &Having(&["filename_renameat2"]));
        assert_eq!(
            names,
            Kernel {
                last_name_first: false,
                sysfs_takes_path: false,
                ..before
            }
        );
        let moves = Having(&["mnt_tree_flags_t", "MNT_TREE_PROPAGATION"]);
        let expected = Kernel {
            target_first: true,
            ..before
        };
        assert_eq!(Kernel::with((7, 3), &moves), expected);
        let denied = Having(&["atomic_open", "create_error"]);
        let expected = Kernel {
            tells_denied_creation: true,
            ..before
        };
        assert_eq!(Kernel::with((7, 3), &denied), expected);
    }

    #[test]
    fn a_file_that_may_not_be_made_is_named_where_the_kernel_does() {
        let before = Kernel::with((7, 2), &Nothing);
        let since = Kernel::with((7, 3), &Having(&["atomic_open", "create_error"]));
        for denied in [-1, -13, -30] {
            assert!(!before.tells_failed_creation(denied));
            assert!(since.tells_failed_creation(denied));
        }
        for (exit, is_told) in [(-28, true), (-122, true), (-24, false), (-4, false)] {
            assert_eq!(before.tells_failed_creation(exit), is_told);
            assert_eq!(since.tells_failed_creation(exit), is_told);
        }
    }
}
