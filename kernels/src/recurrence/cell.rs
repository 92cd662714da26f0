//! What a cell says of its steps.

use ndarray::{ArrayView2, ArrayViewMut2};

use super::lengths::At;
use super::product::InputProducts;
use crate::tiles::Tiling;

/// A cell whose steps compute `K` tensors that may be kept, and `N` states.
pub(crate) trait StepCell<E, const K: usize, const N: usize>: Sync {
    /// How many gates each of the weights of x has.
    const GATES: [usize; 2];

    /// Products of x for each cell.
    const OF_X: usize = Self::GATES[0] + Self::GATES[1];

    /// How a step is cut, and the processor cycles that a tile may take.
    fn tiles(&self) -> (Tiling, u64);
}

/// A cell whose steps are computed tile by tile.
pub(crate) trait TiledCell<E, const K: usize, const N: usize>: StepCell<E, K, N> {
    /// One step: what it keeps, and the states that it leaves. Rows that do not have it become zero.
    fn step(
        &self,
        step: Step<'_, '_, E, N>,
        kept: [ArrayViewMut2<'_, E>; K],
        states: [ArrayViewMut2<'_, E>; N],
    );
}

/// What a step is computed from.
pub(crate) struct Step<'s, 'x, E, const N: usize> {
    pub(crate) at: At<'s>,
    /// Products of its x with the weights of all gates.
    pub(crate) products: InputProducts<'x>,
    /// The states that enter it.
    pub(crate) before: [ArrayView2<'s, E>; N],
}
