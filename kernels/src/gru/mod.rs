//! Gated recurrent unit, one step: Cho et al., "Learning Phrase Representations using RNN
//! Encoder-Decoder" (2014), with the reset gate applied before the matrix product.
//!
//! The forward step, with `[a | b]` concatenation along the last axis and `S` the logistic
//! function:
//!
//! ```text
//! [r_bar | u_bar] = [x | h_prev] @ w_ru + b_ru        r = S(r_bar)   u = S(u_bar)
//! c = tanh([x | r * h_prev] @ w_c + b_c)
//! h = u * h_prev + (1 - u) * c
//! ```

mod cell;
mod cell_grad;
pub(crate) mod step;
pub(crate) mod step_grad;

pub use cell::{BlockCellInputs, BlockCellOutputs, block_cell, block_cell_scratch};
pub use cell_grad::{BlockCellGradInputs, BlockCellGradOutputs, block_cell_grad};
