//! Ways to run tasks.

use std::sync::OnceLock;

use blockcell_kernels::{Context, Executor, Isa, Serial};

/// An executor with its name.
pub(crate) type Named = (String, Box<dyn Executor + Send + Sync>);

/// Runs tasks from the last to the first, each on a thread of its own.
struct Backwards;

impl Executor for Backwards {
    fn run(&self, tasks: usize, _cost: u64, task: &(dyn Fn(usize) + Sync)) {
        for n in (0..tasks).rev() {
            std::thread::scope(|scope| scope.spawn(|| task(n)).join()).expect("no panic");
        }
    }
}

/// The calling thread, on each instruction set.
pub(crate) fn contexts() -> impl Iterator<Item = Context<'static>> {
    Isa::available().into_iter().map(|isa| Context::new(isa, &Serial))
}

/// Executors with their names, the serial one first.
pub(crate) fn executors() -> &'static [Named] {
    static ALL: OnceLock<Vec<Named>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all: Vec<Named> =
            vec![("serial".into(), Box::new(Serial)), ("backwards".into(), Box::new(Backwards))];
        for threads in 1..=3 {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
            all.push((format!("rayon, {threads} threads"), Box::new(pool.expect("threads"))));
        }
        all
    })
}
