//! What the loops of Keras's layers have in common: which steps a row takes part in, and what it gives in the others.

use std::iter;

use ndarray::{ArrayView2, ArrayView3, ArrayViewMut2, ArrayViewMut3, Axis};

use super::steps::ElementShapes;
use crate::ops::PartialShape;
use crate::shapes::{Dim, bind, check_layout, check_size, shape_of};
use crate::{Error, Storage};

/// The steps of a loop of Keras: all rows take part in all rounds, but for those that are masked.
#[derive(Clone, Copy, Debug)]
pub struct KerasSteps {
    /// How many steps the loop's list of outputs has.
    pub size: i64,
    /// How many rounds the loop has; a negative number stands for none.
    pub rounds: i64,
    /// Whether each round writes its output to the list's first place, so that the last one is left.
    pub last_only: bool,
    /// Whether a row gives its output before in a step that is masked. Otherwise it gives that before the first step.
    pub repeats: bool,
}

/// The mask of a loop.
#[derive(Clone, Debug)]
pub struct KerasMask<'a, E> {
    /// Whether a row takes part in a step, `[time, batch, 1]`.
    pub valid: ArrayView3<'a, u8>,
    /// Its output before the first step, `[batch, cell]`.
    pub before: ArrayView2<'a, E>,
}

impl KerasSteps {
    /// How many steps of outputs there are.
    ///
    /// # Errors
    ///
    /// A negative size, and rounds without a place in the list.
    pub fn outputs(&self, op: &'static str) -> Result<usize, Error> {
        let wrong = |tensor, got: i64, time| {
            Err(Error::Value { op, tensor, index: None, time, got: got.into() })
        };
        let Ok(size) = usize::try_from(self.size) else { return wrong("size", self.size, 0) };
        let most = if self.last_only { i64::MAX } else { self.size };
        if self.rounds > most || (self.rounds > 0 && size == 0) {
            return wrong("rounds", self.rounds, size);
        }
        Ok(size)
    }

    /// The number of rounds of a loop whose inputs have `time` steps.
    pub(super) fn rounds(&self, op: &'static str, time: usize) -> Result<usize, Error> {
        let rounds = usize::try_from(self.rounds).unwrap_or(0);
        if rounds <= time {
            return Ok(rounds);
        }
        Err(Error::Value { op, tensor: "rounds", index: None, time, got: self.rounds.into() })
    }

    /// The shape of h where the loop has no round, given those of x and of the mask: then nothing is computed, no
    /// other tensor is looked at, and the last states are the first ones. None if the loop has rounds.
    ///
    /// # Errors
    ///
    /// A negative size, x that does not fit into its list, and an h whose shape is not known.
    pub fn without_rounds(
        &self,
        op: &'static str,
        elements: &ElementShapes,
        x: &[usize],
    ) -> Result<Option<Vec<usize>>, Error> {
        if self.rounds > 0 {
            return Ok(None);
        }
        let size = self.outputs(op)?;
        let [mut time, mut batch, mut input] = [None; 3];
        let (mut rows, mut columns) = element(&elements.x);
        let x = Some(x.iter().copied().map(Some).collect());
        let dims = &mut [
            Dim::new("time", &mut time),
            Dim::new("rows", if rows.is_some() { &mut rows } else { &mut batch }),
            Dim::new("columns", if columns.is_some() { &mut columns } else { &mut input }),
        ];
        bind(op, ("x", 0), &x, dims)?;
        if !elements.needs_h {
            return Ok(Some(vec![size, 0, 0]));
        }
        match element(&elements.h) {
            (Some(rows), Some(columns)) => Ok(Some(vec![size, rows, columns])),
            // That is another error than that of TensorFlow's other arrays, where it depends on the number of steps.
            (rows, columns) => Err(Error::ListShape {
                op,
                tensor: "h",
                index: 0,
                expected: "[size, batch, cell], of known sizes".to_owned(),
                got: vec![Some(size), rows, columns],
            }),
        }
    }
}

/// The rows and columns of a step, as far as they are known.
fn element(sizes: &PartialShape) -> (Option<usize>, Option<usize>) {
    let size = |axis: usize| sizes.as_ref().and_then(|sizes| sizes.get(axis).copied().flatten());
    (size(0), size(1))
}

