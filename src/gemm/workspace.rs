//! Memory for one tile at a time.

use std::cell::RefCell;

thread_local! {
    /// What this thread does not use now. It is kept, because to ask for memory and to clear it costs
    /// more than the products of a small tile.
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Numbers in a cache line.
const LINE: usize = 16;

/// Gives `work` so many numbers, whatever they are. They start with a cache line, so that no vector
/// lies across two.
pub(super) fn with<R>(len: usize, work: impl FnOnce(&mut [f32]) -> R) -> R {
    let mut memory = FREE.with_borrow_mut(Vec::pop).unwrap_or_default();
    if memory.len() < len + LINE {
        memory.resize(len + LINE, 0.0);
    }
    let start = memory.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
    let result = work(&mut memory[start..start + len]);
    FREE.with_borrow_mut(|free| free.push(memory));
    result
}
