//! `GRUBlockCellGrad`, the backward step.

use ndarray::{ArrayView2, ArrayViewMut2, Axis};

use super::step;
use crate::activation::Usual;
use crate::elementwise::{self, Computed, Elements, Equation, Pass};
use crate::executor::for_each;
use crate::gemm;
use crate::ops::{GRU_BLOCK_CELL_GRAD, Keeps, Sizes};
use crate::simd::Simd;
use crate::tiles::Tiling;
use crate::tuning::WHOLE_ROWS_MULTIPLY_ADDS;
use crate::{Context, Error};

pub use crate::ops::gru::{BlockCellGradInputs, BlockCellGradOutputs};

/// `GRUBlockCellGrad`: the backward step for a loss that depends on h only.
///
/// ```text
/// d_c_bar      = d_h * (1 - u) * (1 - c * c)
/// d_u_bar      = d_h * (h_prev - c) * u * (1 - u)
/// [dx2 | d_hr] = d_c_bar @ w_c^T
/// d_r_bar      = d_hr * h_prev * r * (1 - r)
/// [dx1 | dh1]  = [d_r_bar | d_u_bar] @ w_ru^T
/// d_x          = dx1 + dx2
/// d_h_prev     = dh1 + d_hr * r + d_h * u
/// ```
///
/// These follow from the forward equations by the chain rule; the formulas in TensorFlow's API documentation of this
/// operation are wrong.
///
/// The order of summation depends on the number of rows, and so do the last bits of `d_x`, `d_h_prev` and the reset
/// gate's gradient.
///
/// # Errors
///
/// If a tensor has the wrong shape or layout. Nothing is written then.
pub fn block_cell_grad(
    context: &Context<'_>,
    inputs: BlockCellGradInputs<'_>,
    outputs: BlockCellGradOutputs<'_>,
) -> Result<(), Error> {
    let op = &GRU_BLOCK_CELL_GRAD;
    let sizes = op.check_call(false, &inputs, &outputs, Keeps::All)?;
    if let Some(rows) = rows_at_once(&sizes) {
        by_rows(context, rows, &inputs, outputs);
        return Ok(());
    }
    let cell_size = sizes.cell_size;
    let BlockCellGradOutputs { d_x, mut d_h_prev, mut d_c_bar, mut d_r_bar_u_bar } = outputs;
    let BlockCellGradInputs { h_prev, u, c, d_h, .. } = inputs;

    let (_, d_u_bar) = d_r_bar_u_bar.view_mut().split_at(Axis(1), cell_size);
    let passed = [d_c_bar.view_mut(), d_u_bar];
    elementwise::map(context, CandidateAndUpdate, [h_prev, u, c, d_h], passed, []);

    let d_c_bar = d_c_bar.view();
    let (d_r_bar, _) = d_r_bar_u_bar.view_mut().split_at(Axis(1), cell_size);
    reset_gate(context, &inputs, d_c_bar, [d_r_bar, d_h_prev.view_mut()]);

    input_and_state(context, &inputs, d_c_bar, d_r_bar_u_bar.view(), d_x, d_h_prev);
    Ok(())
}

/// The rows that a task computes all of, where it has little to do: with few cells, parallel sections and copies of
/// factors would take longer than the products. They depend on the shapes alone, as the order of additions does.
fn rows_at_once(&Sizes { batch, input_size, cell_size, .. }: &Sizes) -> Option<usize> {
    let rows = gemm::most_rows(batch);
    let weights = input_size.checked_add(cell_size)?.checked_mul(cell_size)?.checked_mul(3)?;
    (cell_size > 0 && weights.checked_mul(rows)? <= WHOLE_ROWS_MULTIPLY_ADDS).then_some(rows)
}

/// The step in parts of `rows` rows.
fn by_rows(
    context: &Context<'_>,
    rows: usize,
    inputs: &BlockCellGradInputs<'_>,
    outputs: BlockCellGradOutputs<'_>,
) {
    let BlockCellGradInputs { x, h_prev, w_ru, w_c, r, u, c, d_h, .. } = *inputs;
    let (input_size, cells) = (x.ncols(), h_prev.ncols());
    let BlockCellGradOutputs { mut d_x, mut d_h_prev, mut d_c_bar, mut d_r_bar_u_bar } = outputs;
    let mut parts = [&mut d_x, &mut d_h_prev, &mut d_c_bar, &mut d_r_bar_u_bar]
        .map(|output| output.axis_chunks_iter_mut(Axis(0), rows));
    let places = Tiling { rows, columns: cells }.places(h_prev.dim());
    let parts = places.map(|place| {
        (place, parts.each_mut().map(|parts| parts.next().expect("a part for each place")))
    });
    let Context { isa, executor, .. } = *context;
    let cost = gemm::cost(Tiling { rows, columns: input_size + cells }, 1, 3 * cells);
    let strips = [0..input_size, input_size..input_size + cells];
    for_each(executor, cost, parts.collect(), |(place, parts)| {
        let [d_x, d_h_prev, mut d_c_bar, mut d_ru] = parts;
        let [h_prev, r, u, c, d_h] = [h_prev, r, u, c, d_h].map(|input| place.of(input));
        let (_, d_u) = d_ru.view_mut().split_at(Axis(1), cells);
        let (equation, inputs, outputs) =
            (CandidateAndUpdate, [h_prev, u, c, d_h], [d_c_bar.view_mut(), d_u]);
        isa.run(Pass { equation, inputs, outputs, f32_operands: [], sums: [] });
        gemm::tile(isa, place.rows.len(), &strips, |tile| {
            tile.add_nt(d_c_bar.view(), w_c);
            let [_, state] = tile.strips_mut();
            let (d_r, _) = d_ru.view_mut().split_at(Axis(1), cells);
            let (equation, inputs) = (ResetGate, [h_prev, r, u, d_h]);
            isa.run(Pass { equation, inputs, outputs: [d_r], f32_operands: [state], sums: [] });
            tile.add_nt(d_ru.view(), w_ru);
            tile.store_each([d_x, d_h_prev]);
        });
    });
}