/// What is known of the shapes of the tensors that all such loops have.
#[derive(Clone, Debug)]
pub struct KerasShapes<'s> {
    /// Those of size, and of each number of rounds.
    pub scalars: &'s [PartialShape],
    /// Those of the mask and of the output before, if there is a mask.
    pub mask: &'s [PartialShape],
    /// That of x.
    pub x: &'s PartialShape,
    /// Those of the states.
    pub states: &'s [PartialShape],
    /// What is known of the elements of the loop's lists.
    pub elements: &'s ElementShapes,
}

/// The names of the states.
const STATES: [&str; 2] = ["h_prev", "cs_prev"];

/// The sizes that follow for the batch, the input and the cell. One row stands for all where the batch is larger.
pub(super) fn sizes(
    op: &'static str,
    shapes: &KerasShapes<'_>,
) -> Result<[Option<usize>; 3], Error> {
    let names = iter::once("size").chain(iter::repeat("rounds"));
    let places = iter::once(0).chain(0..);
    for ((scalar, name), place) in shapes.scalars.iter().zip(names).zip(places) {
        bind(op, (name, place), scalar, &mut [])?;
    }
    let [mut time, mut rows, mut input, mut cell] = [None; 4];
    let dims = &mut [
        Dim::new("time", &mut time),
        Dim::new("batch", &mut rows),
        Dim::new("input", &mut input),
    ];
    bind(op, ("x", 0), shapes.x, dims)?;
    let mut batches = vec![("x", "[time, batch, input]", shapes.x, rows)];
    for (name, shape) in STATES.into_iter().zip(shapes.states) {
        batches.push((name, "[batch, cell]", shape, rows_of(op, name, shape, &mut cell)?));
    }
    if let [valid, before] = shapes.mask {
        let [mut time, mut rows, mut one] = [None, None, Some(1)];
        let dims = &mut [
            Dim::new("time", &mut time),
            Dim::new("batch", &mut rows),
            Dim::new("1", &mut one),
        ];
        bind(op, ("mask", 0), valid, dims)?;
        batches.push(("mask", "[time, batch, 1]", valid, rows));
        let rows = rows_of(op, "before", before, &mut cell)?;
        batches.push(("before", "[batch, cell]", before, rows));
    }
    let batch = one_batch(op, &batches)?;
    for (tensor, sizes, got) in
        [("x", &shapes.elements.x, [batches[0].3, input]), ("h", &shapes.elements.h, [batch, cell])]
    {
        super::steps::check_element(op, tensor, sizes, got)?;
    }
    Ok([batch, input, cell])
}

/// The rows of a state, whose columns are the cell's.
fn rows_of(
    op: &'static str,
    name: &'static str,
    state: &PartialShape,
    cell: &mut Option<usize>,
) -> Result<Option<usize>, Error> {
    let mut rows = None;
    bind(op, (name, 0), state, &mut [Dim::new("batch", &mut rows), Dim::new("cell", cell)])?;
    Ok(rows)
}

/// A tensor's name, its dimensions in words, its shape, and the batch in that.
type Batch<'s> = (&'static str, &'static str, &'s PartialShape, Option<usize>);

/// The batch that tensors with such batches broadcast to, if it is known.
fn one_batch(op: &'static str, batches: &[Batch<'_>]) -> Result<Option<usize>, Error> {
    let larger = batches.iter().filter_map(|(.., batch)| batch.filter(|&batch| batch != 1));
    let Some(most) = larger.clone().next() else {
        let all_known = batches.iter().all(|(.., batch)| batch.is_some());
        return Ok(all_known.then_some(1));
    };
    let differs = |batch: &Option<usize>| batch.is_some_and(|batch| batch != 1 && batch != most);
    match batches.iter().find(|(.., batch)| differs(batch)) {
        Some(&(tensor, words, shape, _)) => {
            let expected = format!("{words} with a batch of 1 or {most}");
            let got = shape.clone().unwrap_or_default();
            Err(Error::ListShape { op, tensor, index: 0, expected, got })
        }
        None => Ok(Some(most)),
    }
}

