//! Shapes of which only a part is known, as while a graph is built.

use super::bound::Bound;
use super::lists::{Inferred, KnownSizes, Lists};
use super::{Dim, Op, Shape, Tensor};
use crate::Error;

/// What is known of a shape: nothing, or its rank and some dimensions.
pub type PartialShape = Option<Vec<Option<usize>>>;

impl Op {
    /// Checks what is known of the shapes of all inputs, and tells what follows for the outputs:
    /// each has a rank, and a dimension is `None` if the inputs leave it open.
    ///
    /// `use_optional` is as for [`Op::check`]. Here a size is also taken from a tensor where it
    /// does not stand alone: `cell_size` from a known `2 * cell_size`, `input_size` from a known
    /// `input_size + cell_size`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if no sizes give inputs of these shapes, for a tensor at odds with the others;
    /// [`Error::Overflow`] for an output that cannot be addressed, [`Error::Count`] for a wrong number of inputs.
    pub fn infer(
        &'static self,
        use_optional: bool,
        inputs: &Lists<'_, PartialShape>,
    ) -> Result<Inferred, Error> {
        let bound = self.solve(use_optional, inputs)?;
        let known = |tensor: &Tensor| {
            let dims: Vec<_> = tensor.dims.iter().map(|&dim| bound.value(dim)).collect();
            self.check_size(tensor.name, &bound.symbols(tensor.dims), &bound.largest(tensor.dims))?;
            Ok(dims)
        };
        let mut outputs = Vec::new();
        for (tensor, &length) in self.outputs.iter().zip(inputs.outputs) {
            outputs.extend(vec![known(tensor)?; length]);
        }
        Ok(Inferred { sizes: KnownSizes::of(&bound), outputs })
    }

    /// The numbers of the symbols in the inputs' shapes.
    fn solve(
        &'static self,
        use_optional: bool,
        inputs: &Lists<'_, PartialShape>,
    ) -> Result<Bound, Error> {
        let [expected, got] = inputs.count();
        self.check_count("inputs", expected, got)?;
        let mut bound = Bound::new(use_optional);
        bound.apart = ["w_h", "w_ru_h"].iter().any(|name| inputs.has(name));
        bound.is_whole = inputs.lacks("projection");
        let known = || inputs.iter().filter_map(|(t, n, shape)| Some((t, n, shape.as_ref()?)));
        // A tensor may give the size that makes sense of one before it. Every round but the last
        // gives a number to some symbol, so there are few.
        loop {
            let before = bound.clone();
            for (tensor, n, shape) in known() {
                let expected = bound.clone();
                if !bound.fits_partially(tensor, shape) {
                    let expected = expected.describe_other_than(tensor, shape);
                    return Err(tensor.shape_error(self, n, expected, shape.clone()));
                }
            }
            if bound == before {
                return Ok(bound);
            }
        }
    }

    /// Checks that a tensor of float elements with such dimensions can be addressed.
    pub(crate) fn check_size(
        &self,
        tensor: &'static str,
        symbols: &str,
        dims: &[Option<usize>],
    ) -> Result<(), Error> {
        let size = dims
            .iter()
            .try_fold(size_of::<f32>(), |size, dim| size.checked_mul(dim.unwrap_or(1).max(1)));
        match size.and_then(|size| isize::try_from(size).ok()) {
            Some(_) => Ok(()),
            None => Err(Error::Overflow { op: self.name, tensor, shape: symbols.to_owned() }),
        }
    }
}

/// Whether a tensor of shape `got` broadcasts to one of shape `to`, as far as the shapes are known.
pub(crate) fn may_broadcast(got: &[Option<usize>], to: &[Option<usize>]) -> bool {
    let fits = |(got, to): (&Option<usize>, &Option<usize>)| {
        got.zip(*to).is_none_or(|(got, to)| got == 1 || got == to)
    };
    got.len() <= to.len() && got.iter().rev().zip(to.iter().rev()).all(fits)
}

