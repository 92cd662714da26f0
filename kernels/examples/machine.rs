//! Measures what this machine can do at best, as JSON: float32 multiply-adds a second, and bytes
//! read a second at working sets of several sizes.
//!
//! ```text
//! cargo run --release --example machine -- [--threads N[,N...]]
//! ```
//!
//! One thread is always measured; without `--threads` so is one a core. The instruction set is that
//! of the library, so `BLOCKCELL_ISA` holds here too. A working set is that of all threads
//! together: each of them reads a part of its own, again and again.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use blockcell_kernels::Isa;
use blockcell_kernels::simd::{Simd, WithSimd};

/// Bytes of the working sets: in the first level cache, in the second, beyond it, in memory.
const WORKING_SETS: [usize; 7] =
    [32 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 54 << 20, 256 << 20];

/// Bytes of its own below which a thread's part of a working set is not measured.
const SMALLEST_PART: usize = 4 << 10;

/// Bytes that a thread reads in one burst at least, in as many passes as that takes.
const BURST_BYTES: usize = 16 << 20;

/// Links of each chain in one burst.
const LINKS: usize = 100_000;

/// Bursts of a measurement, of which the best one counts. They are short, so that on a busy machine some of them
/// find all cores free.
const BURSTS: usize = 400;

fn main() {
    let isa = Isa::get();
    let threads = match threads(std::env::args().skip(1)) {
        Ok(threads) => threads,
        Err(problem) => {
            eprintln!("machine: {problem}\nusage: machine [--threads N[,N...]]");
            std::process::exit(2);
        }
    };
    let limits: Vec<_> = threads.into_iter().map(|threads| limits(isa, threads)).collect();
    println!(r#"{{"isa": "{}", "limits": [{}]}}"#, isa.name(), limits.join(", "));
}

/// The numbers of threads to measure, in ascending order.
fn threads(mut arguments: impl Iterator<Item = String>) -> Result<Vec<usize>, String> {
    let mut threads = vec![1];
    match arguments.next().as_deref() {
        None => threads.push(thread::available_parallelism().map_or(1, usize::from)),
        Some("--threads") => {
            let list = arguments.next().ok_or("--threads needs a number")?;
            for number in list.split(',') {
                match number.parse() {
                    Ok(number @ 1..) => threads.push(number),
                    _ => return Err(format!("{number:?} is no number of threads")),
                }
            }
        }
        Some(other) => return Err(format!("unknown argument {other:?}")),
    }
    if let Some(other) = arguments.next() {
        return Err(format!("unknown argument {other:?}"));
    }
    threads.sort_unstable();
    threads.dedup();
    Ok(threads)
}

/// One object of the output.
fn limits(isa: Isa, threads: usize) -> String {
    let few = best_rate(threads, BURSTS, || (), |()| isa.run(MultiplyAdds::<4>));
    let many = best_rate(threads, BURSTS, || (), |()| isa.run(MultiplyAdds::<12>));
    let flops = few.max(many);
    let measured = WORKING_SETS.iter().filter(|&bytes| bytes / threads >= SMALLEST_PART);
    let bandwidths: Vec<_> = measured
        .map(|&bytes| {
            let part = bytes / threads;
            let bursts = BURSTS / (part / BURST_BYTES).max(1);
            let data = || vec![1.0_f32; part / size_of::<f32>()];
            let rate = best_rate(threads, bursts, data, |data| isa.run(Read(data)));
            format!(r#"{{"bytes": {bytes}, "bytes_per_second": {rate:.0}}}"#)
        })
        .collect();
    format!(
        r#"{{"threads": {threads}, "flops_per_second": {flops:.0}, "read": [{}]}}"#,
        bandwidths.join(", ")
    )
}

/// The most units of work a second that all threads together did in any burst.
///
/// Every thread makes its own data by `prepare`, so that its pages are near that thread.
/// `burst` returns the units of work it did.
fn best_rate<D>(
    threads: usize,
    bursts: usize,
    prepare: impl Fn() -> D + Sync,
    burst: impl Fn(&D) -> f64 + Sync,
) -> f64 {
    let arrived = AtomicUsize::new(0);
    let run = || {
        let data = prepare();
        let one = |number| {
            meet(&arrived, (number + 1) * threads);
            let start = Instant::now();
            let units = burst(&data);
            (units, start, Instant::now())
        };
        (0..bursts).map(one).collect::<Vec<_>>()
    };
    let times: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        running.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let rate = |number: usize| {
        let (mut units, mut first, mut last) = times[0][number];
        for &(more, start, end) in times[1..].iter().map(|times| &times[number]) {
            (units, first, last) = (units + more, first.min(start), last.max(end));
        }
        units / last.duration_since(first).max(Duration::from_nanos(1)).as_secs_f64()
    };
    (0..bursts).map(rate).fold(0.0, f64::max)
}

/// Returns when `all` threads have called it. It spins, because waking a sleeping thread takes too long.
fn meet(arrived: &AtomicUsize, all: usize) {
    arrived.fetch_add(1, Ordering::AcqRel);
    let mut spins = 0_u32;
    while arrived.load(Ordering::Acquire) < all {
        spins += 1;
        if spins.is_multiple_of(1024) {
            // There may be more threads than cores.
            thread::yield_now();
        }
        spin_loop();
    }
}

/// `N` chains of dependent multiply-adds, of which each counts as two operations.
///
/// Few chains do not fill the units of a core that waits for results; many do not fit in the
/// registers of a small instruction set.
struct MultiplyAdds<const N: usize>;

impl<const N: usize> WithSimd<f64> for MultiplyAdds<N> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        // The chains tend to 1: neither tiny numbers nor huge ones slow anything down.
        let (factor, term) = (simd.splat(black_box(0.5)), simd.splat(black_box(0.5)));
        let mut sums = [simd.splat(black_box(0.0)); N];
        for _ in 0..LINKS {
            for sum in &mut sums {
                *sum = simd.mul_add(*sum, factor, term);
            }
        }
        for sum in sums {
            black_box(simd.sum(sum));
        }
        2.0 * (LINKS * N * S::LANES) as f64
    }
}

/// Reads all elements, and again until [`BURST_BYTES`] have been read.
struct Read<'a>(&'a [f32]);

impl WithSimd<f64> for Read<'_> {
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        const STREAMS: usize = 8;
        let passes = (BURST_BYTES / size_of_val(self.0)).max(1);
        for _ in 0..passes {
            let mut sums = [simd.splat(0.0); STREAMS];
            for block in black_box(self.0).chunks_exact(STREAMS * S::LANES) {
                for (sum, vector) in sums.iter_mut().zip(block.chunks_exact(S::LANES)) {
                    *sum = *sum + simd.load(vector);
                }
            }
            for sum in sums {
                black_box(simd.sum(sum));
            }
        }
        (passes * size_of_val(self.0)) as f64
    }
}
