//! The kernels as TensorFlow has them: one for each node, which knows the node's attributes.

use std::sync::atomic::{AtomicBool, Ordering};

use blockcell_kernels::ops::{Inferred, Op, PartialShape};
use blockcell_kernels::{Constants, Context, Error, Isa, Precision, Ran, Weights};

use super::attributes::{self, Attributes};
use super::constants::{Kept, name_in_graph, packs_weights};
use super::ffi::{Input, NodeAttributes, OpInfo, Output, Plan, Pool, Shape, Status, Tensors};
use super::runs::{self, How, Runs};
use super::status::{guarded, or_default};
use super::{block, cudnn, int8_errors, loops, normalized, unfused};
use crate::switches;

/// An operation that has kernels.
pub(super) trait Operation: Sync {
    /// Its declaration.
    fn op(&self) -> &'static Op;

    /// Whether TensorFlow has kernels for CPUs, too.
    fn is_stock(&self) -> bool {
        self.op().is_stock
    }

    /// A node of it.
    fn node(&'static self, attributes: Attributes<'_>) -> Result<Box<dyn Node>, Error>;

    /// Checks what is known of the shapes of a node's inputs, and tells what follows, for an operation of this library.
    fn infer(&self, _: Attributes<'_>, _: &[PartialShape]) -> Result<Inferred, Error> {
        unreachable!("TensorFlow has shape functions of its own operations")
    }
}

/// A node of an operation: what its attributes say, and how its calls are computed. Several threads
/// may compute calls at once.
pub(super) trait Node: Send + Sync {
    /// Which inputs it works on in place.
    fn in_place(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Checks a call, describes its outputs, of which some may not be read, and tells what else it needs.
    fn plan(
        &self,
        inputs: &[Input<'_>],
        is_read: &[bool],
        outputs: &mut [Shape],
    ) -> Result<Plan, Error>;

    /// Computes a call that [`Node::plan`] has checked.
    fn compute(&self, call: Call<'_, '_, '_>) -> Result<(), Error>;
}

/// A call: its tensors in the operation's order.
pub(super) struct Call<'c, 'p, 'o> {
    pub(super) context: &'c Context<'c>,
    pub(super) inputs: &'c [Input<'c>],
    /// The inputs that are worked on in place.
    pub(super) in_place: &'c mut [Output<'p>],
    pub(super) outputs: &'c mut [Output<'o>],
    /// Whether the first output has the memory of the plan's `forward_input`, which is without data
    /// in `inputs` then.
    pub(super) forwarded: bool,
    pub(super) scratch: &'c mut [f32],
}

impl Plan {
    /// A call of `op` that needs so many floats of scratch memory, and forwards no input.
    pub(super) fn with_scratch(op: &'static str, scratch: usize) -> Result<Self, Error> {
        if scratch > isize::MAX as usize / size_of::<f32>() {
            let shape = format!("[{scratch}]");
            return Err(Error::Overflow { op, tensor: "the scratch memory", shape });
        }
        Ok(Plan { scratch, forward_input: -1 })
    }
}

/// The operations on cells, sequences and networks that this process has kernels of.
pub(super) fn networks() -> impl Iterator<Item = &'static dyn Operation> {
    block::ALL.into_iter().chain(cudnn::registered())
}

fn all() -> impl Iterator<Item = &'static dyn Operation> {
    networks().chain(unfused::ALL).chain(normalized::ALL).chain(loops::ALL)
}

/// The operation of this name.
pub(super) fn by_name(name: &str) -> Option<&'static dyn Operation> {
    all().find(|operation| operation.op().name == name)
}

pub(super) fn operations() -> Vec<OpInfo> {
    or_default("operations", || {
        blockcell_failpoints::set_up();
        // Read while the library is loaded.
        let _ = *switches::WEIGHTS;
        let info = |op: &dyn Operation| OpInfo {
            name: op.op().name,
            types: op.op().types.iter().map(|&of| attributes::number(of)).collect(),
            is_stock: op.is_stock(),
        };
        all().map(info).collect()
    })
}

/// The kernel of a node, or why there is none.
pub(super) struct Kernel {
    op: String,
    /// What errors of int8 are noted for.
    layer: String,
    node: Result<Box<dyn Node>, Status>,
    kept: Kept,
    /// If the node says so; otherwise that of the process holds.
    precision: Option<Precision>,
    weights: Weights,
    /// Whether it was said that weights stay float32 although they are to be in int8.
    said: AtomicBool,
    runs: Runs,
}

