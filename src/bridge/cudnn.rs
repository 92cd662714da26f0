//! The operations on networks whose parameters are one buffer, as cuDNN has them.

use blockcell_kernels::cudnn_rnn::{
    self, Attributes, BackpropInputs, BackpropOutputs, BackpropShapes, InputMode, Layout, Mode,
    Network, Outputs, Shapes,
};
use blockcell_kernels::{Context, Element, Error, Storage};
use bytemuck::Pod;
use half::f16;

use super::describe;
use super::ffi::{self, Input, Output};
use super::tensors::{elements, elements_mut, view, view_mut};

/// What an operation does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Forward,
    Backprop,
    ParamsSize,
    ParamsToCanonical,
    CanonicalToParams,
}

/// How an operation is computed.
pub(super) struct CudnnKernel {
    pub(super) name: &'static str,
    kind: Kind,
    /// Whether it has the input sequence_lengths.
    has_lengths: bool,
    /// Whether the last output of the forward pass is host_reserved.
    has_host_reserved: bool,
}

impl CudnnKernel {
    const fn forward(name: &'static str, has_lengths: bool, has_host_reserved: bool) -> Self {
        CudnnKernel { name, kind: Kind::Forward, has_lengths, has_host_reserved }
    }

    const fn backprop(name: &'static str, has_lengths: bool) -> Self {
        CudnnKernel { name, kind: Kind::Backprop, has_lengths, has_host_reserved: false }
    }

    const fn on_params(name: &'static str, kind: Kind) -> Self {
        CudnnKernel { name, kind, has_lengths: false, has_host_reserved: false }
    }
}

/// All of them.
pub(super) const ALL: [CudnnKernel; 11] = [
    CudnnKernel::forward("CudnnRNN", false, false),
    CudnnKernel::forward("CudnnRNNV2", false, true),
    CudnnKernel::forward("CudnnRNNV3", true, true),
    CudnnKernel::backprop("CudnnRNNBackprop", false),
    CudnnKernel::backprop("CudnnRNNBackpropV2", false),
    CudnnKernel::backprop("CudnnRNNBackpropV3", true),
    CudnnKernel::on_params("CudnnRNNParamsSize", Kind::ParamsSize),
    CudnnKernel::on_params("CudnnRNNParamsToCanonical", Kind::ParamsToCanonical),
    CudnnKernel::on_params("CudnnRNNParamsToCanonicalV2", Kind::ParamsToCanonical),
    CudnnKernel::on_params("CudnnRNNCanonicalToParams", Kind::CanonicalToParams),
    CudnnKernel::on_params("CudnnRNNCanonicalToParamsV2", Kind::CanonicalToParams),
];

/// The attributes of a node.
fn attributes(attributes: &ffi::Attributes, call: u64) -> Attributes {
    Attributes {
        rnn_mode: Mode::by_name(&attributes.rnn_mode).expect("a mode that TensorFlow knows"),
        input_mode: InputMode::by_name(&attributes.input_mode)
            .expect("a mode that TensorFlow knows"),
        bidirectional: attributes.direction == "bidirectional",
        dropout: attributes.dropout,
        seed: attributes.seed,
        seed2: attributes.seed2,
        call,
        is_training: attributes.is_training,
        time_major: attributes.time_major,
        num_proj: attributes.num_proj,
    }
}

/// A call of the forward or the backward pass: its inputs in the operation's order.
struct Tensors<'a> {
    input: &'a Input<'a>,
    input_h: &'a Input<'a>,
    input_c: &'a Input<'a>,
    params: &'a Input<'a>,
    lengths: Option<&'a Input<'a>>,
    /// Those after these.
    rest: &'a [Input<'a>],
}