/// Whether two shapes are the same, as far as they are known.
pub(crate) fn may_be_same(one: &[Option<usize>], other: &[Option<usize>]) -> bool {
    let fits = |(one, other): (&Option<usize>, &Option<usize>)| {
        one.zip(*other).is_none_or(|(one, other)| one == other)
    };
    one.len() == other.len() && one.iter().zip(other).all(fits)
}

impl Bound {
    /// Whether `got` may be a shape of this tensor; symbols take their numbers from it.
    fn fits_partially(&mut self, tensor: &Tensor, got: &[Option<usize>]) -> bool {
        let dims = tensor.dims;
        match tensor.shape {
            Shape::Checked => true,
            Shape::Broadcasts => {
                let to: Vec<_> = dims.iter().map(|&dim| self.value(dim)).collect();
                may_broadcast(got, &to)
            }
            Shape::Exact => {
                dims.len() == got.len()
                    && dims.iter().zip(got).all(|(&dim, &n)| n.is_none_or(|n| self.solve(dim, n)))
            }
        }
    }

    /// [`Bound::describe`], but without numbers where they would be those of `got`: then it is `got`
    /// by itself that makes no sense, as three rows for an unknown input and four cells.
    fn describe_other_than(&self, tensor: &Tensor, got: &[Option<usize>]) -> String {
        let dims = tensor.dims;
        if tensor.shape == Shape::Broadcasts {
            return format!("{}, or one that broadcasts to it", self.describe(dims));
        }
        let differs = |(&dim, n): (&Dim, &Option<usize>)| {
            self.value(dim).zip(*n).is_some_and(|(value, n)| value != n)
        };
        if dims.len() != got.len() || dims.iter().zip(got).any(differs) {
            return self.describe(dims);
        }
        self.symbols(dims)
    }

    /// The numbers of `dims`; one that is too large to be counted is as large as can be.
    fn largest(&self, dims: &[Dim]) -> Vec<Option<usize>> {
        let rows = |state: Dim| match self.apart {
            true => self.value(Dim::Input),
            false => Some(self.value(Dim::Input)?.saturating_add(self.value(state)?)),
        };
        let number = |&dim: &Dim| match dim {
            Dim::Gates(gates) => self.value(Dim::Cell).map(|cells| cells.saturating_mul(gates)),
            Dim::InputCell | Dim::InputCellOrNone => rows(Dim::Cell),
            Dim::InputOutput => rows(Dim::Output),
            _ => self.value(dim),
        };
        dims.iter().map(number).collect()
    }

    /// Takes the number of a symbol from `dim = n`. False if that is not possible.
    fn solve(&mut self, dim: Dim, n: usize) -> bool {
        match dim {
            Dim::InputCell => self.solve_rows(n, Dim::Cell),
            Dim::InputOutput => self.solve_rows(n, Dim::Output),
            Dim::Gates(gates) => n.is_multiple_of(gates) && self.solve(Dim::Cell, n / gates),
            Dim::Any(_) => true,
            _ => match (self.value(dim), self.slot(dim)) {
                (Some(value), _) => value == n,
                (None, slot) => {
                    *slot.expect("a symbol that stands alone") = Some(n);
                    true
                }
            },
        }
    }

    /// [`Bound::solve`] for `input_size + state = n`.
    fn solve_rows(&mut self, n: usize, state: Dim) -> bool {
        if self.apart {
            return self.solve(Dim::Input, n);
        }
        let rows = *self.rows.get_or_insert(n);
        rows == n
            && match (self.value(Dim::Input), self.value(state)) {
                (None, None) => true,
                (Some(input_size), _) => self.solve_rest(n, input_size, state),
                (None, Some(size)) => self.solve_rest(n, size, Dim::Input),
            }
    }

    /// [`Bound::solve`] for `dim + known = n`.
    fn solve_rest(&mut self, n: usize, known: usize, dim: Dim) -> bool {
        n.checked_sub(known).is_some_and(|rest| self.solve(dim, rest))
    }
}
