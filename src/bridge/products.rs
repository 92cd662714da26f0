//! The operations on lists of matrices: the products around a cell.

use blockcell_kernels::ops::PartialShape as Known;
use blockcell_kernels::{Context, Element, Error, Isa, mat_mul};
use bytemuck::Pod;
use half::f16;
use ndarray::{ArrayView, Dimension};

use super::ffi::{Input, Output, PartialShape, Pool, Shape, Slices, Status};
use super::status::guarded;
use super::tensors::{view, view_mut};
use super::{describe, partial};

fn context(pool: &Pool) -> Context<'_> {
    Context { isa: Isa::get(), executor: pool }
}

fn known(shapes: &[PartialShape<'_>]) -> Vec<Known> {
    shapes.iter().map(partial).collect()
}

fn views<'a, E: Pod, D: Dimension>(list: &[Input<'a>]) -> Vec<ArrayView<'a, E, D>> {
    list.iter().map(view).collect()
}

pub(super) fn mat_mul_add_n_shape(
    addends: &[PartialShape<'_>],
    a: &[PartialShape<'_>],
    b: &[PartialShape<'_>],
    sum: &mut Shape,
) -> Status {
    guarded(mat_mul::ADD_N, || {
        let dims = mat_mul::add_n_shape(&known(addends), &known(a), &known(b))?;
        describe(sum, dims.into_iter());
        Ok(())
    })
}

pub(super) fn mat_mul_add_n(
    half: bool,
    pool: &Pool,
    addends: &[Input<'_>],
    a: &[Input<'_>],
    b: &[Input<'_>],
    holds_addend: bool,
    sum: &mut Output<'_>,
) -> Status {
    fn run<E: Element + Pod>(
        pool: &Pool,
        [addends, a, b]: [&[Input<'_>]; 3],
        holds_addend: bool,
        sum: &mut Output<'_>,
    ) -> Result<(), Error> {
        let (addends, a, b) = (views::<E, _>(addends), views::<E, _>(a), views::<E, _>(b));
        let inputs = mat_mul::AddNInputs { addends: &addends, a: &a, b: &b };
        mat_mul::add_n(&context(pool), inputs, holds_addend, view_mut(sum))
    }
    let run = if half { run::<f16> } else { run::<f32> };
    guarded(mat_mul::ADD_N, || run(pool, [addends, a, b], holds_addend, sum))
}

fn columns(slices: &Slices<'_>) -> Vec<mat_mul::Part> {
    let parts = slices.begins.iter().zip(slices.sizes);
    parts.map(|(&begin, &size)| mat_mul::Part { begin, size }).collect()
}

pub(super) fn mat_mul_slice_shapes(
    a: &PartialShape<'_>,
    b: &PartialShape<'_>,
    slices: &Slices<'_>,
    parts: &mut [Shape],
) -> Status {
    guarded(mat_mul::SLICE, || {
        let columns = columns(slices);
        let shapes = mat_mul::slice_shapes(&partial(a), &partial(b), slices.rows, &columns)?;
        for (part, dims) in parts.iter_mut().zip(shapes) {
            describe(part, dims.into_iter());
        }
        Ok(())
    })
}

pub(super) fn mat_mul_slice(
    half: bool,
    pool: &Pool,
    a: &Input<'_>,
    b: &Input<'_>,
    slices: &Slices<'_>,
    parts: &mut [Output<'_>],
) -> Status {
    fn run<E: Element + Pod>(
        pool: &Pool,
        [a, b]: [&Input<'_>; 2],
        slices: &Slices<'_>,
        parts: &mut [Output<'_>],
    ) -> Result<(), Error> {
        let inputs = mat_mul::SliceInputs::<E> { a: view(a), b: view(b) };
        let parts = parts.iter_mut().map(view_mut).collect();
        mat_mul::slice(&context(pool), inputs, slices.rows, &columns(slices), parts)
    }
    let run = if half { run::<f16> } else { run::<f32> };
    guarded(mat_mul::SLICE, || run(pool, [a, b], slices, parts))
}

pub(super) fn bias_add_grad_add_n_shape(
    addends: &[PartialShape<'_>],
    out_backprop: &[PartialShape<'_>],
    sum: &mut Shape,
) -> Status {
    guarded(mat_mul::BIAS_ADD_GRAD_ADD_N, || {
        let dims = mat_mul::bias_add_grad_add_n_shape(&known(addends), &known(out_backprop))?;
        describe(sum, dims.into_iter());
        Ok(())
    })
}

pub(super) fn bias_add_grad_add_n(
    half: bool,
    pool: &Pool,
    addends: &[Input<'_>],
    out_backprop: &[Input<'_>],
    sum: &mut Output<'_>,
) -> Status {
    fn run<E: Element + Pod>(
        pool: &Pool,
        [addends, out_backprop]: [&[Input<'_>]; 2],
        sum: &mut Output<'_>,
    ) -> Result<(), Error> {
        let (addends, out_backprop) = (views::<E, _>(addends), views::<E, _>(out_backprop));
        let inputs = mat_mul::BiasInputs { addends: &addends, out_backprop: &out_backprop };
        mat_mul::bias_add_grad_add_n(&context(pool), inputs, view_mut(sum))
    }
    let run = if half { run::<f16> } else { run::<f32> };
    guarded(mat_mul::BIAS_ADD_GRAD_ADD_N, || run(pool, [addends, out_backprop], sum))
}
