//! Variables that nobody writes, whose packed copies are kept.
//!
//! A kernel sees the buffer that a variable has in each call. Where calls have had the same one, the kernel *holds* it,
//! by a reference of TensorFlow's. From then on its elements cannot change: whatever writes to a variable in place looks
//! first whether anybody else holds its buffer, and if so gives the variable another. So the copies are good as long as
//! calls have the buffer that is held, and no other buffer can lie there. A write costs a copy of the variable once,
//! and the kernel waits longer before it holds a buffer again.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use blockcell_kernels::Copies;
use cxx::UniquePtr;

use super::ffi::{HeldTensor, Input, Tensors};

/// How many calls in a row must have had the same buffer before it is held, at first. Each time that a buffer is
/// replaced before as many calls have used its copies, [`PATIENCE`] times as many are asked for.
const FIRST_CALLS: u64 = 2;
const PATIENCE: u64 = 4;

/// How long a buffer is held before its elements count as settled. Optimizers without locking look whether anybody
/// holds the buffer, and write then: such a write may still be under way when a call takes hold of it.
const SETTLING: Duration = Duration::from_secs(1);

/// A buffer that is held, and what is kept of it.
pub(super) struct Variable {
    tensor: UniquePtr<HeldTensor>,
    address: usize,
    since: Instant,
    copies: Copies,
}

// SAFETY: a `HeldTensor` is a reference to a buffer that nobody writes. Its methods read a count that is atomic, and it
// may be released by any thread.
#[allow(unsafe_code)]
unsafe impl Send for Variable {}
// SAFETY: as above.
#[allow(unsafe_code)]
unsafe impl Sync for Variable {}

impl Variable {
    pub(super) fn copies(&self) -> &Copies {
        &self.copies
    }
}

/// All that are held. Kernels have weak references, and those of the same variable share its copies.
static HELD: LazyLock<Mutex<Vec<Arc<Variable>>>> = LazyLock::new(Mutex::default);

/// Those that a variable still has and a kernel still wants; the others are released.
fn held() -> MutexGuard<'static, Vec<Arc<Variable>>> {
    let mut held = lock(&HELD);
    held.retain(|variable| Arc::weak_count(variable) > 0 && !variable.tensor.is_last());
    held
}

/// The memory of all copies, in bytes.
pub(super) fn bytes() -> usize {
    held().iter().map(|variable| variable.copies.bytes()).sum()
}

/// An input of a node that is read from a variable.
pub(super) struct Watched {
    input: usize,
    seen: Mutex<Seen>,
}

/// What calls had.
struct Seen {
    address: usize,
    /// How many calls in a row had it.
    calls: u64,
    /// How many calls must have had a buffer before it is held.
    wanted: u64,
    held: Weak<Variable>,
}

impl Watched {
    pub(super) fn new(input: usize) -> Self {
        let seen = Seen { address: 0, calls: 0, wanted: FIRST_CALLS, held: Weak::new() };
        Watched { input, seen: Mutex::new(seen) }
    }

    pub(super) fn input(&self) -> usize {
        self.input
    }

    /// The buffer that a call has, if it is held and settled.
    pub(super) fn of_call(&self, tensors: &Tensors, inputs: &[Input<'_>]) -> Option<Arc<Variable>> {
        let data = inputs.get(self.input)?.data;
        if data.is_empty() {
            return None;
        }
        let address = data.as_ptr().addr();
        let mut seen = lock(&self.seen);
        seen.count(address);
        let held = seen.held.upgrade().or_else(|| {
            let held = seen.may_hold().then(|| hold(tensors, self.input, address)).flatten()?;
            seen.held = Arc::downgrade(&held);
            Some(held)
        })?;
        (held.since.elapsed() >= SETTLING).then_some(held)
    }
}

impl Seen {
    fn count(&mut self, address: usize) {
        if self.address == address {
            self.calls = self.calls.saturating_add(1);
            return;
        }
        if self.held.strong_count() > 0 {
            if self.calls < self.wanted.saturating_mul(PATIENCE) {
                self.wanted = self.wanted.saturating_mul(PATIENCE);
            }
            self.held = Weak::new();
            drop(held());
        }
        (self.address, self.calls) = (address, 1);
    }

    fn may_hold(&self) -> bool {
        self.calls >= self.wanted
    }
}

/// Holds the buffer that an input has, as another kernel may do already.
fn hold(tensors: &Tensors, input: usize, address: usize) -> Option<Arc<Variable>> {
    let mut held = held();
    if let Some(variable) = held.iter().find(|variable| variable.address == address) {
        return Some(Arc::clone(variable));
    }
    let tensor = tensors.hold(input);
    if tensor.is_null() {
        return None;
    }
    let copies = Copies::default();
    let variable = Arc::new(Variable { tensor, address, since: Instant::now(), copies });
    held.push(Arc::clone(&variable));
    Some(variable)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
