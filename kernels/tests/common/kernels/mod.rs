//! The operations behind one trait, so that a test is written once for all of them.

mod block_gru;
mod block_lstm;
mod gru;
mod lstm;
mod lstm_by_row;
mod shapes;
pub(crate) mod tensors;

use blockcell_kernels::ops::{self, DataType, Dim, Op};
use blockcell_kernels::{Activation, Activations, Context, Element, Error};
use half::{bf16, f16};
use ndarray::{ArrayD, Axis, IxDyn};

use super::Tensors;
use super::compare::close;
use super::data::{Data, Sizes};
pub(crate) use block_gru::{BlockGru, BlockGruGrad};
pub(crate) use block_lstm::{BlockLstm, BlockLstmGrad};
pub(crate) use gru::{GruBlockCell, GruBlockCellGrad};
pub(crate) use lstm::{Attributes, LstmBlockCell, LstmBlockCellGrad};
pub(crate) use lstm_by_row::{LstmByRow, LstmByRowGrad};
pub(crate) use shapes::{Row, Table};

/// The value of an attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attribute {
    Bool(bool),
    Float(f32),
    Text(&'static str),
}

/// An operation with an element type and attributes, and what the tests have to know of it.
pub(crate) trait Kernel: Sync {
    /// The attributes of a node of the operation.
    fn attributes(&self) -> Vec<(&'static str, Attribute)> {
        Vec::new()
    }

    fn op(&self) -> &'static Op;

    /// The type of elements.
    fn element(&self) -> DataType {
        DataType::Float
    }

    /// Whether the vectors that an attribute makes optional are used: peephole weights and such.
    fn uses_optional(&self) -> bool {
        false
    }

    fn inputs_table(&self) -> Table;

    fn outputs_table(&self) -> Table;

    /// What a forward step in the oracle computes from the first inputs: the values of the inputs
    /// that stand right before the gradients.
    fn activations(&self, _inputs: &Tensors) -> Tensors {
        Tensors::new()
    }

    /// Inputs whose values must not matter.
    fn unread(&self) -> &'static [&'static str] {
        &[]
    }

    /// Inputs that are gradients: the outputs are linear in them all together.
    fn gradients(&self) -> &'static [&'static str] {
        &[]
    }

    /// Elements of scratch memory that a call needs.
    fn scratch(&self, _sizes: &ops::Sizes, _is_apart: bool) -> usize {
        0
    }

    /// Calls the kernel. Previous contents of `outputs` and `scratch` are there when it runs. If it
    /// fails, the inputs in whose place it works have to be as they were.
    fn run(
        &self,
        context: &Context<'_>,
        inputs: &Tensors,
        outputs: &mut Tensors,
        scratch: &mut [f32],
    ) -> Result<(), Error>;

    /// What the oracle says.
    fn want(&self, inputs: &Tensors) -> Tensors;
}

/// Every operation with every element type and convention, and attributes that matter.
pub(crate) fn kernels() -> Vec<Box<dyn Kernel>> {
    let mut all: Vec<Box<dyn Kernel>> = vec![Box::new(GruBlockCell), Box::new(GruBlockCellGrad)];
    for attributes in Attributes::of_floats() {
        all.push(Box::new(LstmBlockCell::<f32>::new(attributes)));
        all.push(Box::new(BlockLstm::<f32>::v1(attributes)));
        all.push(Box::new(BlockLstm::<f32>::v2(attributes)));
    }
    for attributes in Attributes::of_halves() {
        all.push(Box::new(LstmBlockCell::<f16>::new(attributes)));
        all.push(Box::new(BlockLstm::<f16>::v1(attributes)));
        all.push(Box::new(BlockLstm::<f16>::v2(attributes)));
    }
    for flag in [false, true] {
        all.push(Box::new(LstmBlockCellGrad::<f32>::new(flag)));
        all.push(Box::new(LstmBlockCellGrad::<f16>::new(flag)));
        all.push(Box::new(BlockLstmGrad::<f32>::v1(flag)));
        all.push(Box::new(BlockLstmGrad::<f16>::v1(flag)));
        all.push(Box::new(BlockLstmGrad::<f32>::v2(flag)));
        all.push(Box::new(BlockLstmGrad::<f16>::v2(flag)));
    }
    all.extend(own_kernels::<f32>());
    all.extend(own_kernels::<f16>());
    all.extend(own_kernels::<bf16>());
    all
}

/// The operations that TensorFlow does not have.
fn own_kernels<E: Element>() -> impl Iterator<Item = Box<dyn Kernel>> {
    let grus = [false, true].into_iter().flat_map(|flag| -> [Box<dyn Kernel>; 2] {
        [Box::new(BlockGru::<E>::new(flag)), Box::new(BlockGruGrad::<E>::new(flag))]
    });
    let lstms: [Box<dyn Kernel>; 2] = [
        Box::new(LstmByRow::<E>::new(Activations::default())),
        Box::new(LstmByRowGrad::<E>::new(Activations::default())),
    ];
    grus.chain(lstms)
}

