//! What the loops of Keras's layers have in common: which steps a row takes part in, and what it gives in the others.

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut3, Axis};

use super::loops::{Loop, Numbers};
use super::memory::Pieces;
use crate::ops::{Inferred, Lists, Op, PartialShape, Tensor};
use crate::{Error, Storage};

/// What follows from what is known of the shapes of the inputs, and of the numbers, for an operation with these states.
pub(super) fn infer(
    op: &'static Op,
    kind: &Loop,
    numbers: Option<Numbers>,
    inputs: &Lists<'_, PartialShape>,
    states: &[&'static str],
) -> Result<Inferred, Error> {
    let mut inferred = op.infer(false, inputs)?;
    let [masks, before] = ["mask", "before"].map(|name| inputs.of(name).len());
    if masks != before {
        let what = "tensors in before";
        return Err(Error::Count { op: op.name, what, expected: masks, got: before });
    }
    let states_with_axes = states.iter().map(|&name| (name, 0));
    let tensors = [("x", 1)].into_iter().chain(states_with_axes);
    let batch = one_batch(op, inputs, tensors.chain([("mask", 1), ("before", 0)]))?;
    inferred.sizes.batch = batch;
    kind.infer(op, numbers, inputs, inferred.sizes.cell_size, &mut inferred)?;
    if let [Some(mask)] = inputs.of("mask") {
        check_mask(op, numbers, mask)?;
    }
    // While a graph is built, nobody knows whether there will be a round; without one, the last states are as small as
    // the first ones.
    for (output, state) in inferred.outputs[1..].iter_mut().zip(states) {
        let rows = inputs.one(state).as_ref().and_then(|state| state[0]);
        let batch = batch.filter(|_| numbers.is_some() || rows == batch);
        *output = vec![batch, inferred.sizes.cell_size];
    }
    Ok(inferred)
}

fn check_mask(
    op: &'static Op,
    numbers: Option<Numbers>,
    mask: &[Option<usize>],
) -> Result<(), Error> {
    if mask[2].is_some_and(|size| size != 1) {
        let (expected, got) = ("[time, batch, 1]".to_owned(), mask.to_vec());
        return Err(Error::Shape { op: op.name, tensor: "mask", index: None, expected, got });
    }
    match (numbers, mask[0]) {
        (Some(numbers), Some(time)) if numbers.rounds() > time => {
            let rounds = numbers.rounds();
            let expected = format!("[time, batch, 1] with at least {rounds} steps");
            let got = mask.to_vec();
            Err(Error::Shape { op: op.name, tensor: "mask", index: None, expected, got })
        }
        _ => Ok(()),
    }
}

/// The batch that tensors broadcast to, if it is known; each is given with the axis of its own.
fn one_batch(
    op: &'static Op,
    inputs: &Lists<'_, PartialShape>,
    tensors: impl Iterator<Item = (&'static str, usize)>,
) -> Result<Option<usize>, Error> {
    let (mut batch, mut all_known) = (Some(1), true);
    for (tensor, axis) in tensors {
        let Some(shape) = inputs.of(tensor).first() else { continue };
        let rows = shape.as_ref().and_then(|shape| shape[axis]);
        all_known &= rows.is_some();
        match (rows, batch) {
            (None | Some(1), _) => {}
            (Some(_), Some(1)) => batch = rows,
            (rows, batch) if rows == batch => {}
            (_, batch) => {
                let declared = op.inputs.iter().find(|declared| declared.name == tensor);
                let symbols = declared.and_then(Tensor::symbols).unwrap_or_default();
                let expected = format!("{symbols} with a batch of 1 or {}", batch.unwrap_or(1));
                let got = shape.clone().unwrap_or_default();
                return Err(Error::Shape { op: op.name, tensor, index: None, expected, got });
            }
        }
    }
    Ok(batch.filter(|&batch| batch != 1 || all_known))
}

/// Which steps each row takes part in.
pub(super) struct Taken {
    /// How many of the rounds, for each row.
    pub(super) lengths: Vec<i64>,
    /// By round, then by row: whether it takes part. None if all rows do in all rounds.
    valid: Option<Vec<bool>>,
    /// Whether each row takes part in its first rounds, and in none after these.
    pub(super) are_first: bool,
}

impl Taken {
    pub(super) fn of(mask: Option<&ArrayView3<'_, u8>>, rounds: usize, batch: usize) -> Taken {
        let Some(valid) = mask else {
            let lengths = vec![i64::try_from(rounds).expect("as many as x has"); batch];
            return Taken { lengths, valid: None, are_first: true };
        };
        let row_of = |row: usize| if valid.len_of(Axis(1)) == 1 { 0 } else { row };
        let mut taken = Taken { lengths: vec![0; batch], valid: None, are_first: true };
        let mut all = Vec::with_capacity(rounds * batch);
        for t in 0..rounds {
            for row in 0..batch {
                let is_valid = valid[[t, row_of(row), 0]] != 0;
                taken.are_first &= !is_valid || taken.lengths[row] == t as i64;
                taken.lengths[row] += i64::from(is_valid);
                all.push(is_valid);
            }
        }
        taken.valid = all.contains(&false).then_some(all);
        taken
    }

    /// The steps of x that each row takes part in, one after the other, and as many rows as the batch has.
    pub(super) fn x<'m, E: Storage>(
        &self,
        x: ArrayView3<'m, E>,
        rounds: usize,
        pieces: &mut Pieces<'m, E>,
    ) -> ArrayView3<'m, E> {
        let (_, rows, columns) = x.dim();
        let batch = self.lengths.len();
        if self.are_first && rows == batch {
            return x;
        }
        let mut packed = pieces.take([rounds, batch, columns]);
        for row in 0..batch {
            let from = if rows == batch { row } else { 0 };
            let mut place = 0;
            for t in (0..rounds).filter(|&t| self.takes_part(t, row)) {
                packed
                    .index_axis_mut(Axis(0), place)
                    .row_mut(row)
                    .assign(&x.index_axis(Axis(0), t).row(from));
                place += 1;
            }
            // Rows that have ended are multiplied, too.
            for place in place..rounds {
                packed.index_axis_mut(Axis(0), place).row_mut(row).fill(E::ZERO);
            }
        }
        let dim = packed.dim();
        let elements = packed.into_slice().expect("a tensor without gaps");
        ArrayView3::from_shape(dim, elements).expect("of this size")
    }

    fn takes_part(&self, t: usize, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid[t * self.lengths.len() + row])
    }

    /// Whether the steps' outputs lie where the loop's outputs are, so that only those of masked steps are missing.
    pub(super) fn in_place(&self, kind: &Loop) -> bool {
        self.are_first && !kind.last_only
    }

    /// Sets h to what the loop's rounds give. `states` are the outputs of the steps that each row takes part in, or
    /// None if they are in h already.
    pub(super) fn spread<E: Storage>(
        &self,
        (kind, numbers): (&Loop, Numbers),
        before: Option<ArrayView2<'_, E>>,
        states: Option<ArrayView3<'_, E>>,
        mut h: ArrayViewMut3<'_, E>,
    ) {
        let batch = self.lengths.len();
        let rounds = numbers.rounds();
        if states.is_none() && self.valid.is_none() {
            return;
        }
        for row in 0..batch {
            // The number of the step whose output it is; none stands for what was before.
            let (mut done, mut given) = (0, None);
            for t in 0..rounds {
                if self.takes_part(t, row) {
                    (given, done) = (Some(done), done + 1);
                } else if !kind.repeats {
                    given = None;
                }
                let is_asked_for = !kind.last_only || t + 1 == rounds;
                let is_there = states.is_none() && given == Some(t);
                if !is_asked_for || is_there {
                    continue;
                }
                let place = if kind.last_only { 0 } else { t };
                let (earlier, mut rest) = h.view_mut().split_at(Axis(0), place);
                let mut to = rest.index_axis_mut(Axis(0), 0);
                let mut to = to.row_mut(row);
                match (given, &states, &before) {
                    (Some(step), Some(states), _) => {
                        to.assign(&states.index_axis(Axis(0), step).row(row));
                    }
                    (Some(step), None, _) => to.assign(&earlier.index_axis(Axis(0), step).row(row)),
                    (None, _, Some(before)) => to.assign(&before.row(row)),
                    (None, _, None) => unreachable!("without a mask no step is left out"),
                }
            }
        }
    }
}
