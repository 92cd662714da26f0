//! Weights that are the same in every call are packed in the first one. Results are the same bit for bit.

use std::fmt::Debug;

use crate::common::data::Sizes;
use crate::common::executors::executors;
use blockcell_kernels::block_lstm::{self, Variant};
use blockcell_kernels::lstm::Attributes;
use blockcell_kernels::ops::{self, Keeps};
use blockcell_kernels::{
    Constant, Constants, Context, Copies, Element, Error, Isa, Serial, block_gru,
};
use bytemuck::Pod;
use half::{bf16, f16};
use ndarray::{Array1, Array2, Array3, ArrayView1, s};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Rows by themselves and few, bands of rows, steps that are cut into columns, and too few steps to pack weights.
const SIZES: [Sizes; 8] = [
    Sizes::new(10, 1, 3, 200),
    Sizes::new(11, 4, 5, 70),
    Sizes::new(12, 0, 5, 7),
    Sizes::new(9, 23, 0, 97),
    Sizes::new(30, 18, 2, 210),
    Sizes::new(10, 3, 40, 300),
    Sizes::new(13, 40, 17, 33),
    Sizes::new(2, 5, 6, 7),
];

pub(crate) trait Number: Element + Pod + PartialEq + Debug {}

impl<E: Element + Pod + PartialEq + Debug> Number for E {}

/// A sequence of either kind, with weights that are constants or not.
pub(crate) struct Sequence<E> {
    is_lstm: bool,
    pub(crate) x: Array3<E>,
    pub(crate) state: Array2<E>,
    bias: Array1<E>,
    /// Of all gates; of a GRU those of the gates and those of the candidate.
    pub(crate) weights: Vec<Array2<E>>,
}

impl<E: Number> Sequence<E> {
    pub(crate) fn new(is_lstm: bool, sizes: Sizes, number: fn(f64) -> E) -> Self {
        let Sizes { time, batch, input_size, cell_size } = sizes;
        let mut rng = SmallRng::seed_from_u64(7);
        let mut next = || number(rng.random_range(-0.5..0.5));
        let gates: &[usize] = if is_lstm { &[4] } else { &[2, 1] };
        let shape = |gates: &usize| (input_size + cell_size, gates * cell_size);
        Sequence {
            is_lstm,
            x: Array3::from_shape_simple_fn((time, batch, input_size), &mut next),
            state: Array2::from_shape_simple_fn((batch, cell_size), &mut next),
            bias: Array1::from_shape_simple_fn(4 * cell_size, &mut next),
            weights: gates
                .iter()
                .map(|gates| Array2::from_shape_simple_fn(shape(gates), &mut next))
                .collect(),
        }
    }

    /// h of all steps.
    pub(crate) fn h(&self, context: &Context<'_>) -> Array3<E> {
        let ((time, batch, input_size), cell_size) = (self.x.dim(), self.state.ncols());
        let sizes = ops::Sizes { time, batch, input_size, cell_size, ..ops::Sizes::default() };
        let mut outputs =
            std::array::from_fn(|_| Array3::from_elem((time, batch, cell_size), E::zeroed()));
        let ran = if self.is_lstm {
            self.run_lstm(context, &sizes, &mut outputs)
        } else {
            self.run_gru(context, &sizes, &mut outputs)
        };
        ran.expect("a right call");
        let [h, ..] = outputs;
        h
    }

    fn run_lstm(
        &self,
        context: &Context<'_>,
        sizes: &ops::Sizes,
        outputs: &mut [Array3<E>; 7],
    ) -> Result<(), Error> {
        let inputs = block_lstm::Inputs {
            seq_len_max: sizes.time,
            x: self.x.view(),
            cs_prev: self.state.view(),
            h_prev: self.state.view(),
            w: self.weights[0].view(),
            wci: self.vector(sizes.cell_size),
            wcf: self.vector(sizes.cell_size),
            wco: self.vector(sizes.cell_size),
            b: self.vector(4 * sizes.cell_size),
        };
        let [h, i, cs, f, o, ci, co] = outputs.each_mut().map(|output| output.view_mut());
        let outputs = block_lstm::Outputs { i, cs, f, o, ci, co, h };
        let attributes = Attributes { use_peephole: false, forget_bias: 1.0, cell_clip: 0.0 };
        let mut scratch = vec![f32::NAN; block_lstm::forward_scratch(sizes)];
        let (variant, keeps) = (Variant::BlockLstm, Keeps::All);
        block_lstm::forward(context, variant, &attributes, inputs, outputs, keeps, &mut scratch)
    }

