//! Arguments of execve, which come in chunks before their event, in the ring of one CPU.

use event::wire::{Chunk, TARSIER_CHUNKS_MAX, TARSIER_CHUNK_MAX};

/// Most bytes of one event that the programs send.
const BYTES_MAX: usize = TARSIER_CHUNKS_MAX as usize * TARSIER_CHUNK_MAX as usize;

/// Chunks of the event that is under way on each CPU.
#[derive(Default)]
pub(crate) struct Chunks {
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
    pub(crate) fn push(&mut self, cpu: usize, chunk: &Chunk<'_>) {
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
    pub(crate) fn take(&self, cpu: usize, id: u64, count: u32) -> &[u8] {
        match self.cpus.get(cpu) {
            Some(pending) if pending.id == id && pending.count == count => &pending.data,
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use event::wire::tarsier_frame;

    fn chunk(id: u64, seq: u32, data: &[u8]) -> Chunk<'_> {
        Chunk {
            frame: tarsier_frame {
                id,
                ..Default::default()
            },
            seq,
            data,
        }
    }

    #[test]
    fn the_chunks_of_an_event_become_one_and_only_if_all_came() {
        let mut chunks = Chunks::default();
        chunks.push(1, &chunk(7, 0, b"cat\0"));
        chunks.push(0, &chunk(8, 0, b"ls\0"));
        chunks.push(1, &chunk(7, 1, b"x\0"));
        assert_eq!(chunks.take(1, 7, 2), b"cat\0x\0");
        assert_eq!(chunks.take(1, 7, 3), b"");
        assert_eq!(chunks.take(1, 8, 1), b"");
        assert_eq!(chunks.take(0, 8, 1), b"ls\0");
        assert_eq!(chunks.take(9, 8, 1), b"");
    }

    #[test]
    fn chunks_whose_event_never_came_are_forgotten() {
        let mut chunks = Chunks::default();
        chunks.push(0, &chunk(7, 0, b"lost\0"));
        chunks.push(0, &chunk(8, 0, b"cat\0"));
        assert_eq!(chunks.take(0, 8, 1), b"cat\0");
        // The same id again, after 2^64 events or from another boot.
        chunks.push(0, &chunk(8, 0, b"ls\0"));
        assert_eq!(chunks.take(0, 8, 1), b"ls\0");
    }
}
