//! The operations on lists of matrices: the products around a cell.
//!
//! TensorFlow passes the tensors of all lists one after the other. Attributes of the node tell how many
//! each list has.

use std::marker::PhantomData;

use blockcell_kernels::mat_mul::{self, AddNInputs, BiasInputs, Part, SliceInputs};
use blockcell_kernels::ops::PartialShape as Known;
use blockcell_kernels::{Element, Error};
use bytemuck::Pod;
use half::f16;
use ndarray::{ArrayView, Dimension};

use super::attributes::Attributes;
use super::ffi::{Input, Plan, Shape};
use super::kernels::{Call, Node, Operation, describe};
use super::own_ops::Shapes;
use super::tensors::{view, view_mut};

/// All of them.
pub(super) const ALL: [&dyn Operation; 3] = [
    &ProductsOp::<AddN>(PhantomData),
    &ProductsOp::<Slice>(PhantomData),
    &ProductsOp::<BiasAddGradAddN>(PhantomData),
];

/// One of these operations, as the attributes of its node say.
pub(super) trait Products: Send + Sync + Sized + 'static {
    /// The operation's name in TensorFlow.
    const NAME: &'static str;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error>;

    /// Checks what is known of the inputs' shapes, and tells what follows for those of the outputs.
    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error>;

    /// The input whose memory may become that of the output.
    fn forward_input(&self) -> Option<usize> {
        None
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error>;
}

struct ProductsOp<P>(PhantomData<P>);

impl<P: Products> Operation for ProductsOp<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn node(&'static self, attributes: Attributes<'_>) -> Result<Box<dyn Node>, Error> {
        let (products, is_half) = (P::read(attributes)?, attributes.is_half()?);
        Ok(Box::new(ProductsNode { products, is_half }))
    }
}

struct ProductsNode<P> {
    products: P,
    is_half: bool,
}

impl<P: Products> Node for ProductsNode<P> {
    fn plan(&self, inputs: &[Input<'_>], outputs: &mut [Shape]) -> Result<Plan, Error> {
        let dims = |input: &Input<'_>| Some(input.dims.iter().copied().map(Some).collect());
        let shapes = self.products.shapes(&inputs.iter().map(dims).collect::<Vec<_>>())?;
        for (output, dims) in outputs.iter_mut().zip(shapes) {
            describe(output, dims.into_iter());
        }
        let forward_input = self.products.forward_input();
        let forward_input = forward_input.and_then(|n| i32::try_from(n).ok()).unwrap_or(-1);
        Ok(Plan { scratch: 0, forward_input })
    }

    fn compute(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        if self.is_half { self.products.run::<f16>(call) } else { self.products.run::<f32>(call) }
    }
}

/// Cuts a call's inputs into its lists: `lengths` of all but the last one.
fn lists<T, const N: usize>(mut inputs: &[T], lengths: [usize; N]) -> ([&[T]; N], &[T]) {
    let lists = lengths.map(|length| {
        let (list, rest) = inputs.split_at(length);
        inputs = rest;
        list
    });
    (lists, inputs)
}

fn views<'a, E: Pod, D: Dimension>(list: &[Input<'a>]) -> Vec<ArrayView<'a, E, D>> {
    list.iter().map(view).collect()
}

/// `BlockcellMatMulAddN`: the lists `a`, `b` and `addends`. The first addend's memory may become that
/// of the sum.
pub(super) struct AddN {
    a: usize,
    b: usize,
    addends: usize,
}

impl Products for AddN {
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

impl Products for Slice {
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

impl Products for BiasAddGradAddN {
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
