//! A filter as a graph without positions, in which equal parts are shared, and its layout as
//! instructions.

use crate::{code as op, Insn, Verdict};
use std::collections::{HashMap, HashSet};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct CodeId(u32);

/// One or two instructions and their successors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Code {
    Return(Verdict),
    /// A conditional jump on A.
    Test {
        op: u16,
        k: u32,
        yes: CodeId,
        no: CodeId,
    },
    /// A = word at `offset`.
    Load {
        offset: u32,
        then: CodeId,
    },
    /// A &= mask.
    Mask {
        mask: u32,
        then: CodeId,
    },
}

#[derive(Default)]
pub(super) struct Graph {
    codes: Vec<Code>,
    known: HashMap<Code, CodeId>,
}

impl Graph {
    /// Adds `code` and returns its id; for a test whose outcome does not matter, the id of its
    /// target.
    pub(super) fn add(&mut self, code: Code) -> CodeId {
        if let Code::Test { yes, no, .. } = code {
            // Equal codes share an id, so that equal targets show here.
            if yes == no {
                return yes;
            }
        }
        let next = CodeId(self.codes.len() as u32);
        let codes = &mut self.codes;
        *self.known.entry(code).or_insert_with(|| {
            codes.push(code);
            next
        })
    }

    pub(super) fn get(&self, id: CodeId) -> Code {
        self.codes[id.0 as usize]
    }

    /// Number of different codes that a part consists of: about its number of instructions.
    pub(super) fn size(&self, root: CodeId) -> usize {
        self.reached(root, &HashSet::new()).len()
    }

    /// The codes that a part adds to those that are there.
    pub(super) fn reached(&self, root: CodeId, there: &HashSet<CodeId>) -> HashSet<CodeId> {
        let mut seen = HashSet::new();
        let mut open = vec![root];
        while let Some(id) = open.pop() {
            if !there.contains(&id) && seen.insert(id) {
                match self.get(id) {
                    Code::Return(_) => {}
                    Code::Load { then, .. } | Code::Mask { then, .. } => open.push(then),
                    Code::Test { yes, no, .. } => open.extend([yes, no]),
                }
            }
        }
        seen
    }

    /// The code at `root` without loads of a word that A has already. Its depth must be limited.
    pub(super) fn without_repeated_loads(&mut self, root: CodeId) -> CodeId {
        self.where_loaded(root, None, &mut HashMap::new())
    }

    /// The code at `id` where A has the word at `loaded`, without loads of it.
    fn where_loaded(
        &mut self,
        id: CodeId,
        loaded: Option<u32>,
        done: &mut HashMap<(CodeId, Option<u32>), CodeId>,
    ) -> CodeId {
        if let Some(&code) = done.get(&(id, loaded)) {
            return code;
        }

        let code = match self.get(id) {
            Code::Return(_) => id,
            Code::Load { offset, then } => {
                let then = self.where_loaded(then, Some(offset), done);
                if loaded == Some(offset) {
                    then
                } else {
                    self.add(Code::Load { offset, then })
                }
            }
            Code::Mask { mask, then } => {
                let then = self.where_loaded(then, None, done);
                self.add(Code::Mask { mask, then })
            }
            Code::Test { op, k, yes, no } => {
                let yes = self.where_loaded(yes, loaded, done);
                let no = self.where_loaded(no, loaded, done);
                self.add(Code::Test { op, k, yes, no })
            }
        };

        done.insert((id, loaded), code);
        code
    }

    /// Lays the graph out from `root`. The result can be longer than a filter may be.
    pub(super) fn layout(&self, root: CodeId) -> Vec<Insn> {
        let mut layout = Layout {
            graph: self,
            backwards: Vec::new(),
            placed: HashMap::new(),
            sizes: HashMap::new(),
        };
        layout.place(root);
        // The kernel starts at the first instruction: if the root was not placed last, a jump leads to it.
        let last = layout.backwards.len() - 1;
        if layout.placed[&root] != last {
            layout.jump_to(root);
        }
        layout.backwards.reverse();

        layout.backwards
    }
}

