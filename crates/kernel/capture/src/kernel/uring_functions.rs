//! The kernel's functions for io_uring operations, to whose ends programs can be attached. They are read from the
//! table through which the kernel calls them (`io_issue_defs` of io_uring/opdef.c; `io_op_defs` before Linux 6.3).

use crate::kernel::kallsyms::{self, Symbol};
use crate::kernel::kernel_btf::Types;
use crate::kernel::memory::{KernelMemory, ReadMemory};
use crate::kernel::symbol_names::is_operation;
use crate::kernel::syscall_functions::KernelFunction;
use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::btf::HasSize;
use std::collections::{BTreeSet, HashMap};
use std::io::BufRead;

/// Names of the tables, and the types of their rows.
const TABLES: [(&str, &str); 2] = [
    ("io_issue_defs", "io_issue_def"),
    ("io_op_defs", "io_op_def"),
];
/// The prep function of operations that the kernel was built without: it always fails.
const NOT_BUILT: &str = "io_eopnotsupp_prep";

/// The two functions of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Operation {
    /// Called when the operation is submitted: `int prep(req, sqe)`.
    pub(crate) prep: KernelFunction,
    /// Called to carry the operation out, several times if necessary: `int issue(req, flags)`.
    pub(crate) issue: KernelFunction,
}

/// Functions through which operations fail; a kernel has one of them.
pub(crate) const FAIL_FUNCTIONS: [&str; 2] = ["io_req_defer_failed", "io_req_complete_failed"];

/// The kernel's functions for operations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OperationFunctions {
    /// OperationFunctions by number; `None` for those that the kernel was built without.
    pub(crate) all: Vec<Option<Operation>>,
    /// The function through which operations fail.
    pub(crate) failing: KernelFunction,
}

/// The functions of the first `count` operations. `None` if some function cannot be found or hooked, or if the
/// functions of a kind do not all have the same prototype, which a shared body requires.
pub(crate) fn of_this_kernel(types: &Types, count: u32) -> Option<OperationFunctions> {
    let symbols = UringSymbols::parse(kallsyms::of_this_kernel().ok()?).ok()?;
    let (table, row) = TABLES
        .iter()
        .find_map(|(table, row)| Some((*symbols.tables.get(*table)?, *row)))?;

    let row = types.btf().type_by_name::<Struct<'_>>(row)?;
    let place = |name: &str| {
        let found = row
            .iter()
            .find(|member| member.name.is_some_and(|found| found == name))?;
        match found.attr {
            MemberAttr::Normal { offset } => Some(offset as usize / 8),
            MemberAttr::BitField { .. } => None,
        }
    };

    let (prep, issue) = (place("prep")?, place("issue")?);
    let memory = KernelMemory::open()?.bytes(table, count as usize * row.size())?;
    let names = |row: &[u8], place: usize| {
        let address = u64::from_ne_bytes(row.get(place..place + 8)?.try_into().ok()?);
        Some((address, symbols.functions.get(&address)?))
    };

    let typed = types.functions();
    let named = |name: &str, address| {
        let (name, types) = typed.get_key_value(name)?;
        Some(KernelFunction {
            name: name.clone(),
            btf_id: types.btf_id,
            prototype: 0,
            address,
        })
    };

    let function = |row: &[u8], place: usize, prototypes: &mut BTreeSet<u32>| {
        let (address, known) = names(row, place)?;
        let function = known.iter().find_map(|name| named(name, address))?;
        prototypes.insert(typed[&function.name].prototype);
        Some(function)
    };

    let failing = FAIL_FUNCTIONS.iter().find_map(|name| {
        let address = symbols
            .functions
            .iter()
            .find(|(_, names)| names.iter().any(|n| n == name));
        named(name, *address?.0)
    })?;

    let (mut preps, mut issues) = (BTreeSet::new(), BTreeSet::new());
    let operations: Option<Vec<Option<Operation>>> = memory
        .chunks(row.size())
        .map(|row| {
            if names(row, prep)?.1.iter().any(|name| name == NOT_BUILT) {
                return Some(None);
            }
            Some(Some(Operation {
                prep: function(row, prep, &mut preps)?,
                issue: function(row, issue, &mut issues)?,
            }))
        })
        .collect();

    // One body serves all functions of a kind, so they must have one prototype.
    let all = operations?;
    let is_sole = preps.len() == 1 && issues.len() == 1;
    is_sole.then_some(OperationFunctions { all, failing })
}

/// UringSymbols of the kernel that concern io_uring.
struct UringSymbols {
    tables: HashMap<String, u64>,
    functions: HashMap<u64, Vec<String>>,
}

impl UringSymbols {
    fn parse(text: impl BufRead) -> std::io::Result<UringSymbols> {
        let mut symbols = UringSymbols {
            tables: HashMap::new(),
            functions: HashMap::new(),
        };
        kallsyms::each(text, |symbol| symbols.add(&symbol))?;
        Ok(symbols)
    }

    fn add(&mut self, symbol: &Symbol<'_>) {
        let name = symbol.name.to_owned();
        if symbol.address == 0 || !is_operation(&name) {
            return;
        }
        if symbol.kind.eq_ignore_ascii_case("t") {
            self.functions.entry(symbol.address).or_default().push(name);
        } else if TABLES.iter().any(|(table, _)| *table == name) {
            self.tables.insert(name, symbol.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_of_modules_and_without_address_are_left_out() {
        let text = "\
ffffffff81000010 t io_nop
ffffffff81000010 t io_other_name
ffffffff82000000 D io_issue_defs
0000000000000000 t io_hidden
ffffffff81000020 t io_foreign\t[module]
ffffffff81000030 t sys_read
";
        let symbols = UringSymbols::parse(text.as_bytes()).unwrap();
        assert_eq!(symbols.tables["io_issue_defs"], 0xffff_ffff_8200_0000);
        assert_eq!(symbols.functions.len(), 1);
        let names = &symbols.functions[&0xffff_ffff_8100_0010];
        assert_eq!(names, &["io_nop", "io_other_name"]);
    }

    /// If addresses are hidden or programs refused, there is nothing to compare.
    #[test]
    fn the_kernel_s_table_names_the_functions_of_operations() {
        bpf::load::keep_libbpf_quiet();
        let Some(types) = crate::kernel::kernel_btf::of_this_kernel() else {
            println!("skipped: the kernel's table of operations: no BTF");
            return;
        };
        let openat = abi::uring_op_number("openat").unwrap();
        let Some(operations) = of_this_kernel(&types, openat + 1) else {
            println!("skipped: the kernel's table of operations: not readable here");
            return;
        };
        let operation = operations.all[openat as usize].as_ref().unwrap();
        assert_eq!(operation.prep.name, "io_openat_prep");
        assert_eq!(operation.issue.name, "io_openat");
    }
}
