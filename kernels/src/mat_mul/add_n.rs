//! `BlockcellMatMulAddN`: a sum of products with transposed left factors.

use ndarray::{ArrayView2, Axis};

use crate::executor::for_each;
use crate::gemm::{self, LeftLayout};
use crate::ops::{Inferred, KnownSizes, Lists, MAT_MUL_ADD_N, PartialShape};
use crate::shapes::{Dim, bind};
use crate::tiles::{Place, columns};
use crate::{Context, Element, Error, Storage};

pub use crate::ops::products::{AddNInputs, AddNOutputs};

/// `BlockcellMatMulAddN`, as defined by [`MAT_MUL_ADD_N`].
///
/// With `holds_addend`, `sum` contains another term, to which the others are added. Otherwise its previous contents do
/// not matter.
///
/// # Errors
///
/// If a tensor has the wrong shape or layout, or if the numbers of tensors do not match. Nothing is written then.
pub fn add_n<E: Element>(
    context: &Context<'_>,
    inputs: AddNInputs<'_, E>,
    holds_addend: bool,
    outputs: AddNOutputs<'_, E>,
) -> Result<(), Error> {
    MAT_MUL_ADD_N.check_lists(&inputs, &outputs, add_n_shapes)?;
    E::mat_mul_add_n(context, inputs, holds_addend, outputs);
    Ok(())
}

/// The shape of [`add_n`]'s result, as far as it follows from the known parts of the inputs' shapes.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match those before it, [`Error::Count`] for numbers of tensors
/// that do not match, [`Error::Overflow`] for a result that cannot be addressed.
pub fn add_n_shapes(inputs: &Lists<'_, PartialShape>) -> Result<Inferred, Error> {
    let op = &MAT_MUL_ADD_N;
    let [a, b, addends] = ["a", "b", "addends"].map(|name| inputs.of(name));
    if a.is_empty() != b.is_empty() || !a.len().is_multiple_of(b.len()) {
        let expected = b.len() * a.len().div_ceil(b.len().max(1)).max(1);
        let (op, what, got) = (op.name, "matrices in a", a.len());
        return Err(Error::Count { op, what, expected, got });
    }
    if addends.is_empty() && b.is_empty() {
        return Err(Error::Count { op: op.name, what: "summands", expected: 1, got: 0 });
    }
    let parts = parts(a, b);
    let mut widths = vec![None; parts];
    let mut n = None;
    for (i, (b, a)) in b.iter().zip(a.chunks_exact(parts.max(1))).enumerate() {
        let mut k = None;
        bind(op, ("b", Some(i)), b, &mut [Dim::indexed("k", i, &mut k), Dim::new("n", &mut n)])?;
        for (p, (a, width)) in a.iter().zip(&mut widths).enumerate() {
            let dims = &mut [Dim::indexed("k", i, &mut k), Dim::indexed("m", p, width)];
            bind(op, ("a", Some(i * parts + p)), a, dims)?;
        }
    }
    // A sum of sizes that overflows cannot be addressed either.
    let total = |sum: Option<usize>, width: &Option<usize>| Some(sum?.saturating_add((*width)?));
    let mut m = if b.is_empty() { None } else { widths.iter().fold(Some(0), total) };
    for (i, addend) in addends.iter().enumerate() {
        let dims = &mut [Dim::new("m", &mut m), Dim::new("n", &mut n)];
        bind(op, ("addends", Some(i)), addend, dims)?;
    }
    op.check_size("sum", "[m, n]", &[m, n])?;
    Ok(Inferred { sizes: KnownSizes::default(), outputs: vec![vec![m, n]] })
}

/// How many left factors stand side by side in each product.
fn parts<A, B>(a: &[A], b: &[B]) -> usize {
    a.len().checked_div(b.len()).unwrap_or(0)
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    inputs: AddNInputs<'_, E>,
    holds_addend: bool,
    AddNOutputs { sum }: AddNOutputs<'_, E>,
) {
    let AddNInputs { addends, a, b } = inputs;
    let parts = parts(&a, &b);
    let Context { isa, executor, .. } = *context;
    let mut tiles = Vec::new();
    let (mut largest, mut first_row, mut rest) = (0, 0, sum);
    // Without products, all rows are a part without factors.
    let widths = if parts == 0 {
        vec![rest.nrows()]
    } else {
        a[..parts].iter().map(ArrayView2::ncols).collect()
    };
    // Matrices without columns may have any number of rows.
    let depth = b.iter().map(ArrayView2::nrows).fold(0, usize::saturating_add);
    for (part, width) in widths.into_iter().enumerate() {
        let (sum, after) = rest.split_at(Axis(0), width);
        let tiling = gemm::product_tiling(LeftLayout::Transposed, sum.dim(), executor.threads());
        largest = largest.max(gemm::cost(tiling, 1, depth));
        tiles.extend(tiling.tiles(sum).map(|(place, sum)| (part, first_row, place, sum)));
        (first_row, rest) = (first_row + width, after);
    }
    for_each(executor, largest, tiles, |(part, first_row, place, sum)| {
        gemm::tile_at(isa, &place, |tile| {
            let left = a.iter().skip(part).step_by(parts.max(1));
            tile.add_stacked(left.map(|&a| columns(a, place.rows.clone())).zip(b.iter().copied()));
            let rows = first_row + place.rows.start..first_row + place.rows.end;
            let in_sum = Place { rows, columns: place.columns.clone() };
            addends.iter().for_each(|&addend| tile.add_matrix(in_sum.of(addend)));
            if holds_addend { tile.add_to(sum) } else { tile.store(sum) }
        });
    });
}