/// The shapes of the outputs: h, whose steps are known when the loop runs, and the last states. While a graph is
/// built, nobody knows whether there will be a round; without one, the last states are as small as the first ones.
pub(super) fn outputs(
    op: &'static str,
    size: Option<usize>,
    [batch, cell]: [Option<usize>; 2],
    states: &[PartialShape],
) -> Result<Vec<Vec<Option<usize>>>, Error> {
    let h = vec![size, batch, cell];
    check_size(op, "h", "[size, batch, cell]", &h)?;
    let last = |state: &PartialShape| {
        let rows = state.as_ref().and_then(|state| state.first().copied().flatten());
        vec![batch.filter(|_| size.is_some() || rows == batch), cell]
    };
    Ok(iter::once(h).chain(states.iter().map(last)).collect())
}

/// Memory for tensors of a call, which is given out piece by piece.
pub(super) struct Pieces<'m, E>(Option<&'m mut [E]>);

impl<'m, E: Storage> Pieces<'m, E> {
    pub(super) fn new(memory: &'m mut [E]) -> Self {
        Pieces(Some(memory))
    }

    /// As many elements as a tensor of this shape has.
    pub(super) fn take(&mut self, shape: [usize; 3]) -> ArrayViewMut3<'m, E> {
        let all = self.0.take().expect("it is given back");
        let (taken, rest) = all.split_at_mut(shape.iter().product());
        self.0 = Some(rest);
        ArrayViewMut3::from_shape(shape, taken).expect("of this size")
    }

    /// A state of `batch` rows, of which the tensor may have one that stands for all.
    pub(super) fn whole(&mut self, state: ArrayView2<'m, E>, batch: usize) -> ArrayView2<'m, E> {
        let (rows, columns) = state.dim();
        if rows == batch {
            return state;
        }
        let mut all = self.take([1, batch, columns]).index_axis_move(Axis(0), 0);
        all.assign(&state.broadcast((batch, columns)).expect("one row stands for all"));
        into_view(all)
    }
}

/// What was written.
fn into_view<T>(matrix: ArrayViewMut2<'_, T>) -> ArrayView2<'_, T> {
    let dim = matrix.dim();
    let elements = matrix.into_slice().expect("a matrix without gaps");
    ArrayView2::from_shape(dim, elements).expect("of this size")
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
    pub(super) fn of<E>(mask: Option<&KerasMask<'_, E>>, rounds: usize, batch: usize) -> Taken {
        let Some(KerasMask { valid, .. }) = mask else {
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
    pub(super) fn in_place(&self, steps: &KerasSteps) -> bool {
        self.are_first && !steps.last_only
    }

    /// Sets h to what the loop's rounds give. `states` are the outputs of the steps that each row takes part in, or
    /// None if they are in h already.
    pub(super) fn spread<E: Storage>(
        &self,
        steps: &KerasSteps,
        before: Option<ArrayView2<'_, E>>,
        states: Option<ArrayView3<'_, E>>,
        mut h: ArrayViewMut3<'_, E>,
    ) {
        let batch = self.lengths.len();
        let rounds = usize::try_from(steps.rounds).unwrap_or(0);
        if states.is_none() && self.valid.is_none() {
            return;
        }
        for row in 0..batch {
            // The number of the step whose output it is; none stands for what was before.
            let (mut done, mut given) = (0, None);
            for t in 0..rounds {
                if self.takes_part(t, row) {
                    (given, done) = (Some(done), done + 1);
                } else if !steps.repeats {
                    given = None;
                }
                let is_asked_for = !steps.last_only || t + 1 == rounds;
                let is_there = states.is_none() && given == Some(t);
                if !is_asked_for || is_there {
                    continue;
                }
                let place = if steps.last_only { 0 } else { t };
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

/// Checks how the tensors of a mask lie in memory, and returns their shapes.
pub(super) fn check_mask<E>(
    op: &'static str,
    mask: Option<&KerasMask<'_, E>>,
    rounds: usize,
) -> Result<Vec<PartialShape>, Error> {
    let Some(KerasMask { valid, before }) = mask else { return Ok(Vec::new()) };
    check_layout(op, "mask", valid)?;
    check_layout(op, "before", before)?;
    let time = valid.len_of(Axis(0));
    if time < rounds {
        let got = rounds as i128;
        return Err(Error::Value { op, tensor: "rounds", index: None, time, got });
    }
    Ok(vec![shape_of(valid), shape_of(before)])
}
