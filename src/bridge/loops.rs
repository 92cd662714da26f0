//! The operations on loops over a sequence, whoever wrote the loop.
//!
//! A call has numbers, of steps and of rounds, and then x, the states, and the weights. If there is no round, nothing
//! is computed: the last states are the first ones, whatever shapes the other tensors have.

use std::iter;
use std::marker::PhantomData;

use blockcell_kernels::ops::{self, Inferred, Lists, Op, PartialShape, Sizes};
use blockcell_kernels::unfused::{self, GruLayerInputs, GruLayerOutputs, Loop, Numbers};
use blockcell_kernels::unfused::{GateColumns, LstmLayerInputs, LstmLayerOutputs};
use blockcell_kernels::unfused::{KerasGruInputs, KerasGruOutputs};
use blockcell_kernels::unfused::{KerasLstmInputs, KerasLstmOutputs};
use blockcell_kernels::unfused::{
    NormalizedAttributes, NormalizedLstmLayerInputs, NormalizedLstmLayerOutputs,
};
use blockcell_kernels::{Element, Error, lstm};
use bytemuck::Pod;

use super::attributes::{Attributes, activations};
use super::ffi::{Input, Output};
use super::kernels::Operation;
use super::lists::{Call, ListsOp, OperationOf};
use super::normalized::normalized_attributes;
use super::tensors::number;
use super::unfused::{gate_columns, lstm_attributes};

/// All of them.
pub(super) const ALL: [&dyn Operation; 5] = [
    &OperationOf::<LoopOf<LstmLayer>>(PhantomData),
    &OperationOf::<LoopOf<NormalizedLstmLayer>>(PhantomData),
    &OperationOf::<LoopOf<GruLayer>>(PhantomData),
    &OperationOf::<LoopOf<KerasLstm>>(PhantomData),
    &OperationOf::<LoopOf<KerasGru>>(PhantomData),
];

/// The shape function of an operation on a loop.
type InferLoop = fn(&Loop, Option<Numbers>, &Lists<'_, PartialShape>) -> Result<Inferred, Error>;

/// A cell whose steps a loop makes.
trait Cell: Send + Sync + Sized + 'static {
    const OP: &'static Op;

    /// Its states before the first step; the outputs after h have the last ones.
    const STATES: &'static [&'static str];

    /// Lists of one tensor or none.
    const OPTIONAL: &'static [&'static str];

    const INFER: InferLoop;

    /// How much scratch memory a call needs, by time, batch, input and cell: so many numbers, and so many elements.
    const SCRATCH: fn([usize; 4]) -> [usize; 2];

    /// What a call needs beside that.
    fn more(_: [usize; 4], _: &Lists<'_, Input<'_>>) -> [usize; 2] {
        [0; 2]
    }

    fn read(attributes: Attributes<'_>) -> Result<Self, Error>;

    /// Computes a call that has a round.
    fn run<E: Element + Pod>(&self, kind: &Loop, call: Call<'_, '_>) -> Result<(), Error>;
}

/// The operation on a loop around such a cell.
struct LoopOf<C> {
    kind: Loop,
    cell: C,
}

