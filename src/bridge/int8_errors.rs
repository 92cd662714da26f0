//! How far results with weights in int8 are from those in float32, layer by layer. While a process asks for it, calls are
//! computed twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use blockcell_kernels::ops::Op;

use super::ffi::Output;

static ASKED_FOR: AtomicBool = AtomicBool::new(false);

/// Of each layer: the label of its node, or else the node's name.
static LAYERS: Mutex<BTreeMap<String, Errors>> = Mutex::new(BTreeMap::new());

/// The output that is compared: what the next layer reads.
const OUTPUT: &str = "h";

/// The errors of a layer in all calls.
#[derive(Clone)]
struct Errors {
    op: &'static str,
    calls: u64,
    largest: f64,
    sum: f64,
    elements: u64,
    /// The largest magnitude in float32.
    scale: f64,
}

/// Begins to note errors, or ends it. What was noted before is forgotten when it begins.
pub(crate) fn ask_for(wanted: bool) {
    let mut layers = LAYERS.lock().unwrap_or_else(PoisonError::into_inner);
    if wanted && !ASKED_FOR.swap(wanted, Ordering::Relaxed) {
        layers.clear();
    }
    ASKED_FOR.store(wanted, Ordering::Relaxed);
}

pub(super) fn are_asked_for() -> bool {
    ASKED_FOR.load(Ordering::Relaxed)
}

/// Calls `in_float32`, which computes the same outputs anew, and notes how far these were from it. Outputs are as before
/// then.
pub(super) fn note<E>(
    (op, layer): (&'static Op, &str),
    outputs: &mut [Output<'_>],
    in_float32: impl FnOnce(&mut [Output<'_>]) -> Result<(), E>,
) -> Result<(), E> {
    let in_int8: Vec<_> = outputs.iter().map(|output| output.data.to_vec()).collect();
    in_float32(outputs)?;
    let place = op.outputs.iter().position(|output| output.name == OUTPUT).unwrap_or_default();
    if let (Some(got), Some(want)) = (in_int8.get(place), outputs.get(place)) {
        add(op.name, layer, got, want.data);
    }
    for (output, in_int8) in outputs.iter_mut().zip(&in_int8) {
        output.data.copy_from_slice(in_int8);
    }
    Ok(())
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.as_chunks().0.iter().map(|&bytes| f32::from_ne_bytes(bytes).into())
}

fn add(op: &'static str, layer: &str, got: &[u8], want: &[u8]) {
    let mut layers = LAYERS.lock().unwrap_or_else(PoisonError::into_inner);
    let none = Errors { op, calls: 0, largest: 0.0, sum: 0.0, elements: 0, scale: 0.0 };
    let errors = layers.entry(layer.to_owned()).or_insert(none);
    errors.calls += 1;
    for (got, want) in numbers(got).zip(numbers(want)) {
        let error = (got - want).abs();
        errors.largest = errors.largest.max(error);
        errors.sum += error;
        errors.elements += 1;
        errors.scale = errors.scale.max(want.abs());
    }
}

/// What was noted, for `info()`: errors are relative to the largest element.
pub(super) fn noted() -> serde_json::Value {
    let layers = LAYERS.lock().unwrap_or_else(PoisonError::into_inner);
    let noted = layers.iter().map(|(layer, errors)| {
        let scale = if errors.scale > 0.0 { errors.scale } else { 1.0 };
        let noted = serde_json::json!({
            "op": errors.op,
            "calls": errors.calls,
            "largest": errors.largest / scale,
            "mean": errors.sum / scale / errors.elements.max(1) as f64,
        });
        (layer.clone(), noted)
    });
    noted.collect::<serde_json::Map<_, _>>().into()
}
