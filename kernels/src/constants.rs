//! Packed copies of weights that are the same in every call.
//!
//! If a caller guarantees that an input never changes, its packed copies are made in the first call and kept.

use std::iter;
use std::ops::Range;
use std::sync::OnceLock;

use ndarray::ArrayView2;

use crate::element::Storage;
use crate::memory::OutOfMemory;
use crate::simd::Isa;
use crate::workspace::{SPARE, line_start};

/// The most copies of a constant: it may have the weights of x and those of the state.
const MOST_COPIES: usize = 4;

/// The most copies of the same columns of a matrix. They differ by the number of rows and of threads.
const MOST_COPIES_OF_COLUMNS: usize = 2;

/// Packed copies of a constant, which are kept between calls. All calls with the constant can share them.
#[derive(Default)]
pub struct Copies {
    packed: [OnceLock<Packed>; MOST_COPIES],
    in_int8: InInt8,
}

/// Copies in int8, of which there are as many as are wanted: otherwise results would depend on what was computed before.
/// They do not differ by rows and threads.
#[derive(Default)]
struct InInt8 {
    first: OnceLock<Packed>,
    others: OnceLock<Box<InInt8>>,
}

impl Copies {
    /// The memory of all copies, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let all = self.packed.iter().filter_map(OnceLock::get).chain(self.in_int8.all());
        all.map(|packed| size_of_val(&packed.memory[..])).sum()
    }
}

/// An input of a call that has the same elements in every call with these copies.
#[derive(Clone, Copy)]
pub struct Constant<'c> {
    /// Its elements.
    pub bytes: &'c [u8],
    /// Its packed copies.
    pub copies: &'c Copies,
}

/// The constants among the inputs of a call.
#[derive(Clone, Copy, Default)]
pub struct Constants<'c>(pub &'c [Constant<'c>]);

impl<'c> Constants<'c> {
    /// The constant that a matrix lies in, and what tells it from others there.
    fn place<E: Storage>(self, source: Source<'_, E>) -> Option<(&'c Copies, MatrixPlace)> {
        let Source { matrix, is_transposed } = source;
        let first = matrix.as_ptr().cast();
        let has = |constant: &&Constant<'_>| constant.bytes.as_ptr_range().contains(&first);
        let Constant { bytes, copies } = self.0.iter().find(has).filter(|_| !matrix.is_empty())?;
        let offset_bytes = first.addr() - bytes.as_ptr().addr();
        Some((copies, MatrixPlace { offset_bytes, dim: matrix.dim(), is_transposed }))
    }

    /// The copy of the strips of a matrix that `pack` writes to memory of this length; none if the matrix may
    /// change, if enough copies are kept, or if there is no memory.
    pub(crate) fn packed<E: Storage>(
        self,
        isa: Isa,
        source: Source<'_, E>,
        strips: &[Range<usize>],
        (form, len): (Form, usize),
        pack: impl FnOnce(&mut [f32]),
    ) -> Option<&'c [f32]> {
        let (Copies { packed: copies, .. }, matrix) = self.place(source)?;
        let key = Key { isa, matrix, strips: strips.to_vec(), form };
        let is_it = |packed: &&Packed| packed.key == key;
        let known = || copies.iter().map_while(OnceLock::get);
        if let Some(packed) = known().find(is_it) {
            return Some(packed.elements());
        }
        let has_same = |packed: &&Packed| {
            packed.key.matrix == key.matrix && packed.key.first_column() == key.first_column()
        };
        let of_these_columns = known().filter(has_same).count();
        if of_these_columns >= MOST_COPIES_OF_COLUMNS || known().count() == MOST_COPIES {
            return None;
        }
        let mut memory = Vec::new();
        memory.try_reserve_exact(len + SPARE).ok()?;
        let mut packed = Packed::new(key, memory, len, pack);
        for copy in copies {
            match copy.set(packed) {
                Ok(()) => return copy.get().map(Packed::elements),
                // Another thread was there first.
                Err(ours) => packed = ours,
            }
        }
        None
    }

    /// The copy of strips of a matrix in int8 that `pack` writes to memory of this length; none if the matrix may change.
    pub(crate) fn quads<E: Storage>(
        self,
        isa: Isa,
        source: Source<'_, E>,
        strips: &[Range<usize>],
        len: usize,
        pack: impl FnOnce(&mut [f32]),
    ) -> Option<&'c [f32]> {
        let (Copies { in_int8, .. }, matrix) = self.place(source)?;
        let key = Key { isa, matrix, strips: strips.to_vec(), form: Form::Units };
        if let Some(packed) = in_int8.all().find(|packed| packed.key == key) {
            return Some(packed.elements());
        }
        let memory = OutOfMemory::vec(len + SPARE);
        Some(in_int8.keep(Packed::new(key, memory, len, pack)))
    }
}

impl InInt8 {
    fn all(&self) -> impl Iterator<Item = &Packed> {
        let each = iter::successors(Some(self), |copies| copies.others.get().map(|next| &**next));
        each.map_while(|copies| copies.first.get())
    }

    /// Keeps a copy. Another thread may have been there first with the same.
    fn keep(&self, mut packed: Packed) -> &[f32] {
        let mut copies = self;
        loop {
            let is_set = copies.first.set(packed);
            let there = copies.first.get().expect("one of them");
            match is_set {
                Err(ours) if there.key != ours.key => packed = ours,
                _ => return there.elements(),
            }
            copies = copies.others.get_or_init(Box::default);
        }
    }
}

/// How a copy lies in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Tiles of `cells` cells, in groups that are `vectors` wide.
    Tiles { cells: usize, vectors: usize, packing: Packing },
    /// Blocks of `cells` cells, with all their gates side by side.
    Blocks { cells: usize, packing: Packing },
    /// Units of columns in int8.
    Units,
}

/// What the lanes of packed weights hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// A term.
    Floats,
    /// Two terms, rounded to bfloat16, for a left factor with the same.
    Pairs,
    /// The same for a left factor that is not rounded.
    Rounded,
}

/// A matrix that may lie in a constant.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a, E> {
    pub(crate) matrix: ArrayView2<'a, E>,
    /// Whether its transpose is packed.
    pub(crate) is_transposed: bool,
}

/// Where a matrix lies in a constant.
#[derive(PartialEq, Eq)]
struct MatrixPlace {
    offset_bytes: usize,
    dim: (usize, usize),
    is_transposed: bool,
}

/// What a copy is of.
#[derive(PartialEq, Eq)]
struct Key {
    isa: Isa,
    matrix: MatrixPlace,
    strips: Vec<Range<usize>>,
    form: Form,
}

impl Key {
    fn first_column(&self) -> Option<usize> {
        self.strips.first().map(|strip| strip.start)
    }
}

struct Packed {
    key: Key,
    memory: Vec<f32>,
    /// From a cache line on.
    place: Range<usize>,
}

impl Packed {
    /// What `pack` writes to a part of memory that has room for this length and [`SPARE`] elements.
    fn new(key: Key, mut memory: Vec<f32>, len: usize, pack: impl FnOnce(&mut [f32])) -> Self {
        memory.resize(len + SPARE, 0.0);
        let place = line_start(&memory)..line_start(&memory) + len;
        pack(&mut memory[place.clone()]);
        Packed { key, memory, place }
    }

    fn elements(&self) -> &[f32] {
        &self.memory[self.place.clone()]
    }
}
