//! The operations on steps of plain cells.

use std::marker::PhantomData;

use blockcell_kernels::lstm;
use blockcell_kernels::ops::PartialShape as Known;
use blockcell_kernels::plain::{
    self, GruCellGradCInputs, GruCellGradCOutputs, GruCellGradRuInputs, GruCellGradRuOutputs,
    GruCellInputs, GruCellOutputs, LstmCellGradAttributes, LstmCellGradInputs, LstmCellGradOutputs,
    LstmCellGradShapes, LstmCellInputs, LstmCellOutputs, LstmCellShapes, LstmPeepholeGrads,
    LstmPeepholes,
};
use blockcell_kernels::{Element, Error};
use bytemuck::Pod;

use super::attributes::Attributes;
use super::kernels::{Call, Operation};
use super::lists::{Lists, ListsOp, lists, parts, views};
use super::own_ops::Shapes;
use super::tensors::{view, view_mut};

/// All of them.
pub(super) const ALL: [&dyn Operation; 5] = [
    &ListsOp::<LstmCell>(PhantomData),
    &ListsOp::<LstmCellGrad>(PhantomData),
    &ListsOp::<GruCell>(PhantomData),
    &ListsOp::<GruCellGradC>(PhantomData),
    &ListsOp::<GruCellGradRu>(PhantomData),
];

/// `BlockcellLSTMCell`: four tensors, a list with cs_prev or nothing, and one with three peepholes, one or
/// nothing.
pub(super) struct LstmCell {
    cs_prev: usize,
    attributes: lstm::Attributes,
}

impl Lists for LstmCell {
    const NAME: &'static str = plain::LSTM_CELL;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let (cs_prev, peepholes) = (attributes.count("C")?, attributes.count("P")?);
        if cs_prev > 1 || !matches!((cs_prev, peepholes), (_, 0) | (1, 3) | (0, 1)) {
            let expected =
                "C must be 0 or 1, and P 0, or 3 with a cs_prev and 1 without".to_owned();
            let got = format!("{cs_prev} and {peepholes}");
            return Err(Error::Attribute { op: Self::NAME, expected, got });
        }
        let attributes = lstm::Attributes {
            use_peephole: peepholes > 0,
            forget_bias: attributes.float("forget_bias")?,
            cell_clip: attributes.float("cell_clip")?,
        };
        Ok(LstmCell { cs_prev, attributes })
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        let ([fixed, cs_prev], peepholes) = lists(inputs, [4, self.cs_prev]);
        let fixed = fixed.try_into().expect("as many as were cut off");
        let shapes = LstmCellShapes { fixed, cs_prev: cs_prev.first(), peepholes };
        Ok(plain::lstm_cell_shapes(&shapes)?.into())
    }

    fn scratch(&self, inputs: &[&[usize]]) -> [usize; 2] {
        let ([fixed, cs_prev], _) = lists(inputs, [4, self.cs_prev]);
        let cell = fixed[3].first().map_or(0, |columns| columns / 4);
        let batch = fixed[0].first().copied().unwrap_or(0);
        [0, plain::lstm_cell_scratch(batch, cell, cs_prev.first().copied())]
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let ([fixed, cs_prev], peepholes) = lists(call.inputs, [4, self.cs_prev]);
        let inputs = LstmCellInputs::<E> {
            x: view(&fixed[0]),
            h_prev: view(&fixed[1]),
            w: view(&fixed[2]),
            b: view(&fixed[3]),
            cs_prev: cs_prev.first().map(view),
            peepholes: views(peepholes),
        };
        let [i, cs, f, o, ci, co, h] = call.outputs else { unreachable!("it has seven outputs") };
        let outputs = LstmCellOutputs {
            i: view_mut(i),
            cs: view_mut(cs),
            f: view_mut(f),
            o: view_mut(o),
            ci: view_mut(ci),
            co: view_mut(co),
            h: view_mut(h),
        };
        let scratch = bytemuck::cast_slice_mut(call.scratch);
        plain::lstm_cell(call.context, &self.attributes, inputs, outputs, scratch)
    }
}

/// `BlockcellLSTMCellGrad`: five tensors, the lists `cs_prev`, `cs_grad` and `h_grad`, and with peepholes their
/// weights and `cs`.
pub(super) struct LstmCellGrad {
    cs_prev: usize,
    cs_grad: usize,
    h_grad: usize,
    peepholes: usize,
    attributes: LstmCellGradAttributes,
}