    fn run_gru(
        &self,
        context: &Context<'_>,
        sizes: &ops::Sizes,
        outputs: &mut [Array3<E>; 7],
    ) -> Result<(), Error> {
        let lengths = Array1::from_elem(sizes.batch, sizes.time as i64);
        let inputs = block_gru::Inputs {
            sequence_length: lengths.view(),
            x: self.x.view(),
            h_prev: self.state.view(),
            w_ru: self.weights[0].view(),
            w_c: self.weights[1].view(),
            b_ru: self.vector(2 * sizes.cell_size),
            b_c: self.vector(sizes.cell_size),
            b_hc: self.vector(sizes.cell_size),
        };
        let mut last = self.state.clone();
        let [h, r, u, c, hc, ..] = outputs.each_mut().map(|output| output.view_mut());
        let outputs = block_gru::Outputs { r, u, c, hc, h, h_last: last.view_mut() };
        let mut scratch = vec![f32::NAN; block_gru::forward_scratch(sizes)];
        let attributes = block_gru::Attributes { reset_after: true, ..Default::default() };
        block_gru::forward(context, attributes, inputs, outputs, Keeps::All, &mut scratch)
    }

    fn vector(&self, len: usize) -> ArrayView1<'_, E> {
        self.bias.slice(s![..len])
    }

    /// The same, where the weights are constants.
    pub(crate) fn h_of_constants(&self, context: &Context<'_>, copies: &[Copies; 2]) -> Array3<E> {
        let constants = self.weights.iter().zip(copies).map(|(weights, copies)| {
            let elements = weights.as_slice().expect("a matrix without gaps");
            Constant { bytes: bytemuck::cast_slice(elements), copies }
        });
        let constants: Vec<_> = constants.collect();
        self.h(&Context { constants: Constants(&constants), ..*context })
    }
}

/// The first calls pack, and others find the copies, whatever the threads and the batch.
fn check<E: Number>(number: fn(f64) -> E) {
    for sizes in SIZES {
        for is_lstm in [true, false] {
            let mut sequence = Sequence::new(is_lstm, sizes, number);
            let copies = Default::default();
            for isa in Isa::available() {
                for batch in [sizes.batch, 1, 2, 7, 30, sizes.batch] {
                    let resized = Sequence::new(is_lstm, Sizes { batch, ..sizes }, number);
                    sequence.x = resized.x;
                    sequence.state = resized.state;
                    let want = sequence.h(&Context::new(isa, &Serial));
                    for (name, executor) in executors() {
                        let context = Context::new(isa, &**executor);
                        let got = sequence.h_of_constants(&context, &copies);
                        assert_eq!(got, want, "{sizes:?}, batch {batch}, {}, {name}", isa.name());
                    }
                }
            }
        }
    }
}

#[test]
fn results_are_the_same() {
    check(|number| number as f32);
}

#[test]
fn results_are_the_same_in_half() {
    check(f16::from_f64);
}

#[test]
fn results_are_the_same_in_bfloat16() {
    check(bf16::from_f64);
}

/// Weights that change although they are said to be constants show that their copies are used.
#[test]
fn copies_are_kept() {
    let sizes = [Sizes::new(10, 1, 3, 200), Sizes::new(30, 18, 2, 210), Sizes::new(13, 40, 17, 33)];
    for sizes in sizes {
        for is_lstm in [true, false] {
            let mut sequence = Sequence::new(is_lstm, sizes, |number| number as f32);
            let (context, copies) = (Context::default(), Default::default());
            let want = sequence.h_of_constants(&context, &copies);
            sequence.weights.iter_mut().for_each(|weights| weights.fill(0.1));
            assert_eq!(sequence.h_of_constants(&context, &copies), want, "{sizes:?}");
            assert_ne!(sequence.h(&context), want, "{sizes:?}");
        }
    }
}
