//! The forward step as a cell of the engine, and equations of the backward step.

use std::ops::Range;

use ndarray::{ArrayView1, ArrayView2, ArrayViewMut2, Axis};

use crate::activation::{Activations, Functions, Usual};
use crate::elementwise::{Computed, Elements, Equation, Row};
use crate::gemm::{RowLanes, gates, padded};
use crate::recurrence::{
    At, ColumnSums, GroupedCell, GroupedProduct, Grouping, Input, Phase, Product, Products,
    RowStep, Step, StepCell, TiledCell, copy_padded,
};
use crate::simd::Simd;
use crate::tiles::{Place, Tiling, every_row};
use crate::{Isa, Storage};

/// The order of the gates in weights and biases.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum GruOrder {
    /// The reset gate, then the update gate: that of `GRUBlockCell`.
    #[default]
    ResetFirst,
    /// Keras's.
    UpdateFirst,
}

impl GruOrder {
    /// The reset gate's and the update gate's, from both in this order.
    #[inline(always)]
    pub(crate) fn sort<T>(self, [first, second]: [T; 2]) -> [T; 2] {
        if self == GruOrder::ResetFirst { [first, second] } else { [second, first] }
    }
}

/// Products of the gates in some order, as a step wants them.
struct Sorted<P>(P, GruOrder);

impl<P: Products<2>> Products<2> for Sorted<P> {
    fn tiles(&self) -> (Tiling, u64) {
        self.0.tiles()
    }

    fn at(&self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; 2])) {
        self.0.at(isa, place, |gates| work(self.1.sort(gates)));
    }

    fn whole(self, isa: Isa, place: &Place, work: impl FnOnce([ArrayViewMut2<'_, f32>; 2])) {
        let Sorted(products, order) = self;
        products.whole(isa, place, |gates| work(order.sort(gates)));
    }
}

/// What a step adds to products.
#[derive(Clone, Copy)]
pub(crate) struct GruStep<'a, E> {
    pub(crate) activations: Activations,
    pub(crate) order: GruOrder,
    /// In this order.
    pub(crate) b_ru: ArrayView1<'a, E>,
    pub(crate) b_c: ArrayView1<'a, E>,
    /// The bias of the candidate's product with the state, where the reset comes after it.
    pub(crate) b_hc: Option<ArrayView1<'a, E>>,
    /// Whether the update gate is the share of the candidate in the new state, which no cell has where the reset comes after
    /// the product. Otherwise it is that of the old state.
    pub(crate) u_weighs_c: bool,
}

impl<E: Storage> GruStep<'_, E> {
    /// A step where the reset comes before the candidate's product: r, u and `r * h_prev`, from products
    /// `[x | h_prev] @ w_ru`, and then c and h, from the input for the candidate and the product of its weights with
    /// `r * h_prev`.
    pub(crate) fn reset_before(
        &self,
        at: At<'_>,
        gates: impl Products<2>,
        (input, candidate): (Input<'_, E>, &Product<'_, E, 1>),
        h_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 5],
    ) {
        let products = (gates, input, candidate);
        match self.activations.are_usual() {
            true => self.reset_before_with(Usual, at, products, h_prev, outputs),
            false => self.reset_before_with(self.activations, at, products, h_prev, outputs),
        }
    }

    fn reset_before_with(
        &self,
        functions: impl Functions,
        at: At<'_>,
        (gates, input, candidate): (impl Products<2>, Input<'_, E>, &Product<'_, E, 1>),
        h_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 5],
    ) {
        let rows = h_prev.nrows();
        let [b_r, b_u] = self.gate_biases(rows);
        let [r, mut u, c, mut hc, h] = outputs;
        let outputs = [r, u.view_mut(), hc.view_mut()];
        Phase::new(Gates(functions), [h_prev, b_r, b_u], outputs).run(at, gates);
        let inputs = [h_prev, u.view(), every_row(self.b_c, rows)];
        let products = candidate.after(input, at.rows, Some(hc.view()));
        if self.u_weighs_c {
            Phase::new(Candidate::<_, true>(functions), inputs, [c, h]).run(at, products);
        } else {
            Phase::new(Candidate::<_, false>(functions), inputs, [c, h]).run(at, products);
        }
    }

    /// A step where the reset comes after the candidate's product: r, u, c, hc and h. Products are those of r and u and
    /// that of the state for the candidate; `of_x` is that of x for the candidate.
    fn reset_after(
        &self,
        at: At<'_>,
        products: impl Products<3>,
        of_x: ArrayViewMut2<'_, f32>,
        b_hc: ArrayView1<'_, E>,
        h_prev: ArrayView2<'_, E>,
        outputs: [ArrayViewMut2<'_, E>; 5],
    ) {
        let rows = h_prev.nrows();
        let [b_r, b_u] = self.gate_biases(rows);
        let [b_c, b_hc] = [self.b_c, b_hc].map(|b| every_row(b, rows));
        let inputs = [h_prev, b_r, b_u, b_c, b_hc];
        let (f32_operands, sums) = ([of_x], ColumnSums::none());
        match self.activations {
            one if one.are_usual() => {
                let equation = ResetAfter(Usual);
                Phase { equation, inputs, outputs, f32_operands, sums }.run(at, products);
            }
            any => {
                let equation = ResetAfter(any);
                Phase { equation, inputs, outputs, f32_operands, sums }.run(at, products);
            }
        }
    }

    fn gate_biases(&self, rows: usize) -> [ArrayView2<'_, E>; 2] {
        let both = self.b_ru.split_at(Axis(0), self.b_ru.len() / 2);
        self.order.sort(both.into()).map(|b| every_row(b, rows))
    }
}

