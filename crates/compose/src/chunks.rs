//! Arguments of execve, which precede their event as CHUNK frames in the ring of the same CPU.

use event::wire::{Chunk, TARSIER_CHUNKS_MAX, TARSIER_CHUNK_MAX};

/// Largest number of argument bytes that the programs send for one event.
const BYTES_MAX: usize = TARSIER_CHUNKS_MAX as usize * TARSIER_CHUNK_MAX as usize;

/// For each CPU, the chunks of the event that is being received.
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
    /// Takes a chunk from the ring of `cpu`. The first chunk of an event drops those of an earlier event that never
    /// arrived.
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

    /// The arguments of event `id`, each ended by NUL; empty unless exactly `count` chunks of it have arrived.
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
