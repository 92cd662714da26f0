//! Which inputs of a node are constants, or variables that its graph only reads. Their packed copies are kept.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use blockcell_kernels::ops::{self, Op};
use blockcell_kernels::{Constant, Constants, Copies};

use super::attributes::Attributes;
use super::cudnn;
use super::ffi::{self, Input, NodeAttributes, Tensors};
use super::status::or_default;
use super::variables::{self, Variable, Watched};

/// The attribute by which the graph pass tells: the mark of this process, the numbers of the inputs, and those of the
/// constants.
const ATTRIBUTE: &str = "_blockcell_constants";

/// In place of a constant's number: the input is read from a variable that the graph does not write.
const VARIABLE: i64 = 0;

/// What only this process writes. A graph that was saved after the pass may have other inputs when it is run again.
static MARK: LazyLock<i64> =
    LazyLock::new(|| RandomState::new().build_hasher().finish().cast_signed());

/// What is between the name of a node and a number, in a name of its own.
const OWN_NAME: &str = "/_blockcell";

/// The operations whose calls pack weights, beside those of cuDNN.
const OPS: [&Op; 8] = [
    &ops::BLOCK_LSTM,
    &ops::BLOCK_LSTM_V2,
    &ops::BLOCK_GRU,
    &ops::LSTM,
    &ops::LSTM_LAYER,
    &ops::GRU_LAYER,
    &ops::KERAS_LSTM,
    &ops::KERAS_GRU,
];

pub(super) fn wants_constants() -> bool {
    *crate::switches::REWRITE
}

pub(super) fn packs_weights(op: &str) -> bool {
    OPS.iter().any(|one| one.name == op) || cudnn::is_forward(op)
}

/// Whether the kernel of a node is to keep packed weights. Those of cuDNN's operations are kept in int8, and not in float32.
pub(super) fn keeps_weights(op: &str, attributes: &NodeAttributes) -> bool {
    or_default(op, || !cudnn::is_forward(op) || cudnn::infers_in_int8(op, attributes))
}

pub(super) fn own_name(node: &str, number: i64) -> String {
    format!("{node}{OWN_NAME}{number}")
}

/// The name that a node had in the graph, by one that may be [`own_name`].
pub(super) fn name_in_graph(name: &str) -> &str {
    name.split_once(OWN_NAME).map_or(name, |(node, _)| node)
}

pub(super) fn note_constants(inputs: &[i64], constants: &[i64]) -> ffi::ConstantsNote {
    let numbers = [&[*MARK], inputs, constants].concat();
    ffi::ConstantsNote { attribute: ATTRIBUTE.to_owned(), numbers }
}

/// What is kept of each constant, as long as a node has it.
static COPIES: Mutex<Option<HashMap<i64, Weak<Copies>>>> = Mutex::new(None);

/// The copies of a constant, which all nodes share that have it.
fn copies_of(constant: i64) -> Arc<Copies> {
    let mut all = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let all = all.get_or_insert_default();
    if let Some(copies) = all.get(&constant).and_then(Weak::upgrade) {
        return copies;
    }
    all.retain(|_, copies| copies.strong_count() > 0);
    let copies = Arc::default();
    all.insert(constant, Arc::downgrade(&copies));
    copies
}

/// The memory of all copies that are kept, in bytes.
pub(super) fn kept_bytes() -> usize {
    let all = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    let of_constants = all.iter().flat_map(HashMap::values).filter_map(Weak::upgrade);
    of_constants.map(|copies| copies.bytes()).sum::<usize>() + variables::bytes()
}

/// The copies of a variable in a call: those that are kept, or the call's own.
enum OfCall {
    Held(Arc<Variable>),
    Own(Box<Copies>),
}

impl OfCall {
    fn copies(&self) -> &Copies {
        match self {
            OfCall::Held(variable) => variable.copies(),
            OfCall::Own(copies) => copies,
        }
    }
}

/// The constants and variables among the inputs of a node.
#[derive(Default)]
pub(super) struct Kept {
    constants: Vec<(usize, Arc<Copies>)>,
    variables: Vec<Watched>,
}

impl Kept {
    pub(super) fn of(attributes: Attributes<'_>) -> Self {
        let numbers = attributes.numbers(ATTRIBUTE).unwrap_or_default();
        let Some((mark, numbers)) = numbers.split_first() else { return Kept::default() };
        if *mark != *MARK {
            return Kept::default();
        }
        let (inputs, constants) = numbers.split_at(numbers.len() / 2);
        let mut kept = Kept::default();
        for (&input, &constant) in inputs.iter().zip(constants) {
            let Ok(input) = usize::try_from(input) else { continue };
            match constant {
                VARIABLE => kept.variables.push(Watched::new(input)),
                constant => kept.constants.push((input, copies_of(constant))),
            }
        }
        kept
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.constants.is_empty() && self.variables.is_empty()
    }

    /// Runs `call` with those among a call's inputs that do not change. With `from_first`, results depend on that: then
    /// variables count as such before they are held, and their copies are made for the call.
    pub(super) fn with<R>(
        &self,
        (tensors, from_first): (&Tensors, bool),
        inputs: &[Input<'_>],
        call: impl FnOnce(Constants<'_>) -> R,
    ) -> R {
        let held = |watched: &Watched| match watched.of_call(tensors, inputs) {
            Some(variable) => Some((watched.input(), OfCall::Held(variable))),
            None if from_first => Some((watched.input(), OfCall::Own(Box::default()))),
            None => None,
        };
        let variables: Vec<_> = self.variables.iter().filter_map(held).collect();
        let of_variables = variables.iter().map(|(input, variable)| (*input, variable.copies()));
        let of_constants = self.constants.iter().map(|(input, copies)| (*input, &**copies));
        let constants = of_constants.chain(of_variables).filter_map(|(input, copies)| {
            Some(Constant { bytes: inputs.get(input)?.data, copies })
        });
        call(Constants(&constants.collect::<Vec<_>>()))
    }
}