impl<'a> Tensors<'a> {
    fn new(kernel: &CudnnKernel, inputs: &'a [Input<'a>]) -> Self {
        let ([input, input_h, input_c, params], rest) =
            inputs.split_first_chunk().expect("as many inputs as the operation has");
        let (lengths, rest) = rest.split_at(usize::from(kernel.has_lengths));
        Tensors { input, input_h, input_c, params, lengths: lengths.first(), rest }
    }

    fn shapes(&self) -> Shapes<'a> {
        Shapes {
            input: self.input.dims,
            input_h: self.input_h.dims,
            input_c: self.input_c.dims,
            params: self.params.dims,
            sequence_lengths: self.lengths.map(|lengths| lengths.dims),
        }
    }

    fn views<E: Pod>(&self, mode: Mode) -> cudnn_rnn::Inputs<'a, E> {
        cudnn_rnn::Inputs {
            input: view(self.input),
            input_h: view(self.input_h),
            input_c: (mode == Mode::Lstm).then(|| view(self.input_c)),
            params: view(self.params),
            sequence_lengths: self.lengths.map(view),
        }
    }
}

/// What a call needs: the shapes of its outputs, and how many floats of scratch memory.
type Plan = (Vec<Vec<usize>>, usize);

impl CudnnKernel {
    /// Which inputs the kernel works on in place: reserve_space of the backward pass.
    pub(super) fn in_place(&self) -> Vec<usize> {
        let reserve_space = 10 + usize::from(self.has_lengths);
        if self.kind == Kind::Backprop { vec![reserve_space] } else { Vec::new() }
    }

