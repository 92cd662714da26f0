//! The operations behind one trait, so that a test is written once for all of them.

use std::marker::PhantomData;

use blockcell::ops::{GRU_BLOCK_CELL_GRAD, LSTM_BLOCK_CELL_GRAD, Op};
use blockcell::{Context, Element, Error, gru, lstm};
use half::f16;
use ndarray::{
    Array, Array1, Array2, ArrayD, ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2, Dimension,
    IxDyn,
};

use super::Tensors;
use super::compare::close;
use super::data::{Data, Sizes};
use super::oracle::{GruCell, LstmCell, LstmState};

/// An operation with an element type and attributes, and what the tests have to know of it.
pub(crate) trait Kernel: Sync {
    /// For messages.
    fn name(&self) -> String;

    fn op(&self) -> &'static Op;

    fn use_peephole(&self) -> bool {
        false
    }

    /// The scaled error allowed on each output.
    fn tolerance(&self) -> f64;

    /// Rounds to the element type.
    fn round(&self) -> fn(f64) -> f64;

    /// Inputs as they are in training: activations are those of a forward step.
    fn inputs(&self, sizes: Sizes, seed: u64) -> Tensors;

    /// The shapes of all inputs. Peephole weights without peepholes have odd lengths.
    fn input_shapes(&self, sizes: Sizes) -> Vec<Vec<usize>>;

    /// The shapes of all outputs.
    fn output_shapes(&self, sizes: Sizes) -> Vec<Vec<usize>>;

    /// Inputs whose values must not matter.
    fn unread(&self) -> &'static [&'static str];

    /// Inputs that are gradients: the outputs are linear in them all together.
    fn gradients(&self) -> &'static [&'static str];

    /// Calls the kernel. Previous contents of `outputs` are there when it runs.
    fn run(
        &self,
        context: &Context<'_>,
        inputs: &Tensors,
        outputs: &mut Tensors,
    ) -> Result<(), Error>;

    /// What the oracle says.
    fn want(&self, inputs: &Tensors) -> Tensors;
}

/// Every operation with every element type, and with and without peepholes.
pub(crate) fn kernels() -> Vec<Box<dyn Kernel>> {
    vec![
        Box::new(GruBlockCellGrad),
        Box::new(LstmBlockCellGrad::<f32>::new(false)),
        Box::new(LstmBlockCellGrad::<f32>::new(true)),
        Box::new(LstmBlockCellGrad::<f16>::new(false)),
        Box::new(LstmBlockCellGrad::<f16>::new(true)),
    ]
}

impl dyn Kernel + '_ {
    /// The place of an input.
    pub(crate) fn input(&self, name: &str) -> usize {
        let found = self.op().inputs.iter().position(|tensor| tensor.name == name);
        found.unwrap_or_else(|| panic!("{} has no input {name}", self.op().name))
    }

    /// Inputs and what the oracle says of them, such that an implementation in `f32` can be as close
    /// as the tolerance demands: where a sum happens to cancel so far that the rounding of the
    /// inputs alone matters, other data is drawn. The oracle decides that, not the kernel.
    pub(crate) fn inputs_and_want(&self, sizes: Sizes, seed: u64) -> (Tensors, Tensors) {
        for attempt in 0..100 {
            let inputs = self.inputs(sizes, seed + 1_000_000 * attempt);
            let want = self.want(&inputs);
            let mut data = Data::new(seed, |v| v);
            let nearby = inputs.iter().map(|tensor| {
                let errors = data.uniform(tensor.shape(), f64::from(f32::EPSILON) / 2.0);
                tensor * (1.0 + errors)
            });
            let limit =
                |name: &str, got: &_, want: &_| close(name, got, want, self.tolerance() / 5.0);
            if self.compare(&self.want(&nearby.collect()), &want, limit).is_ok() {
                return (inputs, want);
            }
        }
        panic!("{}, {sizes:?}: no well-conditioned data", self.name());
    }

    /// The outputs of a call that must succeed, and that has to write all of them: they are full of
    /// NaN before.
    pub(crate) fn outputs(&self, context: &Context<'_>, sizes: Sizes, inputs: &Tensors) -> Tensors {
        let mut outputs = filled(&self.output_shapes(sizes), f64::NAN);
        if let Err(error) = self.run(context, inputs, &mut outputs) {
            panic!("{}, {sizes:?}: {error}", self.name());
        }
        outputs
    }

    /// Compares every output by `compare`, and joins what it has to say.
    pub(crate) fn compare(
        &self,
        got: &Tensors,
        want: &Tensors,
        compare: impl Fn(&str, &ArrayD<f64>, &ArrayD<f64>) -> Result<(), String>,
    ) -> Result<(), String> {
        let names = self.op().outputs.iter().map(|tensor| tensor.name);
        assert_eq!((got.len(), want.len()), (names.len(), names.len()));
        let pairs = names.zip(got.iter().zip(want));
        let wrong: Vec<_> = pairs.filter_map(|(name, (g, w))| compare(name, g, w).err()).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
    }
}

