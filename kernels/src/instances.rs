//! The computations behind the generic functions, compiled here for each element type. Other crates would otherwise
//! compile this generic code again, which takes minutes.

use std::ops::Range;

use half::{bf16, f16};
use ndarray::{ArrayViewMut2, ArrayViewMut3};

use crate::element::Storage;
use crate::ops::Sizes;
use crate::{Activations, Context, block_gru, block_lstm, cudnn_rnn, lstm, mat_mul, unfused};

/// Defines the trait [`Element`], whose functions are those on the right, and its implementations.
macro_rules! instances {
    ($(fn $name:ident($($argument:ident: $type:ty),* $(,)?) = $function:path;)*) => {
        /// An element type of tensors: `f32`, [`struct@f16`] or [`struct@bf16`]. How its values are stored and converted
        /// is [`Storage`].
        ///
        /// The functions are no part of the interface: they are the computations of the ops, with arguments that
        /// are checked.
        #[allow(clippy::too_many_arguments, missing_docs)]
        pub trait Element: Storage {
            $(#[doc(hidden)]
            fn $name($($argument: $type),*);)*
        }

        instances! { @of f32, $($name($($argument: $type),*) = $function;)* }
        instances! { @of f16, $($name($($argument: $type),*) = $function;)* }
        instances! { @of bf16, $($name($($argument: $type),*) = $function;)* }
    };
    (@of $element:ident, $($name:ident($($argument:ident: $type:ty),*) = $function:path;)*) => {
        impl Element for $element {
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
        sequence: block_lstm::LstmSequence<'_, Self>,
        outputs: [ArrayViewMut3<'_, Self>; 7],
        scratch: &mut [f32],
    ) = block_lstm::forward::compute;

    fn block_lstm_grad(
        context: &Context<'_>,
        sizes: Sizes,
        sequence: block_lstm::LstmGradSequence<'_, Self>,
        in_place: block_lstm::GradInPlace<'_, Self>,
        outputs: block_lstm::GradOutputs<'_, Self>,
        scratch: &mut [f32],
    ) = block_lstm::grad::compute;

    fn block_gru(
        context: &Context<'_>,
        sizes: Sizes,
        attributes: block_gru::Attributes,
        inputs: block_gru::Inputs<'_, Self>,
        outputs: block_gru::Outputs<'_, Self>,
        scratch: &mut [f32],
    ) = block_gru::forward::compute;

    fn block_gru_grad(
        context: &Context<'_>,
        sizes: Sizes,
        attributes: block_gru::Attributes,
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
        outputs: mat_mul::AddNOutputs<'_, Self>,
    ) = mat_mul::compute_add_n;

    fn mat_mul_slice(
        context: &Context<'_>,
        inputs: mat_mul::SliceInputs<'_, Self>,
        parts: Vec<(Range<usize>, ArrayViewMut2<'_, Self>)>,
    ) = mat_mul::compute_slice;

    fn bias_add_grad_add_n(
        context: &Context<'_>,
        inputs: mat_mul::BiasInputs<'_, Self>,
        outputs: mat_mul::BiasOutputs<'_, Self>,
    ) = mat_mul::compute_bias;

    fn unfused_lstm_cell(
        context: &Context<'_>,
        attributes: (lstm::Attributes, unfused::GateColumns, Activations),
        inputs: unfused::LstmCellInputs<'_, Self>,
        outputs: unfused::LstmCellOutputs<'_, Self>,
        scratch: &mut [Self],
    ) = unfused::compute_lstm_cell;

    fn unfused_lstm_cell_grad(
        context: &Context<'_>,
        attributes: &unfused::LstmCellGradAttributes,
        inputs: unfused::LstmCellGradInputs<'_, Self>,
        outputs: unfused::LstmCellGradOutputs<'_, Self>,
        scratch: &mut [Self],
    ) = unfused::compute_lstm_cell_grad;

    fn unfused_gru_cell_grad_c(
        context: &Context<'_>,
        activations: Activations,
        inputs: unfused::GruCellGradCInputs<'_, Self>,
        outputs: unfused::GruCellGradCOutputs<'_, Self>,
        scratch: &mut [Self],
    ) = unfused::compute_gru_cell_grad_c;

    fn unfused_gru_cell_grad_ru(
        context: &Context<'_>,
        inputs: unfused::GruCellGradRuInputs<'_, Self>,
        outputs: unfused::GruCellGradRuOutputs<'_, Self>,
        scratch: &mut [Self],
    ) = unfused::compute_gru_cell_grad_ru;

    fn unfused_lstm_layer(
        context: &Context<'_>,
        attributes: (lstm::Attributes, unfused::GateColumns, f32),
        call: (&unfused::Loop, unfused::Numbers),
        inputs: unfused::LstmLayerInputs<'_, Self>,
        outputs: unfused::LstmLayerOutputs<'_, Self>,
        scratch: &mut [f32],
        memory: &mut [Self],
    ) = unfused::compute_lstm_layer;

    fn unfused_normalized_lstm_cell(
        context: &Context<'_>,
        attributes: &unfused::NormalizedAttributes,
        inputs: unfused::NormalizedLstmCellInputs<'_, Self>,
        outputs: unfused::NormalizedLstmCellOutputs<'_, Self>,
        scratch: &mut [Self],
    ) = unfused::compute_normalized_lstm_cell;

    fn unfused_normalized_lstm_layer(
        context: &Context<'_>,
        attributes: &unfused::NormalizedAttributes,
        call: (&unfused::Loop, unfused::Numbers),
        inputs: unfused::NormalizedLstmLayerInputs<'_, Self>,
        outputs: unfused::NormalizedLstmLayerOutputs<'_, Self>,
        scratch: &mut [f32],
        memory: &mut [Self],
    ) = unfused::compute_normalized_lstm_layer;

    fn unfused_layer_norm(
        context: &Context<'_>,
        attributes: &unfused::LayerNormAttributes,
        inputs: unfused::LayerNormInputs<'_, Self>,
        outputs: unfused::LayerNormOutputs<'_, Self>,
    ) = unfused::compute_layer_norm;

    fn unfused_layer_norm_grad(
        context: &Context<'_>,
        attributes: &unfused::LayerNormGradAttributes,
        inputs: unfused::LayerNormGradInputs<'_, Self>,
        outputs: unfused::LayerNormGradOutputs<'_, Self>,
        scratch: &mut [f32],
    ) = unfused::compute_layer_norm_grad;

    fn unfused_gru_cell(
        context: &Context<'_>,
        activations: Activations,
        inputs: unfused::GruCellInputs<'_, Self>,
        outputs: unfused::GruCellOutputs<'_, Self>,
        scratch: &mut [f32],
        memory: &mut [Self],
    ) = unfused::compute_gru_cell;

    fn unfused_gru_layer(
        context: &Context<'_>,
        call: (&unfused::Loop, unfused::Numbers),
        inputs: unfused::GruLayerInputs<'_, Self>,
        outputs: unfused::GruLayerOutputs<'_, Self>,
        scratch: &mut [f32],
        memory: &mut [Self],
    ) = unfused::compute_gru_layer;

    fn unfused_keras_lstm(
        context: &Context<'_>,
        call: (&unfused::Loop, unfused::Numbers),
        inputs: unfused::KerasLstmInputs<'_, Self>,
        outputs: unfused::KerasLstmOutputs<'_, Self>,
        scratch: &mut [f32],
        memory: &mut [Self],
    ) = unfused::compute_keras_lstm;

    fn unfused_keras_gru(
        context: &Context<'_>,
        call: (&unfused::Loop, unfused::Numbers),
        inputs: unfused::KerasGruInputs<'_, Self>,
        outputs: unfused::KerasGruOutputs<'_, Self>,
        scratch: &mut [f32],
        memory: &mut [Self],
    ) = unfused::compute_keras_gru;
}
