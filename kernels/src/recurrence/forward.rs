//! The steps of a sequence, from the first to the last.

use std::array;
use std::ops::Range;

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis, s};

use super::bands::{band_rows, cut, for_each_band, steps_of_slice};
use super::cell::{Step, StepCell, TiledCell};
use super::input::{self, InputWeights, WeightsFrom, context_of_x, pack_strips, worth_packing};
use super::lengths::{At, Lengths, Rows};
use super::product::InputProducts;
use super::steps::{all_rows, at_step, clear_from, state_before, steps_at_once};
use crate::gemm;
use crate::ops::Sizes;
use crate::tiles::{self, Tiling, parts};
use crate::tuning::{BAND_INPUT_ROWS, BAND_SUMS_FLOATS};
use crate::{Context, Storage, workspace};

/// How the steps of cells `C` are computed.
pub(super) trait Way<C, E, const K: usize, const N: usize> {
    /// Whether the steps of a single band can be cut for several threads.
    const CUTS_STEPS: bool;

    /// Some steps of a band with all cells. `sums` are the products of their x, of `len` elements for each step: they
    /// become the sums of the steps where they are.
    fn steps(
        context: &Context<'_>,
        cell: &C,
        band: &mut Band<'_, E, K, N>,
        steps: Range<usize>,
        sums: [&mut [f32]; 2],
        len: [usize; 2],
    );

    /// One step, whose products of x are known.
    fn step(cell: &C, products: ArrayViewMut2<'_, f32>, step: BandStep<'_, E, K, N>);
}

/// Tile by tile.
struct ByTiles;

impl<C, E, const K: usize, const N: usize> Way<C, E, K, N> for ByTiles
where
    E: Storage,
    C: TiledCell<E, K, N>,
{
    const CUTS_STEPS: bool = true;

    fn steps(
        context: &Context<'_>,
        cell: &C,
        band: &mut Band<'_, E, K, N>,
        steps: Range<usize>,
        [first, second]: [&mut [f32]; 2],
        len: [usize; 2],
    ) {
        let mut products = [first.chunks_exact_mut(len[0]), second.chunks_exact_mut(len[1])];
        for t in steps {
            let sums = products.each_mut().map(|sums| sums.next().unwrap_or_default());
            band.step(context, t, |step| step.compute(cell, InputProducts::Sums(sums)));
        }
    }

    fn step(cell: &C, products: ArrayViewMut2<'_, f32>, step: BandStep<'_, E, K, N>) {
        step.compute(cell, InputProducts::Matrix(products));
    }
}

/// What all steps are computed from, beside the cell.
#[derive(Clone, Copy)]
pub(crate) struct Sequence<'a, E, const N: usize> {
    pub(crate) lengths: Lengths<'a>,
    pub(crate) x: ArrayView3<'a, E>,
    /// The weights of x, `[input_size, columns]`, whose columns are side by side: those that a cell has, or a single
    /// matrix. They may lie in memory as their transposes. Without them x is added to the pre-activations of every gate.
    pub(crate) w_x: Option<&'a [ArrayView2<'a, E>]>,
    /// The states that enter the first step.
    pub(crate) first: [ArrayView2<'a, E>; N],
}