/// Tensors of `shapes`, full of `value`.
pub(crate) fn filled(shapes: &[Vec<usize>], value: f64) -> Tensors {
    shapes.iter().map(|shape| ArrayD::from_elem(IxDyn(shape), value)).collect()
}

/// `GRUBlockCellGrad`.
pub(crate) struct GruBlockCellGrad;

impl Kernel for GruBlockCellGrad {
    fn name(&self) -> String {
        self.op().name.to_owned()
    }

    fn op(&self) -> &'static Op {
        &GRU_BLOCK_CELL_GRAD
    }

    fn tolerance(&self) -> f64 {
        1e-6
    }

    fn round(&self) -> fn(f64) -> f64 {
        round::<f32>
    }

    fn inputs(&self, sizes: Sizes, seed: u64) -> Tensors {
        let mut data = Data::new(seed, self.round());
        let shapes = self.input_shapes(sizes);
        let [x, h_prev, _, _, b_ru, b_c, _, _, _, d_h] = take(&shapes);
        let rows = sizes.input_size + sizes.cell_size;
        let (x, h_prev) = (data.uniform(x, 1.0), data.uniform(h_prev, 1.0));
        let w_ru = data.weights(rows, 2 * sizes.cell_size);
        let w_c = data.weights(rows, sizes.cell_size);
        let (b_ru, b_c) = (data.uniform(b_ru, 0.5), data.uniform(b_c, 0.5));
        let state = gru_cell([&x, &h_prev, &w_ru, &w_c, &b_ru, &b_c]).forward();
        let [r, u, c] = [&state.r, &state.u, &state.c].map(|gate| data.rounded(gate));
        vec![x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, data.uniform(d_h, 1.0)]
    }

    fn input_shapes(
        &self,
        Sizes { batch: b, input_size: d, cell_size: c }: Sizes,
    ) -> Vec<Vec<usize>> {
        let state = vec![b, c];
        let mut shapes = vec![vec![b, d], state.clone(), vec![d + c, 2 * c], vec![d + c, c]];
        shapes.extend([vec![2 * c], vec![c]]);
        shapes.extend(std::iter::repeat_n(state, 4));
        shapes
    }

    fn output_shapes(
        &self,
        Sizes { batch: b, input_size: d, cell_size: c }: Sizes,
    ) -> Vec<Vec<usize>> {
        vec![vec![b, d], vec![b, c], vec![b, c], vec![b, 2 * c]]
    }

    fn unread(&self) -> &'static [&'static str] {
        &["x", "b_ru", "b_c"]
    }

    fn gradients(&self) -> &'static [&'static str] {
        &["d_h"]
    }

    fn run(
        &self,
        context: &Context<'_>,
        inputs: &Tensors,
        outputs: &mut Tensors,
    ) -> Result<(), Error> {
        let inputs = stored::<f32>(inputs);
        let mut results = stored::<f32>(outputs);
        let [x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h] = take(&inputs);
        let inputs = gru::BlockCellGradInputs {
            x: matrix(x),
            h_prev: matrix(h_prev),
            w_ru: matrix(w_ru),
            w_c: matrix(w_c),
            b_ru: vector(b_ru),
            b_c: vector(b_c),
            r: matrix(r),
            u: matrix(u),
            c: matrix(c),
            d_h: matrix(d_h),
        };
        let [d_x, d_h_prev, d_c_bar, d_r_bar_u_bar] = take_mut(&mut results);
        let views = gru::BlockCellGradOutputs {
            d_x: matrix_mut(d_x),
            d_h_prev: matrix_mut(d_h_prev),
            d_c_bar: matrix_mut(d_c_bar),
            d_r_bar_u_bar: matrix_mut(d_r_bar_u_bar),
        };
        let result = gru::block_cell_grad(context, inputs, views);
        *outputs = restored(&results);
        result
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let [x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h] = take(inputs);
        let cell = gru_cell([x, h_prev, w_ru, w_c, b_ru, b_c]);
        let [r, u, c, d_h] = [r, u, c, d_h].map(to_matrix);
        let grad = cell.grad(&r, &u, &c, &d_h);
        [grad.d_x, grad.d_h_prev, grad.d_c_bar, grad.d_r_bar_u_bar].map(Array::into_dyn).to_vec()
    }
}

