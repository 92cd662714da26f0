//! Loops over a sequence: the number of steps, for all rows and for each, and the known sizes of their arrays.

use ndarray::{ArrayView3, ArrayViewD, ArrayViewMut3, Zip};

use super::lstm::broadcast;
use super::memory::whole_len;
use crate::error::{self, known_shape};
use crate::ops::partial::may_be_same;
use crate::ops::{Inferred, KnownSizes, Lists, Op, PartialShape};
use crate::recurrence::Lengths;
use crate::{Activations, Error, Storage};

/// The attributes of an operation on a loop.
#[derive(Clone, Debug)]
pub struct Loop {
    /// The sizes of a step of x before the loop runs (TensorFlow's `element_shape`), None for any.
    pub x: PartialShape,
    /// The same of a step of h.
    pub h: PartialShape,
    /// Whether h has a consumer.
    pub needs_h: bool,
    /// Whether the loop's arrays are lists, which may have other sizes. Otherwise h has as many steps as x.
    pub lists: bool,
    /// Whether every iteration writes its output to the first step of h, so that only the last output remains.
    pub last_only: bool,
    /// Whether a row repeats its previous output in a masked step. Otherwise its output is the one before the first
    /// step.
    pub repeats: bool,
    /// Whether the cell state before the first step may have another shape that broadcasts.
    pub broadcasts: bool,
    /// Whether x, of the same width, is added to h.
    pub adds_x: bool,
    /// Whether x or the first output may have a single row, which broadcasts, if each has its own weights.
    pub broadcasts_rows: bool,
    /// Whether the reset gate of a GRU is applied after the matrix product.
    pub reset_after: bool,
    /// Whether the columns of a GRU's update gate come before those of the reset gate.
    pub update_first: bool,
    /// Whether a GRU's update gate is the share of the candidate in the new state, and not that of the old state.
    pub u_weighs_c: bool,
    /// The functions of the cell.
    pub activations: Activations,
}

impl Default for Loop {
    fn default() -> Self {
        let [x, h] = [None, None];
        let [lists, last_only, adds_x, broadcasts_rows, update_first, u_weighs_c] = [false; 6];
        let [needs_h, repeats, broadcasts, reset_after] = [true; 4];
        let activations = Activations::default();
        Loop {
            x,
            h,
            needs_h,
            lists,
            last_only,
            repeats,
            broadcasts,
            adds_x,
            broadcasts_rows,
            reset_after,
            update_first,
            u_weighs_c,
            activations,
        }
    }
}

/// The numbers of steps and iterations of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// The number of steps of h.
    pub size: i64,
    /// The number of iterations; a negative number counts as 0.
    pub rounds: i64,
}

impl Numbers {
    /// Takes the smallest of several numbers of iterations.
    #[must_use]
    pub fn new(size: i32, rounds: &[i32]) -> Self {
        Numbers { size: size.into(), rounds: rounds.iter().copied().min().unwrap_or(0).into() }
    }

    /// The number of rounds, 0 for a negative one.
    pub(super) fn rounds(self) -> usize {
        usize::try_from(self.rounds).unwrap_or(0)
    }
}

impl Loop {
    /// The shape of h if the loop has zero iterations, given that of x. Nothing is computed then, no other tensor is
    /// checked, and the last states are the first ones. None if the loop has iterations.
    ///
    /// # Errors
    ///
    /// For a wrong number of steps, an x that does not match its array, or an h of unknown shape.
    pub fn without_rounds(
        &self,
        op: &'static Op,
        numbers: Numbers,
        x: &[usize],
    ) -> Result<Option<Vec<usize>>, Error> {
        if numbers.rounds > 0 {
            return Ok(None);
        }
        if self.lists || self.x.is_some() {
            self.check_x(op, &known_shape(x))?;
        }
        let time = x.first().copied().unwrap_or(0);
        let size = self.size(op, numbers, Some(time))?.unwrap_or(time);
        if !self.needs_h {
            return Ok(Some(vec![size, 0, 0]));
        }
        let sizes = self.h.clone().unwrap_or_else(|| vec![None; 2]);
        if sizes.iter().all(Option::is_some) {
            return Ok(Some([size].into_iter().chain(sizes.into_iter().flatten()).collect()));
        }
        if !self.lists {
            return Err(Error::NoSteps { op: op.name, time });
        }
        // That is another error than that of TensorFlow's other arrays, where it depends on the number of steps.
        let (op, expected) = (op.name, "[size, batch, cell_size], of known sizes".to_owned());
        let got = [Some(size)].into_iter().chain(sizes).collect();
        Err(Error::Shape { op, tensor: "h", index: None, expected, got })
    }

    /// Completes what follows from the shapes of the inputs by the numbers, if they are known, and by what is known of
    /// the arrays' elements. `width` is that of h.
    pub(super) fn infer(
        &self,
        op: &'static Op,
        numbers: Option<Numbers>,
        inputs: &Lists<'_, PartialShape>,
        width: Option<usize>,
        inferred: &mut Inferred,
    ) -> Result<(), Error> {
        let KnownSizes { batch, input_size, .. } = inferred.sizes;
        if let Some((got, width)) = input_size.zip(width).filter(|(x, h)| self.adds_x && x != h) {
            let expected = format!("[time, batch, width of h = {width}]");
            let got = vec![inputs.one("x").as_ref().and_then(|x| x[0]), batch, Some(got)];
            return Err(Error::Shape { op: op.name, tensor: "x", index: None, expected, got });
        }
        if let Some(x) = inputs.one("x") {
            self.check_x(op, x)?;
        }
        let time = inputs.one("x").as_ref().and_then(|x| x[0]);
        let size = match numbers {
            Some(numbers) => self.size(op, numbers, time)?,
            None => time.filter(|_| !self.lists),
        };
        let h = vec![size, batch, width];
        check_element(op, "h", "[time, batch, cell_size]", self.h.as_deref(), &h)?;
        op.check_size("h", "[time, batch, cell_size]", &h)?;
        inferred.sizes.time = time;
        inferred.outputs[op.output("h")] = h;
        Ok(())
    }

