//! Products of factors that are stacks: matrices one below the other. A sum of many products of a few
//! terms each is one product of many terms.

use std::ops::Range;

use ndarray::ArrayView2;

use super::lanes::Floats;
use super::micro_kernel::{LeftPanel, Unpacked, groups};
use super::pack::{CopyPanel, pack_rows};
use super::strip::AddPacked;
use super::tile::Tile;
use super::tiling::padded;
use crate::Storage;
use crate::simd::{Simd, WithSimd};
use crate::tiles::rows as rows_of;
use crate::tuning::{KC, NR};

impl Tile<'_> {
    /// Adds `[a_0; a_1; ...]^T @ [b_0; b_1; ...]`, where `a_i` has a column for each row of the tile, and
    /// as many rows as `b_i`. The terms are added up in slices of [`KC`], wherever a matrix ends.
    pub(crate) fn add_stacked<'f, E: Storage>(
        &mut self,
        factors: impl Iterator<Item = (ArrayView2<'f, E>, ArrayView2<'f, E>)>,
    ) {
        self.clear_blank();
        let mut slice = Vec::new();
        let mut depth = 0;
        for (a, b) in factors {
            let mut start = 0;
            while start < b.nrows() {
                let rows = start..b.nrows().min(start + KC - depth);
                depth += rows.len();
                start = rows.end;
                slice.push((rows_of(a, rows.clone()), rows_of(b, rows)));
                if depth == KC {
                    self.add_stack(&slice, depth);
                    slice.clear();
                    depth = 0;
                }
            }
        }
        self.add_stack(&slice, depth);
    }

    /// [`Tile::add_stacked`] of one slice.
    fn add_stack<E: Storage>(
        &mut self,
        factors: &[(ArrayView2<'_, E>, ArrayView2<'_, E>)],
        depth: usize,
    ) {
        if depth == 0 {
            return;
        }
        let isa = self.isa;
        let memory = std::mem::take(&mut self.left);
        let panel = memory.as_chunks_mut().0.first_chunk_mut::<KC>().expect("memory for a panel");
        let mut at = 0;
        for (a, b) in factors {
            isa.run(CopyPanel::<_, Floats>::new(*a, None, &mut panel[at..]));
            at += b.nrows();
        }
        let left = LeftPanel::<Floats>::new(panel);
        self.for_each_run(0..self.rows, left, depth, |mut strip, packed| {
            let columns = strip.columns.clone();
            for start in (0..columns.len()).step_by(NR) {
                let group = start..columns.len().min(start + NR);
                let of_right = columns.start + group.start..columns.start + group.end;
                isa.run(PackStack { factors, columns: of_right, to: packed });
                isa.run(AddPacked { strip: strip.part(group), packed, vectors: 2 });
            }
        });
        self.left = memory;
    }
}

/// Packs some columns of a stack of right factors, at most [`NR`].
struct PackStack<'f, 't, E> {
    factors: &'f [(ArrayView2<'f, E>, ArrayView2<'f, E>)],
    columns: Range<usize>,
    to: &'t mut [f32],
}

impl<E: Storage> WithSimd for PackStack<'_, '_, E> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let PackStack { factors, columns, mut to } = self;
        let depth: usize = factors.iter().map(|(_, b)| b.nrows()).sum();
        for group in groups::<S>(columns.len()) {
            let width = group.len();
            let (mut packed, after) = to.split_at_mut(depth * padded(width));
            for (_, b) in factors {
                let data = b.to_slice().expect("a right factor without gaps");
                let at = columns.start + group.start;
                let (part, rest) = packed.split_at_mut(b.nrows() * padded(width));
                let from = Unpacked { data, pitch: b.ncols(), at, width };
                pack_rows::<S, E, Floats>(simd, from, part, padded(width));
                packed = rest;
            }
            to = after;
        }
    }
}