/// The operations whose functions can be chosen, with other ones than tanh and the logistic function.
pub(crate) fn kernels_of_other_functions() -> Vec<Box<dyn Kernel>> {
    let others = pairs().enumerate().skip(1);
    let floats = others.flat_map(|(n, functions)| of_functions::<f32>(functions, n % 2 == 0));
    let functions = pairs().nth(2).expect("there are six");
    let halves = of_functions::<f16>(functions, false).into_iter();
    floats.chain(halves).chain(of_functions::<bf16>(functions, false)).collect()
}

fn of_functions<E: Element>(activations: Activations, reset_after: bool) -> [Box<dyn Kernel>; 4] {
    let gru = blockcell_kernels::block_gru::Attributes { reset_after, activations };
    [
        Box::new(LstmByRow::<E>::new(activations)),
        Box::new(LstmByRowGrad::<E>::new(activations)),
        Box::new(BlockGru::<E>::with(gru)),
        Box::new(BlockGruGrad::<E>::with(gru)),
    ]
}

/// Each function in both places.
pub(crate) fn pairs() -> impl Iterator<Item = Activations> {
    (0..6).map(|n| {
        let [state, gates] = [n, (n * 5 + 4) % 6].map(|n| Activation::ALL[n]);
        Activations { state, gates }
    })
}

