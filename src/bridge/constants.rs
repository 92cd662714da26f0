//! Which inputs of a node are constants, whose packed copies are kept.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

use blockcell_kernels::ops::{self, Op};
use blockcell_kernels::{Constant, Constants, Copies};

use super::attributes::Attributes;
use super::ffi::{self, Input};

/// The attribute by which the graph pass tells: the mark of this process, the numbers of the inputs, and those of the
/// constants.
const ATTRIBUTE: &str = "_blockcell_constants";

/// What only this process writes. A graph that was saved after the pass may have other inputs when it is run again.
static MARK: LazyLock<i64> =
    LazyLock::new(|| RandomState::new().build_hasher().finish().cast_signed());

/// The operations whose calls pack weights. Those of cuDNN are not among them: they are stateful, so several graphs of a
/// session share a kernel, and what is a constant in one may be fed in another.
const OPS: [&Op; 7] = [
    &ops::BLOCK_LSTM,
    &ops::BLOCK_LSTM_V2,
    &ops::BLOCK_GRU,
    &ops::LSTM_LAYER,
    &ops::GRU_LAYER,
    &ops::KERAS_LSTM,
    &ops::KERAS_GRU,
];

pub(super) fn wants_constants() -> bool {
    *crate::switches::REWRITE
}

pub(super) fn packs_weights(op: &str) -> bool {
    OPS.iter().any(|one| one.name == op)
}

/// Whether weights in int8 are meant for an operation: also where it cannot have them.
pub(super) fn multiplies_weights(op: &str) -> bool {
    packs_weights(op) || op.starts_with("CudnnRNN")
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

/// The constants among the inputs of a node.
#[derive(Default)]
pub(super) struct Kept(Vec<(usize, Arc<Copies>)>);

impl Kept {
    pub(super) fn of(attributes: Attributes<'_>) -> Self {
        let numbers = attributes.numbers(ATTRIBUTE).unwrap_or_default();
        let Some((mark, numbers)) = numbers.split_first() else { return Kept::default() };
        if *mark != *MARK {
            return Kept::default();
        }
        let (inputs, constants) = numbers.split_at(numbers.len() / 2);
        let kept = inputs.iter().zip(constants).filter_map(|(&input, &constant)| {
            Some((usize::try_from(input).ok()?, copies_of(constant)))
        });
        Kept(kept.collect())
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Runs `call` with the constants among a call's inputs.
    pub(super) fn with<R>(&self, inputs: &[Input<'_>], call: impl FnOnce(Constants<'_>) -> R) -> R {
        let constants = self.0.iter().filter_map(|(input, copies)| {
            Some(Constant { bytes: inputs.get(*input)?.data, copies })
        });
        call(Constants(&constants.collect::<Vec<_>>()))
    }
}
