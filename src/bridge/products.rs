//! The operations on the products around a cell: lists of matrices.

use std::marker::PhantomData;

use blockcell_kernels::mat_mul::{self, AddNInputs, BiasInputs, Part, SliceInputs};
use blockcell_kernels::ops::PartialShape as Known;
use blockcell_kernels::{Element, Error};
use bytemuck::Pod;

use super::attributes::Attributes;
use super::kernels::{Call, Operation};
use super::lists::{Lists, ListsOp, lists, views};
use super::own_ops::Shapes;
use super::tensors::{view, view_mut};

/// All of them.
pub(super) const ALL: [&dyn Operation; 3] = [
    &ListsOp::<AddN>(PhantomData),
    &ListsOp::<Slice>(PhantomData),
    &ListsOp::<BiasAddGradAddN>(PhantomData),
];

/// `BlockcellMatMulAddN`: the lists `a`, `b` and `addends`. The first addend's memory may become that
/// of the sum.
pub(super) struct AddN {
    a: usize,
    b: usize,
    addends: usize,
}

impl Lists for AddN {
    const NAME: &'static str = mat_mul::ADD_N;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let [a, b, addends] = ["M", "N", "A"].map(|name| attributes.count(name));
        Ok(AddN { a: a?, b: b?, addends: addends? })
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        let ([a, b], addends) = lists(inputs, [self.a, self.b]);
        Ok(vec![mat_mul::add_n_shape(addends, a, b)?.into()])
    }

    fn forward_input(&self) -> Option<usize> {
        (self.addends > 0).then_some(self.a + self.b)
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let ([a, b], addends) = lists(call.inputs, [self.a, self.b]);
        let addends = views::<E, _>(&addends[usize::from(call.forwarded)..]);
        let inputs = AddNInputs { addends: &addends, a: &views(a), b: &views(b) };
        mat_mul::add_n(call.context, inputs, call.forwarded, view_mut(&mut call.outputs[0]))
    }
}

/// `BlockcellMatMulSlice`: the matrices `a` and `b`.
pub(super) struct Slice {
    rows: i64,
    parts: Vec<Part>,
}

impl Lists for Slice {
    const NAME: &'static str = mat_mul::SLICE;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let parts = attributes.count("P")?;
        let [begins, sizes] = ["begins", "sizes"].map(|name| attributes.numbers(name));
        let (begins, sizes) = (begins?, sizes?);
        if [begins.len(), sizes.len()] != [parts; 2] {
            let expected = format!("begins and sizes must have P = {parts} numbers each");
            let got = format!("{} and {}", begins.len(), sizes.len());
            return Err(Error::Attribute { op: Self::NAME, expected, got });
        }
        let parts = begins.into_iter().zip(sizes);
        let parts = parts.map(|(begin, size)| Part { begin, size }).collect();
        Ok(Slice { rows: attributes.number("rows")?, parts })
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        let shapes = mat_mul::slice_shapes(&inputs[0], &inputs[1], self.rows, &self.parts)?;
        Ok(shapes.into_iter().map(Vec::from).collect())
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let inputs = SliceInputs::<E> { a: view(&call.inputs[0]), b: view(&call.inputs[1]) };
        let parts = call.outputs.iter_mut().map(view_mut).collect();
        mat_mul::slice(call.context, inputs, self.rows, &self.parts, parts)
    }
}

/// `BlockcellBiasAddGradAddN`: the lists `out_backprop` and `addends`.
pub(super) struct BiasAddGradAddN {
    out_backprop: usize,
}

impl Lists for BiasAddGradAddN {
    const NAME: &'static str = mat_mul::BIAS_ADD_GRAD_ADD_N;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        Ok(BiasAddGradAddN { out_backprop: attributes.count("N")? })
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        let ([out_backprop], addends) = lists(inputs, [self.out_backprop]);
        Ok(vec![mat_mul::bias_add_grad_add_n_shape(addends, out_backprop)?.into()])
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let ([out_backprop], addends) = lists(call.inputs, [self.out_backprop]);
        let inputs =
            BiasInputs::<E> { addends: &views(addends), out_backprop: &views(out_backprop) };
        mat_mul::bias_add_grad_add_n(call.context, inputs, view_mut(&mut call.outputs[0]))
    }
}
