//! Rows of a few elements: several are computed as one, whose vectors are full. The results are the same, because no
//! element depends on its neighbours.

use std::ops::Range;

use ndarray::{ArrayView2, ArrayViewMut2};

use super::{Equation, Pass, Row, empty};
use crate::Storage;
use crate::simd::{MOST_LANES, Simd};
use crate::tiles::{row, row_mut};
use crate::tuning::JOINED_ELEMENTS;

/// Whether vectors of rows of `columns` elements are empty by a quarter or more, or such a row is a single vector,
/// whose operations wait for each other.
pub(super) fn is_narrow<S: Simd>(columns: usize) -> bool {
    columns <= S::LANES || 4 * columns <= 3 * columns.next_multiple_of(S::LANES)
}

/// A pass without sums over rows that are narrow.
#[inline(always)]
pub(super) fn run<S: Simd, E, Q, const I: usize, const O: usize, const R: usize, const W: usize>(
    pass: Pass<'_, '_, E, Q, I, O, R, W>,
    simd: S,
) where
    E: Storage,
    Q: Equation<I, O, R, W>,
{
    let Pass { equation, inputs, outputs, f32_operands, .. } = pass;
    let (rows, columns) = outputs[0].dim();
    let at_once = JOINED_ELEMENTS / columns.max(1);
    let (mut of_inputs, mut of_outputs) = ([blank::<E>(); I], [blank::<E>(); O]);
    let mut of_operands = [blank::<f32>(); W];
    let inputs = inputs.map(Input::new);
    let mut outputs = outputs.map(Output::new);
    let mut f32_operands = f32_operands.map(Output::new);
    for first in (0..rows).step_by(at_once) {
        let rows = first..rows.min(first + at_once);
        let mut row = Row {
            equation,
            inputs: [&[] as &[E]; I],
            outputs: empty(),
            f32_operands: empty(),
            sums: empty(),
        };
        for ((to, input), memory) in row.inputs.iter_mut().zip(&inputs).zip(&mut of_inputs) {
            *to = input.load(simd, rows.clone(), memory);
        }
        for ((to, output), memory) in row.outputs.iter_mut().zip(&mut outputs).zip(&mut of_outputs)
        {
            *to = output.load(simd, rows.clone(), memory);
        }
        let operands = row.f32_operands.iter_mut().zip(&mut f32_operands);
        for ((to, operand), memory) in operands.zip(&mut of_operands) {
            *to = operand.load(simd, rows.clone(), memory);
        }
        simd.enter(row);
        for (output, memory) in outputs.iter_mut().zip(&of_outputs) {
            output.store(simd, rows.clone(), memory);
        }
        for (operand, memory) in f32_operands.iter_mut().zip(&of_operands).skip(Q::READ_ONLY) {
            operand.store(simd, rows.clone(), memory);
        }
    }
}

/// Memory for rows that have gaps between them. Whole vectors are written to it.
type Memory<T> = [T; JOINED_ELEMENTS + MOST_LANES];

fn blank<T: Storage>() -> Memory<T> {
    [T::ZERO; JOINED_ELEMENTS + MOST_LANES]
}

/// What is read.
enum Input<'a, T> {
    /// Rows without gaps between them.
    Elements(&'a [T], usize),
    Rows(ArrayView2<'a, T>),
}

impl<'a, T: Storage> Input<'a, T> {
    #[inline(always)]
    fn new(matrix: ArrayView2<'a, T>) -> Self {
        match matrix.to_slice() {
            Some(elements) => Input::Elements(elements, matrix.ncols()),
            None => Input::Rows(matrix),
        }
    }

    /// Some rows, one behind the other, where they are or in memory.
    #[inline(always)]
    fn load<'m, S: Simd>(&self, simd: S, rows: Range<usize>, memory: &'m mut Memory<T>) -> &'m [T]
    where
        'a: 'm,
    {
        match *self {
            Input::Elements(elements, columns) => &elements[of_rows(rows, columns)],
            Input::Rows(matrix) => {
                let len = rows.len() * matrix.ncols();
                // A row that is every row is copied once: no later part has more rows than the first.
                if rows.start == 0 || matrix.strides()[0] != 0 {
                    gather(simd, matrix, rows, memory);
                }
                &memory[..len]
            }
        }
    }
}

/// What is written, and read before that.
enum Output<'a, T> {
    /// Rows without gaps between them.
    Elements(&'a mut [T], usize),
    Rows(ArrayViewMut2<'a, T>),
}

impl<'a, T: Storage> Output<'a, T> {
    #[inline(always)]
    fn new(matrix: ArrayViewMut2<'a, T>) -> Self {
        let columns = matrix.ncols();
        if matrix.is_standard_layout() {
            Output::Elements(matrix.into_slice().expect("rows without gaps"), columns)
        } else {
            Output::Rows(matrix)
        }
    }

    /// Some rows, one behind the other, where they are or in memory.
    #[inline(always)]
    fn load<'m, S: Simd>(
        &'m mut self,
        simd: S,
        rows: Range<usize>,
        memory: &'m mut Memory<T>,
    ) -> &'m mut [T] {
        match self {
            Output::Elements(elements, columns) => &mut elements[of_rows(rows, *columns)],
            Output::Rows(matrix) => {
                let len = rows.len() * matrix.ncols();
                gather(simd, matrix.view(), rows, memory);
                &mut memory[..len]
            }
        }
    }

    /// Writes what was computed in memory.
    #[inline(always)]
    fn store<S: Simd>(&mut self, simd: S, rows: Range<usize>, memory: &Memory<T>) {
        if let Output::Rows(matrix) = self {
            scatter(simd, memory, matrix, rows);
        }
    }
}

/// Where some rows without gaps are.
fn of_rows(rows: Range<usize>, columns: usize) -> Range<usize> {
    rows.start * columns..rows.end * columns
}

/// Copies some rows, one behind the other.
#[inline(always)]
fn gather<S: Simd, T: Storage>(
    simd: S,
    matrix: ArrayView2<'_, T>,
    rows: Range<usize>,
    to: &mut Memory<T>,
) {
    let columns = matrix.ncols();
    for (n, at) in rows.enumerate() {
        let from = row(matrix, at);
        for at in (0..columns).step_by(S::LANES) {
            // What a whole vector writes past the row is overwritten by the next one.
            let to = &mut to[n * columns + at..][..S::LANES];
            T::store(simd, T::load(simd, &from[at..columns.min(at + S::LANES)]), to);
        }
    }
}

/// Copies the rows of `from`, one behind the other, to some rows of a matrix.
#[inline(always)]
fn scatter<S: Simd, T: Storage>(
    simd: S,
    from: &[T],
    matrix: &mut ArrayViewMut2<'_, T>,
    rows: Range<usize>,
) {
    let columns = matrix.ncols();
    for (from, at) in from.chunks(columns).zip(rows) {
        let to = row_mut(matrix, at);
        for (from, to) in from.chunks(S::LANES).zip(to.chunks_mut(S::LANES)) {
            T::store(simd, T::load(simd, from), to);
        }
    }
}
