//! The generic kernels, compiled here for each element type: generic code is otherwise compiled
//! anew in every crate that calls it, and these kernels take minutes.

use half::f16;

use crate::ops::Sizes;
use crate::{Context, block_gru, block_lstm, lstm};

/// The computations behind the functions of the same names, whose arguments those have checked.
#[allow(clippy::too_many_arguments, missing_docs)]
pub trait Kernels: Sized {
    fn lstm_block_cell(
        context: &Context<'_>,
        sizes: Sizes,
        attributes: &lstm::Attributes,
        inputs: lstm::BlockCellInputs<'_, Self>,
        outputs: lstm::BlockCellOutputs<'_, Self>,
    );

    fn lstm_block_cell_grad(
        context: &Context<'_>,
        sizes: Sizes,
        use_peephole: bool,
        inputs: lstm::BlockCellGradInputs<'_, Self>,
        outputs: lstm::BlockCellGradOutputs<'_, Self>,
    );

    fn block_lstm(
        context: &Context<'_>,
        sizes: Sizes,
        variant: block_lstm::Variant,
        attributes: &lstm::Attributes,
        inputs: block_lstm::Inputs<'_, Self>,
        outputs: block_lstm::Outputs<'_, Self>,
        scratch: &mut [f32],
    );

    fn block_lstm_grad(
        context: &Context<'_>,
        call: block_lstm::Call,
        inputs: block_lstm::GradInputs<'_, Self>,
        in_place: block_lstm::GradInPlace<'_, Self>,
        outputs: block_lstm::GradOutputs<'_, Self>,
        scratch: &mut [f32],
    );

    fn block_gru(
        context: &Context<'_>,
        sizes: Sizes,
        reset_after: bool,
        inputs: block_gru::Inputs<'_, Self>,
        outputs: block_gru::Outputs<'_, Self>,
        scratch: &mut [f32],
    );

    fn block_gru_grad(
        context: &Context<'_>,
        sizes: Sizes,
        reset_after: bool,
        inputs: block_gru::GradInputs<'_, Self>,
        in_place: block_gru::GradInPlace<'_, Self>,
        outputs: block_gru::GradOutputs<'_, Self>,
        scratch: &mut [f32],
    );
}

macro_rules! compile_for {
    ($($element:ty),*) => {
        $(impl Kernels for $element {
            fn lstm_block_cell(
                context: &Context<'_>,
                sizes: Sizes,
                attributes: &lstm::Attributes,
                inputs: lstm::BlockCellInputs<'_, Self>,
                outputs: lstm::BlockCellOutputs<'_, Self>,
            ) {
                lstm::cell::compute(context, sizes, attributes, inputs, outputs);
            }

            fn lstm_block_cell_grad(
                context: &Context<'_>,
                sizes: Sizes,
                use_peephole: bool,
                inputs: lstm::BlockCellGradInputs<'_, Self>,
                outputs: lstm::BlockCellGradOutputs<'_, Self>,
            ) {
                lstm::cell_grad::compute(context, sizes, use_peephole, inputs, outputs);
            }

            fn block_lstm(
                context: &Context<'_>,
                sizes: Sizes,
                variant: block_lstm::Variant,
                attributes: &lstm::Attributes,
                inputs: block_lstm::Inputs<'_, Self>,
                outputs: block_lstm::Outputs<'_, Self>,
                scratch: &mut [f32],
            ) {
                block_lstm::forward::compute(
                    context, sizes, variant, attributes, inputs, outputs, scratch,
                );
            }

            fn block_lstm_grad(
                context: &Context<'_>,
                call: block_lstm::Call,
                inputs: block_lstm::GradInputs<'_, Self>,
                in_place: block_lstm::GradInPlace<'_, Self>,
                outputs: block_lstm::GradOutputs<'_, Self>,
                scratch: &mut [f32],
            ) {
                block_lstm::grad::compute(context, call, inputs, in_place, outputs, scratch);
            }

            fn block_gru(
                context: &Context<'_>,
                sizes: Sizes,
                reset_after: bool,
                inputs: block_gru::Inputs<'_, Self>,
                outputs: block_gru::Outputs<'_, Self>,
                scratch: &mut [f32],
            ) {
                block_gru::forward::compute(
                    context, sizes, reset_after, inputs, outputs, scratch,
                );
            }

            fn block_gru_grad(
                context: &Context<'_>,
                sizes: Sizes,
                reset_after: bool,
                inputs: block_gru::GradInputs<'_, Self>,
                in_place: block_gru::GradInPlace<'_, Self>,
                outputs: block_gru::GradOutputs<'_, Self>,
                scratch: &mut [f32],
            ) {
                block_gru::grad::compute(
                    context, sizes, reset_after, inputs, in_place, outputs, scratch,
                );
            }
        })*
    };
}

compile_for!(f32, f16);