impl<C: Cell> ListsOp for LoopOf<C> {
    const OP: &'static Op = C::OP;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        C::OPTIONAL.iter().try_for_each(|list| attributes.is_given(list).map(|_| ()))?;
        if attributes.count("num_rounds")? == 0 {
            let (expected, got) = ("num_rounds must be at least 1".to_owned(), "0".to_owned());
            return Err(Error::Attribute { op: C::OP.name, expected, got });
        }
        Ok(LoopOf { kind: read_loop(C::OP, attributes)?, cell: C::read(attributes)? })
    }

    fn infer(
        &self,
        shapes: &Lists<'_, PartialShape>,
        call: Option<&Lists<'_, Input<'_>>>,
    ) -> Result<Inferred, Error> {
        // The check of all shapes refuses numbers that are no scalars.
        C::INFER(&self.kind, call.and_then(|call| numbers(C::OP, call)), shapes)
    }

    fn without_work(&self, call: &Lists<'_, Input<'_>>) -> Result<Option<Vec<Vec<usize>>>, Error> {
        let Some(numbers) = numbers(C::OP, call) else { return Ok(None) };
        let h = self.kind.without_rounds(C::OP, numbers, call.one("x").dims)?;
        let states = || C::STATES.iter().map(|state| call.one(state).dims.to_vec());
        Ok(h.map(|h| iter::once(h).chain(states()).collect()))
    }

    /// The outputs of a loop without a round: zeros, and the first states.
    fn fill(&self, call: &Lists<'_, Input<'_>>, outputs: &mut [Output<'_>]) -> Result<bool, Error> {
        if self.without_work(call)?.is_none() {
            return Ok(false);
        }
        let (h, last) = outputs.split_first_mut().expect("h is the first output");
        h.data.fill(0);
        for (output, state) in last.iter_mut().zip(C::STATES) {
            output.data.copy_from_slice(call.one(state).data);
        }
        Ok(true)
    }

    fn scratch(&self, sizes: &Sizes, call: &Lists<'_, Input<'_>>) -> [usize; 2] {
        let sizes = [sizes.time, sizes.batch, sizes.input_size, sizes.cell_size];
        let [needed, more] = [C::SCRATCH(sizes), C::more(sizes, call)];
        [needed[0].saturating_add(more[0]), needed[1].saturating_add(more[1])]
    }

    fn numbers(&self, call: &Lists<'_, Input<'_>>, outputs: &[Output<'_>]) -> usize {
        // Of an LSTM that is the cell state, which may be wider than the output.
        let (x, last) = (call.one("x").dims, outputs[outputs.len() - 1].dims);
        let sizes = [x[0], last[0], x[2], last[1]];
        C::SCRATCH(sizes)[0].saturating_add(C::more(sizes, call)[0])
    }

    fn run<E: Element + Pod>(&self, call: Call<'_, '_>) -> Result<(), Error> {
        self.cell.run::<E>(&self.kind, call)
    }
}

/// The numbers of a call, if they are scalars.
fn numbers(op: &'static Op, call: &Lists<'_, Input<'_>>) -> Option<Numbers> {
    let (size, rounds) = (call.one(op.inputs[0].name), call.of("rounds"));
    let are_scalars = iter::once(size).chain(rounds).all(|input| input.dims.is_empty());
    let rounds = || rounds.iter().map(number).collect::<Vec<_>>();
    are_scalars.then(|| Numbers::new(number(size), &rounds()))
}

/// What the attributes say of a loop. Where an operation lacks one, all its nodes are alike.
fn read_loop(op: &'static Op, attributes: Attributes<'_>) -> Result<Loop, Error> {
    let flag = |name: &str, otherwise: bool| {
        let is_there = op.attributes.iter().any(|attribute| attribute.name == name);
        if is_there { attributes.flag(name) } else { Ok(otherwise) }
    };
    let element = |name: &str| -> Result<PartialShape, Error> {
        let sizes = attributes.numbers(name)?;
        match sizes.len() {
            0 => Ok(None),
            2 => Ok(Some(sizes.into_iter().map(|size| usize::try_from(size).ok()).collect())),
            _ => {
                let expected = format!("{name} must have 0 or 2 elements");
                Err(Error::Attribute { op: op.name, expected, got: format!("{sizes:?}") })
            }
        }
    };
    Ok(Loop {
        x: element("x_sizes")?,
        h: element("h_sizes")?,
        needs_h: attributes.flag("needs_h")?,
        lists: flag("lists", true)?,
        last_only: flag("last_only", false)?,
        repeats: flag("repeats", true)?,
        broadcasts: flag("broadcasts", true)?,
        broadcasts_rows: flag("broadcasts_rows", false)?,
        activations: activations(attributes)?,
        adds_x: flag("adds_x", false)?,
        reset_after: flag("reset_after", true)?,
        update_first: flag("update_first", false)?,
        u_weighs_c: flag("u_weighs_c", false)?,
    })
}

/// `BlockcellLSTMLayer`.
struct LstmLayer {
    attributes: lstm::Attributes,
    columns: GateColumns,
    proj_clip: f32,
}

impl Cell for LstmLayer {
    const OP: &'static Op = &ops::LSTM_LAYER;
    const STATES: &'static [&'static str] = &["h_prev", "cs_prev"];
    const OPTIONAL: &'static [&'static str] = &["num_sequence_length", "num_w_h", "num_projection"];
    const INFER: InferLoop = unfused::lstm_layer_shapes;
    const SCRATCH: fn([usize; 4]) -> [usize; 2] = unfused::lstm_layer_scratch;

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        let peepholes = attributes.count("num_peepholes")?;
        if !matches!(peepholes, 0 | 3) {
            let expected = "num_peepholes must be 0 or 3".to_owned();
            let (op, got) = (Self::OP.name, peepholes.to_string());
            return Err(Error::Attribute { op, expected, got });
        }
        Ok(LstmLayer {
            attributes: lstm_attributes(attributes, peepholes > 0)?,
            columns: gate_columns(attributes)?,
            proj_clip: attributes.float("proj_clip")?,
        })
    }

    fn more([_, batch, input, cell]: [usize; 4], call: &Lists<'_, Input<'_>>) -> [usize; 2] {
        let output = call.of("projection").first().map(|projection| projection.dims[1]);
        let x = unfused::copied_x(call.one("x").dims, batch);
        let widths = [call.one("h_prev").dims[1], output.unwrap_or(cell)];
        let projection = unfused::projection_scratch([batch, cell], output);
        let other = unfused::other_width_scratch([batch, input, cell], widths);
        let sum = |kind: usize| projection[kind].saturating_add(other[kind]);
        [sum(0), sum(1).saturating_add(x)]
    }

    fn run<E: Element + Pod>(&self, kind: &Loop, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = LstmLayerInputs::<E>::from_source(&mut call.inputs);
        let outputs = LstmLayerOutputs::from_source(&mut call.outputs);
        let attributes = (&self.attributes, self.columns, self.proj_clip);
        unfused::lstm_layer(call.context, attributes, kind, inputs, outputs, call.memory())
    }
}

