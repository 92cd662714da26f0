//! How long rewrites take: `cargo bench --package blockcell-graphs`.
//!
//! The time that it takes to read a graph from text does not count.

#[path = "../tests/common/large.rs"]
mod large;
#[path = "../tests/common/notation.rs"]
mod notation;

use blockcell_graphs::rewrite;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};

fn rewrites(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rewrite");
    group.sample_size(10);
    let graphs = [
        ("3,000 products in a chain of sums", large::chain_of_sums(3000)),
        ("3,000 products in a tree of sums", large::tree_of_sums(3000)),
        ("a product below 3,000 sums", large::product_below_sums(3000)),
        ("training of 70 steps", large::training(70)),
        ("3,000 unrolled steps of an LSTM", large::unrolled_lstm(3000, false)),
        ("training of 3,000 unrolled steps of an LSTM", large::unrolled_lstm(3000, true)),
        ("3,000 unrolled steps of a GRU", large::unrolled_gru(3000, false)),
        ("training of 3,000 unrolled steps of a GRU", large::unrolled_gru(3000, true)),
        ("100,000 nodes around a cell", large::one_cell_among(100_000)),
    ];
    for (name, text) in graphs {
        group.bench_function(name, |bencher| {
            let read = || notation::graph(&text);
            let run = |mut graph| {
                let report = rewrite(&mut graph);
                (graph, report)
            };
            bencher.iter_batched(read, run, BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, rewrites);
criterion_main!(benches);
