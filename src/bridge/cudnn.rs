//! The operations on networks whose parameters are one buffer, as cuDNN has them.

use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use blockcell_kernels::cudnn_rnn::{
    self, BackpropInputs, BackpropOutputs, BackpropShapes, InputMode, Layout, Mode, Network,
    Outputs, Shapes,
};
use blockcell_kernels::ops::{self, DataType, Op};
use blockcell_kernels::{Element, Error, Storage, Weights};
use bytemuck::Pod;
use half::{bf16, f16};

use super::attributes::Attributes;
use super::ffi::{Input, NodeAttributes, Output, Plan, Shape, lists_gpus};
use super::kernels::{Call, Node, Operation, describe};
use super::tensors::{elements, elements_mut, view, view_mut};
use crate::switches;

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Forward,
    Backprop,
    ParamsSize,
    ParamsToCanonical,
    CanonicalToParams,
}

/// An operation.
pub(super) struct CudnnOp {
    op: &'static Op,
    kind: Kind,
}

impl CudnnOp {
    fn new(op: &'static Op) -> Self {
        let name = op.name;
        let kind = if name.contains("ParamsSize") {
            Kind::ParamsSize
        } else if name.contains("ParamsToCanonical") {
            Kind::ParamsToCanonical
        } else if name.contains("CanonicalToParams") {
            Kind::CanonicalToParams
        } else if name.contains("Backprop") {
            Kind::Backprop
        } else {
            Kind::Forward
        };
        CudnnOp { op, kind }
    }

    fn has_input(&self, name: &str) -> bool {
        self.op.inputs.iter().any(|tensor| tensor.name == name)
    }

    fn has_attribute(&self, name: &str) -> bool {
        self.op.attributes.iter().any(|attribute| attribute.name == name)
    }
}

/// One for each of [`ops::CUDNN`].
static ALL: LazyLock<Vec<CudnnOp>> =
    LazyLock::new(|| ops::CUDNN.iter().map(CudnnOp::new).collect());

/// Those that this process has kernels of.
pub(super) fn registered() -> impl Iterator<Item = &'static dyn Operation> {
    ALL.iter().filter(|_| is_on()).map(|op| op as &dyn Operation)
}

/// Whether it has kernels of them, as `BLOCKCELL_CUDNN` says. With a GPU, TensorFlow has kernels of its own: a network
/// whose forward pass ran there and whose backward pass ran here would mix two layouts of `reserve_space`.
pub(crate) fn is_on() -> bool {
    static ON: LazyLock<bool> = LazyLock::new(|| switches::CUDNN.unwrap_or_else(|| !has_gpu()));
    *ON
}

/// The forward operation of this name.
fn forward(op: &str) -> Option<&'static CudnnOp> {
    ALL.iter().find(|one| one.op.name == op && one.kind == Kind::Forward)
}

pub(super) fn is_forward(op: &str) -> bool {
    forward(op).is_some()
}

/// Whether a node of such an operation infers, and has weights in int8 where they are constants.
pub(super) fn infers_in_int8(op: &str, attributes: &NodeAttributes) -> bool {
    let Some(op) = forward(op).filter(|_| is_on()) else { return false };
    let attributes = Attributes::new(op.op, attributes);
    let weights = attributes.weights().ok().flatten().unwrap_or(*switches::WEIGHTS);
    weights != Weights::Float32 && matches!(attributes.flag("is_training"), Ok(false))
}

/// Whether each call of a node has the dropout masks of its first one: where TensorFlow's own switch is on, as a node
/// finds it when it is made.
fn same_masks(op: &'static str) -> Result<bool, Error> {
    let expected = || format!("{} must be 0, 1, false or true", switches::RESET_GENERATOR);
    let error = |got| Error::Attribute { op, expected: expected(), got };
    switches::resets_generator().map_err(error)
}

