//! Where tasks run.
//!
//! Ops do not start threads. They split their work into tiles and pass them to an [`Executor`]. The results are
//! bit-identical for every executor.

use std::sync::Mutex;

use crate::OutOfMemory;

/// Runs tasks in any order on any threads, and returns when all have finished.
pub trait Executor {
    /// Calls `task(0)`, ..., `task(tasks - 1)`, each exactly once.
    ///
    /// `cost` is the expected number of processor cycles of one task. An executor may run cheap tasks on the calling
    /// thread.
    fn run(&self, tasks: usize, cost: u64, task: &(dyn Fn(usize) + Sync));

    /// The number of threads that may run tasks concurrently, as far as known. It may affect how work is split, but
    /// not the result.
    fn threads(&self) -> usize {
        1
    }
}

/// Runs every task on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Executor for Serial {
    fn run(&self, tasks: usize, _cost: u64, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(task);
    }
}

impl Executor for rayon::ThreadPool {
    fn run(&self, tasks: usize, _cost: u64, task: &(dyn Fn(usize) + Sync)) {
        use rayon::prelude::*;
        self.install(|| (0..tasks).into_par_iter().with_max_len(1).for_each(task));
    }

    fn threads(&self) -> usize {
        self.current_num_threads()
    }
}

/// Runs `work` on every tile. A tile owns the outputs it writes, so no two tasks share any.
pub(crate) fn for_each<T: Send>(
    executor: &dyn Executor,
    cost: u64,
    tiles: Vec<T>,
    work: impl Fn(T) + Sync,
) {
    if tiles.len() <= 1 {
        return tiles.into_iter().for_each(work);
    }
    // A task is given only its number. The lock, which is never contended, moves the tile out of the vector.
    let mut locked = OutOfMemory::vec(tiles.len());
    locked.extend(tiles.into_iter().map(|tile| Mutex::new(Some(tile))));
    let tiles = locked;
    executor.run(tiles.len(), cost, &|n| {
        let tile = tiles[n].lock().ok().and_then(|mut tile| tile.take());
        if let Some(tile) = tile {
            work(tile);
        }
    });
}

#[cfg(test)]
mod tests;