/// The functions as a node has them.
fn of_node(Activations { state, gates }: Activations) -> [(&'static str, Attribute); 2] {
    let [state, gates] = [state, gates].map(|function| Attribute::Text(function.name()));
    [("activation", state), ("recurrent_activation", gates)]
}

/// The kernels that have a time dimension.
pub(crate) fn sequence_kernels() -> Vec<Box<dyn Kernel>> {
    kernels().into_iter().filter(|kernel| kernel.is_sequence()).collect()
}

impl dyn Kernel + '_ {
    /// For messages.
    pub(crate) fn name(&self) -> String {
        let element = self.element().name();
        let attributes = self.attributes().into_iter().map(|(name, value)| match value {
            Attribute::Bool(value) => format!(", {name} {value}"),
            Attribute::Float(value) => format!(", {name} {value}"),
            Attribute::Text(value) => format!(", {name} {value}"),
        });
        format!("{} of {element}{}", self.op().name, attributes.collect::<String>())
    }

    pub(crate) fn input_rows(&self) -> Vec<Row> {
        shapes::rows(self.inputs_table())
    }

    pub(crate) fn output_rows(&self) -> Vec<Row> {
        shapes::rows(self.outputs_table())
    }

    /// The shapes of all inputs. Optional vectors that are not used have odd lengths.
    pub(crate) fn input_shapes(&self, sizes: Sizes) -> Vec<Vec<usize>> {
        let shape = |row: &Row| row.shape(sizes, self.uses_optional());
        self.input_rows().iter().map(shape).collect()
    }

    /// The shapes of all outputs.
    pub(crate) fn output_shapes(&self, sizes: Sizes) -> Vec<Vec<usize>> {
        let shape = |row: &Row| row.shape(sizes, self.uses_optional());
        self.output_rows().iter().map(shape).collect()
    }

    /// Whether there is a time dimension.
    pub(crate) fn is_sequence(&self) -> bool {
        self.op().inputs.iter().any(|tensor| tensor.dims.contains(&Dim::Time))
    }

    /// The place of an input.
    pub(crate) fn input(&self, name: &str) -> usize {
        let found = self.op().inputs.iter().position(|tensor| tensor.name == name);
        found.unwrap_or_else(|| panic!("{} has no input {name}", self.op().name))
    }

    /// The place of the input that has the numbers of time steps.
    pub(crate) fn steps(&self) -> Option<usize> {
        self.op().inputs.iter().position(|tensor| tensor.is_steps())
    }

    /// Rounds to the element type.
    pub(crate) fn round(&self) -> fn(f64) -> f64 {
        match self.element() {
            DataType::BFloat16 => tensors::round::<bf16>,
            DataType::Half => tensors::round::<f16>,
            _ => tensors::round::<f32>,
        }
    }

    /// Whether elements have 16 bits.
    pub(crate) fn is_16_bit(&self) -> bool {
        self.element().size() == 2
    }

    /// The distance from 1 to the next number of the element type.
    fn epsilon(&self) -> f64 {
        match self.element() {
            DataType::BFloat16 => bf16::EPSILON.to_f64(),
            DataType::Half => f16::EPSILON.to_f64(),
            _ => f32::EPSILON.into(),
        }
    }

    /// The largest relative error of a single rounding on the way from inputs to outputs: sequences
    /// keep in tensors of the element type what goes from step to step.
    fn roundoff(&self) -> f64 {
        (if self.is_sequence() { self.epsilon() } else { f32::EPSILON.into() }) / 2.0
    }

    /// The scaled error allowed on each output. It is larger where errors of float go from step to
    /// step, and where a clip leaves them as they are but makes what they are measured by smaller.
    pub(crate) fn tolerance(&self) -> f64 {
        let is_one_gradient = !self.is_sequence() && !self.gradients().is_empty();
        let roundings = if is_one_gradient || self.is_16_bit() { 17.0 } else { 34.0 };
        (roundings * self.roundoff()).max(self.epsilon())
    }

    /// Inputs as they are in training: activations are those of a forward step.
    pub(crate) fn inputs(&self, sizes: Sizes, seed: u64) -> Tensors {
        let mut data = Data::new(seed, self.round());
        let draw = |(row, shape): (Row, Vec<usize>)| match row.name {
            "seq_len_max" | "sequence_length" => data.steps(&shape, sizes.time),
            "cs_prev" => data.uniform(&shape, 2.0),
            "w" | "w_ru" | "w_c" => data.weights(&shape),
            "wci" | "wcf" | "wco" | "b" | "b_ru" | "b_c" | "b_hc" => data.uniform(&shape, 0.5),
            _ => data.uniform(&shape, 1.0),
        };
        let rows = self.input_rows().into_iter().zip(self.input_shapes(sizes));
        let mut inputs: Tensors = rows.map(draw).collect();
        let activations = self.activations(&inputs);
        let first = inputs.len() - self.gradients().len() - activations.len();
        for (input, activation) in inputs[first..].iter_mut().zip(activations) {
            assert_eq!(input.shape(), activation.shape());
            *input = activation.mapv(self.round());
        }
        inputs
    }

    /// Inputs and what the oracle says of them, such that an implementation with one rounding after
    /// another can be as close as the tolerance demands: where a sum happens to cancel so far that
    /// the rounding of the inputs alone matters, other data is drawn. The oracle decides that, not
    /// the kernel.
    pub(crate) fn inputs_and_want(&self, sizes: Sizes, seed: u64) -> (Tensors, Tensors) {
        for attempt in 0..100 {
            let inputs = self.inputs(sizes, seed + 1_000_000 * attempt);
            let want = self.want(&inputs);
            let mut data = Data::new(seed, |v| v);
            let mut nearby = inputs.clone();
            for (n, tensor) in nearby.iter_mut().enumerate() {
                if Some(n) != self.steps() {
                    // Of what is exactly 1 no digit is lost, and some functions have a corner there.
                    let mut factors = 1.0 + data.uniform(tensor.shape(), self.roundoff());
                    factors.zip_mut_with(tensor, |factor, &v| {
                        if v == 1.0 {
                            *factor = 1.0
                        }
                    });
                    *tensor *= &factors;
                }
            }
            let limit =
                |name: &str, got: &_, want: &_| close(name, got, want, 3.4 * self.roundoff());
            if self.compare(&self.want(&nearby), &want, limit).is_ok() {
                return (inputs, want);
            }
        }
        panic!("{}, {sizes:?}: no well-conditioned data", self.name());
    }

    /// The outputs of a call that must succeed, and that has to write all of them: they are full of
    /// NaN before, and so is the scratch memory.
    pub(crate) fn outputs(&self, context: &Context<'_>, sizes: Sizes, inputs: &Tensors) -> Tensors {
        let mut outputs = filled(&self.output_shapes(sizes), f64::NAN);
        if let Err(error) = self.call(context, inputs, &mut outputs) {
            panic!("{}, {sizes:?}: {error}", self.name());
        }
        outputs
    }

    /// Calls the kernel with as much scratch memory as it needs, full of NaN.
    pub(crate) fn call(
        &self,
        context: &Context<'_>,
        inputs: &Tensors,
        outputs: &mut Tensors,
    ) -> Result<(), Error> {
        let shapes: Vec<_> = inputs.iter().map(ArrayD::shape).collect();
        let sizes = self.op().check(self.uses_optional(), &shapes);
        // Wrong shapes are for the kernel to refuse.
        // Packed weights lie in the memory of their gradients, if there is any.
        let mut tensors = self.op().outputs.iter().zip(outputs.iter());
        let has_none = |(tensor, output): (&ops::Tensor, &ArrayD<f64>)| {
            tensor.dims.contains(&Dim::InputCellOrNone) && output.is_empty()
        };
        let is_apart = self.is_16_bit() || tensors.any(has_none);
        let needed = sizes.map_or(0, |sizes| self.scratch(&sizes, is_apart));
        self.run(context, inputs, outputs, &mut vec![f32::NAN; needed])
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

/// The dimension of a tensor along which it has a row for each of the batch.
pub(crate) fn batch_axis(tensor: &blockcell_kernels::ops::Tensor) -> Option<Axis> {
    tensor.dims.iter().position(|&dim| dim == Dim::Batch).map(Axis)
}

/// Tensors of `shapes`, full of `value`.
pub(crate) fn filled(shapes: &[Vec<usize>], value: f64) -> Tensors {
    shapes.iter().map(|shape| ArrayD::from_elem(IxDyn(shape), value)).collect()
}
