//! Cutting matrices into tiles that separate tasks may write.

use std::iter;
use std::ops::Range;

use ndarray::{
    ArrayView1, ArrayView2, ArrayView3, ArrayViewMut1, ArrayViewMut2, ArrayViewMut3, Axis,
    ShapeBuilder, Slice,
};

use crate::Element;

/// Sizes of a tile. They follow from the shape of the work alone, never from the threads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiling {
    /// Rows in a tile, at least 1.
    pub(crate) rows: usize,
    /// Columns in a tile, at least 1.
    pub(crate) columns: usize,
}

/// The place of a tile in its matrix.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) rows: Range<usize>,
    pub(crate) columns: Range<usize>,
}

impl Place {
    /// The part of `matrix` at this place.
    pub(crate) fn of<'a, T>(&self, mut matrix: ArrayView2<'a, T>) -> ArrayView2<'a, T> {
        matrix.slice_axis_inplace(Axis(0), Slice::from(self.rows.clone()));
        matrix.slice_axis_inplace(Axis(1), Slice::from(self.columns.clone()));
        matrix
    }

    /// The rows of `matrix` that this place has.
    pub(crate) fn rows_of<'a, T>(&self, matrix: ArrayView2<'a, T>) -> ArrayView2<'a, T> {
        rows(matrix, self.rows.clone())
    }

    /// Elements `columns` of `vector`, as a matrix of this place's height whose rows all are that.
    pub(crate) fn broadcast<'a, T>(
        &self,
        mut vector: ArrayView1<'a, T>,
        columns: Range<usize>,
    ) -> ArrayView2<'a, T> {
        vector.slice_axis_inplace(Axis(0), Slice::from(columns));
        let row = vector.to_slice().expect("a vector without gaps");
        let shape = (self.rows.len(), row.len()).strides((0, 1));
        ArrayView2::from_shape(shape, row).expect("one row again and again")
    }
}

/// Rows `rows` of `matrix`.
pub(crate) fn rows<T>(mut matrix: ArrayView2<'_, T>, rows: Range<usize>) -> ArrayView2<'_, T> {
    matrix.slice_axis_inplace(Axis(0), Slice::from(rows));
    matrix
}

/// Columns `columns` of `matrix`.
pub(crate) fn columns<T>(
    mut matrix: ArrayView2<'_, T>,
    columns: Range<usize>,
) -> ArrayView2<'_, T> {
    matrix.slice_axis_inplace(Axis(1), Slice::from(columns));
    matrix
}

/// Steps `steps` of a time-major tensor, one row for each row of the batch in each.
pub(crate) fn all_rows<T>(mut tensor: ArrayView3<'_, T>, steps: Range<usize>) -> ArrayView2<'_, T> {
    tensor.slice_axis_inplace(Axis(0), Slice::from(steps));
    let (steps, batch, columns) = tensor.dim();
    tensor.into_shape_with_order((steps * batch, columns)).expect("a tensor without gaps")
}

/// [`all_rows`] of a tensor to be written.
pub(crate) fn all_rows_mut<T>(
    mut tensor: ArrayViewMut3<'_, T>,
    steps: Range<usize>,
) -> ArrayViewMut2<'_, T> {
    tensor.slice_axis_inplace(Axis(0), Slice::from(steps));
    let (steps, batch, columns) = tensor.dim();
    tensor.into_shape_with_order((steps * batch, columns)).expect("a tensor without gaps")
}

/// Sets `vector` to the sum of `parts`, vectors of its length one after the other.
pub(crate) fn add_parts<E: Element>(vector: ArrayViewMut1<'_, E>, parts: &[f32]) {
    let length = vector.len();
    for (at, to) in vector.into_iter().enumerate() {
        *to = E::from_f32(parts.chunks_exact(length).map(|part| part[at]).sum());
    }
}

/// What step `t` reads and writes of tensors over all steps: the steps before it, and itself.
pub(crate) fn at_step<'a, E, const N: usize>(
    tensors: &'a mut [ArrayViewMut3<'_, E>; N],
    t: usize,
) -> ([ArrayViewMut3<'a, E>; N], [ArrayViewMut2<'a, E>; N]) {
    let mut parts = tensors.each_mut().map(|tensor| {
        let (done, rest) = tensor.view_mut().split_at(Axis(0), t);
        (done, Some(rest.index_axis_move(Axis(0), 0)))
    });
    let now = parts.each_mut().map(|(_, now)| now.take().expect("taken once"));
    (parts.map(|(done, _)| done), now)
}

/// The state that enters step `t` of a sequence, where `first` enters the first step, and `states`
/// are those that the steps leave.
pub(crate) fn state_before<'a, E>(
    t: usize,
    first: ArrayView2<'a, E>,
    states: ArrayView3<'a, E>,
) -> ArrayView2<'a, E> {
    t.checked_sub(1).map_or(first, |before| states.index_axis_move(Axis(0), before))
}