fn gru_cell([x, h_prev, w_ru, w_c, b_ru, b_c]: [&ArrayD<f64>; 6]) -> GruCell {
    let [x, h_prev, w_ru, w_c] = [x, h_prev, w_ru, w_c].map(to_matrix);
    GruCell { x, h_prev, w_ru, w_c, b_ru: to_vector(b_ru), b_c: to_vector(b_c) }
}

/// `LSTMBlockCellGrad`.
pub(crate) struct LstmBlockCellGrad<E> {
    use_peephole: bool,
    element: PhantomData<fn(E)>,
}

impl<E> LstmBlockCellGrad<E> {
    pub(crate) fn new(use_peephole: bool) -> Self {
        LstmBlockCellGrad { use_peephole, element: PhantomData }
    }
}

impl<E: Element> Kernel for LstmBlockCellGrad<E> {
    fn name(&self) -> String {
        let peepholes = if self.use_peephole { "with" } else { "without" };
        format!("{} of {}, {peepholes} peepholes", self.op().name, std::any::type_name::<E>())
    }

    fn op(&self) -> &'static Op {
        &LSTM_BLOCK_CELL_GRAD
    }

    fn use_peephole(&self) -> bool {
        self.use_peephole
    }

    fn tolerance(&self) -> f64 {
        if size_of::<E>() == size_of::<f32>() { 1e-6 } else { 1e-3 }
    }

    fn round(&self) -> fn(f64) -> f64 {
        round::<E>
    }

    fn inputs(&self, sizes: Sizes, seed: u64) -> Tensors {
        let mut data = Data::new(seed, self.round());
        let shapes = self.input_shapes(sizes);
        let [x, cs_prev, h_prev, _, wci, wcf, wco, b, .., cs_grad, h_grad] = take::<_, 16>(&shapes);
        let x = data.uniform(x, 1.0);
        let (cs_prev, h_prev) = (data.uniform(cs_prev, 2.0), data.uniform(h_prev, 1.0));
        let w = data.weights(sizes.input_size + sizes.cell_size, 4 * sizes.cell_size);
        let [wci, wcf, wco] = [wci, wcf, wco].map(|shape| data.uniform(shape, 0.5));
        let b = data.uniform(b, 0.5);
        let cell = self.cell([&x, &cs_prev, &h_prev, &w, &wci, &wcf, &wco, &b]);
        let LstmState { i, cs, f, o, ci, co, h: _ } = cell.forward();
        let [i, cs, f, o, ci, co] = [i, cs, f, o, ci, co].map(|gate| data.rounded(&gate));
        let (cs_grad, h_grad) = (data.uniform(cs_grad, 1.0), data.uniform(h_grad, 1.0));
        vec![x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad]
    }

    fn input_shapes(
        &self,
        Sizes { batch: b, input_size: d, cell_size: c }: Sizes,
    ) -> Vec<Vec<usize>> {
        let state = vec![b, c];
        let mut shapes = vec![vec![b, d], state.clone(), state.clone(), vec![d + c, 4 * c]];
        shapes.extend(self.peephole_lengths(c).map(|length| vec![length]));
        shapes.push(vec![4 * c]);
        shapes.extend(std::iter::repeat_n(state, 8));
        shapes
    }

    fn output_shapes(&self, Sizes { batch: b, cell_size: c, .. }: Sizes) -> Vec<Vec<usize>> {
        let [wci, wcf, wco] = self.peephole_lengths(c).map(|length| vec![length]);
        vec![vec![b, c], vec![b, 4 * c], wci, wcf, wco]
    }

    fn unread(&self) -> &'static [&'static str] {
        if self.use_peephole {
            &["x", "h_prev", "w", "b"]
        } else {
            &["x", "h_prev", "w", "b", "wci", "wcf", "wco", "cs"]
        }
    }

    fn gradients(&self) -> &'static [&'static str] {
        &["cs_grad", "h_grad"]
    }

    fn run(
        &self,
        context: &Context<'_>,
        inputs: &Tensors,
        outputs: &mut Tensors,
    ) -> Result<(), Error> {
        let inputs = stored::<E>(inputs);
        let mut results = stored::<E>(outputs);
        let [x, cs_prev, h_prev, w, wci, wcf, wco, b, gates @ ..] = take::<_, 16>(&inputs);
        let [i, cs, f, o, ci, co, cs_grad, h_grad] = gates.map(matrix);
        let inputs = lstm::BlockCellGradInputs {
            x: matrix(x),
            cs_prev: matrix(cs_prev),
            h_prev: matrix(h_prev),
            w: matrix(w),
            wci: vector(wci),
            wcf: vector(wcf),
            wco: vector(wco),
            b: vector(b),
            i,
            cs,
            f,
            o,
            ci,
            co,
            cs_grad,
            h_grad,
        };
        let [cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad] = take_mut(&mut results);
        let views = lstm::BlockCellGradOutputs {
            cs_prev_grad: matrix_mut(cs_prev_grad),
            dicfo: matrix_mut(dicfo),
            wci_grad: vector_mut(wci_grad),
            wcf_grad: vector_mut(wcf_grad),
            wco_grad: vector_mut(wco_grad),
        };
        let result = lstm::block_cell_grad(context, self.use_peephole, inputs, views);
        *outputs = restored(&results);
        result
    }

    fn want(&self, inputs: &Tensors) -> Tensors {
        let [x, cs_prev, h_prev, w, wci, wcf, wco, b, gates @ ..] = take::<_, 16>(inputs);
        let [i, cs, f, o, ci, co, cs_grad, h_grad] = gates.map(to_matrix);
        let h = &o * &co;
        let state = LstmState { i, cs, f, o, ci, co, h };
        let cell = self.cell([x, cs_prev, h_prev, w, wci, wcf, wco, b]);
        let grad = cell.grad(&state, &cs_grad, &h_grad);
        let zeros = || [wci, wcf, wco].map(|weights| Array1::zeros(weights.len()));
        let mut all = vec![grad.cs_prev_grad.into_dyn(), grad.dicfo.into_dyn()];
        all.extend(grad.peephole_grads.unwrap_or_else(zeros).map(Array::into_dyn));
        all
    }
}

