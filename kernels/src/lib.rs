//! CPU kernels for TensorFlow's block RNN operations.
//!
//! The names and the order of tensors are those of `tf.raw_ops`. The modules [`gru`] and [`lstm`] contain single
//! steps, [`block_gru`] and [`block_lstm`] sequences, and [`cudnn_rnn`] whole networks, each with its equations. Sizes
//! are `batch` (B), `input_size` (D), `cell_size` (C) and `time` (T).
//!
//! Tensors are [`ndarray`] views. A [`Context`] selects the instruction set and the threads:
//!
//! ```
//! use blockcell_kernels::{Context, gru};
//! use ndarray::{Array1, Array2};
//!
//! let (batch, input_size, cell_size) = (2, 3, 4);
//! let x = Array2::<f32>::zeros((batch, input_size));
//! let state = Array2::from_elem((batch, cell_size), 0.5);
//! let w_ru = Array2::from_elem((input_size + cell_size, 2 * cell_size), 0.1);
//! let w_c = Array2::from_elem((input_size + cell_size, cell_size), 0.1);
//! let (b_ru, b_c) = (Array1::zeros(2 * cell_size), Array1::zeros(cell_size));
//! let inputs = gru::BlockCellGradInputs {
//!     x: x.view(),
//!     h_prev: state.view(),
//!     w_ru: w_ru.view(),
//!     w_c: w_c.view(),
//!     b_ru: b_ru.view(),
//!     b_c: b_c.view(),
//!     r: state.view(),
//!     u: state.view(),
//!     c: state.view(),
//!     d_h: state.view(),
//! };
//!
//! let mut d_x = Array2::zeros((batch, input_size));
//! let mut d_h_prev = Array2::zeros((batch, cell_size));
//! let mut d_c_bar = Array2::zeros((batch, cell_size));
//! let mut d_r_bar_u_bar = Array2::zeros((batch, 2 * cell_size));
//! let outputs = gru::BlockCellGradOutputs {
//!     d_x: d_x.view_mut(),
//!     d_h_prev: d_h_prev.view_mut(),
//!     d_c_bar: d_c_bar.view_mut(),
//!     d_r_bar_u_bar: d_r_bar_u_bar.view_mut(),
//! };
//!
//! gru::block_cell_grad(&Context::default(), inputs, outputs)?;
//! assert_eq!(d_c_bar[[0, 0]], 0.5 * (1.0 - 0.5) * (1.0 - 0.5 * 0.5));
//! # Ok::<(), blockcell_kernels::Error>(())
//! ```

mod activation;
#[cfg(feature = "bench_internals")]
pub mod bench_internals;
pub mod block_gru;
pub mod block_lstm;
mod constants;
mod context;
pub mod cudnn_rnn;
mod element;
mod elementwise;
mod error;
pub mod executor;
mod gemm;
pub mod gru;
mod instances;
pub mod lstm;
pub mod mat_mul;
mod memory;
pub mod ops;
mod precision;
mod recurrence;
mod rnn;
mod shapes;
pub mod simd;
mod switch;
mod tiles;
mod tuning;
pub mod unfused;
mod workspace;

pub use activation::{Activation, Activations};
pub use constants::{Constant, Constants, Copies};
pub use context::Context;
pub use element::Storage;
pub use error::Error;
pub use executor::{Executor, Serial};
pub use instances::Element;
pub use memory::OutOfMemory;
pub use precision::{Precision, Ran, Weights};
pub use simd::Isa;
pub use switch::switch;

/// Runs the examples in the README as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
