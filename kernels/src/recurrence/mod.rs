//! The engine of all recurrences: runs a cell over the steps of a sequence, forward ([`forward()`]) and backward
//! ([`backward()`]).
//!
//! A [`StepCell`] says what a step computes, tile by tile ([`TiledCell`]) or, for few rows, group by group of cells
//! ([`GroupedCell`]), and a [`CellGrad`] what its gradient is. A step is one or more phases ([`Phase`]): products of a
//! left factor with the weights of some gates ([`Product`]), and the equation that completes them while they are in
//! cache. All else is here: which rows have a step ([`Lengths`]), what enters it, whether weights are packed, which
//! rows and cells a thread computes, and the products of all steps with the weights of x.

mod backward;
mod bands;
mod cell;
mod few_rows;
mod forward;
mod gradients;
mod grouped;
mod input;
mod lengths;
mod phase;
mod product;
mod steps;
mod sums;

pub(crate) use backward::{
    Backward, CellGrad, D_STEPS, GradStep, StepsLeft, backward, backward_scratch,
};
pub(crate) use cell::{Step, StepCell, TiledCell};
pub(crate) use few_rows::{GroupedCell, RowStep, forward_in_groups};
pub(crate) use forward::{Outputs, Sequence, forward, products_len};
pub(crate) use gradients::{
    Inputs, Left, WeightGradient, input_gradient, split_rows, weight_gradients,
};
pub(crate) use grouped::{GroupedProduct, Grouping, copy_padded};
pub(crate) use lengths::{At, Lengths, Rows};
pub(crate) use phase::Phase;
pub(crate) use product::{Input, Product, Products, Sum};
pub(crate) use steps::{all_rows, clear_from, last_states, state_before};
pub(crate) use sums::{ColumnSums, sums_len};