pub(super) fn make_kernel(op: &str, name: &str, attributes: &NodeAttributes) -> Box<Kernel> {
    let mut node = None;
    let mut kept = Kept::default();
    let (mut label, mut element) = (None, None);
    let (mut precision, mut weights) = (None, Weights::default());
    let status = guarded(op, || {
        let operation = by_name(op).expect("an operation");
        let attributes = Attributes::new(operation.op(), attributes);
        label = attributes.text(runs::LABEL).ok();
        element = attributes.element_type().ok();
        kept = Kept::of(attributes);
        precision = attributes.precision()?;
        weights = attributes.weights()?.unwrap_or(*switches::WEIGHTS);
        if weights != Weights::Float32 && is_gradient(operation.op()) {
            let expected = "weights must be in float32 where gradients are computed".to_owned();
            let (op, got) = (operation.op().name, weights.name().to_owned());
            return Err(Error::Attribute { op, expected, got });
        }
        node = Some(operation.node(attributes)?);
        Ok(())
    });
    let how = element.map(|element| How { element, precision, weights });
    let runs = Runs::of(op, label.as_deref().zip(how));
    let layer = label.unwrap_or_else(|| name_in_graph(name).to_owned());
    let (op, node, said) = (op.to_owned(), node.ok_or(status), AtomicBool::new(false));
    Box::new(Kernel { op, layer, node, kept, precision, weights, said, runs })
}

/// Whether an operation computes gradients.
fn is_gradient(op: &Op) -> bool {
    ["Grad", "Backprop"].iter().any(|part| op.name.contains(part))
}

impl Kernel {
    pub(super) fn status(&self) -> Status {
        self.with_node(|_| Ok(()))
    }

    pub(super) fn in_place(&self) -> Vec<usize> {
        or_default(&self.op, || self.node.as_ref().map_or_else(|_| Vec::new(), |n| n.in_place()))
    }

    pub(super) fn plan(
        &self,
        inputs: &[Input<'_>],
        is_read: &[bool],
        outputs: &mut [Shape],
        plan: &mut Plan,
    ) -> Status {
        self.with_node(|node| {
            *plan = node.plan(inputs, is_read, outputs)?;
            Ok(())
        })
    }

    #[allow(clippy::too_many_arguments)]
    pub(super) fn compute(
        &self,
        pool: &Pool,
        tensors: &Tensors,
        inputs: &[Input<'_>],
        in_place: &mut [Output<'_>],
        outputs: &mut [Output<'_>],
        forwarded: bool,
        scratch: &mut [f32],
    ) -> Status {
        self.with_node(|node| {
            blockcell_failpoints::here("compute");
            if blockcell_failpoints::returns(format_args!("wrong-{}", self.op)) {
                outputs.iter_mut().for_each(|output| output.data.fill(0));
                return Ok(());
            }
            let ran = Ran::default();
            let in_int8 = self.weights != Weights::Float32;
            self.kept.with((tensors, in_int8), inputs, |constants| {
                let context = &Context {
                    isa: Isa::get(),
                    executor: pool,
                    precision: self.precision.unwrap_or_else(switches::precision),
                    weights: self.weights,
                    ran: Some(&ran),
                    constants,
                };
                node.compute(Call { context, inputs, in_place, outputs, forwarded, scratch })?;
                if !int8_errors::are_asked_for() || !ran.in_int8() {
                    return Ok(());
                }
                let op = by_name(&self.op).expect("it has run").op();
                let (weights, constants) = (Weights::Float32, Constants::default());
                let context = &Context { weights, constants, ran: None, ..*context };
                int8_errors::note((op, &self.layer), outputs, |outputs| {
                    node.compute(Call { context, inputs, in_place, outputs, forwarded, scratch })
                })
            })?;
            self.runs.count(&ran);
            self.say_of_float32(ran.in_int8(), inputs);
            Ok(())
        })
    }

    /// Says once, where weights are to be in int8 and a call had them in float32, why.
    fn say_of_float32(&self, ran_int8: bool, inputs: &[Input<'_>]) {
        let is_meant = self.weights != Weights::Float32 && packs_weights(&self.op);
        if ran_int8 || !is_meant || *switches::LOG == 0 || self.said.swap(true, Ordering::Relaxed) {
            return;
        }
        let why = if self.kept.is_empty() {
            "nothing tells that its weights do not change"
        } else {
            "a call of this type and of these sizes would not be faster"
        };
        let shapes: Vec<_> = inputs.iter().map(|input| format!("{:?}", input.dims)).collect();
        eprintln!(
            "blockcell: {} runs in float32 in place of int8: {why}; inputs {}",
            self.op,
            shapes.join(", ")
        );
    }

    fn with_node(&self, call: impl FnOnce(&dyn Node) -> Result<(), Error>) -> Status {
        match &self.node {
            Ok(node) => guarded(&self.op, || call(&**node)),
            Err(status) => status.clone(),
        }
    }
}

/// Tells C++ a shape of an output of `op`. What is not known of it is `usize::MAX`, TensorFlow's -1.
pub(super) fn describe(
    op: &'static str,
    shape: &mut Shape,
    dims: impl ExactSizeIterator<Item = Option<usize>>,
) -> Result<(), Error> {
    shape.rank = dims.len();
    if shape.rank > shape.dims.len() {
        let expected = format!("an output must have at most {} dimensions", shape.dims.len());
        return Err(Error::Attribute { op, expected, got: shape.rank.to_string() });
    }
    for (to, dim) in shape.dims.iter_mut().zip(dims) {
        *to = dim.unwrap_or(usize::MAX);
    }
    Ok(())
}
