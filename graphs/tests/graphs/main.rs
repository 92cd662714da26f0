//! Rewrites through the public API, on graphs written as text, and on random ones.
//!
//! One crate, so that what the tests share is compiled once.

#[path = "../common/mod.rs"]
mod common;

mod accumulators;
mod cells;
mod cells_gru;
mod cells_parts;
mod chains;
mod columns;
mod devices;
mod edits;
mod holes;
mod implementations;
mod keras;
mod layers;
mod limits;
mod loops;
mod memory;
mod older_graphs;
mod products;
mod properties;
mod shapes;
mod shield;
mod sums;
mod training;
mod trimming;
mod waits;
