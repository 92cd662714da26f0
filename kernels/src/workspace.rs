//! Memory for one tile at a time.

use std::cell::RefCell;

use crate::memory::OutOfMemory;
use crate::simd::LINE;
use crate::tuning::KEPT_BYTES;

/// Elements beside those that are asked for, so that a buffer can start with a cache line.
pub(crate) const SPARE: usize = LINE / size_of::<f32>();

thread_local! {
    /// Buffers of this thread that are not in use. They are kept from tile to tile, because allocating and clearing a
    /// buffer costs more than the products of a small tile. There are at most as many as were in use at a time, which
    /// is four: one for some steps, and two for each of two tiles. None is larger than [`KEPT_BYTES`].
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Gives `work` a buffer of `len` elements, whatever they hold. It starts with a cache line, so that no vector
/// crosses from one to the next.
pub(crate) fn with<R>(len: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut memory = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
    if memory.len() < len + SPARE {
        let more = len + SPARE - memory.len();
        OutOfMemory::reserve(&mut memory, more);
        memory.resize(len + SPARE, 0.0);
    }
    let start = line_start(&memory);
    let result = work(&mut memory[start..start + len]);
    if size_of_val(&*memory) <= KEPT_BYTES {
        FREE.with_borrow_mut(|free| free.push(memory));
    }
    result
}

/// Where the first cache line of a buffer with [`SPARE`] elements more than are asked for starts.
pub(crate) fn line_start(memory: &[f32]) -> usize {
    memory.as_ptr().align_offset(LINE).min(SPARE)
}
