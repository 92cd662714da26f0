//! `BlockcellMatMulSlice`: parts of a product with a transposed right factor.

use std::ops::Range;

use ndarray::ArrayViewMut2;

use crate::executor::for_each;
use crate::gemm::{self, Right};
use crate::ops::{Inferred, KnownSizes, Lists, MAT_MUL_SLICE, PartialShape};
use crate::shapes::{Dim, bind};
use crate::tiles::rows;
use crate::{Context, Element, Error, Storage};

pub use crate::ops::products::{SliceInputs, SliceOutputs};

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
    outputs: SliceOutputs<'_, E>,
) -> Result<(), Error> {
    let (op, expected, got) = (&MAT_MUL_SLICE, columns.len(), outputs.parts.len());
    op.check_count("outputs", expected, got)?;
    op.check_lists(&inputs, &outputs, |shapes| slice_shapes(rows, columns, shapes))?;
    let columns = columns.iter().map(|part| columns_of(part, inputs.b.nrows()));
    let parts = columns.zip(outputs.parts).collect();
    E::mat_mul_slice(context, inputs, parts);
    Ok(())
}

/// The shapes of [`slice()`]'s results, as far as they follow from what is known of the inputs' shapes.
///
/// # Errors
///
/// [`Error::Shape`] for a tensor of the wrong shape, [`Error::Slice`] for a part that is not inside
/// the product, [`Error::Overflow`] for a result that cannot be addressed.
pub fn slice_shapes(
    rows: i64,
    columns: &[Part],
    inputs: &Lists<'_, PartialShape>,
) -> Result<Inferred, Error> {
    let op = &MAT_MUL_SLICE;
    let (mut k, mut m, mut n) = (None, None, None);
    let (a, b) = (inputs.one("a"), inputs.one("b"));
    bind(op, ("a", None), a, &mut [Dim::new("k", &mut k), Dim::new("n", &mut n)])?;
    bind(op, ("b", None), b, &mut [Dim::new("m", &mut m), Dim::new("n", &mut n)])?;
    let height = length("rows", 0, rows, k)?;
    let shape = |part: &Part| {
        let width = length("columns", part.begin, part.size, m)?;
        op.check_size("parts", "[rows, size]", &[height, width])?;
        Ok(vec![height, width])
    };
    let outputs = columns.iter().map(shape).collect::<Result<_, Error>>()?;
    Ok(Inferred { sizes: KnownSizes::default(), outputs })
}

/// The length of `begin .. begin + size`, which must be inside of `0 .. dim`.
fn length(
    what: &'static str,
    begin: i64,
    size: i64,
    dim: Option<usize>,
) -> Result<Option<usize>, Error> {
    let refuse = || Error::Slice { op: MAT_MUL_SLICE.name, what, begin, size, dim };
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
            if E::IS_16_BIT {
                tile.add(left, Right::Transposed(right));
            } else {
                tile.add_nt(left, right);
            }
            tile.store(out);
        });
    });
}