impl<E> LstmBlockCellGrad<E> {
    /// Lengths of wci, wcf and wco, which are free without peepholes.
    fn peephole_lengths(&self, cell_size: usize) -> [usize; 3] {
        if self.use_peephole { [cell_size; 3] } else { [cell_size + 3, 0, cell_size] }
    }

    fn cell(&self, inputs: [&ArrayD<f64>; 8]) -> LstmCell {
        let [x, cs_prev, h_prev, w, wci, wcf, wco, b] = inputs;
        LstmCell {
            x: to_matrix(x),
            cs_prev: to_matrix(cs_prev),
            h_prev: to_matrix(h_prev),
            w: to_matrix(w),
            peepholes: self.use_peephole.then(|| [wci, wcf, wco].map(to_vector)),
            b: to_vector(b),
            forget_bias: 1.0,
        }
    }
}

/// To the nearest number of type `E`. Where that is half, numbers go by way of `f32`, which does
/// not matter for random data.
fn round<E: Element>(value: f64) -> f64 {
    E::from_f32(value as f32).to_f32().into()
}

/// The tensors in the kernel's element type.
fn stored<E: Element>(tensors: &Tensors) -> Vec<ArrayD<E>> {
    tensors.iter().map(|tensor| tensor.mapv(|value| E::from_f32(value as f32))).collect()
}

/// The kernel's results, which are exact in `f64`.
fn restored<E: Element>(tensors: &[ArrayD<E>]) -> Tensors {
    tensors.iter().map(|tensor| tensor.mapv(|value| value.to_f32().into())).collect()
}

fn take<T, const N: usize>(all: &[T]) -> [&T; N] {
    all.iter().collect::<Vec<_>>().try_into().ok().expect("the number of tensors of the operation")
}

fn take_mut<T, const N: usize>(all: &mut [T]) -> [&mut T; N] {
    let all: Vec<_> = all.iter_mut().collect();
    all.try_into().ok().expect("the number of tensors of the operation")
}

fn of_rank<T, D: Dimension>(result: Result<T, ndarray::ShapeError>) -> T {
    result.unwrap_or_else(|_| panic!("a tensor of rank {:?}", D::NDIM))
}

fn matrix<E>(tensor: &ArrayD<E>) -> ArrayView2<'_, E> {
    of_rank::<_, ndarray::Ix2>(tensor.view().into_dimensionality())
}

fn vector<E>(tensor: &ArrayD<E>) -> ArrayView1<'_, E> {
    of_rank::<_, ndarray::Ix1>(tensor.view().into_dimensionality())
}

fn matrix_mut<E>(tensor: &mut ArrayD<E>) -> ArrayViewMut2<'_, E> {
    of_rank::<_, ndarray::Ix2>(tensor.view_mut().into_dimensionality())
}

fn vector_mut<E>(tensor: &mut ArrayD<E>) -> ArrayViewMut1<'_, E> {
    of_rank::<_, ndarray::Ix1>(tensor.view_mut().into_dimensionality())
}

fn to_matrix(tensor: &ArrayD<f64>) -> Array2<f64> {
    matrix(tensor).to_owned()
}

fn to_vector(tensor: &ArrayD<f64>) -> Array1<f64> {
    vector(tensor).to_owned()
}
