//! How often kernels have computed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blockcell_kernels::ops::DataType;
use blockcell_kernels::{Isa, Precision, Ran, Weights};

use crate::switches;

/// The attribute by which a node says for whom it computes. Python sets it for layers of Keras.
pub(super) const LABEL: &str = "_blockcell_label";

/// Counters by name. A name stays, because other nodes may have it later.
type Counters = Mutex<BTreeMap<String, Counter>>;

static OPS: Counters = Mutex::new(BTreeMap::new());
static LAYERS: Mutex<BTreeMap<String, Layer>> = Mutex::new(BTreeMap::new());
static IN_INT8: Counters = Mutex::new(BTreeMap::new());
static IN_BFLOAT16: Counters = Mutex::new(BTreeMap::new());

/// How often something has run. Copies count together.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicU64>);

impl Counter {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How the nodes with a label compute, which is the same for all of a layer.
#[derive(Clone, Copy)]
pub(super) struct How {
    pub(super) element: DataType,
    /// If the nodes say so; otherwise that of the process holds.
    pub(super) precision: Option<Precision>,
    pub(super) weights: Weights,
}

/// What there is for a label. Counters stay when nodes are made again.
struct Layer {
    how: How,
    counters: [Counter; 3],
}

/// Counts the runs of a node: all, those with weights in int8, and those with factors in bfloat16; of its operation
/// and of its label.
pub(super) struct Runs {
    op: [Counter; 3],
    layer: Option<[Counter; 3]>,
}

impl Runs {
    /// Of a node of this operation, with this label if it has one.
    pub(super) fn of(op: &str, label: Option<(&str, How)>) -> Runs {
        let op = [&OPS, &IN_INT8, &IN_BFLOAT16].map(|counters| counter(counters, op));
        Runs { op, layer: label.map(|(label, how)| layer(label, how)) }
    }

    /// Counts one, and what it has computed with less than float32.
    pub(super) fn count(&self, ran: &Ran) {
        let counts = [true, ran.in_int8(), ran.in_bfloat16()];
        for counters in std::iter::once(&self.op).chain(&self.layer) {
            for (counter, _) in counters.iter().zip(counts).filter(|&(_, counts)| counts) {
                counter.0.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// How often kernels of each operation have computed, of those that a node was made of.
pub(super) fn of_ops() -> BTreeMap<String, u64> {
    counts(&OPS)
}

/// How often the kernels of nodes with each label have computed.
pub(super) fn of_labels() -> BTreeMap<String, u64> {
    layers().iter().map(|(label, layer)| (label.clone(), layer.counters[0].get())).collect()
}

/// The same and how they compute, by label, as JSON.
pub(super) fn of_layers() -> serde_json::Value {
    let isa = Isa::get();
    let described = |layer: &Layer| {
        let How { element, precision, weights } = layer.how;
        let [runs, in_int8, in_bfloat16] = layer.counters.each_ref().map(Counter::get);
        // Factors of 16 bits stay as they are.
        let precision = match element {
            DataType::Float => precision.unwrap_or_else(switches::precision).on(isa),
            _ => Precision::Highest,
        };
        serde_json::json!({
            "type": element.name(),
            "precision": precision.name(),
            "weights": weights.name(),
            "isa": isa.name(),
            "runs": runs,
            "runs_in_int8": in_int8,
            "runs_in_bfloat16": in_bfloat16,
        })
    };
    layers().iter().map(|(label, layer)| (label.clone(), described(layer))).collect()
}

/// How often kernels of each operation have computed with weights in int8.
pub(super) fn in_int8() -> BTreeMap<String, u64> {
    counts(&IN_INT8)
}

/// How often kernels of each operation have computed with factors in bfloat16.
pub(super) fn in_bfloat16() -> BTreeMap<String, u64> {
    counts(&IN_BFLOAT16)
}

fn layers() -> MutexGuard<'static, BTreeMap<String, Layer>> {
    LAYERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The counters of a label, whose nodes compute like this from now on.
fn layer(label: &str, how: How) -> [Counter; 3] {
    let mut layers = layers();
    let layer = layers.entry(label.to_owned());
    let layer = layer.or_insert_with(|| Layer { how, counters: Default::default() });
    layer.how = how;
    layer.counters.clone()
}

fn counter(counters: &Counters, name: &str) -> Counter {
    let mut counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
    counters.entry(name.to_owned()).or_default().clone()
}

fn counts(counters: &Counters) -> BTreeMap<String, u64> {
    let counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
    counters.iter().map(|(name, counter)| (name.clone(), counter.get())).collect()
}
