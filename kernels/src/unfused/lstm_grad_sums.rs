//! The backward step of a plain LSTM cell whose state is larger than its gates.
//!
//! That is rare: x of one row, and states of many. So the code favours brevity over speed.

use ndarray::{ArrayView2, ArrayViewD, ArrayViewMut2, ArrayViewMutD, Dimension, IxDyn, s};

use crate::lstm::step::GateOrder;
use crate::ops::unfused::{LstmCellGradInputs, LstmCellGradOutputs};
use crate::{Activations, Storage};

/// How many elements of scratch memory [`compute`] needs.
pub(super) fn scratch(gate: (usize, usize), state: &[usize]) -> usize {
    2 * state.iter().product::<usize>() + 3 * gate.0 * gate.1
}

/// The equations of [`super::lstm_cell_grad`] without peepholes. States were clipped to `clip`, if it is there.
pub(super) fn compute<E: Storage>(
    (clip, order, activations): (Option<f32>, GateOrder, Activations),
    inputs: &LstmCellGradInputs<'_, E>,
    outputs: LstmCellGradOutputs<'_, E>,
    scratch: &mut [E],
) {
    let LstmCellGradInputs { i, f, o, ci, co, cs_prev, cs_grad, h_grad, .. } = inputs;
    let LstmCellGradOutputs { mut cs_prev_grad, mut dicfo, .. } = outputs;
    let (shape, size) = (IxDyn(co.shape()), i.dim());
    let (states, rest) = scratch.split_at_mut(2 * co.len());
    let (dh, dcs) = states.split_at_mut(co.len());
    let state = |memory| ArrayViewMutD::from_shape(shape.clone(), memory).expect("it was measured");
    let (mut dh, mut dcs) = (state(dh), state(dcs));
    add_up(h_grad, &mut dh);
    add_up(cs_grad, &mut dcs);
    let mut gates = rest.chunks_exact_mut((size.0 * size.1).max(1));
    let mut gate = || {
        let memory = if size.0 * size.1 == 0 { &mut [] } else { gates.next().expect("measured") };
        let mut gate = ArrayViewMut2::from_shape(size, memory).expect("it was measured");
        gate.fill(E::ZERO);
        gate
    };
    let [mut through_o, mut through_new, mut through_f] = [gate(), gate(), gate()];
    let cs_prev = cs_prev.as_ref().map(|all| all.broadcast(shape.clone()).expect("it was checked"));
    let number = |gate: &ArrayView2<'_, E>, at| gate[at].to_f32();
    // Also if the state is not a number, it passes no gradient on.
    let passes = |index: &IxDyn, at| {
        let kept = cs_prev.as_ref().map_or(0.0, |all| number(f, at) * all[index].to_f32());
        let state = E::from_f32(number(i, at) * number(ci, at) + kept).to_f32();
        clip.is_none_or(|clip| state.abs() <= clip)
    };
    for (index, &co) in co.indexed_iter() {
        let at = place(index.slice(), size);
        let (co, dh, dcs) = (co.to_f32(), dh[&index].to_f32(), &mut dcs[&index]);
        add(&mut through_o[at], dh * co);
        let all = dcs.to_f32() + dh * number(o, at) * activations.state.slope(co);
        let gradient = if passes(&index, at) { all } else { 0.0 };
        *dcs = E::from_f32(gradient);
        add(&mut through_new[at], gradient);
        cs_prev_grad[&index] = E::from_f32(gradient * number(f, at));
    }
    if let Some(cs_prev) = &cs_prev {
        for (index, &cs_prev) in cs_prev.indexed_iter() {
            add(
                &mut through_f[place(index.slice(), size)],
                dcs[&index].to_f32() * cs_prev.to_f32(),
            );
        }
    }
    let mut put = |number: usize, value: &dyn Fn((usize, usize)) -> f32| {
        let columns = order[number] * size.1..(order[number] + 1) * size.1;
        let mut part = dicfo.slice_mut(s![.., columns]);
        part.indexed_iter_mut().for_each(|(at, element)| *element = E::from_f32(value(at)));
    };
    let slope = |gate: &ArrayView2<'_, E>, at| activations.gates.slope(number(gate, at));
    let new = through_new.view();
    put(0, &|at| number(&new, at) * number(ci, at) * slope(i, at));
    put(1, &|at| number(&new, at) * number(i, at) * activations.state.slope(number(ci, at)));
    put(2, &|at| number(&through_f.view(), at) * slope(f, at));
    put(3, &|at| number(&through_o.view(), at) * slope(o, at));
}

/// The element of a gate for one of the state.
fn place(index: &[usize], (rows, columns): (usize, usize)) -> (usize, usize) {
    let [.., row, column] = *index else { unreachable!("a state has the two axes of a gate") };
    (if rows == 1 { 0 } else { row }, if columns == 1 { 0 } else { column })
}

fn add<E: Storage>(sum: &mut E, value: f32) {
    *sum = E::from_f32(sum.to_f32() + value);
}

/// The sum of tensors that broadcast to its shape.
pub(super) fn add_up<E: Storage>(summands: &[ArrayViewD<'_, E>], sum: &mut ArrayViewMutD<'_, E>) {
    // Without columns there may be more rows than anybody could count.
    if sum.is_empty() {
        return;
    }
    sum.fill(E::ZERO);
    for summand in summands {
        sum.zip_mut_with(summand, |sum, &value| *sum = E::from_f32(sum.to_f32() + value.to_f32()));
    }
}

#[cfg(test)]
mod tests {
    use ndarray::{ArrayViewD, ArrayViewMutD, IxDyn};

    use super::add_up;

    #[test]
    fn rows_without_columns_are_not_counted() {
        let shape = [1 << 60, 0];
        let of_shape = || ArrayViewD::<f32>::from_shape(IxDyn(&shape), &[]).expect("no elements");
        let mut sum = ArrayViewMutD::from_shape(IxDyn(&shape), &mut []).expect("no elements");
        add_up(&[of_shape(), of_shape()], &mut sum);
    }
}
