//! The ancestors of processes, and the memory that they take.

use crate::executable::put_path;
use event::wire::{Executed, ProcessId};
use event::{Ancestor, AncestorsText, Program};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Ancestors that are told of a process.
pub(crate) const ANCESTORS_MAX: usize = 8;
/// Limit of the bytes that all programs and texts take. A program that finds no room counts as unknown; a text that
/// finds none is made again for each event.
const BYTES_MAX: usize = 48 << 20;
/// Longest path of a program that is kept; one with a longer path counts as unknown.
const EXE_BYTES_MAX: usize = 4096;
/// Bytes that a program or text takes beside its own.
const OVERHEAD_BYTES: usize = 96;

/// Number of bytes in use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Budget(Arc<AtomicUsize>);

/// A part of a budget, which is given back when it is dropped.
#[derive(Debug)]
struct Share {
    of: Budget,
    bytes: usize,
}

impl Budget {
    /// Bytes that are in use.
    pub(crate) fn used(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes this many bytes, and what else something of this size needs; `None` if there is no room.
    fn take(&self, bytes: usize) -> Option<Share> {
        let bytes = bytes + OVERHEAD_BYTES;
        if self.used() + bytes > BYTES_MAX {
            return None;
        }
        self.0.fetch_add(bytes, Ordering::Relaxed);
        Some(Share {
            of: self.clone(),
            bytes,
        })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A program that is kept.
#[derive(Debug)]
pub(crate) struct KeptProgram {
    program: Program,
    _share: Share,
}

impl KeptProgram {
    /// Keeps the program that a process executes. `None` if its path is unknown or too long, or there is no room.
    pub(crate) fn of(executed: &Executed<'_>, budget: &Budget) -> Option<Arc<KeptProgram>> {
        let part = executed.exe.filter(|part| !part.is_cut())?;
        let mut exe = Vec::new();
        put_path(&part, &mut exe);
        let title = executed.title;
        let text = title.map_or(&b""[..], |part| part.data);
        let program = Program {
            exe: Some(exe.into()),
            title: text.into(),
            is_title_cut: title.is_some_and(|part| part.is_cut()),
        };
        KeptProgram::keep(program, budget)
    }

    /// Keeps the program of kernel threads, which has no path. `None` if there is no room.
    pub(crate) fn kernel(budget: &Budget) -> Option<Arc<KeptProgram>> {
        let program = Program {
            exe: None,
            title: Box::default(),
            is_title_cut: false,
        };
        KeptProgram::keep(program, budget)
    }

    fn keep(program: Program, budget: &Budget) -> Option<Arc<KeptProgram>> {
        let len = program.exe.as_deref().map_or(0, <[u8]>::len);
        if len > EXE_BYTES_MAX {
            return None;
        }
        let share = budget.take(len + program.title.len())?;
        Some(Arc::new(KeptProgram {
            program,
            _share: share,
        }))
    }
}

/// A process when it made another one, and its program at that time.
#[derive(Clone, Debug)]
struct Maker {
    process: ProcessId,
    program: Option<Arc<KeptProgram>>,
}

/// The ancestors of a process. They do not change: of each, the program is that with which it made the next one.
#[derive(Debug, Default)]
pub(crate) struct Lineage {
    /// The nearest first.
    makers: Vec<Maker>,
    /// Whether there are older ones that are not known.
    is_open: bool,
    text: OnceLock<(Arc<AncestorsText>, Share)>,
}

impl Lineage {
    /// No ancestor is known.
    pub(crate) fn unknown() -> Lineage {
        Lineage {
            is_open: true,
            ..Lineage::default()
        }
    }

    /// The ancestors of what `maker` makes while it runs this program; `None` if its program is not known.
    pub(crate) fn below(
        &self,
        maker: ProcessId,
        program: Option<Arc<KeptProgram>>,
    ) -> Arc<Lineage> {
        let nearest = Maker {
            process: maker,
            program,
        };
        let makers = std::iter::once(nearest).chain(self.makers.iter().cloned());
        Arc::new(Lineage {
            makers: makers.take(ANCESTORS_MAX).collect(),
            is_open: self.is_open,
            text: OnceLock::new(),
        })
    }

    /// Whether some of the ancestors that are to be told are not known.
    pub(crate) fn is_partial(&self) -> bool {
        self.lacks_older() || self.makers.iter().any(|maker| maker.program.is_none())
    }

    fn lacks_older(&self) -> bool {
        self.is_open && self.makers.len() < ANCESTORS_MAX
    }

    /// The text for the log.
    pub(crate) fn text(&self, budget: &Budget) -> Arc<AncestorsText> {
        if let Some((text, _)) = self.text.get() {
            return Arc::clone(text);
        }
        let told = self.makers.iter().map(|maker| Ancestor {
            process: maker.process,
            program: maker.program.as_ref().map(|kept| &kept.program),
        });
        let text = Arc::new(AncestorsText::of(told, self.lacks_older()));
        if let Some(share) = budget.take(text.size()) {
            // Nobody else has set it.
            let _ = self.text.set((Arc::clone(&text), share));
        }
        text
    }
}
