//! Ways to run tasks.

use blockcell::{Executor, Serial};

/// Runs tasks from the last to the first, each on a thread of its own.
struct Backwards;

impl Executor for Backwards {
    fn run(&self, tasks: usize, _cost: u64, task: &(dyn Fn(usize) + Sync)) {
        for n in (0..tasks).rev() {
            std::thread::scope(|scope| scope.spawn(|| task(n)).join()).expect("no panic");
        }
    }
}

/// Executors with their names, the serial one first.
pub(crate) fn executors() -> Vec<(String, Box<dyn Executor>)> {
    let mut all: Vec<(String, Box<dyn Executor>)> =
        vec![("serial".into(), Box::new(Serial)), ("backwards".into(), Box::new(Backwards))];
    for threads in 1..=3 {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        all.push((format!("rayon, {threads} threads"), Box::new(pool.expect("threads"))));
    }
    all
}
