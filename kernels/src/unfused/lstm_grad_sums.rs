//! The backward step of a plain LSTM cell whose state is larger than its gates.
//!
//! That is rare: x of one row, and states of many. So the code favours brevity over speed.

use ndarray::{ArrayViewD, ArrayViewMut2, ArrayViewMutD, Dimension, IxDyn, s};

use crate::lstm::step::GateOrder;
use crate::ops::unfused::{LstmCellGradInputs, LstmCellGradOutputs};
use crate::{Activations, Storage};

/// The number of elements of scratch memory that [`compute`] needs.
pub(super) fn scratch(gate: (usize, usize), state: &[usize]) -> usize {
    2 * state.iter().product::<usize>() + 4 * gate.0 * gate.1
}

/// The equations of [`super::lstm_cell_grad`]. States were clipped to `clip`, if it is there.
pub(super) fn compute<E: Storage>(
    (clip, order, activations): (Option<f32>, GateOrder, Activations),
    inputs: &LstmCellGradInputs<'_, E>,
    outputs: LstmCellGradOutputs<'_, E>,
    scratch: &mut [E],
) {
    let LstmCellGradInputs { ci, co, cs_grad, h_grad, peepholes, .. } = inputs;
    let LstmCellGradOutputs { mut cs_prev_grad, mut dicfo, .. } = outputs;
    let (mut through_peepholes, mut peephole_grads) =
        (outputs.through_peepholes, outputs.peephole_grads);
    let (shape, size) = (IxDyn(co.shape()), ci.dim());
    let (states, rest) = scratch.split_at_mut(2 * co.len());
    let (dh, dcs) = states.split_at_mut(co.len());
    let state = |memory| ArrayViewMutD::from_shape(shape.clone(), memory).expect("it was measured");
    let (mut dh, mut dcs) = (state(dh), state(dcs));
    add_up(h_grad, &mut dh);
    add_up(cs_grad, &mut dcs);
    let mut slopes = rest.chunks_exact_mut((size.0 * size.1).max(1));
    let mut slopes = [(); 4].map(|()| {
        let memory = if size.0 * size.1 == 0 { &mut [] } else { slopes.next().expect("measured") };
        let mut slope = ArrayViewMut2::from_shape(size, memory).expect("it was measured");
        slope.fill(E::ZERO);
        slope
    });
    through_peepholes.iter_mut().for_each(|sum| sum.fill(E::ZERO));
    peephole_grads.iter_mut().for_each(|sum| sum.fill(E::ZERO));
    let [i, f, o] = [&inputs.i, &inputs.f, &inputs.o]
        .map(|gate| gate.broadcast(shape.clone()).expect("it was checked"));
    let [cs_prev, cs] = [&inputs.cs_prev, &inputs.cs].map(|state| {
        state.as_ref().map(|all| all.broadcast(shape.clone()).expect("it was checked"))
    });
    let slope = |gate: f32| activations.gates.slope(gate);
    for (index, &co) in co.indexed_iter() {
        let at = place(index.slice(), size);
        let [i, f, o, dh] = [i[&index], f[&index], o[&index], dh[&index]].map(Storage::to_f32);
        let (ci, co) = (ci[at].to_f32(), co.to_f32());
        let [cs_prev, cs] =
            [&cs_prev, &cs].map(|state| state.as_ref().map_or(0.0, |state| state[&index].to_f32()));
        let weight = |number: usize| peepholes.get(number).map_or(0.0, |one| one[at.1].to_f32());
        let d_o = dh * co * slope(o);
        let through_h = dh * o * activations.state.slope(co);
        let all = dcs[&index].to_f32() + through_h + d_o * weight(2);
        // Also if the state is not a number, it passes no gradient on.
        let state = E::from_f32(i * ci + f * cs_prev).to_f32();
        let dcs = if clip.is_none_or(|clip| state.abs() <= clip) { all } else { 0.0 };
        let (di, df) = (dcs * ci * slope(i), dcs * cs_prev * slope(f));
        let dci = dcs * i * activations.state.slope(ci);
        cs_prev_grad[&index] = E::from_f32(dcs * f);
        for (sum, value) in slopes.iter_mut().zip([di, dci, df, d_o]) {
            add(&mut sum[at], value);
        }
        for (sum, value) in through_peepholes.iter_mut().zip([di * weight(0), df * weight(1)]) {
            add(broadcast_at(sum, index.slice()), value);
        }
        for (sum, value) in peephole_grads.iter_mut().zip([di * cs_prev, df * cs_prev, d_o * cs]) {
            add(&mut sum[at.1], value);
        }
    }
    for (number, slope) in slopes.iter().enumerate() {
        let columns = order[number] * size.1..(order[number] + 1) * size.1;
        dicfo.slice_mut(s![.., columns]).assign(slope);
    }
}

/// The element of a tensor that broadcasts, for one of the shape that it broadcasts to.
fn broadcast_at<'t, E>(tensor: &'t mut ArrayViewMutD<'_, E>, index: &[usize]) -> &'t mut E {
    let own = &index[index.len() - tensor.ndim()..];
    let mut at = tensor.raw_dim();
    for (at, &own) in at.slice_mut().iter_mut().zip(own) {
        *at = if *at == 1 { 0 } else { own };
    }
    &mut tensor[at]
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
