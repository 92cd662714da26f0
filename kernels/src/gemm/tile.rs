//! A tile of sums of products.

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, Axis};

use super::columns::{Strips, pitch, places};
use crate::simd::{Simd, WithSimd};
use crate::tiles::{Place, columns as columns_of, row, row_mut};
use crate::tuning::{DOT_ROWS, DOT_SLICE_TERMS, KC, LEFT_PITCH_FLOATS, NR, PANEL_ROWS};
use crate::{Isa, Storage, workspace};

/// Sums of products.
pub(crate) struct Tile<'t> {
    pub(super) isa: Isa,
    pub(super) rows: usize,
    pub(super) strips: Strips<'t>,
    /// Sums in a row: runs of strips that are neighbours, each filled up to a multiple of
    /// [`UNIT`](crate::tuning::UNIT).
    pub(super) pitch: usize,
    /// `[rows, pitch]`
    pub(super) sums: &'t mut [f32],
    /// Whether the sums stand for zeros, whatever they are.
    blank: bool,
    /// Whether factors that are not packed yet are multiplied as pairs of terms in bfloat16.
    pub(super) pairs: bool,
    /// The column of a factor that is not packed yet that stands for column 0 of the strips.
    pub(super) first: usize,
    /// Memory for a slice of the left factor.
    pub(super) left: &'t mut [f32],
    /// Memory for a slice of a group of columns of the right factor.
    pub(super) packed: &'t mut [f32],
}

