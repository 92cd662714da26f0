//! `BlockcellBiasAddGradAddN`: a sum over the rows of several matrices.

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, Axis};

use crate::executor::for_each;
use crate::ops::{BIAS_ADD_GRAD_ADD_N, Inferred, KnownSizes, Lists, PartialShape};
use crate::shapes::{Dim, bind};
use crate::simd::{Simd, WithSimd};
use crate::tiles::row;
use crate::{Context, Element, Error, Storage};

pub use crate::ops::products::{BiasInputs, BiasOutputs};

/// `BlockcellBiasAddGradAddN`, as defined by [`BIAS_ADD_GRAD_ADD_N`].
///
/// # Errors
///
/// If a tensor has the wrong shape or layout. Nothing is written then.
pub fn bias_add_grad_add_n<E: Element>(
    context: &Context<'_>,
    inputs: BiasInputs<'_, E>,
    outputs: BiasOutputs<'_, E>,
) -> Result<(), Error> {
    BIAS_ADD_GRAD_ADD_N.check_lists(&inputs, &outputs, bias_add_grad_add_n_shapes)?;
    E::bias_add_grad_add_n(context, inputs, outputs);
    Ok(())
}

/// The shape of [`bias_add_grad_add_n`]'s result, as far as it follows from the known parts of the inputs' shapes.
///
/// # Errors
///
/// [`Error::Shape`] for the first tensor that does not match those before it, [`Error::Overflow`] for a result that
/// cannot be addressed.
pub fn bias_add_grad_add_n_shapes(inputs: &Lists<'_, PartialShape>) -> Result<Inferred, Error> {
    let op = &BIAS_ADD_GRAD_ADD_N;
    let (addends, out_backprop) = (inputs.of("addends"), inputs.of("out_backprop"));
    if addends.is_empty() && out_backprop.is_empty() {
        return Err(Error::Count { op: op.name, what: "summands", expected: 1, got: 0 });
    }
    let mut n = None;
    for (i, matrix) in out_backprop.iter().enumerate() {
        let mut k = None;
        let dims = &mut [Dim::indexed("k", i, &mut k), Dim::new("n", &mut n)];
        bind(op, ("out_backprop", Some(i)), matrix, dims)?;
    }
    for (i, vector) in addends.iter().enumerate() {
        bind(op, ("addends", Some(i)), vector, &mut [Dim::new("n", &mut n)])?;
    }
    op.check_size("sum", "[n]", &[n])?;
    Ok(Inferred { sizes: KnownSizes::default(), outputs: vec![vec![n]] })
}

/// Columns of a task.
const COLUMNS: usize = 256;

/// Rows that are summed by themselves before they are added to the total: the rounding error grows with
/// this and the number of such groups, not with all rows.
const ROWS: usize = 64;

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    BiasInputs { addends, out_backprop }: BiasInputs<'_, E>,
    BiasOutputs { mut sum }: BiasOutputs<'_, E>,
) {
    let Context { isa, executor, .. } = *context;
    // Matrices without columns may have any number of rows.
    let rows = out_backprop.iter().map(ArrayView2::nrows).fold(0, usize::saturating_add);
    let tasks = sum.axis_chunks_iter_mut(Axis(0), COLUMNS).enumerate().collect();
    for_each(
        executor,
        rows.saturating_mul(COLUMNS / 4) as u64,
        tasks,
        |(n, sum): (usize, ArrayViewMut1<'_, E>)| {
            let (addends, out_backprop) = (&addends[..], &out_backprop[..]);
            isa.run(SumRows { addends, out_backprop, first: n * COLUMNS, sum });
        },
    );
}

/// The sums of some columns, from `first` on: at most [`COLUMNS`].
struct SumRows<'a, 'o, E> {
    addends: &'a [ArrayView1<'a, E>],
    out_backprop: &'a [ArrayView2<'a, E>],
    first: usize,
    sum: ArrayViewMut1<'o, E>,
}

impl<E: Storage> WithSimd for SumRows<'_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let SumRows { addends, out_backprop, first, mut sum } = self;
        let columns = first..first + sum.len();
        let mut total = [0.0; COLUMNS];
        let mut partial = [0.0; COLUMNS];
        let (total, partial) = (&mut total[..columns.len()], &mut partial[..columns.len()]);
        for matrix in out_backprop {
            for group in (0..matrix.nrows()).step_by(ROWS) {
                partial.fill(0.0);
                for at in group..matrix.nrows().min(group + ROWS) {
                    add::<S, E>(simd, &row(*matrix, at)[columns.clone()], partial);
                }
                add::<S, f32>(simd, partial, total);
            }
        }
        for addend in addends {
            let addend = addend.to_slice().expect("a vector without gaps");
            add::<S, E>(simd, &addend[columns.clone()], total);
        }
        let sum = sum.as_slice_mut().expect("a vector without gaps");
        for (from, to) in total.chunks(S::LANES).zip(sum.chunks_mut(S::LANES)) {
            E::store(simd, simd.load(from), to);
        }
    }
}

/// `sums += from`
#[inline(always)]
fn add<S: Simd, E: Storage>(simd: S, from: &[E], sums: &mut [f32]) {
    for (from, sums) in from.chunks(S::LANES).zip(sums.chunks_mut(S::LANES)) {
        simd.store(simd.load(sums) + E::load(simd, from), sums);
    }
}
