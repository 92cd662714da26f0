//! Operations whose inputs or outputs are lists of tensors.
//!
//! TensorFlow passes the tensors of all lists one after the other. Attributes of the node tell how many each list has.

use std::ops::Range;

use super::bound::Bound;
use super::{Op, Sizes, Tensor};

/// What belongs to the inputs of a call, such as their shapes: one for each single tensor, and some for each list.
#[derive(Clone, Copy, Debug)]
pub struct Lists<'a, T> {
    op: &'static Op,
    lengths: &'a [usize],
    pub(super) outputs: &'a [usize],
    all: &'a [T],
}

/// How many tensors there are of each input and output: 1 of a single one.
#[derive(Clone, Debug)]
pub struct Lengths {
    /// Of each input.
    pub inputs: Vec<usize>,
    /// Of each output.
    pub outputs: Vec<usize>,
}

/// What follows from the shapes of a call's inputs, as far as they are known.
#[derive(Clone, Debug)]
pub struct Inferred {
    /// The numbers behind the symbols.
    pub sizes: KnownSizes,
    /// The shape of each output; of a list, of each tensor.
    pub outputs: Vec<Vec<Option<usize>>>,
}

/// [`Sizes`] of which some may be unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownSizes {
    /// `time` (T)
    pub time: Option<usize>,
    /// `batch` (B)
    pub batch: Option<usize>,
    /// `input_size` (D)
    pub input_size: Option<usize>,
    /// `cell_size` (C)
    pub cell_size: Option<usize>,
}

impl KnownSizes {
    /// All of them, 0 for those that are not known.
    #[must_use]
    pub fn in_numbers(&self) -> Sizes {
        let [time, batch, input_size, cell_size] =
            [self.time, self.batch, self.input_size, self.cell_size].map(Option::unwrap_or_default);
        Sizes { time, batch, input_size, cell_size, optional: [cell_size; 3] }
    }

    pub(super) fn of(bound: &Bound) -> Self {
        let [time, batch, input_size, cell_size] =
            [super::Dim::Time, super::Dim::Batch, super::Dim::Input, super::Dim::Cell]
                .map(|dim| bound.value(dim));
        KnownSizes { time, batch, input_size, cell_size }
    }
}

impl Op {
    /// The place of a single input, or of the first tensor of a list, which no other list precedes.
    ///
    /// # Panics
    ///
    /// There is no such input. In a constant, that is an error of the compiler.
    #[must_use]
    pub const fn input(&self, name: &str) -> usize {
        position(self.inputs, name)
    }

    /// The place of an output, as [`Op::input`].
    ///
    /// # Panics
    ///
    /// There is no such output.
    #[must_use]
    pub const fn output(&self, name: &str) -> usize {
        position(self.outputs, name)
    }

    /// The places of the tensors of an input in a node whose lists have as many as `count` says of their attributes.
    ///
    /// # Panics
    ///
    /// There is no such input.
    #[must_use]
    pub fn input_range(
        &self,
        name: &str,
        mut count: impl FnMut(&'static str) -> usize,
    ) -> Range<usize> {
        let mut begin = 0;
        for tensor in self.inputs {
            let end = begin + tensor.list.map_or(1, &mut count);
            if tensor.name == name {
                return begin..end;
            }
            begin = end;
        }
        panic!("{} has no input {name}", self.name)
    }

    /// How many tensors there are of each input and output, by the values of the attributes that say so.
    ///
    /// # Errors
    ///
    /// Those of `count`.
    pub fn lengths<E>(
        &self,
        mut count: impl FnMut(&'static str) -> Result<usize, E>,
    ) -> Result<Lengths, E> {
        let mut of = |tensors: &'static [Tensor]| -> Result<Vec<usize>, E> {
            tensors.iter().map(|tensor| tensor.list.map_or(Ok(1), &mut count)).collect()
        };
        Ok(Lengths { inputs: of(self.inputs)?, outputs: of(self.outputs)? })
    }

    /// How many inputs a node has at least: a list may be empty.
    #[must_use]
    pub fn fewest_inputs(&self) -> usize {
        self.inputs.iter().filter(|tensor| tensor.list.is_none()).count()
    }
}

const fn position(tensors: &[Tensor], name: &str) -> usize {
    let mut n = 0;
    while n < tensors.len() {
        if is_same(tensors[n].name, name) {
            return n;
        }
        assert!(tensors[n].list.is_none(), "a list comes before the tensor");
        n += 1;
    }
    panic!("the operation has no tensor of this name")
}

const fn is_same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut n = 0;
    while n < left.len() && n < right.len() && left[n] == right[n] {
        n += 1;
    }
    n == left.len() && n == right.len()
}

impl<'a, T> Lists<'a, T> {
    /// `all` in the order of the operation's inputs, of which there are as many as `lengths` says.
    #[must_use]
    pub fn new(op: &'static Op, lengths: &'a [usize], outputs: &'a [usize], all: &'a [T]) -> Self {
        Lists { op, lengths, outputs, all }
    }

    /// What belongs to the input `name`.
    ///
    /// # Panics
    ///
    /// The operation has no such input.
    #[must_use]
    pub fn of(&self, name: &str) -> &'a [T] {
        let found = self.op.inputs.iter().position(|tensor| tensor.name == name);
        let at = found.unwrap_or_else(|| panic!("{} has no input {name}", self.op.name));
        let begin = self.lengths[..at].iter().sum::<usize>();
        &self.all[begin..begin + self.lengths[at]]
    }

    /// Whether there is a list `name` that is not empty.
    pub(super) fn has(&self, name: &str) -> bool {
        self.may_have(name) && !self.of(name).is_empty()
    }

    /// Whether there is a list `name` that is empty.
    pub(super) fn lacks(&self, name: &str) -> bool {
        self.may_have(name) && self.of(name).is_empty()
    }

    fn may_have(&self, name: &str) -> bool {
        let is_such = |tensor: &Tensor| tensor.name == name && tensor.list.is_some();
        self.op.inputs.iter().any(is_such)
    }

    /// What belongs to the same inputs in `all`.
    pub(crate) fn with<'b, U>(&self, all: &'b [U]) -> Lists<'b, U>
    where
        'a: 'b,
    {
        let Lists { op, lengths, outputs, .. } = *self;
        Lists { op, lengths, outputs, all }
    }

    /// What belongs to the single input `name`.
    ///
    /// # Panics
    ///
    /// The operation has no such input.
    #[must_use]
    pub fn one(&self, name: &str) -> &'a T {
        &self.of(name)[0]
    }

    /// Each input and what belongs to it, and of a list of several their places there.
    pub(crate) fn iter(
        &self,
    ) -> impl Iterator<Item = (&'static Tensor, Option<usize>, &'a T)> + use<'a, T> {
        let Lists { op, lengths, all, .. } = *self;
        let places = op.inputs.iter().zip(lengths).flat_map(|(tensor, &length)| {
            (0..length).map(move |n| (tensor, (length > 1).then_some(n)))
        });
        places.zip(all).map(|((tensor, n), one)| (tensor, n, one))
    }

    /// How many tensors there are in all.
    pub(super) fn count(&self) -> [usize; 2] {
        [self.lengths.iter().sum(), self.all.len()]
    }
}
