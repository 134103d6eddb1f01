//! Arguments of execve, which come in chunks before their event, in the ring of one CPU.

use event::wire::Chunk;

/// Most bytes of one event: what the programs send (`TARSIER_CHUNKS_MAX` chunks).
const BYTES_MAX: usize = 8 << 20;

/// Chunks of the event that is under way on each CPU.
#[derive(Default)]
pub(super) struct Chunks {
    cpus: Vec<Pending>,
}

#[derive(Default)]
struct Pending {
    id: u64,
    count: u32,
    data: Vec<u8>,
}

impl Chunks {
    /// Takes a chunk. Chunks of an event that never came are forgotten.
    pub(super) fn push(&mut self, cpu: usize, chunk: &Chunk<'_>) {
        if self.cpus.len() <= cpu {
            self.cpus.resize_with(cpu + 1, Pending::default);
        }
        let pending = &mut self.cpus[cpu];
        if pending.id != chunk.frame.id || chunk.seq == 0 {
            pending.id = chunk.frame.id;
            pending.count = 0;
            pending.data.clear();
        }
        pending.count += 1;
        if pending.data.len() + chunk.data.len() <= BYTES_MAX {
            pending.data.extend_from_slice(chunk.data);
        }
    }

    /// The data of event `id`, if all `count` of its chunks are there.
    pub(super) fn take(&self, cpu: usize, id: u64, count: u32) -> &[u8] {
        match self.cpus.get(cpu) {
            Some(pending) if pending.id == id && pending.count == count => &pending.data,
            _ => &[],
        }
    }
}
