//! The judge of a call: it is made twice, on memory that held different numbers before and on different executors.

use arbitrary::Result;
use blockcell_kernels::{Context, Error, Executor, Isa, Serial};

use crate::choices::Choices;
use crate::tensor::Tensor;

/// What the memory of outputs and scratch holds before.
const HELD: [f32; 2] = [f32::NAN, -1.5];

/// What becomes of a tensor in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// All of it is written. A call that fails leaves it as it was.
    Output,
    /// The same of one that holds a value which the call reads.
    Updated,
    /// It holds values which the call reads and then overwrites with any. A call that fails leaves it as it was.
    InPlace,
    /// Memory that holds any values, and nobody reads afterwards.
    Scratch,
}

/// Runs tasks from the last to the first, and says that it has several threads.
struct Backwards(usize);

impl Executor for Backwards {
    fn run(&self, tasks: usize, _cost: u64, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).rev().for_each(task);
    }

    fn threads(&self) -> usize {
        self.0
    }
}

/// Makes a call twice, on memory of its own for what it writes.
///
/// # Panics
///
/// If the results differ, or a call that fails has written something.
pub(crate) fn twice(
    choices: &mut Choices<'_>,
    written: Vec<(Role, Tensor)>,
    call: impl Fn(&Context<'_>, &mut [Tensor]) -> std::result::Result<(), Error>,
) -> Result<()> {
    let available = Isa::available();
    let isa = available[available.len() - 1 - choices.below(available.len())];
    let backwards = Backwards(1 + choices.small());
    let executors: [&dyn Executor; 2] = [&Serial, &backwards];
    let (roles, tensors): (Vec<_>, Vec<_>) = written.into_iter().unzip();
    let mut runs = HELD.into_iter().zip(executors).map(|(held, executor)| {
        let mut before = tensors.clone();
        for (tensor, role) in before.iter_mut().zip(&roles) {
            if matches!(role, Role::Output | Role::Scratch) {
                tensor.fill(held);
            }
        }
        let mut after = before.clone();
        let ended = call(&Context::new(isa, executor), &mut after);
        if let Err(error) = &ended {
            let kept = before.iter().zip(&after).zip(&roles);
            let mut kept = kept.filter(|(_, role)| **role != Role::Scratch);
            assert!(
                kept.all(|((before, after), _)| before.is_same(after)),
                "written, though {error}"
            );
            assert!(!error.to_string().is_empty());
        }
        (ended, after)
    });
    let (first, second) = (runs.next().expect("two"), runs.next().expect("two"));
    assert_eq!(first.0, second.0, "one call fails, the other does not");
    if first.0.is_ok() {
        for (n, (a, b)) in first.1.iter().zip(&second.1).enumerate() {
            let counts = matches!(roles[n], Role::Output | Role::Updated);
            assert!(!counts || a.is_same(b), "tensor {n} of {:?}, on {}", a.shape, isa.name());
        }
    }
    Ok(())
}

/// Memory that holds any values: as many as are needed, or once in a while one fewer.
pub(crate) fn scratch_len(choices: &mut Choices<'_>, needed: usize) -> usize {
    if choices.once_in(32) { needed.saturating_sub(1) } else { needed }
}