    /// Checks what is known of the shape of x against what a step of it must be.
    pub(super) fn check_x(&self, op: &'static Op, x: &[Option<usize>]) -> Result<(), Error> {
        check_element(op, "x", "[time, batch, input_size]", self.x.as_deref(), x)
    }

    /// How many steps h has, if x has `time` of them.
    ///
    /// # Errors
    ///
    /// A negative number, and rounds without a step of x or a place in h.
    fn size(
        &self,
        op: &'static Op,
        Numbers { size, rounds }: Numbers,
        time: Option<usize>,
    ) -> Result<Option<usize>, Error> {
        let tensor = op.inputs[0].name;
        let wrong = |tensor, got: i64, time| {
            Err(Error::Value { op: op.name, tensor, index: None, time, got: got.into() })
        };
        if let Some(time) = time {
            if !self.lists && i64::try_from(time) != Ok(size) {
                return wrong(tensor, size, time);
            }
            if usize::try_from(rounds).is_ok_and(|rounds| rounds > time) {
                return wrong("rounds", rounds, time);
            }
        }
        let Ok(places) = usize::try_from(size) else { return wrong(tensor, size, 0) };
        let most = if self.last_only { i64::MAX } else { size };
        if rounds > most || (rounds > 0 && places == 0) {
            return wrong("rounds", rounds, places);
        }
        Ok(Some(places))
    }
}

/// Checks what is known of the shape of an array against what its elements are known to be.
fn check_element(
    op: &'static Op,
    tensor: &'static str,
    symbols: &str,
    sizes: Option<&[Option<usize>]>,
    got: &[Option<usize>],
) -> Result<(), Error> {
    let sizes = sizes.unwrap_or(&[None; 2]);
    let expected: Vec<_> = [None].into_iter().chain(sizes.iter().copied()).collect();
    if may_be_same(&expected, got) {
        return Ok(());
    }
    let (op, got) = (op.name, got.to_vec());
    let expected = format!("{symbols} = {}", error::shape(&expected));
    Err(Error::Shape { op, tensor, index: None, expected, got })
}

/// Checks what is known of the shape of `sequence_length`, which may be a scalar for all rows.
pub(super) fn infer_lengths(
    op: &'static Op,
    inputs: &Lists<'_, PartialShape>,
    inferred: &mut Inferred,
) -> Result<(), Error> {
    let batch = inferred.sizes.batch;
    match inputs.of("sequence_length") {
        [Some(got)] if !got.is_empty() && !may_be_same(got, &[batch]) => {
            let expected = format!("[batch] = {}, or be a scalar", error::shape(&[batch]));
            let (op, tensor, got) = (op.name, "sequence_length", got.clone());
            Err(Error::Shape { op, tensor, index: None, expected, got })
        }
        [Some(got)] => {
            inferred.sizes.batch = batch.or_else(|| got.first().copied().flatten());
            Ok(())
        }
        _ => Ok(()),
    }
}

/// A state broadcasts as in the first round of a loop, where it need not be whole.
pub(super) fn check_state(
    op: &'static str,
    inputs: &Lists<'_, PartialShape>,
    tensor: &'static str,
    state: &[Option<usize>],
    is_whole: bool,
) -> Result<(), Error> {
    let Some(got) = inputs.one(tensor) else { return Ok(()) };
    let broadcasts = || broadcast(state, got).is_some_and(|both| may_be_same(&both, state));
    if may_be_same(got, state) || (!is_whole && broadcasts()) {
        return Ok(());
    }
    let more = if is_whole { "" } else { ", or a shape that broadcasts to it" };
    let expected = format!("[batch, cell_size] = {}{more}", error::shape(state));
    let got = got.clone();
    Err(Error::Shape { op, tensor, index: None, expected, got })
}

/// The number of additional elements of scratch memory that an operation on a loop needs if an x of this shape has a
/// single row, which broadcasts.
#[must_use]
pub fn copied_x(x: &[usize], batch: usize) -> usize {
    x.try_into().map_or(0, |sizes| whole_len(sizes, batch))
}

/// Adds x to the outputs of the steps that each row takes part in.
pub(super) fn add_x<E: Storage>(
    lengths: Lengths<'_>,
    x: ArrayView3<'_, E>,
    mut h: ArrayViewMut3<'_, E>,
) {
    for (t, (x, mut h)) in x.outer_iter().zip(h.outer_iter_mut()).enumerate() {
        for (row, (x, h)) in x.outer_iter().zip(h.outer_iter_mut()).enumerate() {
            if t < lengths.of(row) {
                Zip::from(h).and(x).for_each(|h, x| *h = E::from_f32(h.to_f32() + x.to_f32()));
            }
        }
    }
}

/// How many of the `rounds` each of `batch` rows takes part in.
pub(super) fn lengths(
    rounds: usize,
    sequence_length: Option<&ArrayViewD<'_, i32>>,
    batch: usize,
) -> Vec<i64> {
    let rounds = rounds as i64;
    let Some(lengths) = sequence_length else { return vec![rounds; batch] };
    let lengths = lengths.broadcast(batch).expect("it was checked");
    lengths.iter().map(|&length| i64::from(length).clamp(0, rounds)).collect()
}
