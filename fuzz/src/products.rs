//! Calls of the products around a cell.

use arbitrary::Result;
use blockcell_kernels::Element;
use blockcell_kernels::mat_mul::{
    self, AddNInputs, AddNOutputs, BiasInputs, BiasOutputs, Part, SliceInputs, SliceOutputs,
    add_n_shapes, bias_add_grad_add_n_shapes, slice_shapes,
};
use blockcell_kernels::ops::{BIAS_ADD_GRAD_ADD_N, Lists, MAT_MUL_ADD_N, MAT_MUL_SLICE};

use crate::choices::Choices;
use crate::tensor::{Held, Tensor, views};
use crate::twice::{Role, twice};
use crate::{known_outputs, with_lists};

/// `BlockcellMatMulAddN`: products of lists of matrices, and other summands.
pub(crate) fn add_n<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let [products, parts, addends] = [(); 3].map(|()| choices.small());
    let columns = choices.size();
    let widths: Vec<_> = (0..parts).map(|_| choices.size()).collect();
    let rows: Vec<_> = (0..products).map(|_| choices.size()).collect();
    let mut a: Vec<_> =
        rows.iter().flat_map(|&k| widths.iter().map(move |&m| vec![k, m])).collect();
    let mut b: Vec<_> = rows.iter().map(|&k| vec![k, columns]).collect();
    let height = if parts == 0 {
        choices.size()
    } else {
        widths.iter().fold(0, |sum: usize, &m| sum.saturating_add(m))
    };
    let mut addends = vec![vec![height, columns]; addends];
    choices.disturb(4, a.iter_mut().chain(&mut b).chain(&mut addends));
    if choices.once_in(16) {
        a.pop();
    }
    let lists = [&a[..], &b, &addends];
    let shape = known_outputs(with_lists(&MAT_MUL_ADD_N, &lists, &[1], add_n_shapes));
    let mut sum = shape.clone().unwrap_or_else(|_| vec![vec![height, columns]]);
    choices.disturb(16, &mut sum);
    let holds_addend = choices.flag();
    let role = if holds_addend { Role::Updated } else { Role::Output };
    let sum = Tensor::of::<E>(choices, &sum[0])?;
    let [a, b, addends] = [a, b, addends].map(|shapes| Tensor::all::<E>(choices, &shapes));
    let (a, b, addends) = (a?, b?, addends?);
    twice(choices, vec![(role, sum)], |context, written| {
        let inputs = AddNInputs { a: views(&a), b: views(&b), addends: views(&addends) };
        let outputs = AddNOutputs { sum: written[0].view_mut() };
        let ended = mat_mul::add_n::<E>(context, inputs, holds_addend, outputs);
        assert!(shape.is_ok() || ended.is_err(), "{shape:?}");
        ended
    })
}

/// `BlockcellMatMulSlice`: parts of a product.
pub(crate) fn slice<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let [k, m, n] = [(); 3].map(|()| choices.size());
    let mut shapes = vec![vec![k, n], vec![m, n]];
    choices.disturb(8, &mut shapes);
    let mut number = |most: usize| if choices.flag() { -1 } else { choices.steps(most) };
    let rows = number(k);
    let count = choices.small();
    let columns: Vec<_> = (0..count)
        .map(|_| {
            let begin = choices.steps(m);
            let rest = m.saturating_sub(usize::try_from(begin).unwrap_or(0));
            Part { begin, size: if choices.flag() { -1 } else { choices.steps(rest) } }
        })
        .collect();
    let (lists, infer) = ([&shapes[..1], &shapes[1..]], |shapes: &Lists<'_, _>| {
        slice_shapes(rows, &columns, shapes)
    });
    let found = known_outputs(with_lists(&MAT_MUL_SLICE, &lists, &[count], infer));
    let mut parts = found.clone().unwrap_or_else(|_| vec![vec![k, m]; count]);
    choices.disturb(16, &mut parts);
    let inputs = Tensor::all::<E>(choices, &shapes)?;
    let written: Result<Vec<_>> = parts.iter().map(|shape| Tensor::zeros::<E>(shape)).collect();
    let written = written?.into_iter().map(|part| (Role::Output, part)).collect();
    twice(choices, written, |context, written| {
        let inputs = SliceInputs { a: inputs[0].view(), b: inputs[1].view() };
        let outputs = SliceOutputs { parts: written.iter_mut().map(Tensor::view_mut).collect() };
        let ended = mat_mul::slice::<E>(context, inputs, rows, &columns, outputs);
        assert!(found.is_ok() || ended.is_err(), "{found:?}");
        ended
    })
}

/// `BlockcellBiasAddGradAddN`: sums of rows, and other summands.
pub(crate) fn bias<E: Element + Held>(choices: &mut Choices<'_>) -> Result<()> {
    let columns = choices.size();
    let [matrices, addends] = [(); 2].map(|()| choices.small());
    let mut out_backprop: Vec<_> = (0..matrices).map(|_| vec![choices.size(), columns]).collect();
    let mut addends = vec![vec![columns]; addends];
    choices.disturb(4, out_backprop.iter_mut().chain(&mut addends));
    let (op, lists) = (&BIAS_ADD_GRAD_ADD_N, [&out_backprop[..], &addends]);
    let shape = known_outputs(with_lists(op, &lists, &[1], bias_add_grad_add_n_shapes));
    let mut sum = shape.clone().unwrap_or_else(|_| vec![vec![columns]]);
    choices.disturb(16, &mut sum);
    let sum = Tensor::zeros::<E>(&sum[0])?;
    let [gradients, addends] =
        [out_backprop, addends].map(|shapes| Tensor::all::<E>(choices, &shapes));
    let (gradients, addends) = (gradients?, addends?);
    twice(choices, vec![(Role::Output, sum)], |context, written| {
        let inputs = BiasInputs { out_backprop: views(&gradients), addends: views(&addends) };
        let outputs = BiasOutputs { sum: written[0].view_mut() };
        let ended = mat_mul::bias_add_grad_add_n::<E>(context, inputs, outputs);
        assert!(shape.is_ok() || ended.is_err(), "{shape:?}");
        ended
    })
}
