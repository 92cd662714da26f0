//! `BlockGRU`.

use std::ops::Range;
use std::slice;

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut3, Axis};

use super::Attributes;
use crate::gemm::{self, StepShape, weights_len};
use crate::gru::step::{GroupedGru, Gru, GruOrder, GruStep};
use crate::ops::{BLOCK_GRU, Keeps, Sizes};
use crate::recurrence::{
    self, GroupedProduct, Grouping, Lengths, Product, last_states, products_len,
};
use crate::{Context, Element, Error, Storage};

pub use crate::ops::block_gru::{Inputs, Outputs};

/// `BlockGRU`: the forward steps, as defined by [`BLOCK_GRU`].
///
/// `keeps` says whether outputs without a consumer may have memory for one step only.
///
/// `scratch` is memory for intermediate values, with at least [`forward_scratch`] elements. Its contents are
/// unspecified before and after the call.
///
/// # Errors
///
/// If a tensor has the wrong shape or layout; for a number in `sequence_length` that is negative or above `time`; or
/// if `scratch` is too short. Nothing is written then.
pub fn forward<E: Element>(
    context: &Context<'_>,
    attributes: Attributes,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    keeps: Keeps,
    scratch: &mut [f32],
) -> Result<(), Error> {
    let op = &BLOCK_GRU;
    let sizes = op.check_call(attributes.reset_after, &inputs, &outputs, keeps)?;
    op.check_steps(&sizes, inputs.sequence_length.iter().map(|&steps| steps.into()))?;
    let scratch = op.check_scratch(forward_scratch(&sizes), scratch)?;
    E::block_gru(context, sizes, attributes, inputs, outputs, scratch);
    Ok(())
}

/// The number of elements of scratch memory that [`forward`] needs; `usize::MAX` on overflow.
#[must_use]
pub fn forward_scratch(sizes: &Sizes) -> usize {
    let cells = sizes.cell_size;
    weights_len(cells, 3, cells).saturating_add(products_len(sizes, 3))
}

/// Weights of x or of the state, which may lie in memory as their transposes.
#[derive(Clone, Copy)]
pub(crate) enum GruWeights<'a, E> {
    /// `[depth, 2 * cell_size]` and `[depth, cell_size]`: those of the gates and those of the candidate.
    Apart([ArrayView2<'a, E>; 2]),
    /// `[depth, 3 * cell_size]`: the candidate's come last.
    Together(ArrayView2<'a, E>),
}

impl<'a, E> GruWeights<'a, E> {
    fn matrices(&self) -> &[ArrayView2<'a, E>] {
        match self {
            GruWeights::Apart(both) => both,
            GruWeights::Together(all) => slice::from_ref(all),
        }
    }

    /// Of each of the two, the matrix and the columns.
    fn parts(self, cells: usize) -> [(ArrayView2<'a, E>, Range<usize>); 2] {
        match self {
            GruWeights::Apart([gates, candidate]) => [(gates, 0..2 * cells), (candidate, 0..cells)],
            GruWeights::Together(all) => [(all, 0..2 * cells), (all, 2 * cells..3 * cells)],
        }
    }
}

/// What the steps of a sequence are computed from.
#[derive(Clone, Copy)]
pub(crate) struct GruSequence<'a, E> {
    pub(crate) lengths: Lengths<'a>,
    pub(crate) x: ArrayView3<'a, E>,
    pub(crate) h_prev: ArrayView2<'a, E>,
    /// Without them x is added to the pre-activations of the gates and of the candidate.
    pub(crate) w_x: Option<GruWeights<'a, E>>,
    pub(crate) w_h: GruWeights<'a, E>,
    pub(crate) step: GruStep<'a, E>,
}

pub(crate) fn compute<E: Storage>(
    context: &Context<'_>,
    sizes: Sizes,
    attributes: Attributes,
    inputs: Inputs<'_, E>,
    outputs: Outputs<'_, E>,
    scratch: &mut [f32],
) {
    let Inputs { sequence_length, x, h_prev, w_ru, w_c, b_ru, b_c, b_hc } = inputs;
    let lengths = Lengths::new(sequence_length);
    let [(ru_x, ru_h), (c_x, c_h)] = [w_ru, w_c].map(|w| w.split_at(Axis(0), sizes.input_size));
    let step = GruStep {
        activations: attributes.activations,
        order: GruOrder::ResetFirst,
        b_ru,
        b_c,
        b_hc: attributes.reset_after.then_some(b_hc),
        u_weighs_c: false,
    };
    let (w_x, w_h) = (Some(GruWeights::Apart([ru_x, c_x])), GruWeights::Apart([ru_h, c_h]));
    let sequence = GruSequence { lengths, x, h_prev, w_x, w_h, step };
    let Outputs { r, u, c, hc, mut h, h_last } = outputs;
    sequence.compute(context, [r, u, c, hc, h.view_mut()], scratch);
    last_states(lengths, h_prev, h.view(), h_last);
}

impl<E: Storage> GruSequence<'_, E> {
    /// All steps. The outputs are r, u, c, hc and h: zero in steps that a row does not have. All but h may have
    /// the memory of one step. `scratch` has at least [`forward_scratch`] elements.
    pub(crate) fn compute(
        &self,
        context: &Context<'_>,
        [r, u, c, hc, h]: [ArrayViewMut3<'_, E>; 5],
        scratch: &mut [f32],
    ) {
        let GruSequence { lengths, x, h_prev, w_h, step, .. } = *self;
        let (batch, cells) = h_prev.dim();
        let [w_ru, w_c] = w_h.parts(cells);
        let (weights, products) = scratch.split_at_mut(weights_len(cells, 3, cells));
        let (of_gates, of_candidate) = weights.split_at_mut(weights_len(cells, 2, cells));
        let steps = lengths.longest();
        // Where the reset comes after the product, one phase has all gates.
        let is_one_phase = step.b_hc.is_some();
        let gates = if is_one_phase { 3 } else { 2 };
        let shape = StepShape::new((batch, cells), gates);
        let tiling = gemm::sequence_tiling::<E>(context, shape, steps);
        let w_x = self.w_x.as_ref().map(GruWeights::matrices);
        let sequence = recurrence::Sequence { lengths, x, w_x, first: [h_prev] };
        let outputs = recurrence::Outputs { kept: [r, u, c, hc], states: [h] };
        let grouping = Grouping::new::<E>(context, tiling, (batch, cells, steps), &[2, 1]);
        if let Some(grouping) = grouping.filter(|_| is_one_phase) {
            let gates = GroupedProduct::new(context, grouping, w_ru, of_gates);
            let candidate = GroupedProduct::new(context, grouping, w_c, of_candidate);
            let cell = GroupedGru { step, grouping, gates, candidate };
            return recurrence::forward_in_groups(context, &cell, &sequence, outputs, products);
        }
        let gates = Product::of_columns(tiling, w_ru).packed_for(context, steps, of_gates);
        let candidate = Product::of_columns(tiling, w_c).packed_for(context, steps, of_candidate);
        recurrence::forward(context, &Gru { step, gates, candidate }, &sequence, outputs, products);
    }
}
