//! The ancestors of processes, and the memory that they take.

use crate::executable::put_path;
use plan::{ObjectId, RunExe};
use record::wire::{Executed, ProcessId};
use record::{Ancestor, AncestorsText, Program};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Ancestors that are told of a process.
pub(crate) const ANCESTORS_MAX: usize = 8;
/// Ancestors that are kept of a process, for rules.
pub(crate) const KEPT_MAX: usize = 32;
/// Limit of the bytes that all programs and texts take. A program that finds no room counts as unknown; a text that
/// finds none is made again for each event.
const BYTES_MAX: usize = 48 << 20;
/// Longest path of a program that is kept; one with a longer path counts as unknown.
const EXE_BYTES_MAX: usize = 4096;
/// Number of the first process, which no process made.
pub(crate) const INIT: u32 = 1;
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
    /// The file of the program; `None` for kernel threads, and if it is not known.
    object: Option<ObjectId>,
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
            script: script(executed),
        };

        let object = executed.file.map(|(dev, ino)| ObjectId { dev, ino });
        KeptProgram::keep(program, object, budget)
    }

    /// Path of the script whose interpreter it is.
    pub(crate) fn script(&self) -> Option<&[u8]> {
        self.program.script.as_deref()
    }

    /// The executable, as rules compare it; `None` if it is not known.
    pub(crate) fn run_exe(&self) -> Option<RunExe<'_>> {
        Some(RunExe {
            path: self.program.exe.as_deref()?,
            object: self.object?,
        })
    }

    /// Whether it is that of a kernel thread.
    pub(crate) fn is_kernel(&self) -> bool {
        self.program.exe.is_none()
    }

    /// Keeps the program of kernel threads, which has no path. `None` if there is no room.
    pub(crate) fn kernel(budget: &Budget) -> Option<Arc<KeptProgram>> {
        let program = Program {
            exe: None,
            title: Box::default(),
            is_title_cut: false,
            script: None,
        };
        KeptProgram::keep(program, None, budget)
    }

    fn keep(
        program: Program,
        object: Option<ObjectId>,
        budget: &Budget,
    ) -> Option<Arc<KeptProgram>> {
        let len = program.exe.as_deref().map_or(0, <[u8]>::len);
        if len > EXE_BYTES_MAX {
            return None;
        }
        let script = program.script.as_deref().map_or(0, <[u8]>::len);
        let share = budget.take(len + program.title.len() + script)?;
        Some(Arc::new(KeptProgram {
            program,
            object,
            _share: share,
        }))
    }
}

/// The path of the script that a process executes.
fn script(executed: &Executed<'_>) -> Option<Box<[u8]>> {
    let part = executed.script?;
    let given = part.data;
    if given.starts_with(b"/") {
        return Some(given.into());
    }

    let mut path = Vec::new();
    executed.cwd?.walked(&mut path);
    if !path.ends_with(b"/") {
        path.push(b'/');
    }

    path.extend_from_slice(given.strip_prefix(b"./").unwrap_or(given));
    Some(path.into())
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
            makers: makers.take(KEPT_MAX).collect(),
            is_open: self.is_open,
            text: OnceLock::new(),
        })
    }

    /// Whether some of the ancestors that are to be told are not known.
    pub(crate) fn is_partial(&self) -> bool {
        self.lacks_older() || self.told().any(|maker| maker.program.is_none())
    }

    /// The ancestors, the nearest first.
    pub(crate) fn makers(&self) -> impl Iterator<Item = ProcessId> + '_ {
        self.makers.iter().map(|maker| maker.process)
    }

    /// The executables of the ancestors that are known, and whether these are all.
    pub(crate) fn exes(&self) -> (Vec<RunExe<'_>>, bool) {
        let oldest = self.makers.last();
        let mut are_all = !self.is_open
            && (self.makers.len() < KEPT_MAX
                || oldest.is_some_and(|oldest| oldest.process.pid == INIT));
        let mut exes = Vec::new();

        for maker in &self.makers {
            let program = maker.program.as_deref();
            match program.and_then(KeptProgram::run_exe) {
                Some(exe) => exes.push(exe),
                None => are_all &= program.is_some_and(KeptProgram::is_kernel),
            }
        }

        (exes, are_all)
    }

    /// The ancestors that the log tells.
    fn told(&self) -> impl Iterator<Item = &Maker> {
        self.makers.iter().take(ANCESTORS_MAX)
    }

    fn lacks_older(&self) -> bool {
        self.is_open && self.makers.len() < ANCESTORS_MAX
    }

    /// The text for the log.
    pub(crate) fn text(&self, budget: &Budget) -> Arc<AncestorsText> {
        if let Some((text, _)) = self.text.get() {
            return Arc::clone(text);
        }

        let told = self.told().map(|maker| Ancestor {
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