/// Length of the memory for `sums` sums over the rows of a matrix that is cut every `tile_rows`: each
/// row of tiles keeps its own.
pub(crate) fn sums_len(sums: usize, (rows, columns): (usize, usize), tile_rows: usize) -> usize {
    rows.div_ceil(tile_rows).saturating_mul(sums).saturating_mul(columns)
}

impl Tiling {
    /// Whether a matrix is a single tile, and cutting it can be left out.
    pub(crate) fn is_one_tile(self, (rows, columns): (usize, usize)) -> bool {
        rows <= self.rows && columns <= self.columns
    }

    /// The places of all tiles of a matrix, row by row. A matrix without elements has none, however
    /// many rows it has.
    pub(crate) fn places(self, (rows, columns): (usize, usize)) -> impl Iterator<Item = Place> {
        let rows = if columns == 0 { 0 } else { rows };
        let cuts = |n: usize, size: usize| {
            (0..n.div_ceil(size)).map(move |k| k * size..((k + 1).saturating_mul(size)).min(n))
        };
        cuts(rows, self.rows).flat_map(move |rows| {
            cuts(columns, self.columns).map(move |columns| Place { rows: rows.clone(), columns })
        })
    }

    /// The tiles of `matrix` with their places.
    pub(crate) fn tiles<T>(
        self,
        matrix: ArrayViewMut2<'_, T>,
    ) -> impl Iterator<Item = (Place, ArrayViewMut2<'_, T>)> {
        self.places(matrix.dim()).zip(self.split(matrix))
    }

    /// The tiles of matrices of one shape with their places.
    pub(crate) fn tiles_of<T, const N: usize>(
        self,
        matrices: [ArrayViewMut2<'_, T>; N],
    ) -> Vec<(Place, [ArrayViewMut2<'_, T>; N])> {
        let places = self.places(matrices[0].dim());
        let mut tiles = matrices.map(|matrix| self.split(matrix));
        let mut next =
            || tiles.each_mut().map(|tiles| tiles.next().expect("a tile for each place"));
        places.map(|place| (place, next())).collect()
    }

    /// The parts of the memory for `N` sums, `[N, rows of tiles, columns]`, in which each tile adds
    /// up, in the order of [`Tiling::places`]. There is at least one column.
    pub(crate) fn sums_of<const N: usize>(
        self,
        columns: usize,
        memory: &mut [f32],
    ) -> Vec<[&mut [f32]; N]> {
        let of_each = memory.len() / N;
        let tiles = of_each / columns * columns.div_ceil(self.columns);
        let mut sums = memory
            .chunks_exact_mut(of_each)
            .map(|sum| sum.chunks_exact_mut(columns).flat_map(|row| row.chunks_mut(self.columns)));
        let mut sums: [_; N] = std::array::from_fn(|_| sums.next().expect("as many sums"));
        let mut next = || sums.each_mut().map(|sum| sum.next().expect("a part for each tile"));
        (0..tiles).map(|_| next()).collect()
    }

    /// The tiles of `matrix` in the order of [`Tiling::places`].
    pub(crate) fn split<T>(
        self,
        matrix: ArrayViewMut2<'_, T>,
    ) -> impl Iterator<Item = ArrayViewMut2<'_, T>> {
        let rows = cut(matrix, Axis(0), self.rows);
        rows.flat_map(move |rows| cut(rows, Axis(1), self.columns))
    }
}

/// The parts of `matrix` along an axis, none if it is empty.
fn cut<T>(
    matrix: ArrayViewMut2<'_, T>,
    axis: Axis,
    size: usize,
) -> impl Iterator<Item = ArrayViewMut2<'_, T>> {
    let mut rest = Some(matrix).filter(|matrix| !matrix.is_empty());
    iter::from_fn(move || {
        let matrix = rest.take()?;
        if matrix.len_of(axis) <= size {
            return Some(matrix);
        }
        let (part, after) = matrix.split_at(axis, size);
        rest = Some(after);
        Some(part)
    })
}

/// One row of a matrix whose rows are contiguous.
#[inline(always)]
pub(crate) fn row<T>(matrix: ArrayView2<'_, T>, row: usize) -> &[T] {
    matrix.index_axis_move(Axis(0), row).to_slice().expect("rows are contiguous")
}

/// One row of a matrix whose rows are contiguous.
#[inline(always)]
pub(crate) fn row_mut<'a, T>(matrix: &'a mut ArrayViewMut2<'_, T>, row: usize) -> &'a mut [T] {
    matrix.row_mut(row).into_slice().expect("rows are contiguous")
}

#[cfg(test)]
mod tests;