    /// Checks a call, describes its outputs, and tells how many floats of scratch memory it needs.
    pub(super) fn plan(
        &self,
        node: &ffi::Attributes,
        inputs: &[Input<'_>],
        outputs: &mut [ffi::Shape],
    ) -> Result<usize, Error> {
        let (shapes, floats) = self.needs(node, inputs, outputs.len())?;
        for (to, dims) in outputs.iter_mut().zip(shapes) {
            describe(to, dims.into_iter().map(Some));
        }
        Ok(floats)
    }

    fn needs(
        &self,
        node: &ffi::Attributes,
        inputs: &[Input<'_>],
        outputs: usize,
    ) -> Result<Plan, Error> {
        let attributes = attributes(node, 0);
        match self.kind {
            Kind::Forward => self.plan_forward(node, &attributes, inputs),
            Kind::Backprop => self.plan_backprop(node, &attributes, inputs),
            Kind::ParamsSize => {
                let layout = self.layout(&attributes, inputs)?;
                let largest = if node.size_is_int64 { i64::MAX as u64 } else { i32::MAX as u64 };
                if layout.len() as u64 > largest {
                    let (op, shape) = (self.name, format!("[{}]", layout.len()));
                    return Err(Error::Overflow { op, tensor: "params", shape });
                }
                Ok((vec![vec![1]], 0))
            }
            Kind::ParamsToCanonical => {
                let layout = self.layout(&attributes, inputs)?;
                layout.check_params(self.name, inputs[3].dims)?;
                self.check_counts(node, &layout, outputs)?;
                let regions = layout.weights().chain(layout.biases());
                Ok((regions.map(|region| region.shape).collect(), 0))
            }
            Kind::CanonicalToParams => {
                let layout = self.layout(&attributes, inputs)?;
                self.check_counts(node, &layout, inputs.len() - 3)?;
                Ok((vec![vec![layout.len()]], 0))
            }
        }
    }

    fn plan_forward(
        &self,
        node: &ffi::Attributes,
        attributes: &Attributes,
        inputs: &[Input<'_>],
    ) -> Result<Plan, Error> {
        let tensors = Tensors::new(self, inputs);
        let network = self.network(attributes, &tensors)?;
        let state = tensors.input_h.dims.to_vec();
        // In the other modes TensorFlow's shape function makes a scalar of it.
        let is_lstm = attributes.rnn_mode == Mode::Lstm;
        let output_c = if is_lstm { tensors.input_c.dims.to_vec() } else { Vec::new() };
        let reserve_space = if attributes.is_training {
            network.reserve_space(attributes).saturating_mul(of_one_float(node))
        } else {
            0
        };
        let output = network.output_shape(attributes).to_vec();
        let mut shapes = vec![output, state, output_c, vec![reserve_space]];
        shapes.extend(self.has_host_reserved.then(|| vec![0]));
        Ok((shapes, cudnn_rnn::forward_scratch(&network, attributes, node.half)))
    }

    fn plan_backprop(
        &self,
        node: &ffi::Attributes,
        attributes: &Attributes,
        inputs: &[Input<'_>],
    ) -> Result<Plan, Error> {
        let tensors = Tensors::new(self, inputs);
        let network = self.network(attributes, &tensors)?;
        let dims = |n: usize| tensors.rest[n].dims;
        let shapes = BackpropShapes {
            outputs: [dims(0), dims(1), dims(2)],
            backprops: [dims(3), dims(4), dims(5)],
            reserve_space: (dims(6), of_one_float(node)),
        };
        network.check_backprop(self.name, attributes, &shapes)?;
        let inputs = [tensors.input, tensors.input_h, tensors.input_c, tensors.params];
        let shapes = inputs.map(|input| input.dims.to_vec()).into();
        Ok((shapes, cudnn_rnn::backprop_scratch(&network, node.half)))
    }

    fn network(&self, attributes: &Attributes, tensors: &Tensors<'_>) -> Result<Network, Error> {
        let network = Network::new(self.name, attributes, &tensors.shapes())?;
        if let Some(lengths) = tensors.lengths {
            network.check_lengths(self.name, elements(lengths.data))?;
        }
        Ok(network)
    }

    /// The layout of the parameters, from the inputs num_layers, num_units and input_size.
    fn layout(&self, attributes: &Attributes, inputs: &[Input<'_>]) -> Result<Layout, Error> {
        let mut sizes = [0; 3];
        let names = ["num_layers", "num_units", "input_size"];
        for ((size, tensor), input) in sizes.iter_mut().zip(names).zip(inputs) {
            let op = self.name;
            let &[number] = elements::<i32>(input.data) else {
                let (expected, got) = ("[]".to_owned(), input.dims.to_vec());
                return Err(Error::Shape { op, tensor, expected, got });
            };
            *size = usize::try_from(number).map_err(|_| Error::Attribute {
                op,
                expected: format!("{tensor} must not be negative"),
                got: number.to_string(),
            })?;
        }
        Layout::new(self.name, attributes, sizes)
    }

    /// Checks the numbers of weights and of biases.
    fn check_counts(
        &self,
        node: &ffi::Attributes,
        layout: &Layout,
        tensors: usize,
    ) -> Result<(), Error> {
        let op = self.name;
        let [weights, biases] = layout.counts();
        let counts = [
            ("num_params", node.num_params, weights),
            ("num_params_weights", node.num_params_weights, weights),
            ("num_params_biases", node.num_params_biases, biases),
        ];
        // An operation has the first one or the others.
        for (name, got, expected) in counts.into_iter().filter(|&(_, got, _)| got > 0) {
            if got as usize != expected {
                let (expected, got) = (format!("{name} must be {expected}"), got.to_string());
                return Err(Error::Attribute { op, expected, got });
            }
        }
        let (what, expected, got) = ("weights and biases", weights.saturating_add(biases), tensors);
        if got == expected { Ok(()) } else { Err(Error::Count { op, what, expected, got }) }
    }

    /// Computes a call that [`CudnnKernel::plan`] has checked.
    pub(super) fn compute(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        if call.node.half { self.compute_in::<f16>(call) } else { self.compute_in::<f32>(call) }
    }

    fn compute_in<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let attributes = attributes(call.node, call.number);
        match self.kind {
            Kind::Forward => self.forward_in::<E>(&attributes, call),
            Kind::Backprop => self.backprop_in::<E>(&attributes, call),
            Kind::ParamsSize => {
                let size = self.layout(&attributes, call.inputs)?.len() as i64;
                let to = &mut call.outputs[0].data;
                if call.node.size_is_int64 {
                    to.copy_from_slice(&size.to_ne_bytes());
                } else {
                    to.copy_from_slice(&(size as i32).to_ne_bytes());
                }
                Ok(())
            }
            Kind::ParamsToCanonical => {
                let layout = self.layout(&attributes, call.inputs)?;
                let mut parts: Vec<&mut [E]> =
                    call.outputs.iter_mut().map(|output| elements_mut(output.data)).collect();
                let (weights, biases) = parts.split_at_mut(layout.counts()[0]);
                let params = view(&call.inputs[3]);
                cudnn_rnn::params_to_canonical(self.name, &layout, params, weights, biases)
            }
            Kind::CanonicalToParams => {
                let layout = self.layout(&attributes, call.inputs)?;
                let parts: Vec<&[E]> =
                    call.inputs[3..].iter().map(|input| elements(input.data)).collect();
                let (weights, biases) = parts.split_at(layout.counts()[0]);
                let params = view_mut(&mut call.outputs[0]);
                cudnn_rnn::canonical_to_params(self.name, &layout, weights, biases, params)
            }
        }
    }

    fn forward_in<E: Element + Pod>(
        &self,
        attributes: &Attributes,
        call: Call<'_, '_, '_>,
    ) -> Result<(), Error> {
        let inputs = Tensors::new(self, call.inputs).views::<E>(attributes.rnn_mode);
        let ([output, output_h, output_c, reserve_space], _) =
            call.outputs.split_first_chunk_mut().expect("as many outputs as the operation has");
        let outputs = Outputs {
            output: view_mut(output),
            output_h: view_mut(output_h),
            output_c: cells(attributes, output_c),
            reserve_space: elements_mut(reserve_space.data),
        };
        cudnn_rnn::forward(call.context, self.name, attributes, inputs, outputs, call.scratch)
    }

    fn backprop_in<E: Element + Pod>(
        &self,
        attributes: &Attributes,
        call: Call<'_, '_, '_>,
    ) -> Result<(), Error> {
        let tensors = Tensors::new(self, call.inputs);
        let [.., output_backprop, output_h_backprop, output_c_backprop] = &tensors.rest[..6] else {
            unreachable!("as many inputs as the operation has");
        };
        let is_lstm = attributes.rnn_mode == Mode::Lstm;
        let inputs = BackpropInputs {
            forward: tensors.views::<E>(attributes.rnn_mode),
            output_backprop: view(output_backprop),
            output_h_backprop: view(output_h_backprop),
            output_c_backprop: is_lstm.then(|| view(output_c_backprop)),
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
        cudnn_rnn::backprop(call.context, self.name, attributes, inputs, outputs, call.scratch)
    }
}

/// A call.
pub(super) struct Call<'c, 'p, 'o> {
    pub(super) context: &'c Context<'c>,
    pub(super) node: &'c ffi::Attributes,
    /// The number of the call.
    pub(super) number: u64,
    pub(super) inputs: &'c [Input<'c>],
    pub(super) in_place: &'c mut [Output<'p>],
    pub(super) outputs: &'c mut [Output<'o>],
    pub(super) scratch: &'c mut [f32],
}

/// An output of the state of an LSTM's cells; in the other modes it is set to zeros.
fn cells<'a, E: Storage + Pod>(
    attributes: &Attributes,
    output: &'a mut Output<'_>,
) -> Option<ndarray::ArrayViewMut3<'a, E>> {
    if attributes.rnn_mode == Mode::Lstm {
        return Some(view_mut(output));
    }
    output.data.fill(0);
    None
}

/// How many elements of the node's type have the size of a float.
fn of_one_float(node: &ffi::Attributes) -> usize {
    if node.half { 2 } else { 1 }
}