/// `BlockcellLayerNormLSTMLayer`.
struct NormalizedLstmLayer(NormalizedAttributes);

impl Cell for NormalizedLstmLayer {
    const OP: &'static Op = &ops::NORMALIZED_LSTM_LAYER;
    const STATES: &'static [&'static str] = &["h_prev", "cs_prev"];
    const OPTIONAL: &'static [&'static str] = &["num_sequence_length"];
    const INFER: InferLoop = unfused::normalized_lstm_layer_shapes;
    const SCRATCH: fn([usize; 4]) -> [usize; 2] = unfused::normalized_lstm_layer_scratch;

    fn more([_, batch, input, cell]: [usize; 4], call: &Lists<'_, Input<'_>>) -> [usize; 2] {
        unfused::other_width_scratch([batch, input, cell], [call.one("h_prev").dims[1], cell])
    }

    fn read(attributes: Attributes<'_>) -> Result<Self, Error> {
        Ok(NormalizedLstmLayer(normalized_attributes(attributes)?))
    }

    fn run<E: Element + Pod>(&self, kind: &Loop, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = NormalizedLstmLayerInputs::<E>::from_source(&mut call.inputs);
        let outputs = NormalizedLstmLayerOutputs::from_source(&mut call.outputs);
        let (context, memory) = (call.context, call.memory());
        unfused::normalized_lstm_layer(context, &self.0, kind, inputs, outputs, memory)
    }
}

/// `BlockcellGRULayer`.
struct GruLayer;

impl Cell for GruLayer {
    const OP: &'static Op = &ops::GRU_LAYER;
    const STATES: &'static [&'static str] = &["h_prev"];
    const OPTIONAL: &'static [&'static str] = &["num_sequence_length", "num_w_h"];
    const INFER: InferLoop = unfused::gru_layer_shapes;
    const SCRATCH: fn([usize; 4]) -> [usize; 2] = unfused::gru_layer_scratch;

    fn more([_, batch, ..]: [usize; 4], call: &Lists<'_, Input<'_>>) -> [usize; 2] {
        [0, unfused::copied_x(call.one("x").dims, batch)]
    }

    fn read(_: Attributes<'_>) -> Result<Self, Error> {
        Ok(GruLayer)
    }

    fn run<E: Element + Pod>(&self, kind: &Loop, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = GruLayerInputs::<E>::from_source(&mut call.inputs);
        let outputs = GruLayerOutputs::from_source(&mut call.outputs);
        unfused::gru_layer(call.context, kind, inputs, outputs, call.memory())
    }
}

/// `BlockcellKerasLSTM`.
struct KerasLstm;

impl Cell for KerasLstm {
    const OP: &'static Op = &ops::KERAS_LSTM;
    const STATES: &'static [&'static str] = &["h_prev", "cs_prev"];
    const OPTIONAL: &'static [&'static str] = &["num_mask"];
    const INFER: InferLoop = unfused::keras_lstm_shapes;
    const SCRATCH: fn([usize; 4]) -> [usize; 2] = unfused::keras_lstm_scratch;

    fn read(_: Attributes<'_>) -> Result<Self, Error> {
        Ok(KerasLstm)
    }

    fn run<E: Element + Pod>(&self, kind: &Loop, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = KerasLstmInputs::<E>::from_source(&mut call.inputs);
        let outputs = KerasLstmOutputs::from_source(&mut call.outputs);
        unfused::keras_lstm(call.context, kind, inputs, outputs, call.memory())
    }
}

/// `BlockcellKerasGRU`.
struct KerasGru;

impl Cell for KerasGru {
    const OP: &'static Op = &ops::KERAS_GRU;
    const STATES: &'static [&'static str] = &["h_prev"];
    const OPTIONAL: &'static [&'static str] = &["num_mask"];
    const INFER: InferLoop = unfused::keras_gru_shapes;
    const SCRATCH: fn([usize; 4]) -> [usize; 2] = unfused::keras_gru_scratch;

    fn read(_: Attributes<'_>) -> Result<Self, Error> {
        Ok(KerasGru)
    }

    fn run<E: Element + Pod>(&self, kind: &Loop, mut call: Call<'_, '_>) -> Result<(), Error> {
        let inputs = KerasGruInputs::<E>::from_source(&mut call.inputs);
        let outputs = KerasGruOutputs::from_source(&mut call.outputs);
        unfused::keras_gru(call.context, kind, inputs, outputs, call.memory())
    }
}