impl LstmCellGrad {
    fn lists<'i, T>(&self, inputs: &'i [T]) -> ([&'i [T]; 5], &'i [T]) {
        lists(inputs, [5, self.cs_prev, self.cs_grad, self.h_grad, self.peepholes])
    }
}

impl Lists for LstmCellGrad {
    const NAME: &'static str = plain::LSTM_CELL_GRAD;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let count = |name| attributes.count(name);
        let (cs_prev, cs_grad, h_grad) = (count("C")?, count("A")?, count("H")?);
        let (peepholes, through, cs) = (count("P")?, count("Q")?, count("S")?);
        let sums_to_gates = attributes.flag("sums_to_gates")?;
        let has_all = (peepholes, through) == (3, 2) && cs <= 1;
        let has_one = (cs_prev, peepholes, through) == (0, 1, 0) && cs <= 1;
        if cs_prev > 1 || !(has_all || has_one || (peepholes, through, cs) == (0, 0, 0)) {
            let expected =
                "C must be 0 or 1, and P, Q and S 0, or with peepholes 3, 2 and at most 1, \
                            or without a cs_prev 1, 0 and at most 1"
                    .to_owned();
            let got = format!("{cs_prev}, and {peepholes}, {through} and {cs}");
            return Err(Error::Attribute { op: Self::NAME, expected, got });
        }
        let cell_clip = attributes.float("cell_clip")?;
        let attributes = LstmCellGradAttributes { sums_to_gates, cell_clip };
        Ok(LstmCellGrad { cs_prev, cs_grad, h_grad, peepholes, attributes })
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        let ([saved, cs_prev, cs_grad, h_grad, peepholes], cs) = self.lists(inputs);
        let sums_to_gates = self.attributes.sums_to_gates;
        let shapes =
            LstmCellGradShapes { saved, cs_prev, cs_grad, h_grad, peepholes, cs, sums_to_gates };
        plain::lstm_cell_grad_shapes(&shapes)
    }

    fn scratch(&self, inputs: &[&[usize]]) -> [usize; 2] {
        let ([saved, cs_prev, cs_grad, h_grad, _], _) = self.lists(inputs);
        let [batch, cell] = saved[0] else { return [0; 2] };
        let lists = [cs_prev, cs_grad, h_grad];
        [0, plain::lstm_cell_grad_scratch((*batch, *cell), saved[4], lists, self.peepholes)]
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let ([saved, cs_prev, cs_grad, h_grad, weights], cs) = self.lists(call.inputs);
        let has_peepholes = self.peepholes > 0;
        let inputs = LstmCellGradInputs::<E> {
            gates: std::array::from_fn(|number| view(&saved[number])),
            co: view(&saved[4]),
            cs_prev: cs_prev.first().map(view),
            cs_grad: views(cs_grad),
            h_grad: views(h_grad),
            peepholes: has_peepholes
                .then(|| LstmPeepholes { weights: views(weights), cs: cs.first().map(view) }),
        };
        let [cs_prev_grad, dicfo, rest @ ..] = call.outputs else {
            unreachable!("it has two outputs, and more with peepholes")
        };
        let (through, weights) = rest.split_at_mut(rest.len() - self.peepholes);
        let peepholes = has_peepholes.then(|| LstmPeepholeGrads {
            cs_prev: through.iter_mut().map(view_mut).collect(),
            weights: weights.iter_mut().map(view_mut).collect(),
        });
        let (cs_prev_grad, dicfo) = (view_mut(cs_prev_grad), view_mut(dicfo));
        let outputs = LstmCellGradOutputs { cs_prev_grad, dicfo, peepholes };
        let scratch = bytemuck::cast_slice_mut(call.scratch);
        plain::lstm_cell_grad(call.context, &self.attributes, inputs, outputs, scratch)
    }
}

/// `BlockcellGRUCell`: six tensors.
pub(super) struct GruCell;

impl Lists for GruCell {
    const NAME: &'static str = plain::GRU_CELL;

    fn read(_: Attributes<'_>) -> Result<Self, Error> {
        Ok(GruCell)
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        let inputs = inputs.try_into().expect("the operation has so many inputs");
        Ok(vec![plain::gru_cell_shapes(inputs)?.to_vec(); 4])
    }

