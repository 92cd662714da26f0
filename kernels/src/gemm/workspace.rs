//! Memory for one tile at a time.

use std::cell::RefCell;

use crate::simd::LINE;

thread_local! {
    /// What this thread does not use now. It is kept, because to ask for memory and to clear it costs
    /// more than the products of a small tile.
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Gives `work` so many numbers, whatever they are. They start with a cache line, so that no vector
/// lies across two.
pub(super) fn with<R>(len: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut memory = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
    let spare = LINE / size_of::<f32>();
    if memory.len() < len + spare {
        memory.resize(len + spare, 0.0);
    }
    let start = memory.as_ptr().align_offset(LINE).min(spare);
    let result = work(&mut memory[start..start + len]);
    FREE.with_borrow_mut(|free| free.push(memory));
    result
}
