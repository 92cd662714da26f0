//! Allocations that may fail.
//!
//! The caller allocates the memory that grows with the tensors. The rest is small, but its allocation may fail, too,
//! which would end a Rust process.

/// The payload of the panic of a call that cannot allocate memory for its tiles. Its outputs may have been written in
/// part.
///
/// After catching the panic, the program can continue; no resource leaks. The panic hook is not called, because it may
/// need memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The size of the allocation.
    pub bytes: usize,
}

impl OutOfMemory {
    /// An empty vector with room for `elements`.
    ///
    /// # Panics
    ///
    /// With an [`OutOfMemory`] if there is no memory for them.
    #[must_use]
    pub fn vec<T>(elements: usize) -> Vec<T> {
        let mut vec = Vec::new();
        Self::reserve(&mut vec, elements);
        vec
    }

    /// Makes room for more elements, or panics as [`OutOfMemory::vec`] does.
    pub(crate) fn reserve<T>(vec: &mut Vec<T>, more: usize) {
        if vec.try_reserve_exact(more).is_err() {
            let elements = vec.len().saturating_add(more);
            let bytes = elements.saturating_mul(size_of::<T>());
            std::panic::resume_unwind(Box::new(OutOfMemory { bytes }));
        }
    }
}
