//! The innermost loops: blocks of a strip whose sums are in registers.

use std::ops::Range;

use ndarray::ArrayView2;

use super::{COLUMN_ROWS, DEPTH, STRIP, UNIT};
use crate::simd::{Kernel, Simd};
use crate::tiles::row;
use crate::{Element, Isa};

/// A slice of a left factor, at most [`DEPTH`] deep.
pub(super) trait Factor: Copy {
    /// The product of rows `at .. at + M` and one group of `V` vectors of columns.
    fn multiply<S: Simd, const M: usize, const V: usize>(
        self,
        simd: S,
        at: usize,
        right: impl Columns<S, V>,
    ) -> [[S::F32; V]; M];
}

/// A slice of `V` vectors of columns of a right factor.
pub(super) trait Columns<S: Simd, const V: usize>: Copy {
    /// How deep the slice is.
    fn depth(self) -> usize;

    /// Row `k`.
    fn load(self, simd: S, k: usize) -> [S::F32; V];
}

/// Rows as they lie, sliced.
#[derive(Clone, Copy)]
pub(super) struct Rows<'a, E>(pub(super) ArrayView2<'a, E>);

impl<E: Element> Factor for Rows<'_, E> {
    #[inline(always)]
    fn multiply<S: Simd, const M: usize, const V: usize>(
        self,
        simd: S,
        at: usize,
        right: impl Columns<S, V>,
    ) -> [[S::F32; V]; M] {
        let depth = right.depth();
        assert!(depth <= DEPTH);
        // A copy costs little, and at places known from each other its rows need one register.
        let mut rows = [[0.0; DEPTH]; M];
        for (m, to) in rows.iter_mut().enumerate() {
            let from = row(self.0, at + m).chunks(S::LANES);
            for (from, to) in from.zip(to.chunks_exact_mut(S::LANES)) {
                simd.store(E::load(simd, from), to);
            }
        }
        multiply(simd, right, |k| {
            let mut column = [0.0; M];
            for (to, row) in column.iter_mut().zip(&rows) {
                *to = row[k];
            }
            column
        })
    }
}

/// Rows side by side, `[k][m]`.
#[derive(Clone, Copy)]
pub(super) struct Panel<'a>(pub(super) &'a [[f32; COLUMN_ROWS]; DEPTH]);

impl Factor for Panel<'_> {
    #[inline(always)]
    fn multiply<S: Simd, const M: usize, const V: usize>(
        self,
        simd: S,
        at: usize,
        right: impl Columns<S, V>,
    ) -> [[S::F32; V]; M] {
        assert!(right.depth() <= DEPTH && at + M <= COLUMN_ROWS);
        multiply(simd, right, |k| *self.0[k][at..].first_chunk().expect("a block within the panel"))
    }
}

/// The sum over `k` of the outer products of `left(k)` and row `k` of `right`.
#[inline(always)]
fn multiply<S: Simd, const M: usize, const V: usize>(
    simd: S,
    right: impl Columns<S, V>,
    left: impl Fn(usize) -> [f32; M],
) -> [[S::F32; V]; M] {
    let mut sums = [[simd.splat(0.0); V]; M];
    for k in 0..right.depth() {
        let columns = right.load(simd, k);
        for (sums, left) in sums.iter_mut().zip(left(k)) {
            let left = simd.splat(left);
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = simd.mul_add(left, column, *sum);
            }
        }
    }
    sums
}

/// A packed slice: `V` vectors a row, one row after the other.
#[derive(Clone, Copy)]
struct Packed<'a>(&'a [f32]);

impl<S: Simd, const V: usize> Columns<S, V> for Packed<'_> {
    #[inline(always)]
    fn depth(self) -> usize {
        self.0.len() / (V * S::LANES)
    }

    #[inline(always)]
    fn load(self, simd: S, k: usize) -> [S::F32; V] {
        let row = &self.0[k * V * S::LANES..][..V * S::LANES];
        let mut vectors = [simd.splat(0.0); V];
        for (vector, from) in vectors.iter_mut().zip(row.chunks_exact(S::LANES)) {
            *vector = simd.load(from);
        }
        vectors
    }
}

/// Columns `at .. at + width` of row-major data whose rows are `pitch` long.
#[derive(Clone, Copy)]
struct Lying<'a, E> {
    data: &'a [E],
    pitch: usize,
    at: usize,
    /// At most `V` vectors.
    width: usize,
}

impl<S: Simd, E: Element, const V: usize> Columns<S, V> for Lying<'_, E> {
    #[inline(always)]
    fn depth(self) -> usize {
        self.data.len() / self.pitch
    }

    #[inline(always)]
    fn load(self, simd: S, k: usize) -> [S::F32; V] {
        let row = &self.data[k * self.pitch + self.at..][..self.width];
        let mut vectors = [simd.splat(0.0); V];
        for (v, vector) in vectors.iter_mut().enumerate() {
            *vector = E::load(simd, &row[v * S::LANES..row.len().min((v + 1) * S::LANES)]);
        }
        vectors
    }
}

/// Whether a packed row of a strip is all of its units; otherwise one unit follows the other.
pub(super) const fn whole_rows(registers: usize) -> bool {
    registers >= 32
}

