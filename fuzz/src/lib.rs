//! Calls of every op, and graphs, made of arbitrary bytes.
//!
//! A call is judged without an oracle ([`twice`]): it fails as a whole, or it writes all of its outputs, whatever
//! memory held before and however many threads it runs on.

mod block_ops;
mod choices;
mod graphs;
mod keras_layers;
mod networks;
mod normalized;
mod products;
mod tensor;
mod twice;
mod unfused;
mod unfused_layers;

use blockcell_kernels::ops::{Inferred, Lists, Op, PartialShape};
use blockcell_kernels::{Element, Error};
use half::{bf16, f16};

use choices::Choices;

/// Makes a call of the kernels out of the bytes, and panics if it does what no call may.
///
/// # Errors
///
/// If the bytes stand for no call that is small enough.
pub fn call(bytes: &[u8]) -> arbitrary::Result<()> {
    let mut choices = Choices::new(bytes);
    let kind = choices.below(19);
    match choices.below(3) {
        0 => call_of::<f32>(kind, &mut choices),
        1 => call_of::<f16>(kind, &mut choices),
        _ => call_of::<bf16>(kind, &mut choices),
    }
}

fn call_of<E: Element + tensor::Held>(
    kind: usize,
    choices: &mut Choices<'_>,
) -> arbitrary::Result<()> {
    match kind {
        0..=2 => block_ops::call::<E>(choices),
        3 => products::add_n::<E>(choices),
        4 => products::slice::<E>(choices),
        5 => products::bias::<E>(choices),
        6 => unfused::lstm_cell::<E>(choices),
        7 => unfused::lstm_cell_grad::<E>(choices),
        8 => unfused::gru_cell_grad::<E>(choices),
        9 => unfused_layers::call::<E>(choices),
        10 => networks::forward::<E>(choices),
        11 => networks::backprop::<E>(choices),
        12 => networks::canonical::<E>(choices),
        13 => keras_layers::call::<E>(choices),
        14 => normalized::cell(choices),
        15 => normalized::layer(choices),
        16 => normalized::norm(choices),
        17 => normalized::norm_grad(choices),
        _ => unfused::gru_cell::<E>(choices),
    }
}

pub use graphs::graph;

/// A shape as what is known of it.
fn known(shape: &impl AsRef<[usize]>) -> PartialShape {
    Some(shape.as_ref().iter().copied().map(Some).collect())
}

/// The shapes of a call's inputs, which are so many of each single tensor or list, for an operation that has so many
/// outputs of each.
fn with_lists<R>(
    op: &'static Op,
    inputs: &[&[Vec<usize>]],
    outputs: &[usize],
    read: impl FnOnce(&Lists<'_, PartialShape>) -> R,
) -> R {
    let lengths: Vec<_> = inputs.iter().map(|list| list.len()).collect();
    let shapes: Vec<_> = inputs.iter().copied().flatten().map(known).collect();
    read(&Lists::new(op, &lengths, outputs, &shapes))
}

/// The shapes of outputs of which all is known.
fn known_outputs(inferred: Result<Inferred, Error>) -> Result<Vec<Vec<usize>>, Error> {
    let sizes = |shape: Vec<Option<usize>>| {
        shape.into_iter().map(|size| size.expect("a size that is known")).collect()
    };
    inferred.map(|inferred| inferred.outputs.into_iter().map(sizes).collect())
}
