//! Places in the kernel's structures, in bytes, by its types.

use crate::kernel::kernel_btf::Types;
use libbpf_rs::btf::types::{Array, MemberAttr, Struct};
use libbpf_rs::btf::{BtfType, HasSize};

/// Bytes of a page, the size of each node of the table of numbers (SIDTAB_NODE_ALLOC_SIZE).
const NODE_BYTES: usize = 4096;

/// Where members are, each in the structure that its comment names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KernelLayout {
    /// task_struct
    pub(super) cred: u64,
    /// task_struct
    pub(super) parent: u64,
    /// task_struct
    pub(super) fs: u64,
    /// task_struct
    pub(super) mm: u64,
    /// mm_struct
    pub(super) exe: u64,
    /// file
    pub(super) inode_of_file: u64,
    /// cred
    pub(super) security: u64,
    /// fs_struct: of the entry of the root directory
    pub(super) root: u64,
    /// dentry
    pub(super) inode: u64,
    /// inode
    pub(super) i_security: u64,
    /// SELinux's structure of a cred
    pub(super) sid_of_cred: u64,
    /// inode_security_struct
    pub(super) sid_of_inode: u64,
    /// inode_security_struct: address of the inode
    pub(super) back: u64,
    /// selinux_state
    pub(super) policy: u64,
    /// selinux_policy
    pub(super) loads: u64,
    /// selinux_policy
    pub(super) table: u64,
    /// selinux_policy: whether labels have levels
    pub(super) has_levels: u64,
    /// selinux_policy: of the lists of names of each kind
    pub(super) names: u64,
    /// sidtab
    pub(super) roots: u64,
    /// sidtab
    pub(super) count: u64,
    /// sidtab
    pub(super) initial: Rows,
    /// sidtab_isid_entry: whether it is used; a byte
    pub(super) is_set: u64,
    /// sidtab_isid_entry
    pub(super) initial_entry: u64,
    /// sidtab_entry
    pub(super) entry_bytes: u64,
    /// sidtab_entry
    pub(super) sid: u64,
    /// sidtab_entry
    pub(super) context: Context,
    /// mls_level, ebitmap, ebitmap_node
    pub(super) bits: Bits,
}

/// An array of structures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) at: u64,
    pub(super) count: u32,
    pub(super) bytes: u64,
}

/// Places in the context of an entry, from the beginning of the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) user: u64,
    pub(super) role: u64,
    pub(super) kind: u64,
    /// Not 0 if the policy does not know the label.
    pub(super) len: u64,
    /// The lower and the upper level.
    pub(super) levels: [u64; 2],
}

/// Places in a level and in the set of its categories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bits {
    pub(super) sensitivity: u64,
    pub(super) first: u64,
    pub(super) next: u64,
    pub(super) start: u64,
    pub(super) map: u64,
    pub(super) map_bytes: u64,
}