/// Whether TensorFlow has a GPU in this process. It is asked only where there is a file by which
/// programs reach one of NVIDIA's, one in WSL, or one of AMD's: without a driver it would print
/// complaints.
fn has_gpu() -> bool {
    if blockcell_failpoints::returns(format_args!("gpu")) {
        return true;
    }
    let files = ["/dev/nvidiactl", "/dev/nvidia0", "/dev/dxg", "/dev/kfd"];
    files.iter().any(|file| Path::new(file).exists()) && lists_gpus()
}

impl Operation for CudnnOp {
    fn op(&self) -> &'static Op {
        self.op
    }

    fn is_stock(&self) -> bool {
        false
    }

    fn node(&'static self, attributes: Attributes<'_>) -> Result<Box<dyn Node>, Error> {
        let is_params_size = self.kind == Kind::ParamsSize;
        Ok(Box::new(CudnnNode {
            op: self,
            element: attributes.element_type()?,
            size_is_int64: is_params_size && attributes.is_int64("S")?,
            attributes: self.attributes(attributes)?,
            counts: self.counts(attributes)?,
            same_masks: self.kind == Kind::Forward && same_masks(self.op.name)?,
            calls: AtomicU64::new(0),
        }))
    }
}

impl CudnnOp {
    /// The attributes of a node. Where the operation lacks one that others have, it is as their
    /// default says.
    fn attributes(&self, node: Attributes<'_>) -> Result<cudnn_rnn::Attributes, Error> {
        let known = "a mode that TensorFlow knows";
        Ok(cudnn_rnn::Attributes {
            rnn_mode: Mode::by_name(&node.text("rnn_mode")?).expect(known),
            input_mode: InputMode::by_name(&node.text("input_mode")?).expect(known),
            bidirectional: node.text("direction")? == "bidirectional",
            dropout: node.float("dropout")?,
            seed: node.number("seed")?,
            seed2: node.number("seed2")?,
            call: 0,
            is_training: !self.has_attribute("is_training") || node.flag("is_training")?,
            time_major: !self.has_attribute("time_major") || node.flag("time_major")?,
            num_proj: if self.has_attribute("num_proj") { node.number("num_proj")? } else { 0 },
        })
    }

    /// The attributes that tell how many weights there are, and how many biases: their names and
    /// values. One may stand for both.
    fn counts(&self, node: Attributes<'_>) -> Result<Vec<(&'static str, i64)>, Error> {
        let lists = self.op.inputs.iter().chain(self.op.outputs).filter_map(|tensor| tensor.list);
        lists.map(|name| Ok((name, node.number(name)?))).collect()
    }
}

/// A call of the forward or the backward pass: its inputs in the operation's order.
struct Tensors<'a> {
    op: &'static Op,
    inputs: &'a [Input<'a>],
    lengths: Option<&'a Input<'a>>,
}

impl<'a> Tensors<'a> {
    fn new(op: &CudnnOp, inputs: &'a [Input<'a>]) -> Self {
        let lengths = op.has_input("sequence_lengths").then(|| op.op.input("sequence_lengths"));
        Tensors { op: op.op, inputs, lengths: lengths.map(|lengths| &inputs[lengths]) }
    }

    fn get(&self, name: &str) -> &'a Input<'a> {
        &self.inputs[self.op.input(name)]
    }

    fn dims(&self, name: &str) -> &'a [usize] {
        self.get(name).dims
    }

    fn shapes(&self) -> Shapes<'a> {
        Shapes {
            input: self.dims("input"),
            input_h: self.dims("input_h"),
            input_c: self.dims("input_c"),
            params: self.dims("params"),
            sequence_lengths: self.lengths.map(|lengths| lengths.dims),
        }
    }

    fn views<E: Pod>(&self, mode: Mode) -> cudnn_rnn::Inputs<'a, E> {
        cudnn_rnn::Inputs {
            input: view(self.get("input")),
            input_h: view(self.get("input_h")),
            input_c: (mode == Mode::Lstm).then(|| view(self.get("input_c"))),
            params: view(self.get("params")),
            sequence_lengths: self.lengths.map(view),
        }
    }
}

