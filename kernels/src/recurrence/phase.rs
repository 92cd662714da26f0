//! A phase of a step: products, and an equation that completes them, tile by tile.

use std::array;

use ndarray::{ArrayView2, ArrayViewMut2, Axis, Slice};

use super::lengths::{At, Rows};
use super::product::Products;
use super::sums::ColumnSums;
use crate::elementwise::{self, Equation};
use crate::executor::for_each;
use crate::tiles::Place;
use crate::{Isa, Storage};

/// What the equation of a phase works on, beside products: matrices of all rows and cells.
pub(crate) struct Phase<'p, 's, E, Q, const I: usize, const O: usize, const W: usize> {
    pub(crate) equation: Q,
    pub(crate) inputs: [ArrayView2<'p, E>; I],
    pub(crate) outputs: [ArrayViewMut2<'p, E>; O],
    /// The equation's `f32_operands` after the products.
    pub(crate) f32_operands: [ArrayViewMut2<'p, f32>; W],
    /// Where the equation's sums over the batch are added.
    pub(crate) sums: ColumnSums<'s>,
}

/// One tile of a [`Phase`].
struct PhaseTile<'m, E, const O: usize, const W: usize, const R: usize> {
    place: Place,
    outputs: [ArrayViewMut2<'m, E>; O],
    f32_operands: [ArrayViewMut2<'m, f32>; W],
    sums: [&'m mut [f32]; R],
}

impl<'p, E, Q, const I: usize, const O: usize> Phase<'p, '_, E, Q, I, O, 0> {
    /// An equation that reads products alone in `f32`, without sums.
    pub(crate) fn new(
        equation: Q,
        inputs: [ArrayView2<'p, E>; I],
        outputs: [ArrayViewMut2<'p, E>; O],
    ) -> Self {
        Phase { equation, inputs, outputs, f32_operands: [], sums: ColumnSums::none() }
    }
}

impl<E, Q, const I: usize, const O: usize, const W: usize> Phase<'_, '_, E, Q, I, O, W>
where
    E: Storage,
{
    /// Applies the equation to the rows that have the step. In the others outputs become zero, and all else stays as it
    /// is. The equation's `f32_operands` are the products, which are first, and those of the phase.
    pub(crate) fn run<const G: usize, const R: usize, const ALL: usize>(
        self,
        at: At<'_>,
        products: impl Products<G>,
    ) where
        Q: Equation<I, O, R, ALL>,
    {
        let Phase { equation, inputs, outputs, f32_operands, sums } = self;
        let (At { context, rows }, isa) = (at, at.context.isa);
        let ((tiling, cost), shape) = (products.tiles(), outputs[0].dim());
        let mut sums = sums.of_tiles(tiling.columns, shape.1);
        let mut sums = || match R {
            0 => [(); R].map(|()| Default::default()),
            _ => sums.next().expect("a part for each tile"),
        };
        if outputs[0].is_empty() {
            return;
        }
        if tiling.is_one_tile(shape) {
            let place = Place { rows: 0..shape.0, columns: 0..shape.1 };
            let tile = PhaseTile { place: place.clone(), outputs, f32_operands, sums: sums() };
            return products
                .whole(isa, &place, |strips| tile.complete((isa, rows), equation, inputs, strips));
        }
        let tiles = tiling.places(shape).zip(tiling.split_each(outputs));
        let tiles = tiles.zip(tiling.split_each(f32_operands));
        let mut tiles: Vec<_> = tiles
            .map(|((place, outputs), f32_operands)| PhaseTile {
                place,
                outputs,
                f32_operands,
                sums: sums(),
            })
            .collect();
        // What the last step has read last is still in the cache. Several threads have their own tiles each.
        if rows.t % 2 == 1 && context.executor.threads() <= 1 {
            tiles.reverse();
        }
        for_each(context.executor, cost, tiles, |tile| {
            let place = tile.place.clone();
            products.at(isa, &place, |strips| tile.complete((isa, rows), equation, inputs, strips));
        });
    }
}

impl<E: Storage, const O: usize, const W: usize, const R: usize> PhaseTile<'_, E, O, W, R> {
    fn complete<Q, const I: usize, const G: usize, const ALL: usize>(
        self,
        (isa, of_step): (Isa, Rows<'_>),
        equation: Q,
        inputs: [ArrayView2<'_, E>; I],
        strips: [ArrayViewMut2<'_, f32>; G],
    ) where
        Q: Equation<I, O, R, ALL>,
    {
        let PhaseTile { place, mut outputs, f32_operands, mut sums } = self;
        let mut all = strips.into_iter().chain(f32_operands);
        let mut f32_operands: [_; ALL] = array::from_fn(|_| all.next().expect("as many matrices"));
        let Place { rows, columns } = place.clone();
        let mut spans = of_step.spans(rows.clone()).peekable();
        if spans.next_if(|span| span.have_step && span.rows == rows).is_some() {
            let inputs = inputs.map(|input| place.of(input));
            return isa.run(elementwise::Pass { equation, inputs, outputs, f32_operands, sums });
        }
        for span in spans {
            let slice = Slice::from(span.rows.start - rows.start..span.rows.end - rows.start);
            let mut outputs = outputs.each_mut().map(|m| m.slice_axis_mut(Axis(0), slice));
            if span.have_step {
                let place = Place { rows: span.rows, columns: columns.clone() };
                let inputs = inputs.map(|input| place.of(input));
                let f32_operands =
                    f32_operands.each_mut().map(|m| m.slice_axis_mut(Axis(0), slice));
                let sums = sums.each_mut().map(|sum| &mut **sum);
                isa.run(elementwise::Pass { equation, inputs, outputs, f32_operands, sums });
            } else {
                outputs.iter_mut().for_each(|output| output.fill(E::ZERO));
            }
        }
    }
}
