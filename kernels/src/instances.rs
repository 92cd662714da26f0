//! The computations behind the generic functions, compiled here for each element type. Other crates would otherwise
//! compile this generic code again, which takes minutes.

use std::ops::Range;

use half::f16;
use ndarray::{ArrayViewMut1, ArrayViewMut2};

use crate::element::Storage;
use crate::ops::Sizes;
use crate::{Context, block_gru, block_lstm, cudnn_rnn, lstm, mat_mul, plain};

/// Defines the trait [`Element`], whose functions are those on the right, and its implementations.
macro_rules! instances {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) = $function:path;)*) => {
        /// An element type of tensors: `f32` or [`struct@f16`]. How its values are stored and converted is [`Storage`].
        ///
        /// The functions are no part of the interface: they are the computations of the ops, with arguments that
        /// are checked.
        #[allow(clippy::too_many_arguments, missing_docs)]
        pub trait Element: Storage {
            $(#[doc(hidden)]
            fn $name($($argument: $type),*);)*
        }

        impl Element for f32 {
            $(fn $name($($argument: $type),*) {
                $function($($argument),*);
            })*
        }

        impl Element for f16 {
            $(fn $name($($argument: $type),*) {
                $function($($argument),*);
            })*
        }
    };
}

instances! {
    fn lstm_block_cell(
        context: &Context<'_>,
        sizes: Sizes,
        attributes: &lstm::Attributes,
        inputs: lstm::BlockCellInputs<'_, Self>,
        outputs: lstm::BlockCellOutputs<'_, Self>,
    ) = lstm::cell::compute;

    fn lstm_block_cell_grad(
        context: &Context<'_>,
        sizes: Sizes,
        use_peephole: bool,
        inputs: lstm::BlockCellGradInputs<'_, Self>,
        outputs: lstm::BlockCellGradOutputs<'_, Self>,
    ) = lstm::cell_grad::compute;

    fn block_lstm(
        context: &Context<'_>,
        sizes: Sizes,
        variant: block_lstm::Variant,
        attributes: &lstm::Attributes,
        inputs: block_lstm::Inputs<'_, Self>,
        outputs: block_lstm::Outputs<'_, Self>,
        scratch: &mut [f32],
    ) = block_lstm::forward::compute;

    fn block_lstm_grad(
        context: &Context<'_>,
        call: block_lstm::GradCall,
        inputs: block_lstm::GradInputs<'_, Self>,
        in_place: block_lstm::GradInPlace<'_, Self>,
        outputs: block_lstm::GradOutputs<'_, Self>,
        scratch: &mut [f32],
    ) = block_lstm::grad::compute;

    fn block_gru(
        context: &Context<'_>,
        sizes: Sizes,
        reset_after: bool,
        inputs: block_gru::Inputs<'_, Self>,
        outputs: block_gru::Outputs<'_, Self>,
        scratch: &mut [f32],
    ) = block_gru::forward::compute;

    fn block_gru_grad(
        context: &Context<'_>,
        sizes: Sizes,
        reset_after: bool,
        inputs: block_gru::GradInputs<'_, Self>,
        in_place: block_gru::GradInPlace<'_, Self>,
        outputs: block_gru::GradOutputs<'_, Self>,
        scratch: &mut [f32],
    ) = block_gru::grad::compute;

    fn cudnn_rnn(
        context: &Context<'_>,
        attributes: &cudnn_rnn::Attributes,
        network: cudnn_rnn::Network,
        inputs: cudnn_rnn::Inputs<'_, Self>,
        outputs: cudnn_rnn::Outputs<'_, Self>,
        scratch: &mut [f32],
    ) = cudnn_rnn::compute_forward;

    fn cudnn_rnn_backprop(
        context: &Context<'_>,
        attributes: &cudnn_rnn::Attributes,
        network: cudnn_rnn::Network,
        inputs: cudnn_rnn::BackpropInputs<'_, Self>,
        outputs: cudnn_rnn::BackpropOutputs<'_, Self>,
        scratch: &mut [f32],
    ) = cudnn_rnn::compute_backprop;

    fn mat_mul_add_n(
        context: &Context<'_>,
        inputs: mat_mul::AddNInputs<'_, Self>,
        holds_addend: bool,
        sum: ArrayViewMut2<'_, Self>,
    ) = mat_mul::compute_add_n;

    fn mat_mul_slice(
        context: &Context<'_>,
        inputs: mat_mul::SliceInputs<'_, Self>,
        parts: Vec<(Range<usize>, ArrayViewMut2<'_, Self>)>,
    ) = mat_mul::compute_slice;

    fn bias_add_grad_add_n(
        context: &Context<'_>,
        inputs: mat_mul::BiasInputs<'_, Self>,
        sum: ArrayViewMut1<'_, Self>,
    ) = mat_mul::compute_bias;

    fn plain_lstm_cell(
        context: &Context<'_>,
        attributes: &lstm::Attributes,
        inputs: plain::LstmCellInputs<'_, Self>,
        outputs: plain::LstmCellOutputs<'_, Self>,
        scratch: &mut [Self],
    ) = plain::compute_lstm_cell;

    fn plain_lstm_cell_grad(
        context: &Context<'_>,
        attributes: &plain::LstmCellGradAttributes,
        inputs: plain::LstmCellGradInputs<'_, Self>,
        outputs: plain::LstmCellGradOutputs<'_, Self>,
        scratch: &mut [Self],
    ) = plain::compute_lstm_cell_grad;

    fn plain_gru_cell_grad_c(
        context: &Context<'_>,
        inputs: plain::GruCellGradCInputs<'_, Self>,
        outputs: plain::GruCellGradCOutputs<'_, Self>,
        scratch: &mut [Self],
    ) = plain::compute_gru_cell_grad_c;

    fn plain_gru_cell_grad_ru(
        context: &Context<'_>,
        inputs: plain::GruCellGradRuInputs<'_, Self>,
        outputs: plain::GruCellGradRuOutputs<'_, Self>,
        scratch: &mut [Self],
    ) = plain::compute_gru_cell_grad_ru;

    fn plain_lstm_layer(
        context: &Context<'_>,
        call: (lstm::Attributes, &[i64]),
        inputs: plain::LstmLayerInputs<'_, Self>,
        outputs: plain::LstmLayerOutputs<'_, Self>,
        scratch: &mut [f32],
        memory: &mut [Self],
    ) = plain::compute_lstm_layer;

    fn plain_gru_cell(
        context: &Context<'_>,
        inputs: plain::GruCellInputs<'_, Self>,
        outputs: plain::GruCellOutputs<'_, Self>,
        scratch: &mut [f32],
        memory: &mut [Self],
    ) = plain::compute_gru_cell;

    fn plain_gru_layer(
        context: &Context<'_>,
        lengths: &[i64],
        inputs: plain::GruLayerInputs<'_, Self>,
        outputs: plain::GruLayerOutputs<'_, Self>,
        scratch: &mut [f32],
        memory: &mut [Self],
    ) = plain::compute_gru_layer;

    fn plain_keras_lstm(
        context: &Context<'_>,
        steps: &plain::KerasSteps,
        inputs: plain::KerasLstmInputs<'_, Self>,
        outputs: plain::KerasLstmOutputs<'_, Self>,
        scratch: &mut [f32],
        memory: &mut [Self],
    ) = plain::compute_keras_lstm;

    fn plain_keras_gru(
        context: &Context<'_>,
        steps: &plain::KerasSteps,
        inputs: plain::KerasGruInputs<'_, Self>,
        outputs: plain::KerasGruOutputs<'_, Self>,
        scratch: &mut [f32],
        memory: &mut [Self],
    ) = plain::compute_keras_gru;
}
