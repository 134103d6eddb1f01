//! Reads logs of any form with all processors: compressed, of several hosts, with times that go back. One thread puts
//! lines together to events, others look at them, and what they make of them comes out in the order of the events.
//!
//! Batches of events are the same whatever the number of threads, and few are in memory.

use super::logs::{Input, ReadEnd, ReadStep};
use super::pieces::processors;
use anyhow::Result;
use query::{Assembler, Batch};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::mpsc::{channel, sync_channel, Receiver, SyncSender};
use std::sync::{Mutex, PoisonError};

/// Bytes of text of a batch.
const BATCH_BYTES: usize = 256 << 10;
/// Batches for each thread that looks at events: one that it looks at, and others that wait.
const BATCHES_PER_THREAD: usize = 3;

/// What threads have made of the logs.
pub(crate) struct Finished<W> {
    pub(crate) end: ReadEnd,
    pub(crate) assembler: Assembler,
    /// The states of the threads.
    pub(crate) workers: Vec<W>,
}

/// What was made of a batch.
struct Made<T> {
    number: usize,
    result: T,
    batch: Batch,
}

/// Gives the events of all logs to threads. `worker` makes the state of a thread, `work` looks at a batch, `take` takes
/// the results in order, each with its batch.
///
/// # Errors
/// A log cannot be read, or the error of `take`.
pub(crate) fn run<W: Send, T: Send>(
    input: &Input,
    assembler: Assembler,
    mut worker: impl FnMut() -> W,
    work: impl Fn(&mut W, &Batch) -> T + Sync,
    mut take: impl FnMut(T, &Batch) -> Result<()>,
) -> Result<Finished<W>> {
    let threads = processors();
    let batches = threads * BATCHES_PER_THREAD + 1;
    let (jobs, waiting) = sync_channel::<(usize, Batch)>(batches);
    let (free, pool) = sync_channel::<Batch>(batches);
    let (made, results) = channel::<Made<T>>();
    for _ in 0..batches {
        let _ = free.send(Batch::default());
    }

    let waiting = Mutex::new(waiting);
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || read(input, assembler, &pool, &jobs));
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (mut state, made, waiting, work) = (worker(), made.clone(), &waiting, &work);
                scope.spawn(move || {
                    while let Some((number, batch)) = next(waiting) {
                        let result = work(&mut state, &batch);
                        let sent = made.send(Made {
                            number,
                            result,
                            batch,
                        });
                        if sent.is_err() {
                            break;
                        }
                    }
                    state
                })
            })
            .collect();
        drop(made);

        let taken = in_order(&results, &free, &mut take);
        // After an error nobody waits for the rest.
        drop((results, free));
        let (end, assembler) = joined(reader.join());
        let workers = workers.into_iter().map(|thread| joined(thread.join()));
        let workers = workers.collect();
        taken?;
        Ok(Finished {
            end: end?,
            assembler,
            workers,
        })
    })
}

/// The next batch to look at.
fn next(waiting: &Mutex<Receiver<(usize, Batch)>>) -> Option<(usize, Batch)> {
    waiting
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .recv()
        .ok()
}

/// Takes what was made in the order of the batches. A batch is used again when its result was taken.
fn in_order<T>(
    results: &Receiver<Made<T>>,
    free: &SyncSender<Batch>,
    take: &mut impl FnMut(T, &Batch) -> Result<()>,
) -> Result<()> {
    let (mut early, mut at) = (BTreeMap::new(), 0);
    for made in results {
        early.insert(made.number, made);
        while let Some(mut made) = early.remove(&at) {
            at += 1;
            take(made.result, &made.batch)?;
            made.batch.clear();
            let _ = free.send(made.batch);
        }
    }
    Ok(())
}

/// Reads all logs into batches, until nobody takes them.
fn read(
    input: &Input,
    mut assembler: Assembler,
    pool: &Receiver<Batch>,
    jobs: &SyncSender<(usize, Batch)>,
) -> (Result<ReadEnd>, Assembler) {
    let mut batch = Batch::default();
    let mut number = 0;
    let mut give = |batch: &mut Batch| {
        let Ok(empty) = pool.recv() else {
            return ControlFlow::Break(());
        };
        let full = std::mem::replace(batch, empty);
        number += 1;
        match jobs.send((number - 1, full)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    };

    let end = input.read(&mut assembler, |assembler, step| {
        if matches!(step, ReadStep::End { is_last: true, .. }) {
            assembler.finish();
        }
        while let Some(event) = assembler.pop() {
            batch.push(event.view());
            assembler.recycle(event);
            if batch.bytes() >= BATCH_BYTES && give(&mut batch).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    });

    if !batch.is_empty() {
        let _ = give(&mut batch);
    }

    (end, assembler)
}

fn joined<T>(result: std::thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