/// Longest conditional jump, in instructions.
const REACH: usize = 255;

/// A layout in progress. Instructions are placed from the last to the first, because jumps only go
/// forward.
struct Layout<'a> {
    graph: &'a Graph,
    backwards: Vec<Insn>,
    /// Index in `backwards`; for code that was copied, the index of the latest copy.
    placed: HashMap<CodeId, usize>,
    sizes: HashMap<CodeId, usize>,
}

impl Layout<'_> {
    fn place(&mut self, id: CodeId) {
        if self.placed.contains_key(&id) {
            return;
        }

        match self.graph.get(id) {
            Code::Return(verdict) => self.push(id, Insn::new(op::RET_K, verdict.0)),
            Code::Load { offset, then } => {
                self.place_next(then);
                self.push(id, Insn::new(op::LD_ABS, offset));
            }
            Code::Mask { mask, then } => {
                self.place_next(then);
                self.push(id, Insn::new(op::AND, mask));
            }
            Code::Test { op, k, yes, no } => {
                // The smaller part is placed next to the test, so that the jump over it is short.
                let (near, far) = if self.size(yes) <= self.size(no) {
                    (yes, no)
                } else {
                    (no, yes)
                };
                self.place(far);
                self.place(near);
                self.push_test(id, op, k, yes, no);
            }
        }
    }

    /// Places `id` so that it directly follows the instruction that is placed next.
    fn place_next(&mut self, id: CodeId) {
        match self.placed.get(&id) {
            None => self.place(id),
            Some(&at) if at + 1 == self.backwards.len() => {}
            Some(_) => match self.graph.get(id) {
                // A copy takes as much space as a jump, and no time.
                Code::Return(verdict) => self.push(id, Insn::new(op::RET_K, verdict.0)),
                Code::Test { op, k, yes, no } => self.push_test(id, op, k, yes, no),
                Code::Load { .. } | Code::Mask { .. } => self.jump_to(id),
            },
        }
    }

    fn push(&mut self, id: CodeId, insn: Insn) {
        // The latest copy is the nearest to what is placed from here on.
        self.placed.insert(id, self.backwards.len());
        self.backwards.push(insn);
    }

    fn push_test(&mut self, id: CodeId, op: u16, k: u32, yes: CodeId, no: CodeId) {
        // One more instruction may come between, if `no` needs it.
        let yes_at = self.within_reach(yes, 1);
        let no_at = self.within_reach(no, 0);
        let skip = |at: usize| (self.backwards.len() - 1 - at) as u8;
        let insn = Insn::jump(op, k, skip(yes_at), skip(no_at));
        self.push(id, insn);
    }

    /// Index of `id`, of a copy of it, or of a jump to it that can be reached even after `more`
    /// further instructions.
    fn within_reach(&mut self, id: CodeId, more: usize) -> usize {
        let at = self.placed[&id];
        if self.backwards.len() - 1 - at + more <= REACH {
            return at;
        }
        // A jump with 8 bits does not reach: a return is copied, and other code gets a jump with 32 bits.
        match self.graph.get(id) {
            Code::Return(verdict) => self.push(id, Insn::new(op::RET_K, verdict.0)),
            _ => self.jump_to(id),
        }
        self.backwards.len() - 1
    }

    fn jump_to(&mut self, id: CodeId) {
        let skip = self.backwards.len() - 1 - self.placed[&id];
        self.backwards.push(Insn::new(op::JA, skip as u32));
    }

    /// Approximate number of instructions of a part that is laid out alone.
    fn size(&mut self, id: CodeId) -> usize {
        if let Some(&size) = self.sizes.get(&id) {
            return size;
        }
        // Shared parts count each time: only which of two parts is smaller matters here.
        let rest = match self.graph.get(id) {
            Code::Return(_) => 0,
            Code::Load { then, .. } | Code::Mask { then, .. } => self.size(then),
            Code::Test { yes, no, .. } => self.size(yes).saturating_add(self.size(no)),
        };
        let size = rest.saturating_add(1);
        self.sizes.insert(id, size);
        size
    }
}