/// The cell over a sequence. It keeps r, u, c and hc; its state is h.
pub(crate) struct Gru<'a, 'w, E> {
    pub(crate) step: GruStep<'a, E>,
    pub(crate) gates: Product<'w, E, 2>,
    pub(crate) candidate: Product<'w, E, 1>,
}

impl<E: Storage> StepCell<E, 4, 1> for Gru<'_, '_, E> {
    const GATES: [usize; 2] = [2, 1];

    fn tiles(&self) -> (Tiling, u64) {
        (self.gates.tiling, self.gates.cost() + self.candidate.cost())
    }
}

impl<E: Storage> TiledCell<E, 4, 1> for Gru<'_, '_, E> {
    fn step(
        &self,
        step: Step<'_, '_, E, 1>,
        [r, u, c, hc]: [ArrayViewMut2<'_, E>; 4],
        [h]: [ArrayViewMut2<'_, E>; 1],
    ) {
        let Step { at, products, before: [h_prev] } = step;
        let outputs = [r, u, c, hc, h];
        let [of_gates, of_candidate] = products.split(2 * h_prev.ncols());
        let gates = self.gates.after(Input::Products(of_gates), at.rows, Some(h_prev));
        let gates = Sorted(gates, self.step.order);
        if let Some(b_hc) = self.step.b_hc {
            let products = (gates, self.candidate.of(at.rows, Some(h_prev)));
            let of_x = of_candidate.of_gate(h_prev.dim());
            return self.step.reset_after(at, products, of_x, b_hc, h_prev, outputs);
        }
        let input = Input::Products(of_candidate);
        self.step.reset_before(at, gates, (input, &self.candidate), h_prev, outputs);
    }
}

/// The same for few rows, where the reset comes after the product.
pub(crate) struct GroupedGru<'a, 'w, E> {
    pub(crate) step: GruStep<'a, E>,
    pub(crate) grouping: Grouping,
    pub(crate) gates: GroupedProduct<'w, 2>,
    pub(crate) candidate: GroupedProduct<'w, 1>,
}

impl<E: Storage> StepCell<E, 4, 1> for GroupedGru<'_, '_, E> {
    const GATES: [usize; 2] = [2, 1];

    fn tiles(&self) -> (Tiling, u64) {
        (self.grouping.tiling, self.gates.cost() + self.candidate.cost())
    }
}

impl<E: Storage> GroupedCell<E, 4, 1> for GroupedGru<'_, '_, E> {
    // Those of the candidate with x and with the state are not added up.
    const SUMS: usize = 4;

    fn row_lanes(&self) -> RowLanes {
        self.gates.row_lanes()
    }

    fn group_width(&self) -> usize {
        self.grouping.width
    }

    #[inline(always)]
    fn sums<S: Simd>(
        &self,
        simd: S,
        rows: &[Option<RowStep<'_, E, 4, 1>>],
        cells: &Range<usize>,
        sums: &mut [f32],
    ) {
        let (size, rows) = (padded(cells.len()), rows.iter().flatten());
        let pitch = 4 * size;
        let of_gates = rows.clone().map(|row| (Some(row.products[0]), row.left));
        self.gates.sum(simd, cells, of_gates, (&mut *sums, pitch));
        let of_candidate = rows.clone().map(|row| (None, row.left));
        self.candidate.sum(simd, cells, of_candidate, (&mut sums[2 * size..], pitch));
        for (row, sums) in rows.zip(sums.chunks_exact_mut(pitch)) {
            copy_padded(simd, &row.products[1][cells.clone()], &mut sums[3 * size..]);
        }
    }

    #[inline(always)]
    fn finish<S: Simd>(
        &self,
        simd: S,
        row: &mut RowStep<'_, E, 4, 1>,
        cells: &Range<usize>,
        sums: &mut [f32],
    ) {
        let [h_prev] = row.before;
        let ([r, u, c, hc], [h]) = row.outputs(cells);
        let outputs = [r, u, c, hc, h];
        let all = h_prev.len();
        let GruStep { activations, order, b_ru, b_c, b_hc, .. } = self.step;
        let b_ru = b_ru.to_slice().expect("a vector without gaps");
        let [b_c, b_hc] = [Some(b_c), b_hc]
            .map(|b| &b.and_then(|b| b.to_slice()).expect("a vector without gaps")[cells.clone()]);
        let [b_r, b_u] = order.sort([&b_ru[cells.clone()], &b_ru[all..][cells.clone()]]);
        let inputs = [&h_prev[cells.clone()], b_r, b_u, b_c, b_hc];
        let [first, second, hc, c] = gates(sums, cells.len());
        let [r, u] = order.sort([first, second]);
        let f32_operands = [r, u, hc, c];
        if activations.are_usual() {
            let equation = ResetAfter(Usual);
            simd.enter(Row { equation, inputs, outputs, f32_operands, sums: [] });
        } else {
            let equation = ResetAfter(activations);
            simd.enter(Row { equation, inputs, outputs, f32_operands, sums: [] });
        }
    }
}

/// The gates, and the state as it enters the candidate's product where the reset comes before it:
/// from h_prev and the biases, `[r, u, r * h_prev]`.
#[derive(Clone, Copy)]
struct Gates<F>(F);

impl<F: Functions> Equation<3, 3, 0, 2> for Gates<F> {
    const PAIR_VECTORS: bool = true;
    const READ_ONLY: usize = 2;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 3, 3, 2>) -> Computed<S::F32, 3, 2> {
        let Elements { inputs: [h_prev, b_r, b_u], f32_operands: products, .. } = at;
        let r = self.0.gate(simd, products[0] + b_r);
        let u = self.0.gate(simd, products[1] + b_u);
        ([r, u, r * h_prev], products, [])
    }
}

/// The candidate and the new state, from h_prev, u and the bias: `[c, h]`.
#[derive(Clone, Copy)]
struct Candidate<F, const U_WEIGHS_C: bool>(F);

impl<F: Functions, const U_WEIGHS_C: bool> Equation<3, 2, 0, 1> for Candidate<F, U_WEIGHS_C> {
    const PAIR_VECTORS: bool = true;
    const READ_ONLY: usize = 1;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 3, 2, 1>) -> Computed<S::F32, 2, 1> {
        let Elements { inputs: [h_prev, u, b_c], f32_operands: [product], .. } = at;
        let c = self.0.state(simd, product + b_c);
        let share = if U_WEIGHS_C { simd.splat(1.0) - u } else { u };
        ([c, state(simd, h_prev, share, c)], [product], [])
    }
}

/// `u * h_prev + (1 - u) * c`
#[inline(always)]
fn state<S: Simd>(simd: S, h_prev: S::F32, u: S::F32, c: S::F32) -> S::F32 {
    simd.mul_add(u, h_prev - c, c)
}

/// A whole step where the reset comes after the product, from h_prev and the biases:
/// `[r, u, c, hc, h]`. The products are those of r, of u, of the state for the candidate and of x
/// for the candidate.
#[derive(Clone, Copy)]
struct ResetAfter<F>(F);

impl<F: Functions> Equation<5, 5, 0, 4> for ResetAfter<F> {
    const PAIR_VECTORS: bool = true;
    const READ_ONLY: usize = 4;

