//! `BlockcellMatMulSlice`: parts of a product with a transposed right factor.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2};

use crate::executor::for_each;
use crate::gemm::{self, Right};
use crate::ops::PartialShape;
use crate::shapes::{Dim, bind, check_layout, check_output, check_size, shape_of};
use crate::tiles::rows;
use crate::{Context, Element, Error, Storage};

/// The operation's name in TensorFlow.
pub const SLICE: &str = "BlockcellMatMulSlice";

/// Inputs of [`slice()`].
#[derive(Clone, Copy, Debug)]
pub struct SliceInputs<'a, E> {
    /// The left factor, `[k, n]`.
    pub a: ArrayView2<'a, E>,
    /// The transpose of the right factor, `[m, n]`.
    pub b: ArrayView2<'a, E>,
}

/// Which columns of the product a part has, as `tf.slice` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The first column.
    pub begin: i64,
    /// The number of columns; -1 for all that follow.
    pub size: i64,
}

/// `BlockcellMatMulSlice`: `parts[p] = (a @ b^T)[:rows, begin_p : begin_p + size_p]`.
///
/// `rows` is -1 for all rows. The shapes of `parts` are those of [`slice_shapes`], and their previous
/// contents do not matter.
///
/// # Errors
///
/// A tensor of the wrong shape or layout, or a part that is not inside the product; nothing is written
/// then.
pub fn slice<E: Element>(
    context: &Context<'_>,
    inputs: SliceInputs<'_, E>,
    rows: i64,
    columns: &[Part],
    parts: Vec<ArrayViewMut2<'_, E>>,
) -> Result<(), Error> {
    let SliceInputs { a, b } = &inputs;
    let shapes = slice_shapes(&shape_of(a), &shape_of(b), rows, columns)?;
    if parts.len() != shapes.len() {
        let (expected, got) = (shapes.len(), parts.len());
        return Err(Error::Count { op: SLICE, what: "outputs", expected, got });
    }
    check_layout(SLICE, "a", a)?;
    check_layout(SLICE, "b", b)?;
    for (p, (part, shape)) in parts.iter().zip(&shapes).enumerate() {
        check_output(SLICE, ("parts", p), part, shape)?;
        check_layout(SLICE, "parts", part)?;
    }
    let columns = columns.iter().map(|part| columns_of(part, b.nrows())).collect::<Vec<_>>();
    let parts = columns.into_iter().zip(parts).collect();
    E::mat_mul_slice(context, inputs, parts);
    Ok(())
}

/// The shapes of [`slice()`]'s results, as far as they follow from what is known of the inputs' shapes.
///
/// # Errors
///
/// [`Error::ListShape`] for a tensor of the wrong shape, [`Error::Slice`] for a part that is not inside
/// the product, [`Error::Overflow`] for a result that cannot be addressed.
pub fn slice_shapes(
    a: &PartialShape,
    b: &PartialShape,
    rows: i64,
    columns: &[Part],
) -> Result<Vec<[Option<usize>; 2]>, Error> {
    let (mut k, mut m, mut n) = (None, None, None);
    bind(SLICE, ("a", 0), a, &mut [Dim::new("k", &mut k), Dim::new("n", &mut n)])?;
    bind(SLICE, ("b", 0), b, &mut [Dim::new("m", &mut m), Dim::new("n", &mut n)])?;
    let height = length("rows", 0, rows, k)?;
    let shape = |part: &Part| {
        let width = length("columns", part.begin, part.size, m)?;
        check_size(SLICE, "parts", "[rows, size]", &[height, width])?;
        Ok([height, width])
    };
    columns.iter().map(shape).collect()
}

/// The length of `begin .. begin + size`, which must be inside of `0 .. dim`.
fn length(
    what: &'static str,
    begin: i64,
    size: i64,
    dim: Option<usize>,
) -> Result<Option<usize>, Error> {
    let refuse = || Error::Slice { op: SLICE, what, begin, size, dim };
    let first = usize::try_from(begin).map_err(|_| refuse())?;
    if size == -1 {
        return dim.map(|dim| dim.checked_sub(first).ok_or_else(refuse)).transpose();
    }
    let size = usize::try_from(size).map_err(|_| refuse())?;
    let end = first.checked_add(size).ok_or_else(refuse)?;
    if dim.is_some_and(|dim| end > dim) { Err(refuse()) } else { Ok(Some(size)) }
}

/// The columns of a part that was checked.
fn columns_of(part: &Part, m: usize) -> Range<usize> {
    let begin = usize::try_from(part.begin).expect("checked");
    begin..usize::try_from(part.size).map_or(m, |size| begin + size)
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    SliceInputs { a, b }: SliceInputs<'_, E>,
    parts: Vec<(Range<usize>, ArrayViewMut2<'_, E>)>,
) {
    let Context { isa, executor, .. } = *context;
    let depth = a.ncols();
    let mut tiles = Vec::new();
    let mut largest = 0;
    for (columns, out) in parts {
        let tiling = gemm::transposed_tiling(context, out.dim(), depth);
        largest = largest.max(gemm::cost(tiling, 1, depth));
        let right = rows(b, columns);
        tiles.extend(tiling.tiles(out).map(|(place, out)| (place, out, right)));
    }
    for_each(executor, largest, tiles, |(place, out, right)| {
        gemm::tile_at(isa, &place, |tile| {
            let left = place.rows_of(a);
            if E::IS_HALF {
                tile.add(left, Right::Transposed(right));
            } else {
                tile.add_nt(left, right);
            }
            tile.store(out);
        });
    });
}