/// The shapes of a call's outputs, and how many floats of scratch memory it needs.
type Needs = (Vec<Vec<usize>>, usize);

struct CudnnNode {
    op: &'static CudnnOp,
    element: DataType,
    /// Whether the type S of sizes is int64; otherwise it is int32.
    size_is_int64: bool,
    attributes: cudnn_rnn::Attributes,
    /// What [`CudnnOp::counts`] returns.
    counts: Vec<(&'static str, i64)>,
    /// Whether each call has the dropout masks of the first one.
    same_masks: bool,
    /// How many calls there were.
    calls: AtomicU64,
}

impl Node for CudnnNode {
    fn in_place(&self) -> Vec<usize> {
        self.op.op.in_place.iter().map(|name| self.op.op.input(name)).collect()
    }

    fn plan(
        &self,
        inputs: &[Input<'_>],
        _is_read: &[bool],
        outputs: &mut [Shape],
    ) -> Result<Plan, Error> {
        let (shapes, floats) = self.needs(inputs, outputs.len())?;
        for (to, dims) in outputs.iter_mut().zip(shapes) {
            describe(self.name(), to, dims.into_iter().map(Some))?;
        }
        Plan::with_scratch(self.name(), floats)
    }

    fn compute(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        match (self.op.kind, self.element) {
            (Kind::ParamsSize, _) => self.params_size(call),
            (Kind::ParamsToCanonical | Kind::CanonicalToParams, element) => match element {
                DataType::Float => self.convert::<f32>(call),
                DataType::Double => self.convert::<f64>(call),
                DataType::Half => self.convert::<f16>(call),
                DataType::BFloat16 => self.convert::<bf16>(call),
            },
            (_, DataType::Half) => self.pass_in::<f16>(call),
            (_, DataType::Float) => self.pass_in::<f32>(call),
            (_, DataType::BFloat16 | DataType::Double) => Err(Error::Type { op: self.name() }),
        }
    }
}

impl CudnnNode {
    fn name(&self) -> &'static str {
        self.op.op.name
    }

