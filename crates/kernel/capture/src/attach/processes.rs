//! Hooks on the lives of processes, which are armed if the log names ancestors, and the processes that there are.

use crate::attach::copies;
use crate::attach::programs::Programs;
use crate::error::missing;
use crate::error::CaptureError;
use crate::pins::Attached;
use bpf::load::refused;
use libbpf_rs::Iter;
use std::io::Read;

/// Program that tells of the processes that there are.
const FOUND: &str = "process_found";

/// Attaches all of them.
pub(crate) fn attach(programs: &mut Programs) -> Result<Vec<Attached>, CaptureError> {
    let mut links = Vec::new();
    for program in copies::OF_PROCESSES {
        links.extend(programs.attach_copies(program)?);
    }
    Ok(links)
}

/// A FOUND frame of each process of this pid namespace, one after the other.
pub(crate) fn found(programs: &mut Programs) -> Result<Vec<u8>, CaptureError> {
    let mut all = programs.object.progs_mut();
    let program = all.find(|program| program.name() == FOUND);
    let program = program.ok_or_else(|| missing(FOUND))?;
    let link = program.attach().map_err(refused("iterator over tasks"))?;
    let mut iter = Iter::new(&link).map_err(refused("iterator over tasks"))?;
    let mut frames = Vec::new();
    let read = iter.read_to_end(&mut frames);
    read.map_err(|source| CaptureError::System {
        what: "iterator over tasks".to_owned(),
        source,
    })?;
    Ok(frames)
}
