//! Calls of every op, and graphs, made of arbitrary bytes.
//!
//! A call is judged without an oracle ([`twice`]): it fails as a whole, or it writes all of its outputs, whatever
//! memory held before and however many threads it runs on.

mod block_ops;
mod choices;
mod graphs;
mod keras_layers;
mod networks;
mod plain;
mod plain_layers;
mod products;
mod tensor;
mod twice;

use arbitrary::Result;
use blockcell_kernels::Element;
use blockcell_kernels::ops::PartialShape;
use half::f16;

use choices::Choices;

/// Makes a call of the kernels out of the bytes, and panics if it does what no call may.
///
/// # Errors
///
/// If the bytes stand for no call that is small enough.
pub fn call(bytes: &[u8]) -> Result<()> {
    let mut choices = Choices::new(bytes);
    let kind = choices.below(15);
    if choices.flag() {
        call_of::<f16>(kind, &mut choices)
    } else {
        call_of::<f32>(kind, &mut choices)
    }
}

fn call_of<E: Element + tensor::Held>(kind: usize, choices: &mut Choices<'_>) -> Result<()> {
    match kind {
        0..=2 => block_ops::call::<E>(choices),
        3 => products::add_n::<E>(choices),
        4 => products::slice::<E>(choices),
        5 => products::bias::<E>(choices),
        6 => plain::lstm_cell::<E>(choices),
        7 => plain::lstm_cell_grad::<E>(choices),
        8 => plain::gru_cell_grad::<E>(choices),
        9 => plain_layers::call::<E>(choices),
        10 => networks::forward::<E>(choices),
        11 => networks::backprop::<E>(choices),
        12 => networks::canonical::<E>(choices),
        13 => keras_layers::call::<E>(choices),
        _ => plain::gru_cell::<E>(choices),
    }
}

pub use graphs::graph;

/// A shape as what is known of it.
fn known(shape: &impl AsRef<[usize]>) -> PartialShape {
    Some(shape.as_ref().iter().copied().map(Some).collect())
}

/// A shape of which all is known.
fn sizes(shape: &[Option<usize>]) -> Vec<usize> {
    shape.iter().map(|size| size.expect("a size that is known")).collect()
}