    fn needs(&self, inputs: &[Input<'_>], outputs: usize) -> Result<Needs, Error> {
        match self.op.kind {
            Kind::Forward => self.plan_forward(inputs),
            Kind::Backprop => self.plan_backprop(inputs),
            Kind::ParamsSize => {
                let layout = self.layout(inputs)?;
                let largest = if self.size_is_int64 { i64::MAX as u64 } else { i32::MAX as u64 };
                if layout.len() as u64 > largest {
                    let (op, shape) = (self.name(), format!("[{}]", layout.len()));
                    return Err(Error::Overflow { op, tensor: "params", shape });
                }
                Ok((vec![vec![1]], 0))
            }
            Kind::ParamsToCanonical => {
                let layout = self.layout(inputs)?;
                layout.check_params(self.name(), inputs[self.op.op.input("params")].dims)?;
                self.check_counts(&layout, outputs)?;
                let regions = layout.weights().chain(layout.biases());
                Ok((regions.map(|region| region.shape).collect(), 0))
            }
            Kind::CanonicalToParams => {
                let layout = self.layout(inputs)?;
                let parts = &inputs[self.op.op.input("weights")..];
                self.check_counts(&layout, parts.len())?;
                let shapes: Vec<_> = parts.iter().map(|input| input.dims).collect();
                let (weights, biases) = shapes.split_at(layout.counts()[0]);
                cudnn_rnn::check_canonical(self.name(), &layout, weights, biases)?;
                Ok((vec![vec![layout.len()]], 0))
            }
        }
    }

    fn plan_forward(&self, inputs: &[Input<'_>]) -> Result<Needs, Error> {
        let attributes = &self.attributes;
        let tensors = Tensors::new(self.op, inputs);
        let network = self.network(&tensors)?;
        let state = tensors.dims("input_h").to_vec();
        // In the other modes TensorFlow's shape function makes a scalar of it.
        let is_lstm = attributes.rnn_mode == Mode::Lstm;
        let output_c = if is_lstm { tensors.dims("input_c").to_vec() } else { Vec::new() };
        let reserve_space = if attributes.is_training {
            network.reserve_space(attributes).saturating_mul(self.of_one_float())
        } else {
            0
        };
        let output = network.output_shape(attributes).to_vec();
        let mut shapes = vec![output, state, output_c, vec![reserve_space]];
        let has_host_reserved = self.op.op.outputs.len() > shapes.len();
        shapes.extend(has_host_reserved.then(|| vec![0]));
        Ok((shapes, cudnn_rnn::forward_scratch(&network, attributes, self.is_16_bit())))
    }

    fn plan_backprop(&self, inputs: &[Input<'_>]) -> Result<Needs, Error> {
        let tensors = Tensors::new(self.op, inputs);
        let network = self.network(&tensors)?;
        let dims = |names: [&str; 3]| names.map(|name| tensors.dims(name));
        let shapes = BackpropShapes {
            outputs: dims(["output", "output_h", "output_c"]),
            backprops: dims(["output_backprop", "output_h_backprop", "output_c_backprop"]),
            reserve_space: (tensors.dims("reserve_space"), self.of_one_float()),
        };
        network.check_backprop(self.name(), &self.attributes, &shapes)?;
        let inputs = ["input", "input_h", "input_c", "params"];
        let shapes = inputs.map(|input| tensors.dims(input).to_vec()).into();
        Ok((shapes, cudnn_rnn::backprop_scratch(&network, self.is_16_bit())))
    }

    fn network(&self, tensors: &Tensors<'_>) -> Result<Network, Error> {
        let network = Network::new(self.name(), &self.attributes, &tensors.shapes())?;
        if let Some(lengths) = tensors.lengths {
            network.check_lengths(self.name(), elements(lengths.data))?;
        }
        Ok(network)
    }

    /// The layout of the parameters, from the inputs num_layers, num_units and input_size.
    fn layout(&self, inputs: &[Input<'_>]) -> Result<Layout, Error> {
        let mut sizes = [0; 3];
        let names = ["num_layers", "num_units", "input_size"];
        for ((size, tensor), input) in sizes.iter_mut().zip(names).zip(inputs) {
            let op = self.name();
            let ([], &[number]) = (input.dims, elements::<i32>(input.data)) else {
                return Err(Error::shape(op, tensor, "[]".to_owned(), input.dims));
            };
            *size = usize::try_from(number).map_err(|_| Error::Attribute {
                op,
                expected: format!("{tensor} must not be negative"),
                got: number.to_string(),
            })?;
        }
        Layout::new(self.name(), &self.attributes, sizes)
    }

    /// Checks the numbers of weights and of biases.
    fn check_counts(&self, layout: &Layout, tensors: usize) -> Result<(), Error> {
        let op = self.name();
        let [weights, biases] = layout.counts();
        for (&(name, got), expected) in self.counts.iter().zip([weights, biases]) {
            if usize::try_from(got) != Ok(expected) {
                let (expected, got) = (format!("{name} must be {expected}"), got.to_string());
                return Err(Error::Attribute { op, expected, got });
            }
        }
        let (what, expected, got) = ("weights and biases", weights.saturating_add(biases), tensors);
        if got == expected { Ok(()) } else { Err(Error::Count { op, what, expected, got }) }
    }

    fn params_size(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let size = self.layout(call.inputs)?.len() as i64;
        let to = &mut call.outputs[0].data;
        if self.size_is_int64 {
            to.copy_from_slice(&size.to_ne_bytes());
        } else {
            to.copy_from_slice(&(size as i32).to_ne_bytes());
        }
        Ok(())
    }

    /// Takes the parameters out of their buffer, or puts them into one.
    fn convert<E: Copy + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let layout = self.layout(call.inputs)?;
        let weights = layout.counts()[0];
        if self.op.kind == Kind::ParamsToCanonical {
            let mut parts: Vec<&mut [E]> =
                call.outputs.iter_mut().map(|output| elements_mut(output.data)).collect();
            let (weights, biases) = parts.split_at_mut(weights);
            let params = view(&call.inputs[self.op.op.input("params")]);
            return cudnn_rnn::params_to_canonical(self.name(), &layout, params, weights, biases);
        }
        let parts = &call.inputs[self.op.op.input("weights")..];
        let parts: Vec<&[E]> = parts.iter().map(|input| elements(input.data)).collect();
        let (weights, biases) = parts.split_at(weights);
        let params = view_mut(&mut call.outputs[0]);
        cudnn_rnn::canonical_to_params(self.name(), &layout, weights, biases, params)
    }

    fn pass_in<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let number = if self.same_masks { 0 } else { self.calls.fetch_add(1, Ordering::Relaxed) };
        let attributes = cudnn_rnn::Attributes { call: number, ..self.attributes };
        if self.op.kind == Kind::Forward {
            self.forward_in::<E>(&attributes, call)
        } else {
            self.backprop_in::<E>(&attributes, call)
        }
    }

    fn forward_in<E: Element + Pod>(
        &self,
        attributes: &cudnn_rnn::Attributes,
        call: Call<'_, '_, '_>,
    ) -> Result<(), Error> {
        let inputs = Tensors::new(self.op, call.inputs).views::<E>(attributes.rnn_mode);
        let ([output, output_h, output_c, reserve_space], _) =
            call.outputs.split_first_chunk_mut().expect("as many outputs as the operation has");
        let outputs = Outputs {
            output: view_mut(output),
            output_h: view_mut(output_h),
            output_c: cells(attributes, output_c),
            reserve_space: elements_mut(reserve_space.data),
        };
        cudnn_rnn::forward(call.context, self.name(), attributes, inputs, outputs, call.scratch)
    }

    fn backprop_in<E: Element + Pod>(
        &self,
        attributes: &cudnn_rnn::Attributes,
        call: Call<'_, '_, '_>,
    ) -> Result<(), Error> {
        let tensors = Tensors::new(self.op, call.inputs);
        let is_lstm = attributes.rnn_mode == Mode::Lstm;
        let inputs = BackpropInputs {
            forward: tensors.views::<E>(attributes.rnn_mode),
            output_backprop: view(tensors.get("output_backprop")),
            output_h_backprop: view(tensors.get("output_h_backprop")),
            output_c_backprop: is_lstm.then(|| view(tensors.get("output_c_backprop"))),
            reserve_space: elements_mut(call.in_place[0].data),
        };
        let [input, input_h, input_c, params] =
            call.outputs.first_chunk_mut().expect("as many outputs as the operation has");
        let outputs = BackpropOutputs {
            input_backprop: view_mut(input),
            input_h_backprop: view_mut(input_h),
            input_c_backprop: cells(attributes, input_c),
            params_backprop: view_mut(params),
        };
        cudnn_rnn::backprop(call.context, self.name(), attributes, inputs, outputs, call.scratch)
    }

    /// How many elements of the node's type have the size of a float.
    fn of_one_float(&self) -> usize {
        if self.is_16_bit() { 2 } else { 1 }
    }

    fn is_16_bit(&self) -> bool {
        self.element.size() < size_of::<f32>()
    }
}

/// An output of the state of an LSTM's cells; in the other modes it is set to zeros.
fn cells<'a, E: Storage + Pod>(
    attributes: &cudnn_rnn::Attributes,
    output: &'a mut Output<'_>,
) -> Option<ndarray::ArrayViewMut3<'a, E>> {
    if attributes.rnn_mode == Mode::Lstm {
        return Some(view_mut(output));
    }
    output.data.fill(0);
    None
}
