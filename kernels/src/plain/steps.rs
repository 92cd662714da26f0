//! Which steps a loop over a sequence makes, for all rows and for each.

use crate::Error;
use crate::ops::PartialShape;
use crate::shapes::{Dim, bind};

/// The steps of a loop: `rounds` of at most `time`.
#[derive(Clone, Debug)]
pub struct Steps {
    /// How many steps x and the outputs have.
    pub time: i64,
    /// How many rounds the loop has; a negative number stands for none.
    pub rounds: i64,
    /// How many steps each row takes part in, if they differ. A negative number stands for none, and a row takes
    /// part in all rounds if its number is larger.
    pub sequence_length: Option<Vec<i32>>,
}

/// What the elements of the arrays of a loop are known to be before it runs: TensorFlow's `element_shape`.
#[derive(Clone, Debug, Default)]
pub struct ElementShapes {
    /// The sizes of a step of x, None for any.
    pub x: PartialShape,
    /// The sizes of a step of h, None for any.
    pub h: PartialShape,
    /// Whether somebody reads h.
    pub needs_h: bool,
}

impl ElementShapes {
    /// Whether outputs can be made for steps that the loop does not reach, if anybody reads them: TensorFlow makes
    /// zeros then if it knows their shape, which it does after one step.
    fn has_h(&self) -> bool {
        !self.needs_h || self.h.as_ref().is_some_and(|sizes| sizes.iter().all(Option::is_some))
    }
}

/// The loop of an operation, and how many steps each row takes part in.
pub(super) struct Lengths {
    /// Of each row.
    pub(super) of_rows: Vec<i64>,
}

impl Steps {
    /// The shape of h where the loop has no round, given that of x: then nothing is computed, no other tensor is
    /// looked at, and the last states are the first ones. None if the loop has rounds.
    ///
    /// # Errors
    ///
    /// x that does not fit into its array, and an h whose shape is not known.
    pub fn without_rounds(
        &self,
        op: &'static str,
        elements: &ElementShapes,
        x: &[usize],
    ) -> Result<Option<Vec<usize>>, Error> {
        if self.rounds > 0 {
            return Ok(None);
        }
        let time = x.first().copied().unwrap_or(0);
        if let Some(sizes) = &elements.x {
            let got: Vec<_> = x.iter().skip(1).copied().map(Some).collect();
            let [rows, columns] = got[..] else {
                let expected = "[time, batch, input]".to_owned();
                let got = x.iter().copied().map(Some).collect();
                return Err(Error::ListShape { op, tensor: "x", index: 0, expected, got });
            };
            check_element(op, "x", &Some(sizes.clone()), [rows, columns])?;
        }
        self.check(op, (time, 0, 0), elements)?;
        let known = elements.h.iter().flatten().map(|size| size.unwrap_or(0));
        let of_step: Vec<_> = if elements.needs_h { known.collect() } else { vec![0, 0] };
        Ok(Some([vec![time], of_step].concat()))
    }

    /// The shape of `sequence_length`, if there is one.
    pub(super) fn shape_of_lengths(&self) -> Vec<PartialShape> {
        self.sequence_length.iter().map(|lengths| Some(vec![Some(lengths.len())])).collect()
    }

    /// Checks the numbers against the shape of the outputs of `op`. There are no lengths if those have no elements.
    pub(super) fn check(
        &self,
        op: &'static str,
        (time, batch, cell): (usize, usize, usize),
        elements: &ElementShapes,
    ) -> Result<Lengths, Error> {
        // Rows without elements take no memory, however many there are.
        let rows = if cell == 0 { 0 } else { batch };
        let rounds = self.rounds.max(0);
        let wrong =
            |tensor, got: i64| Err(Error::Value { op, tensor, index: None, time, got: got.into() });
        if i64::try_from(time) != Ok(self.time) {
            return wrong("time", self.time);
        }
        if rounds > self.time {
            return wrong("rounds", self.rounds);
        }
        if rounds == 0 && !elements.has_h() {
            return Err(Error::NoSteps { op, time });
        }
        let length = |&length: &i32| i64::from(length).clamp(0, rounds);
        let Some(lengths) = &self.sequence_length else {
            return Ok(Lengths { of_rows: vec![rounds; rows] });
        };
        Ok(Lengths { of_rows: lengths.iter().take(rows).map(length).collect() })
    }
}

/// The time, batch and input of what is known of the shapes of x and of the numbers: scalars, and for
/// `sequence_length` a number for each row.
pub(super) fn check_sequence(
    op: &'static str,
    x: &PartialShape,
    scalars: &[PartialShape],
    sequence_length: &[PartialShape],
) -> Result<[Option<usize>; 3], Error> {
    let [mut time, mut batch, mut input] = [None; 3];
    let dims = &mut [
        Dim::new("time", &mut time),
        Dim::new("batch", &mut batch),
        Dim::new("input", &mut input),
    ];
    bind(op, ("x", 0), x, dims)?;
    for (index, scalar) in scalars.iter().enumerate() {
        bind(op, if index == 0 { ("time", 0) } else { ("rounds", index - 1) }, scalar, &mut [])?;
    }
    // A scalar serves all rows.
    let mut lengths = sequence_length.iter().filter(|lengths| **lengths != Some(Vec::new()));
    lengths.try_for_each(|lengths| {
        bind(op, ("sequence_length", 0), lengths, &mut [Dim::new("batch", &mut batch)])
    })?;
    Ok([time, batch, input])
}

/// Checks that there is as much scratch memory as is needed.
pub(super) fn check_scratch(
    op: &'static str,
    needed: [usize; 2],
    got: [usize; 2],
) -> Result<(), Error> {
    let mut both = needed.into_iter().zip(got);
    match both.find(|(needed, got)| got < needed) {
        Some((needed, got)) => Err(Error::Scratch { op, needed, got }),
        None => Ok(()),
    }
}

/// Checks the shape of a step of an array against what its elements are known to be.
pub(super) fn check_element(
    op: &'static str,
    tensor: &'static str,
    element: &PartialShape,
    got: [Option<usize>; 2],
) -> Result<(), Error> {
    let Some(sizes) = element else { return Ok(()) };
    let (mut rows, mut columns) =
        (sizes.first().copied().flatten(), sizes.get(1).copied().flatten());
    let dims = &mut [Dim::new("rows", &mut rows), Dim::new("columns", &mut columns)];
    bind(op, (tensor, 0), &Some(got.to_vec()), dims)
}
