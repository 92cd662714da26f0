//! Shapes of which only a part is known, as while a graph is built.

use super::bound::Bound;
use super::{Dim, Op};
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
    /// [`Error::PartialShape`] if no sizes give inputs of these shapes, for a tensor at odds with
    /// the others; [`Error::Count`] for a wrong number of inputs.
    pub fn infer(
        &'static self,
        use_optional: bool,
        shapes: &[PartialShape],
    ) -> Result<Vec<Vec<Option<usize>>>, Error> {
        self.check_count("inputs", self.inputs.len(), shapes.len())?;
        let mut bound = Bound::new(use_optional);
        let known = || self.inputs.iter().zip(shapes).filter_map(|(t, s)| Some((t, s.as_ref()?)));
        // A tensor may give the size that makes sense of one before it. Every round but the last
        // gives a number to some symbol, so there are few.
        loop {
            let before = bound.clone();
            for (tensor, shape) in known() {
                let expected = bound.clone();
                if !bound.fits_partially(tensor.dims, shape) {
                    return Err(Error::PartialShape {
                        op: self.name,
                        tensor: tensor.name,
                        expected: expected.describe_other_than(tensor.dims, shape),
                        got: shape.clone(),
                    });
                }
            }
            if bound == before {
                break;
            }
        }
        let dims = |dims: &[Dim]| dims.iter().map(|&dim| bound.value(dim)).collect();
        Ok(self.outputs.iter().map(|tensor| dims(tensor.dims)).collect())
    }
}

impl Bound {
    /// Whether `got` may be a shape that `dims` allow; symbols take their numbers from it.
    fn fits_partially(&mut self, dims: &[Dim], got: &[Option<usize>]) -> bool {
        dims.len() == got.len()
            && dims.iter().zip(got).all(|(&dim, &n)| n.is_none_or(|n| self.solve(dim, n)))
    }

    /// [`Bound::describe`], but without numbers where they would be those of `got`: then it is `got`
    /// by itself that makes no sense, as three rows for an unknown input and four cells.
    fn describe_other_than(&self, dims: &[Dim], got: &[Option<usize>]) -> String {
        let differs = |(&dim, n): (&Dim, &Option<usize>)| {
            self.value(dim).zip(*n).is_some_and(|(value, n)| value != n)
        };
        if dims.len() != got.len() || dims.iter().zip(got).any(differs) {
            return self.describe(dims);
        }
        self.symbols(dims)
    }

    /// Takes the number of a symbol from `dim = n`. False if that is not possible.
    fn solve(&mut self, dim: Dim, n: usize) -> bool {
        match dim {
            Dim::InputCell => {
                let rows = *self.rows.get_or_insert(n);
                rows == n
                    && match (self.value(Dim::Input), self.value(Dim::Cell)) {
                        (None, None) => true,
                        (Some(input_size), _) => self.solve_rest(n, input_size, Dim::Cell),
                        (None, Some(cell_size)) => self.solve_rest(n, cell_size, Dim::Input),
                    }
            }
            Dim::Gates(gates) => n.is_multiple_of(gates) && self.solve(Dim::Cell, n / gates),
            _ => match (self.value(dim), self.slot(dim)) {
                (Some(value), _) => value == n,
                (None, slot) => {
                    *slot.expect("a symbol that stands alone") = Some(n);
                    true
                }
            },
        }
    }

    /// [`Bound::solve`] for `dim + known = n`.
    fn solve_rest(&mut self, n: usize, known: usize, dim: Dim) -> bool {
        n.checked_sub(known).is_some_and(|rest| self.solve(dim, rest))
    }
}