    #[inline(always)]
    fn apply<S: Simd>(self, simd: S, at: Elements<S::F32, 5, 5, 4>) -> Computed<S::F32, 5, 4> {
        let Elements { inputs: [h_prev, b_r, b_u, b_c, b_hc], f32_operands: products, .. } = at;
        let [z_r, z_u, z_hc, z_c] = products;
        let r = self.0.gate(simd, z_r + b_r);
        let u = self.0.gate(simd, z_u + b_u);
        let hc = z_hc + b_hc;
        let c = self.0.state(simd, simd.mul_add(r, hc, z_c + b_c));
        ([r, u, c, hc, state(simd, h_prev, u, c)], products, [])
    }
}

/// `[d_c_bar, d_u_bar]`, from the gradient with respect to the new state: backward through
/// `h = u * h_prev + (1 - u) * c`.
#[inline(always)]
pub(crate) fn through_state<S: Simd>(
    simd: S,
    functions: impl Functions,
    d_h: S::F32,
    h_prev: S::F32,
    u: S::F32,
    c: S::F32,
) -> [S::F32; 2] {
    let one = simd.splat(1.0);
    let d_c_bar = functions.state_grad(simd, d_h * (one - u), c);
    let d_u_bar = functions.gate_grad(simd, d_h * (h_prev - c), u);
    [d_c_bar, d_u_bar]
}

/// `d_r_bar`: backward through `r * factor`, where r is a gate. `d` is the gradient with respect to that product.
#[inline(always)]
pub(crate) fn through_reset<S: Simd>(
    simd: S,
    functions: impl Functions,
    d: S::F32,
    factor: S::F32,
    r: S::F32,
) -> S::F32 {
    functions.gate_grad(simd, d * factor, r)
}