    fn scratch(&self, inputs: &[&[usize]]) -> [usize; 2] {
        let ([batch, input], [_, cell]) = (inputs[0], inputs[1]) else {
            unreachable!("the ranks were checked")
        };
        plain::gru_cell_scratch([*batch, *input, *cell])
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let dims: Vec<_> = call.inputs.iter().map(|input| input.dims).collect();
        let [x, h_prev, w_ru, w_c, b_ru, b_c] = call.inputs else {
            unreachable!("it has six inputs")
        };
        let inputs = GruCellInputs::<E> {
            x: view(x),
            h_prev: view(h_prev),
            w_ru: view(w_ru),
            w_c: view(w_c),
            b_ru: view(b_ru),
            b_c: view(b_c),
        };
        let [r, u, c, h] = call.outputs else { unreachable!("it has four outputs") };
        let [r, u, c, h] = [view_mut(r), view_mut(u), view_mut(c), view_mut(h)];
        let outputs = GruCellOutputs { r, u, c, h };
        let memory = parts(call.scratch, self.scratch(&dims)[0]);
        plain::gru_cell(call.context, inputs, outputs, memory)
    }
}

/// `BlockcellGRUCellGradC`: four tensors.
pub(super) struct GruCellGradC;

impl Lists for GruCellGradC {
    const NAME: &'static str = plain::GRU_CELL_GRAD_C;

    fn read(_: Attributes<'_>) -> Result<Self, Error> {
        Ok(GruCellGradC)
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        Ok(vec![plain::gru_cell_grad_c_shapes(inputs)?.to_vec(); 3])
    }

    fn scratch(&self, inputs: &[&[usize]]) -> [usize; 2] {
        gru_scratch(inputs)
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let [saved @ .., d_h] = call.inputs else { unreachable!("it has four inputs") };
        let inputs = GruCellGradCInputs::<E> {
            saved: std::array::from_fn(|number| view(&saved[number])),
            d_h: view(d_h),
        };
        let [d_c_bar, d_u_bar, d_h_u] = call.outputs else { unreachable!("it has three outputs") };
        let outputs = GruCellGradCOutputs {
            d_c_bar: view_mut(d_c_bar),
            d_u_bar: view_mut(d_u_bar),
            d_h_u: view_mut(d_h_u),
        };
        let scratch = bytemuck::cast_slice_mut(call.scratch);
        plain::gru_cell_grad_c(call.context, inputs, outputs, scratch)
    }
}

/// `BlockcellGRUCellGradRU`: four tensors.
pub(super) struct GruCellGradRu;

impl Lists for GruCellGradRu {
    const NAME: &'static str = plain::GRU_CELL_GRAD_RU;

    fn read(_: Attributes<'_>) -> Result<Self, Error> {
        Ok(GruCellGradRu)
    }

    fn shapes(&self, inputs: &[Known]) -> Result<Shapes, Error> {
        Ok(plain::gru_cell_grad_ru_shapes(inputs)?.map(Vec::from).into())
    }

    fn scratch(&self, inputs: &[&[usize]]) -> [usize; 2] {
        gru_scratch(inputs)
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_, '_>) -> Result<(), Error> {
        let [saved @ .., d_hr] = call.inputs else { unreachable!("it has four inputs") };
        let inputs = GruCellGradRuInputs::<E> {
            saved: std::array::from_fn(|number| view(&saved[number])),
            d_hr: view(d_hr),
        };
        let [d_r_bar_u_bar, d_hr_r] = call.outputs else { unreachable!("it has two outputs") };
        let outputs = GruCellGradRuOutputs {
            d_r_bar_u_bar: view_mut(d_r_bar_u_bar),
            d_hr_r: view_mut(d_hr_r),
        };
        let scratch = bytemuck::cast_slice_mut(call.scratch);
        plain::gru_cell_grad_ru(call.context, inputs, outputs, scratch)
    }
}

fn gru_scratch(inputs: &[&[usize]]) -> [usize; 2] {
    let [[batch, cell], _, _, gradient] = *inputs else { return [0; 2] };
    [0, plain::gru_cell_grad_scratch((*batch, *cell), gradient)]
}