/// Rows of a block that is `vectors` wide: as many as keep its sums in registers.
const fn block_rows(registers: usize, vectors: usize) -> usize {
    match (registers, vectors) {
        (32.., 4) => 6,
        (32.., 3) => 8,
        (32.., _) => 12,
        (16.., _) => 6,
        _ => 2,
    }
}

/// Rows of the left factor up to which packing the right one does not pay: one block of the widest
/// kind, which reads each element of the right factor once.
pub(super) fn few_rows(isa: Isa) -> usize {
    struct FewRows;

    impl Kernel for FewRows {
        type Output = usize;

        #[inline(always)]
        fn run<S: Simd>(self, _: S) -> usize {
            block_rows(S::REGISTERS, if whole_rows(S::REGISTERS) { 4 } else { 2 })
        }
    }

    isa.run(FewRows)
}

/// `sums += left @ packed` for one strip.
pub(super) struct Strip<'p, 's, L> {
    pub(super) left: L,
    /// A slice of the right factor, packed.
    pub(super) packed: &'p [f32],
    pub(super) depth: usize,
    pub(super) rows: usize,
    /// `[rows, STRIP]`
    pub(super) sums: &'s mut [f32],
}

impl<L: Factor> Kernel for Strip<'_, '_, L> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Strip { left, packed, depth, rows, sums } = self;
        let units = packed.len() / (depth * UNIT);
        macro_rules! whole_strip {
            ($vectors:literal) => {
                blocks::<S, L, $vectors>(simd, left, Packed(packed), rows, sums)
            };
        }
        if whole_rows(S::REGISTERS) {
            return match units {
                1 => whole_strip!(1),
                2 => whole_strip!(2),
                3 => whole_strip!(3),
                _ => whole_strip!(4),
            };
        }
        for (unit, packed) in packed.chunks_exact(depth * UNIT).enumerate() {
            let sums = &mut sums[unit * UNIT..];
            blocks::<S, L, 2>(simd, left, Packed(packed), rows, sums);
        }
    }
}

/// [`Strip`] from a right factor as it lies.
pub(super) struct Direct<'l, 'r, 's, A, B> {
    pub(super) left: Rows<'l, A>,
    /// A slice of the right factor.
    pub(super) right: ArrayView2<'r, B>,
    pub(super) columns: Range<usize>,
    pub(super) rows: usize,
    /// `[rows, STRIP]`
    pub(super) sums: &'s mut [f32],
}

impl<A: Element, B: Element> Kernel for Direct<'_, '_, '_, A, B> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Direct { left, right, columns, rows, sums } = self;
        let data = right.to_slice().expect("a right factor without gaps");
        let direct = Lying { data, pitch: right.ncols(), at: columns.start, width: columns.len() };
        if whole_rows(S::REGISTERS) {
            groups::<S, A, B, 4>(simd, left, direct, rows, sums);
        } else {
            groups::<S, A, B, 2>(simd, left, direct, rows, sums);
        }
    }
}

/// Adds the product for all of `right`, `V` vectors of columns at a time.
#[inline(always)]
fn groups<S: Simd, A: Element, B: Element, const V: usize>(
    simd: S,
    left: Rows<'_, A>,
    right: Lying<'_, B>,
    rows: usize,
    sums: &mut [f32],
) {
    let full = right.width - right.width % (V * S::LANES);
    let part = |at: usize, width: usize| Lying { at: right.at + at, width, ..right };
    for at in (0..full).step_by(V * S::LANES) {
        blocks::<S, _, V>(simd, left, part(at, V * S::LANES), rows, &mut sums[at..]);
    }
    for at in (full..right.width).step_by(S::LANES) {
        let width = S::LANES.min(right.width - at);
        blocks::<S, _, 1>(simd, left, part(at, width), rows, &mut sums[at..]);
    }
}

/// Adds the product for all rows and `V` vectors of columns.
#[inline(always)]
fn blocks<S: Simd, L: Factor, const V: usize>(
    simd: S,
    left: L,
    right: impl Columns<S, V>,
    rows: usize,
    sums: &mut [f32],
) {
    let count = rows.div_ceil(block_rows(S::REGISTERS, V));
    for block in 0..count {
        // Blocks of nearly equal height: 7 rows are 4 + 3, not 6 + 1.
        let rows = block * rows / count..(block + 1) * rows / count;
        macro_rules! of_height {
            ($($m:literal)*) => {
                match rows.len() {
                    $($m if $m <= block_rows(S::REGISTERS, V) => {
                        let product = left.multiply::<S, $m, V>(simd, rows.start, right);
                        add(simd, product, &mut sums[rows.start * STRIP..]);
                    })*
                    height => unreachable!("no block of {height} rows"),
                }
            };
        }
        of_height!(1 2 3 4 5 6 7 8 9 10 11 12);
    }
}

/// Adds a block to the sums from its first one on.
#[inline(always)]
fn add<S: Simd, const M: usize, const V: usize>(
    simd: S,
    block: [[S::F32; V]; M],
    sums: &mut [f32],
) {
    for (row, sums) in block.iter().zip(sums.chunks_mut(STRIP)) {
        for (&sum, sums) in row.iter().zip(sums.chunks_exact_mut(S::LANES)) {
            simd.store(simd.load(sums) + sum, sums);
        }
    }
}