impl KernelLayout {
    /// As the kernel's types say; `None` if it lacks one of the members.
    pub(super) fn of(types: &Types) -> Option<KernelLayout> {
        let place = |name: &str, path: &[&str]| Some(member(types, name, path)?.0);
        let level = array(types, "sidtab_entry", &["context", "range", "level"])?;
        let initial = array(types, "sidtab", &["isids"])?;
        let map = array(types, "ebitmap_node", &["maps"])?;
        let entry = |path: &[&str]| place("sidtab_entry", path);

        // Linux 6.18 has another structure of the old name, for tasks.
        let of_cred = ["cred_security_struct", "task_security_struct"];
        let layout = KernelLayout {
            cred: place("task_struct", &["cred"])?,
            parent: place("task_struct", &["real_parent"])?,
            fs: place("task_struct", &["fs"])?,
            mm: place("task_struct", &["mm"])?,
            exe: place("mm_struct", &["exe_file"])?,
            inode_of_file: place("file", &["f_inode"])?,
            security: place("cred", &["security"])?,
            root: place("fs_struct", &["root", "dentry"])?,
            inode: place("dentry", &["d_inode"])?,
            i_security: place("inode", &["i_security"])?,
            sid_of_cred: of_cred.iter().find_map(|name| place(name, &["sid"]))?,
            sid_of_inode: place("inode_security_struct", &["sid"])?,
            back: place("inode_security_struct", &["inode"])?,
            policy: place("selinux_state", &["policy"])?,
            loads: place("selinux_policy", &["latest_granting"])?,
            table: place("selinux_policy", &["sidtab"])?,
            has_levels: place("selinux_policy", &["policydb", "mls_enabled"])?,
            names: place("selinux_policy", &["policydb", "sym_val_to_name"])?,
            roots: place("sidtab", &["roots"])?,
            count: place("sidtab", &["count"])?,
            is_set: place("sidtab_isid_entry", &["set"])?,
            initial_entry: place("sidtab_isid_entry", &["entry"])?,
            entry_bytes: size(types, "sidtab_entry")?,
            sid: entry(&["sid"])?,
            context: Context {
                user: entry(&["context", "user"])?,
                role: entry(&["context", "role"])?,
                kind: entry(&["context", "type"])?,
                len: entry(&["context", "len"])?,
                levels: [level.at, level.at + level.bytes],
            },
            bits: Bits {
                sensitivity: place("mls_level", &["sens"])?,
                first: place("mls_level", &["cat", "node"])?,
                next: place("ebitmap_node", &["next"])?,
                start: place("ebitmap_node", &["startbit"])?,
                map: map.at,
                map_bytes: u64::from(map.count) * map.bytes,
            },
            initial,
        };
        let is_usual = layout.entries_in_leaf() > 0 && level.count == 2;
        is_usual.then_some(layout)
    }

    /// Number of entries in a leaf of the table.
    pub(super) fn entries_in_leaf(&self) -> u64 {
        (NODE_BYTES as u64)
            .checked_div(self.entry_bytes)
            .unwrap_or(0)
    }

    /// log2 of the number of children of a node.
    pub(super) const fn inner_shift() -> u32 {
        (NODE_BYTES / size_of::<u64>()).trailing_zeros()
    }
}

/// Place and type of a member; each name of `path` but the first is a member of the one before.
fn member<'t>(types: &'t Types, name: &str, path: &[&str]) -> Option<(u64, BtfType<'t>)> {
    let mut structure = types.btf().type_by_name::<Struct<'_>>(name)?;
    let (last, outer) = path.split_last()?;
    let mut at = 0;
    for name in outer {
        let (place, ty) = direct(types, structure, name)?;
        at += place;
        structure = Struct::try_from(ty).ok()?;
    }

    let (place, ty) = direct(types, structure, last)?;
    Some((at + place, ty))
}

/// A member of this structure, or of a structure without a name in it: mm_struct has one.
fn direct<'t>(types: &'t Types, of: Struct<'t>, name: &str) -> Option<(u64, BtfType<'t>)> {
    for member in of.iter() {
        let MemberAttr::Normal { offset } = member.attr else {
            continue;
        };
        let at = u64::from(offset) / 8;
        let ty: BtfType<'t> = types.btf().type_by_id(member.ty)?;
        let ty = ty.skip_mods_and_typedefs();
        match member.name.filter(|found| !found.is_empty()) {
            Some(found) if found == name => return Some((at, ty)),
            Some(_) => {}
            None => {
                let inner = Struct::try_from(ty).ok();
                if let Some((place, ty)) = inner.and_then(|inner| direct(types, inner, name)) {
                    return Some((at + place, ty));
                }
            }
        }
    }
    None
}

fn array(types: &Types, name: &str, path: &[&str]) -> Option<Rows> {
    let (at, ty) = member(types, name, path)?;
    let array = Array::try_from(ty).ok()?;
    let element: BtfType<'_> = types.btf().type_by_id(array.ty())?;
    let element = element.skip_mods_and_typedefs();
    let bytes = match Struct::try_from(element) {
        Ok(structure) => structure.size(),
        // The words of a map of bits.
        Err(_) => size_of::<u64>(),
    };
    Some(Rows {
        at,
        count: u32::try_from(array.capacity()).ok()?,
        bytes: bytes as u64,
    })
}

fn size(types: &Types, name: &str) -> Option<u64> {
    Some(types.btf().type_by_name::<Struct<'_>>(name)?.size() as u64)
}
