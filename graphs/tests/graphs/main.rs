//! Rewrites through the public API, on graphs written as text, and on random ones.
//!
//! One crate, so that what the tests share is compiled once.

#[path = "../common/mod.rs"]
mod common;

mod accumulators;
mod biases;
mod block_cells;
mod broadcasts;
mod candidates;
mod cells;
mod cells_gru;
mod cells_parts;
mod columns;
mod devices;
mod edits;
mod functions;
mod gate_orders;
mod holes;
mod keras;
mod keras2_functions;
mod keras_one_row;
mod keras_parts;
mod layer_norm;
mod layers;
mod limits;
mod loop_outputs;
mod loops;
mod memory;
mod mutations;
mod normalized;
mod older_graphs;
mod ops;
mod products;
mod properties;
mod shapes;
mod shield;
mod sums;
mod training;
mod trimming;
mod two_products;
mod two_products_gru;
mod unrolled;
mod waits;