/// What is computed. Tensors that nobody reads may have the memory of one step, but for states.
pub(crate) struct Outputs<'a, E, const K: usize, const N: usize> {
    pub(crate) kept: [ArrayViewMut3<'a, E>; K],
    pub(crate) states: [ArrayViewMut3<'a, E>; N],
}

/// How many elements of memory [`forward()`] needs for products of `gates` gates.
pub(crate) fn products_len(sizes: &Sizes, gates: usize) -> usize {
    let Sizes { time, batch, input_size, cell_size, .. } = *sizes;
    let products = steps_at_once(time, batch).saturating_mul(batch);
    let products = products.saturating_mul(gates).saturating_mul(cell_size);
    let rows = time.saturating_mul(batch);
    let weights = input::packed_len(rows, input_size, (gates, cell_size));
    gemm::padded(products).saturating_add(weights)
}

/// All steps, tile by tile. Outputs are zero in steps that a row does not have. `memory` has at least [`products_len`]
/// elements.
pub(crate) fn forward<E: Storage, C: TiledCell<E, K, N>, const K: usize, const N: usize>(
    context: &Context<'_>,
    cell: &C,
    sequence: &Sequence<'_, E, N>,
    outputs: Outputs<'_, E, K, N>,
    memory: &mut [f32],
) {
    all_steps::<ByTiles, _, _, K, N>(context, cell, sequence, outputs, memory);
}

/// [`forward()`] in some way.
pub(super) fn all_steps<W, C, E, const K: usize, const N: usize>(
    context: &Context<'_>,
    cell: &C,
    sequence: &Sequence<'_, E, N>,
    mut outputs: Outputs<'_, E, K, N>,
    memory: &mut [f32],
) where
    W: Way<C, E, K, N>,
    C: StepCell<E, K, N>,
    E: Storage,
{
    let Sequence { lengths, x, w_x, first } = *sequence;
    let (time, (batch, cells)) = (x.dim().0, first[0].dim());
    let steps = lengths.longest();
    clear_from(&mut outputs.kept, steps);
    clear_from(&mut outputs.states, steps);
    if batch == 0 || cells == 0 {
        return;
    }
    let (tiling, cost) = cell.tiles();
    let rows = band_rows(tiling, (batch, cells));
    if cells <= tiling.columns {
        let sums = Sums::new(C::GATES, cells, (rows, steps));
        // A single band would leave other threads without work.
        let threads = if W::CUTS_STEPS { context.executor.threads() } else { 1 };
        if sums.fit && (rows < batch || threads <= 1) {
            let bands = (rows, &sums);
            return by_bands::<W, _, _, K, N>(context, cell, sequence, outputs, bands, memory);
        }
    }
    let (at_once, pitch) = (steps_at_once(time, batch), batch * C::OF_X * cells);
    // Packed weights begin with a cache line.
    let (products, memory) = memory.split_at_mut(gemm::padded(at_once * pitch));
    let of_x = context_of_x(context, steps * batch, w_x);
    let memory = worth_packing(memory, steps * batch);
    let w_x = InputWeights::new(&of_x, at_once * batch, w_x, memory);
    for steps in parts(0..steps, at_once) {
        let shape = (steps.len(), batch, C::OF_X * cells);
        let products = &mut products[..steps.len() * pitch];
        let products = ArrayViewMut3::from_shape(shape, products).expect("of this size");
        let mut products = [products];
        let of_steps = all_rows(products[0].view_mut(), 0..steps.len());
        w_x.multiply(&of_x, all_rows(x, steps.clone()), of_steps);
        let cost = cost.saturating_mul(steps.len() as u64);
        let bands = outputs.bands(sequence, rows).zip(cut(&mut products, rows)).collect();
        for_each_band(context, cost, bands, |context, (mut band, [mut products])| {
            for (t, products) in steps.clone().zip(products.outer_iter_mut()) {
                band.step(context, t, |step| W::step(cell, products, step));
            }
        });
    }
}

/// All steps, where none of them needs what another row computes: band by band of `rows` rows.
fn by_bands<W, C, E, const K: usize, const N: usize>(
    context: &Context<'_>,
    cell: &C,
    sequence: &Sequence<'_, E, N>,
    mut outputs: Outputs<'_, E, K, N>,
    (rows, sums): (usize, &Sums),
    memory: &mut [f32],
) where
    W: Way<C, E, K, N>,
    C: StepCell<E, K, N>,
    E: Storage,
{
    let Sequence { lengths, x, w_x, first } = *sequence;
    let (batch, cells) = first[0].dim();
    let on_x = context_of_x(context, lengths.longest() * batch, w_x);
    let memory = worth_packing(memory, lengths.longest() * batch);
    let w_x = w_x.map(|w_x| pack_strips(&on_x, rows * sums.at_once, w_x, &sums.columns, memory));
    let pairs = w_x.is_some() && on_x.takes_pairs::<E>();
    let w_x = (w_x.as_deref(), pairs);
    let of_x = gemm::cost(Tiling { rows, columns: cells }, C::OF_X, x.len_of(Axis(2)));
    let cost = cell.tiles().1.saturating_add(of_x);
    let slice = steps_of_slice(cost).clamp(sums.at_once, lengths.longest().max(sums.at_once));
    let slice = slice - slice % sums.at_once;
    for steps in parts(0..lengths.longest(), slice) {
        let cost = cost.saturating_mul(steps.len() as u64);
        let bands = outputs.bands(sequence, rows).collect();
        for_each_band(context, cost, bands, |context, mut band| {
            band.steps::<W, _>(context, cell, steps.clone(), sums, w_x);
        });
    }
}

/// How the sums of all cells lie in memory: the products of x of some steps, which become those of the steps.
struct Sums {
    /// The columns of each of the weights of x, in the order in which a tile has their sums.
    columns: [Vec<Range<usize>>; 2],
    /// How many sums a row has, with each of the weights.
    pitch: [usize; 2],
    /// Steps whose products are computed at once.
    at_once: usize,
    /// Whether there are enough of them: with few, the weights of x would be packed too often.
    fit: bool,
}

impl Sums {
    /// Those of bands of `rows` rows over `steps` steps.
    fn new(gates: [usize; 2], cells: usize, (rows, steps): (usize, usize)) -> Self {
        let columns = gates.map(|gates| {
            (0..gates).map(|gate| gate * cells..(gate + 1) * cells).collect::<Vec<_>>()
        });
        let pitch = columns.each_ref().map(|columns| gemm::pitch(columns));
        let wanted = (BAND_INPUT_ROWS / rows).clamp(1, steps.max(1));
        let most = BAND_SUMS_FLOATS / (rows * (pitch[0] + pitch[1]));
        Sums { columns, pitch, at_once: wanted.min(most).max(1), fit: 3 * wanted <= 4 * most }
    }
}

/// Some rows of the batch.
pub(super) struct Band<'b, E, const K: usize, const N: usize> {
    pub(super) lengths: Lengths<'b>,
    x: ArrayView3<'b, E>,
    pub(super) first: [ArrayView2<'b, E>; N],
    pub(super) kept: [ArrayViewMut3<'b, E>; K],
    pub(super) states: [ArrayViewMut3<'b, E>; N],
}

/// A step of a [`Band`]: the states that enter it, what it keeps, and the states that it leaves.
pub(super) struct BandStep<'s, E, const K: usize, const N: usize> {
    pub(super) at: At<'s>,
    pub(super) before: [ArrayView2<'s, E>; N],
    pub(super) kept: [ArrayViewMut2<'s, E>; K],
    pub(super) states: [ArrayViewMut2<'s, E>; N],
}

impl<E, const K: usize, const N: usize> BandStep<'_, E, K, N> {
    /// The step of a cell, tile by tile.
    fn compute(self, cell: &impl TiledCell<E, K, N>, products: InputProducts<'_>) {
        let BandStep { at, before, kept, states } = self;
        cell.step(Step { at, products, before }, kept, states);
    }
}

impl<E: Storage, const K: usize, const N: usize> Outputs<'_, E, K, N> {
    /// Bands of `rows` rows of the batch.
    fn bands<'b, 's: 'b>(
        &'b mut self,
        sequence: &Sequence<'s, E, N>,
        rows: usize,
    ) -> impl Iterator<Item = Band<'b, E, K, N>> {
        let Sequence { lengths, x, first, .. } = *sequence;
        let ranges = parts(0..first[0].nrows(), rows);
        let parts = cut(&mut self.kept, rows).zip(cut(&mut self.states, rows));
        ranges.zip(parts).map(move |(rows, (kept, states))| Band {
            lengths: lengths.rows(rows.clone()),
            x: x.slice_move(s![.., rows.clone(), ..]),
            first: first.map(|state| tiles::rows(state, rows.clone())),
            kept,
            states,
        })
    }
}

impl<E: Storage, const K: usize, const N: usize> Band<'_, E, K, N> {
    /// Some steps. The products of x of several at once become the sums of the steps where they are. `w_x` are its
    /// weights, and whether those that are not packed are multiplied as pairs of terms.
    fn steps<W: Way<C, E, K, N>, C>(
        &mut self,
        context: &Context<'_>,
        cell: &C,
        steps: Range<usize>,
        Sums { columns, pitch, at_once, .. }: &Sums,
        (w_x, pairs): (Option<&[WeightsFrom<'_, E>]>, bool),
    ) {
        let rows = self.first[0].nrows();
        let len = pitch.map(|pitch| rows * pitch);
        let end = steps.end.min(self.lengths.longest());
        workspace::with(at_once * (len[0] + len[1]), |memory| {
            let (first, second) = memory.split_at_mut(at_once * len[0]);
            for steps in parts(steps, *at_once) {
                let known = steps.start..steps.end.min(end).max(steps.start);
                let [first, second] =
                    [&mut first[..known.len() * len[0]], &mut second[..known.len() * len[1]]];
                self.products(
                    context,
                    known.clone(),
                    [&mut *first, &mut *second],
                    columns,
                    (w_x, pairs),
                );
                let len = len.map(|len| len.max(1));
                W::steps(context, cell, self, known.clone(), [first, second], len);
                (known.end..steps.end).for_each(|t| self.clear(t));
            }
        });
    }

    /// Sets the sums of some steps to the products of their x.
    fn products(
        &self,
        context: &Context<'_>,
        steps: Range<usize>,
        sums: [&mut [f32]; 2],
        columns: &[Vec<Range<usize>>; 2],
        (w_x, pairs): (Option<&[WeightsFrom<'_, E>]>, bool),
    ) {
        if steps.is_empty() {
            return;
        }
        let x = self.x.slice(s![steps, .., ..]);
        for (n, (sums, columns)) in sums.into_iter().zip(columns).enumerate() {
            if sums.is_empty() {
                continue;
            }
            gemm::tile_in(context.isa, columns, sums, true, |tile| {
                tile.set_pairs(pairs);
                match w_x {
                    Some(w_x) => {
                        let (weights, first) = w_x[n];
                        tile.set_first(first);
                        tile.add_all(x.view(), weights);
                    }
                    None => tile.add_to_each(x.view()),
                }
            });
        }
    }

    /// Calls `work` with step `t`; if no row has it, what it writes becomes zero.
    fn step(&mut self, context: &Context<'_>, t: usize, work: impl FnOnce(BandStep<'_, E, K, N>)) {
        let Band { lengths, first, .. } = *self;
        if t >= lengths.longest() {
            return self.clear(t);
        }
        let (_, kept) = at_step(&mut self.kept, t);
        let (done, states) = at_step(&mut self.states, t);
        let before = array::from_fn(|n| state_before(t, first[n], done[n].view()));
        work(BandStep { at: At { context, rows: Rows { lengths, t } }, before, kept, states });
    }

    /// A step that no row has.
    fn clear(&mut self, t: usize) {
        let (_, mut kept) = at_step(&mut self.kept, t);
        let (_, mut states) = at_step(&mut self.states, t);
        kept.iter_mut().chain(&mut states).for_each(|output| output.fill(E::ZERO));
    }
}
