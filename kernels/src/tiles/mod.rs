//! Cutting matrices into tiles that separate tasks may write.

use std::iter;
use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis, ShapeBuilder, Slice};

/// Sizes of a tile. How many columns it has may depend on the number of threads. Where sums over rows are kept for
/// each tile, its rows depend on the shape of the work alone.
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
}

/// `vector`, without gaps, as every row of a matrix.
pub(crate) fn every_row<T>(vector: ArrayView1<'_, T>, rows: usize) -> ArrayView2<'_, T> {
    let row = vector.to_slice().expect("a vector without gaps");
    let shape = (rows, row.len()).strides((0, 1));
    ArrayView2::from_shape(shape, row).expect("one row again and again")
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

/// A range in parts of `size`; the last one may be smaller.
pub(crate) fn parts(
    range: Range<usize>,
    size: usize,
) -> impl DoubleEndedIterator<Item = Range<usize>> + Clone {
    let end = range.end;
    range.step_by(size).map(move |start| start..end.min(start.saturating_add(size)))
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
        parts(0..rows, self.rows).flat_map(move |rows| {
            parts(0..columns, self.columns)
                .map(move |columns| Place { rows: rows.clone(), columns })
        })
    }

    /// The tiles of `matrix` with their places.
    pub(crate) fn tiles<T>(
        self,
        matrix: ArrayViewMut2<'_, T>,
    ) -> impl Iterator<Item = (Place, ArrayViewMut2<'_, T>)> {
        self.places(matrix.dim()).zip(self.split(matrix))
    }

    /// The tiles of matrices of one shape, in the order of [`Tiling::places`], of which there are no more.
    pub(crate) fn split_each<'m, T, const N: usize>(
        self,
        matrices: [ArrayViewMut2<'m, T>; N],
    ) -> impl Iterator<Item = [ArrayViewMut2<'m, T>; N]> {
        let mut tiles = matrices.map(|matrix| self.split(matrix));
        iter::repeat_with(move || {
            tiles.each_mut().map(|tiles| tiles.next().expect("a tile for each place"))
        })
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