/// Makes a tile of zeros for `work`.
pub(crate) fn tile<R>(
    isa: Isa,
    rows: usize,
    strips: Strips<'_>,
    work: impl FnOnce(&mut Tile<'_>) -> R,
) -> R {
    let pitch = pitch(strips);
    let [left, packed] = factors_len(rows);
    workspace::with(left + packed + rows * pitch, |memory| {
        let (left, memory) = memory.split_at_mut(left);
        let (packed, sums) = memory.split_at_mut(packed);
        work(&mut Tile::new(isa, (rows, strips), (pitch, sums, true), [left, packed]))
    })
}

/// Makes a tile of sums that are in memory already, [`pitch`] for each row, for `work`. `blank` ones stand for zeros.
pub(crate) fn tile_in<R>(
    isa: Isa,
    strips: Strips<'_>,
    sums: &mut [f32],
    blank: bool,
    work: impl FnOnce(&mut Tile<'_>) -> R,
) -> R {
    let pitch = pitch(strips);
    let rows = sums.len() / pitch;
    let [left, packed] = factors_len(rows);
    workspace::with(left + packed, |memory| {
        let (left, packed) = memory.split_at_mut(left);
        work(&mut Tile::new(isa, (rows, strips), (pitch, sums, blank), [left, packed]))
    })
}

/// The memory that a tile needs for slices of the left factor, and of the right one.
fn factors_len(rows: usize) -> [usize; 2] {
    [(rows * LEFT_PITCH_FLOATS).max(PANEL_ROWS * KC).max(DOT_ROWS * DOT_SLICE_TERMS), KC * NR]
}

/// [`tile`] at a place whose columns are its only strip.
pub(crate) fn tile_at<R>(isa: Isa, place: &Place, work: impl FnOnce(&mut Tile<'_>) -> R) -> R {
    tile(isa, place.rows.len(), std::slice::from_ref(&place.columns), work)
}

impl<'t> Tile<'t> {
    fn new(
        isa: Isa,
        (rows, strips): (usize, Strips<'t>),
        (pitch, sums, blank): (usize, &'t mut [f32], bool),
        [left, packed]: [&'t mut [f32]; 2],
    ) -> Self {
        Tile { isa, rows, strips, pitch, sums, blank, pairs: false, first: 0, left, packed }
    }
}

impl Tile<'_> {
    /// Says whether factors that are not packed yet are multiplied as pairs of terms.
    pub(crate) fn set_pairs(&mut self, pairs: bool) {
        self.pairs = pairs;
    }

    /// Says which column of factors that are not packed yet stands for column 0 of the strips.
    pub(crate) fn set_first(&mut self, first: usize) {
        self.first = first;
    }

    /// The sums of the strips, `[rows, its width]` each.
    pub(crate) fn strips(&mut self) -> impl Iterator<Item = ArrayView2<'_, f32>> {
        self.clear_blank();
        let sums = ArrayView2::from_shape((self.rows, self.pitch), &*self.sums);
        let sums = sums.expect("of this size");
        places(self.strips).map(move |place| columns_of(sums, place))
    }

    /// All strips, as [`Tile::strips`], to be changed.
    pub(crate) fn strips_mut<const N: usize>(&mut self) -> [ArrayViewMut2<'_, f32>; N] {
        self.clear_blank();
        let sums = ArrayViewMut2::from_shape((self.rows, self.pitch), &mut *self.sums);
        let mut rest = Some((0, sums.expect("of this size")));
        let mut places = places(self.strips);
        std::array::from_fn(|_| {
            let place = places.next().expect("a tile has a place for each strip");
            let (before, sums) = rest.take().expect("put back each time");
            let (_, sums) = sums.split_at(Axis(1), place.start - before);
            let (strip, after) = sums.split_at(Axis(1), place.len());
            rest = Some((place.end, after));
            strip
        })
    }

    /// Replaces the sums by the columns of the strips of `rows`.
    pub(crate) fn set(&mut self, rows: ArrayView2<'_, f32>) {
        self.blank = false;
        for (at, sums) in self.sums.chunks_exact_mut(self.pitch).enumerate() {
            for (columns, place) in self.strips.iter().zip(places(self.strips)) {
                sums[place].copy_from_slice(&row(rows, at)[columns.clone()]);
            }
        }
    }

    /// Replaces the sums by these, [`pitch`] for each row.
    pub(crate) fn set_sums(&mut self, sums: &[f32]) {
        self.blank = false;
        self.sums.copy_from_slice(sums);
    }

    /// Adds the rows of some matrices, one below the other, to each strip, all of which are as wide.
    pub(crate) fn add_to_each<E: Storage>(&mut self, matrices: ArrayView3<'_, E>) {
        self.clear_blank();
        let mut sums = self.sums.chunks_exact_mut(self.pitch);
        for matrix in matrices.outer_iter() {
            for (at, sums) in (0..matrix.nrows()).zip(&mut sums) {
                for place in places(self.strips) {
                    let from = row(matrix.view(), at);
                    sums[place].iter_mut().zip(from).for_each(|(sum, from)| *sum += from.to_f32());
                }
            }
        }
    }

    /// Adds a matrix of the tile's shape, if its strips are neighbours.
    pub(crate) fn add_matrix<E: Storage>(&mut self, from: ArrayView2<'_, E>) {
        let isa = self.isa;
        let [to] = self.strips_mut();
        isa.run(Transfer { from, to, add: true });
    }

    /// Makes zeros of sums that only stand for them.
    pub(super) fn clear_blank(&mut self) {
        if std::mem::take(&mut self.blank) {
            self.sums.fill(0.0);
        }
    }

    /// Writes all strips, side by side, to `out`.
    pub(crate) fn store<E: Storage>(&mut self, out: ArrayViewMut2<'_, E>) {
        self.write(out, false);
    }

    /// Adds all strips, side by side, to `out`.
    pub(crate) fn add_to<E: Storage>(&mut self, out: ArrayViewMut2<'_, E>) {
        self.write(out, true);
    }

    /// Writes each strip to a matrix of its own.
    pub(crate) fn store_each<E: Storage, const N: usize>(
        &mut self,
        outs: [ArrayViewMut2<'_, E>; N],
    ) {
        let isa = self.isa;
        for (from, to) in self.strips().zip(outs) {
            isa.run(Transfer { from, to, add: false });
        }
    }

    fn write<E: Storage>(&mut self, out: ArrayViewMut2<'_, E>, add: bool) {
        let (isa, mut rest) = (self.isa, out);
        for from in self.strips() {
            let (to, after) = rest.split_at(Axis(1), from.ncols());
            rest = after;
            isa.run(Transfer { from, to, add });
        }
    }
}

/// Writes a matrix, such as the sums of a strip of a tile, to another one.
struct Transfer<'f, 't, A, B> {
    from: ArrayView2<'f, A>,
    to: ArrayViewMut2<'t, B>,
    /// Whether it is added to what is there.
    add: bool,
}

impl<A: Storage, B: Storage> WithSimd for Transfer<'_, '_, A, B> {
    #[inline(always)]
    fn run<S: Simd>(mut self, simd: S) {
        for at in 0..self.from.nrows() {
            let from = row(self.from, at).chunks(S::LANES);
            for (from, to) in from.zip(row_mut(&mut self.to, at).chunks_mut(S::LANES)) {
                let from = A::load(simd, from);
                B::store(simd, if self.add { B::load(simd, to) + from } else { from }, to);
            }
        }
    }
}
