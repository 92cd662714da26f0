//! How often kernels have computed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use blockcell_kernels::Ran;

/// The attribute by which a node says for whom it computes. Python sets it for layers of Keras.
pub(super) const LABEL: &str = "_blockcell_label";

/// Counters by name. A name stays, because other nodes may have it later.
type Counters = Mutex<BTreeMap<String, Counter>>;

static OPS: Counters = Mutex::new(BTreeMap::new());
static LABELS: Counters = Mutex::new(BTreeMap::new());
static IN_INT8: Counters = Mutex::new(BTreeMap::new());
static IN_BFLOAT16: Counters = Mutex::new(BTreeMap::new());

/// How often something has run. Copies count together.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicU64>);

/// Counts the runs of a node.
pub(super) struct Runs {
    op: Counter,
    label: Option<Counter>,
    in_int8: Counter,
    in_bfloat16: Counter,
}

impl Runs {
    /// Of a node of this operation, with this label if it has one.
    pub(super) fn of(op: &str, label: Option<&str>) -> Runs {
        let label = label.map(|label| counter(&LABELS, label));
        let [in_int8, in_bfloat16] = [&IN_INT8, &IN_BFLOAT16].map(|counters| counter(counters, op));
        Runs { op: counter(&OPS, op), label, in_int8, in_bfloat16 }
    }

    /// Counts one, and what it has computed with less than float32.
    pub(super) fn count(&self, ran: &Ran) {
        let in_int8 = Some(&self.in_int8).filter(|_| ran.in_int8());
        let in_bfloat16 = Some(&self.in_bfloat16).filter(|_| ran.in_bfloat16());
        let counters = [Some(&self.op), self.label.as_ref(), in_int8, in_bfloat16];
        for counter in counters.into_iter().flatten() {
            counter.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// How often kernels of each operation have computed, of those that a node was made of.
pub(super) fn of_ops() -> BTreeMap<String, u64> {
    counts(&OPS)
}

/// How often the kernels of nodes with each label have computed.
pub(super) fn of_labels() -> BTreeMap<String, u64> {
    counts(&LABELS)
}

/// How often kernels of each operation have computed with weights in int8.
pub(super) fn in_int8() -> BTreeMap<String, u64> {
    counts(&IN_INT8)
}

/// How often kernels of each operation have computed with factors in bfloat16.
pub(super) fn in_bfloat16() -> BTreeMap<String, u64> {
    counts(&IN_BFLOAT16)
}

fn counter(counters: &Counters, name: &str) -> Counter {
    let mut counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
    counters.entry(name.to_owned()).or_default().clone()
}

fn counts(counters: &Counters) -> BTreeMap<String, u64> {
    let counters = counters.lock().unwrap_or_else(PoisonError::into_inner);
    counters
        .iter()
        .map(|(name, counter)| (name.clone(), counter.0.load(Ordering::Relaxed)))
        .collect()
}
