//! What a forward pass leaves for the backward pass, and scratch memory.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut3};

use super::layout::Network;

/// Where the forward pass puts activations: in the reserve space in training, otherwise in scratch memory, which
/// layers then share.
#[derive(Clone, Copy)]
pub(super) struct Activations {
    network: Network,
    dropout: bool,
    is_training: bool,
}

impl Activations {
    /// Those of a call; `dropout` tells whether there is any.
    pub(super) fn new(network: Network, dropout: bool, is_training: bool) -> Self {
        Activations { network, dropout, is_training }
    }

    /// The number of elements of the memory.
    pub(super) fn len(self) -> usize {
        let layout = self.network.layout;
        let between = layout.num_layers - 1;
        if self.is_training {
            let saved = self.saved().saturating_mul(layout.pseudo_layers());
            let parts = if self.dropout { 2 } else { 1 };
            let between = between.saturating_mul(parts).saturating_mul(self.outputs());
            saved.saturating_add(between)
        } else {
            self.saved().saturating_add(between.min(2).saturating_mul(self.outputs()))
        }
    }

    /// The number of elements that a pseudo-layer saves.
    fn saved(self) -> usize {
        let cells = self.network.layout.mode.saved().saturating_mul(self.network.cells());
        let projected = if self.network.layout.num_proj > 0 { self.network.outputs() } else { 0 };
        cells.saturating_add(projected)
    }

    /// The number of elements of a layer's outputs.
    fn outputs(self) -> usize {
        self.network.layout.directions.saturating_mul(self.network.outputs())
    }

    /// Where a pseudo-layer saves: tensors `[time, batch, num_units]`, as many as the mode has, and with a projection
    /// its outputs. So its outputs are the last ones in any case.
    pub(super) fn of_cells(self, layer: usize, direction: usize) -> Range<usize> {
        let n =
            if self.is_training { layer * self.network.layout.directions + direction } else { 0 };
        n * self.saved()..(n + 1) * self.saved()
    }

    /// Where the inputs of a layer are, except those of the first one: `[time, batch, directions * output_size]`.
    pub(super) fn inputs_of(self, layer: usize) -> Range<usize> {
        let Some(n) = layer.checked_sub(1) else { return 0..0 };
        let n = if self.is_training { n } else { n % 2 };
        self.between(n)
    }

    /// Where the factors are that dropout has multiplied the inputs of a layer by, if there are any.
    pub(super) fn mask_of(self, layer: usize) -> Range<usize> {
        match layer {
            0 => 0..0,
            _ if !self.is_training || !self.dropout => 0..0,
            _ => self.between(self.network.layout.num_layers - 1 + layer - 1),
        }
    }

    /// Part `n` of what is between layers.
    fn between(self, n: usize) -> Range<usize> {
        let cells = if self.is_training { self.network.layout.pseudo_layers() } else { 1 };
        let start = cells * self.saved() + n * self.outputs();
        start..start + self.outputs()
    }
}

impl Network {
    /// The beginning of some memory as a tensor of all steps, `[time, batch, columns]`.
    pub(super) fn steps<'m>(&self, columns: usize, memory: &'m [f32]) -> ArrayView3<'m, f32> {
        let shape = (self.time, self.batch, columns);
        let memory = &memory[..self.time * self.batch * columns];
        ArrayView3::from_shape(shape, memory).expect("of this size")
    }

    /// [`Network::steps`] to be written.
    pub(super) fn steps_mut<'m>(
        &self,
        columns: usize,
        memory: &'m mut [f32],
    ) -> ArrayViewMut3<'m, f32> {
        let shape = (self.time, self.batch, columns);
        let memory = &mut memory[..self.time * self.batch * columns];
        ArrayViewMut3::from_shape(shape, memory).expect("of this size")
    }

    /// Some memory as a matrix with a row for each of the batch, `[batch, columns]`.
    pub(super) fn matrix<'m>(&self, columns: usize, memory: &'m [f32]) -> ArrayView2<'m, f32> {
        ArrayView2::from_shape((self.batch, columns), memory).expect("of this size")
    }
}

/// Scratch memory, of which parts are taken one after the other.
pub(super) struct Arena<'m>(&'m mut [f32]);

impl<'m> Arena<'m> {
    /// All of `memory`.
    pub(super) fn new(memory: &'m mut [f32]) -> Self {
        Arena(memory)
    }

    /// The next `len` elements.
    pub(super) fn take(&mut self, len: usize) -> &'m mut [f32] {
        self.0.split_off_mut(..len).expect("enough memory")
    }

    /// All that is left.
    pub(super) fn rest(self) -> &'m mut [f32] {
        self.0
    }
}

/// The sum of lengths; `usize::MAX` if it is more than can be counted.
pub(super) fn total(lengths: impl IntoIterator<Item = usize>) -> usize {
    lengths.into_iter().fold(0, usize::saturating_add)
}
