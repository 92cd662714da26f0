//! Memory that the system may not have.
//!
//! What a call needs by the size of its tensors, its caller allocates and passes. The rest is small, and yet
//! may be what is too much: Rust would end the process then.

/// What a call panics with if the system has no memory for its tiles. Its outputs may have been written in part.
///
/// Whoever catches the panic can go on: nothing is lost. The panic hook is not called, because it may need memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfMemory {
    /// How much was asked for.
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