#[derive(Clone, Copy)]
struct CandidateAndUpdate;

impl Equation<4, 2> for CandidateAndUpdate {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 4, 2>) -> Computed<S::F32, 2> {
        let Elements { inputs: [h_prev, u, c, d_h], .. } = at;
        (step::through_state(simd, Usual, d_h, h_prev, u, c), [], [])
    }
}

/// The part of the first product that the reset gate needs, `d_hr`, and the gate's own equations on
/// each tile of it, while the tile is in cache. `d_h_prev` becomes `d_hr * r + d_h * u`.
fn reset_gate(
    context: &Context<'_>,
    inputs: &BlockCellGradInputs<'_>,
    d_c_bar: ArrayView2<'_, f32>,
    outputs: [ArrayViewMut2<'_, f32>; 2],
) {
    let BlockCellGradInputs { x, h_prev, w_c, r, u, d_h, .. } = *inputs;
    let (_, w_c_state) = w_c.split_at(Axis(0), x.ncols());
    let depth = w_c.ncols();
    let tiling = gemm::transposed_tiling(context, h_prev.dim(), depth);
    let Context { isa, executor, .. } = *context;
    let cost = gemm::cost(tiling, 1, depth);
    let tiles = tiling.places(h_prev.dim()).zip(tiling.split_each(outputs));
    for_each(executor, cost, tiles.collect(), |(place, outputs)| {
        gemm::tile_at(isa, &place, |tile| {
            tile.add_nt(place.rows_of(d_c_bar), w_c_state);
            let [h_prev, r, u, d_h] = [h_prev, r, u, d_h].map(|input| place.of(input));
            let [d_hr] = tile.strips_mut();
            let (equation, inputs) = (ResetGate, [h_prev, r, u, d_h, d_hr.view()]);
            isa.run(Pass { equation, inputs, outputs, f32_operands: [], sums: [] });
        });
    });
}

#[derive(Clone, Copy)]
struct ResetGate;

impl ResetGate {
    /// `d_r_bar`, and what becomes `d_h_prev`.
    #[inline(always)]
    fn of<S: Simd>(simd: S, [h_prev, r, u, d_h]: [S::F32; 4], d_hr: S::F32) -> [S::F32; 2] {
        [step::through_reset(simd, Usual, d_hr, h_prev, r), d_hr * r + d_h * u]
    }
}

impl Equation<5, 2> for ResetGate {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 5, 2>) -> Computed<S::F32, 2> {
        let Elements { inputs: [h_prev, r, u, d_h, d_hr], .. } = at;
        (ResetGate::of(simd, [h_prev, r, u, d_h], d_hr), [], [])
    }
}

/// With what becomes `d_h_prev` in place of `d_hr`.
impl Equation<4, 1, 0, 1> for ResetGate {
    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 4, 1, 1>) -> Computed<S::F32, 1, 1> {
        let Elements { inputs, f32_operands: [d_hr], .. } = at;
        let [d_r_bar, d_h_prev] = ResetGate::of(simd, inputs, d_hr);
        ([d_r_bar], [d_h_prev], [])
    }
}

/// The rest of the first product, and the second one: all of `d_x`, and `dh1` added to `d_h_prev`.
fn input_and_state(
    context: &Context<'_>,
    inputs: &BlockCellGradInputs<'_>,
    d_c_bar: ArrayView2<'_, f32>,
    d_r_bar_u_bar: ArrayView2<'_, f32>,
    d_x: ArrayViewMut2<'_, f32>,
    d_h_prev: ArrayViewMut2<'_, f32>,
) {
    let input_size = d_x.ncols();
    let (w_c_input, _) = inputs.w_c.split_at(Axis(0), input_size);
    let (w_ru_input, w_ru_state) = inputs.w_ru.split_at(Axis(0), input_size);
    let depth = d_r_bar_u_bar.ncols();
    let tiling = |shape| gemm::transposed_tiling(context, shape, depth);
    let (tiling_x, tiling_state) = (tiling(d_x.dim()), tiling(d_h_prev.dim()));
    let of_input = tiling_x.tiles(d_x).map(|tile| (tile, w_ru_input, Some(w_c_input)));
    let of_state = tiling_state.tiles(d_h_prev).map(|tile| (tile, w_ru_state, None));
    let tiles = of_input.chain(of_state);
    let Context { isa, executor, .. } = *context;
    let cost = gemm::cost(tiling_x, 1, depth).max(gemm::cost(tiling_state, 1, depth));
    for_each(executor, cost, tiles.collect(), |((place, out), w_ru, w_c)| {
        gemm::tile_at(isa, &place, |tile| {
            tile.add_nt(place.rows_of(d_r_bar_u_bar), w_ru);
            let Some(w_c) = w_c else { return tile.add_to(out) };
            tile.add_nt(place.rows_of(d_c_bar), w_c);
            tile.store(out);
        });
    });
}
