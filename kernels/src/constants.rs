//! Packed copies of weights that are the same in every call.
//!
//! Where a caller knows that an input never changes, its copies are made in the first call, and kept.

use std::ops::Range;
use std::sync::OnceLock;

use crate::gemm::Right;
use crate::gemm::workspace::{SPARE, line_start};
use crate::{Isa, Storage};

/// The most copies of a constant: it may have the weights of x and those of the state.
const MOST: usize = 4;

/// The most copies of one part. They differ by the number of rows and of threads.
const MOST_OF_A_PART: usize = 2;

/// Copies of a constant, which are kept from call to call. All calls that have the constant can share them.
#[derive(Default)]
pub struct Copies([OnceLock<Packed>; MOST]);

/// An input of a call that has the same elements in every call with these copies.
#[derive(Clone, Copy)]
pub struct Constant<'c> {
    /// Its elements.
    pub bytes: &'c [u8],
    /// What is kept of it.
    pub copies: &'c Copies,
}

/// The constants among the inputs of a call.
#[derive(Clone, Copy, Default)]
pub struct Constants<'c>(pub &'c [Constant<'c>]);

impl<'c> Constants<'c> {
    /// The constant of which a right factor is a part, and what tells it from other parts.
    fn part<E: Storage>(self, right: &Right<'_, E>) -> Option<(&'c Copies, Part)> {
        let (matrix, is_transposed) = match right {
            Right::RowMajor(matrix) => (matrix, false),
            Right::Transposed(matrix) => (matrix, true),
            Right::Packed { .. } => return None,
        };
        let first = matrix.as_ptr().cast();
        let has = |constant: &&Constant<'_>| constant.bytes.as_ptr_range().contains(&first);
        let Constant { bytes, copies } = self.0.iter().find(has).filter(|_| !matrix.is_empty())?;
        let offset = first.addr() - bytes.as_ptr().addr();
        Some((copies, Part { offset, dim: matrix.dim(), is_transposed }))
    }

    /// The copy of the strips of a right factor that `pack` writes to memory of this length; none if the factor may
    /// change, if enough copies are kept, or if there is no memory.
    pub(crate) fn packed<E: Storage>(
        self,
        isa: Isa,
        right: &Right<'_, E>,
        strips: &[Range<usize>],
        (form, len): (Form, usize),
        pack: impl FnOnce(&mut [f32]),
    ) -> Option<&'c [f32]> {
        let (Copies(copies), part) = self.part(right)?;
        let key = Key { isa, part, strips: strips.to_vec(), form };
        let is_it = |packed: &&Packed| packed.key == key;
        let known = || copies.iter().map_while(OnceLock::get);
        if let Some(packed) = known().find(is_it) {
            return Some(packed.elements());
        }
        let of_this_part = known().filter(|packed| packed.key.part == key.part).count();
        if of_this_part >= MOST_OF_A_PART || known().count() == MOST {
            return None;
        }
        let mut memory = Vec::new();
        memory.try_reserve_exact(len + SPARE).ok()?;
        memory.resize(len + SPARE, 0.0);
        let start = line_start(&memory);
        pack(&mut memory[start..start + len]);
        let mut packed = Packed { key, place: start..start + len, memory };
        for copy in copies {
            match copy.set(packed) {
                Ok(()) => return copy.get().map(Packed::elements),
                // Another thread was there first.
                Err(ours) => packed = ours,
            }
        }
        None
    }
}

/// How a copy lies in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Tiles of so many cells, in groups of so many vectors.
    Tiles { cells: usize, vectors: usize },
    /// Blocks of so many cells, with all their gates side by side.
    Blocks { cells: usize },
}

/// A matrix in a constant.
#[derive(PartialEq, Eq)]
struct Part {
    /// In bytes.
    offset: usize,
    dim: (usize, usize),
    is_transposed: bool,
}

/// What a copy is of.
#[derive(PartialEq, Eq)]
struct Key {
    isa: Isa,
    part: Part,
    strips: Vec<Range<usize>>,
    form: Form,
}

struct Packed {
    key: Key,
    memory: Vec<f32>,
    /// From a cache line on.
    place: Range<usize>,
}

impl Packed {
    fn elements(&self) -> &[f32] {
        &self.memory[self.place.clone()]
    }
}
