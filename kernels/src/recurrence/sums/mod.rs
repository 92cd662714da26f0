//! Sums over the batch: each row of tiles adds up its own part.

use ndarray::ArrayViewMut1;

use crate::Storage;

/// Memory for sums, `[rows of tiles, all sums, cells]`.
pub(crate) struct ColumnSums<'m> {
    memory: &'m mut [f32],
    all: usize,
    /// The first sum that an equation adds to.
    first: usize,
}

/// Length of the memory for `sums` sums over the rows of a matrix that is cut every `tile_rows`.
pub(crate) fn sums_len(sums: usize, (rows, cells): (usize, usize), tile_rows: usize) -> usize {
    rows.div_ceil(tile_rows).saturating_mul(sums).saturating_mul(cells)
}

impl<'m> ColumnSums<'m> {
    /// `all` sums in this memory.
    pub(crate) fn new(memory: &'m mut [f32], all: usize) -> Self {
        ColumnSums { memory, all, first: 0 }
    }

    /// For an equation that has no sums.
    pub(crate) fn none() -> Self {
        ColumnSums::new(&mut [], 0)
    }

    /// The same sums without the first ones.
    pub(crate) fn from(&mut self, first: usize) -> ColumnSums<'_> {
        ColumnSums { memory: &mut *self.memory, all: self.all, first }
    }

    /// The memory in which tiles of `columns` columns add up, row by row.
    pub(super) fn of_tiles<const N: usize>(
        self,
        columns: usize,
        cells: usize,
    ) -> impl Iterator<Item = [&'m mut [f32]; N]> {
        let ColumnSums { memory, all, first } = self;
        memory.chunks_exact_mut((all * cells).max(1)).flat_map(move |row| {
            let mut sums =
                row.chunks_exact_mut(cells).skip(first).map(|sum| sum.chunks_mut(columns));
            let mut sums: [_; N] = std::array::from_fn(|_| sums.next().expect("as many sums"));
            let next =
                move |_| sums.each_mut().map(|sum| sum.next().expect("a part for each tile"));
            (0..cells.div_ceil(columns)).map(next)
        })
    }

    /// Sets `vector`, of all cells, to sum `n`.
    pub(crate) fn store<E: Storage>(&self, n: usize, vector: ArrayViewMut1<'_, E>) {
        let cells = vector.len();
        for (at, to) in vector.into_iter().enumerate() {
            let parts = self.memory.chunks_exact(self.all * cells);
            *to = E::from_f32(parts.map(|part| part[n * cells + at]).sum());
        }
    }
}

#[cfg(test)]
mod tests;
