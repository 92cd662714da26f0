//! The engine of all recurrences: runs a cell over the steps of a sequence, forward ([`forward()`]) and backward
//! ([`backward()`]).
//!
//! A [`Cell`] says what a step computes, and a [`CellGrad`] what its gradient is. A step is one or more phases
//! ([`Phase`]): products of a left factor with the weights of some gates ([`Product`]), and the equation that completes
//! them while they are in cache. All else is here: which rows have a step ([`Lengths`]), what enters it, whether weights
//! are packed, which rows and cells a thread computes, and the products of all steps with the weights of x.

mod backward;
mod bands;
mod few_rows;
mod forward;
mod gradients;
mod input;
mod lengths;
mod phase;
mod product;
mod steps;
mod sums;

pub(crate) use backward::{Backward, CellGrad, D_STEPS, GradStep, backward, backward_scratch};
pub(crate) use few_rows::RowStep;
pub(crate) use forward::{Cell, Outputs, Sequence, Step, forward, products_len};
pub(crate) use gradients::{
    Inputs, Left, WeightGradient, input_gradient, split_rows, weight_gradients,
};
pub(crate) use lengths::{Lengths, Rows};
pub(crate) use phase::Phase;
pub(crate) use product::{Input, Known, Product, Products, Sum, copy_padded};
pub(crate) use steps::{all_rows, all_rows_mut, last_states, state_before};
pub(crate) use sums::{ColumnSums, sums_len};

use crate::Context;

/// A step, and what it runs on.
#[derive(Clone, Copy)]
pub(crate) struct At<'s> {
    pub(crate) context: &'s Context<'s>,
    pub(crate) rows: Rows<'s>,
}

impl<'s> At<'s> {
    /// The only step of an operation that has one.
    pub(crate) fn only_step(context: &'s Context<'s>) -> Self {
        At { context, rows: Rows { lengths: Lengths::Same(1), t: 0 } }
    }
}
