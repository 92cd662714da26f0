//! Kernels on TensorFlow's threads.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

use super::ffi::Pool;
use blockcell_kernels::Executor;

/// A parallel section: the work, and the first panic in it.
pub(super) struct Task<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// The pool runs a task on several threads at once, which C++ does not check.
const _: () = {
    const fn assert_sync<T: Sync>() {}
    assert_sync::<Task<'_>>();
};

impl Task<'_> {
    /// Runs the tasks `begin` to `end - 1`, and keeps a panic in one of them for the thread that
    /// waits for the section.
    pub(super) fn run(&self, begin: usize, end: usize) {
        let work = || {
            blockcell_failpoints::here("task");
            (begin..end).for_each(self.work);
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
            self.panic.lock().expect("no panic while locked").get_or_insert(panic);
        }
    }
}

impl Executor for Pool {
    fn run(&self, tasks: usize, cost: u64, work: &(dyn Fn(usize) + Sync)) {
        let task = Task { work, panic: Mutex::new(None) };
        self.parallel_for(tasks, cost, &task);
        if let Some(panic) = task.panic.into_inner().expect("no panic while locked") {
            resume_unwind(panic);
        }
    }

    fn threads(&self) -> usize {
        self.num_threads()
    }
}
