//! What is below the kernels, by itself: products and activations, on one thread, with every
//! instruction set of the machine.
//!
//! `cargo bench --features bench_internals --bench products -- product/avx512` runs a part of them.

mod common;

use std::hint::black_box;

use blockcell_kernels::Isa;
use blockcell_kernels::bench_internals::{Activation, Factors, Product};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::Array2;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Rows, depth and columns: blocks of many heights, weights in the second and third level cache, and
/// larger ones.
const SIZES: [(usize, usize, usize); 9] = [
    (1, 256, 256),
    (5, 256, 256),
    (8, 256, 256),
    (13, 256, 256),
    (20, 400, 400),
    (20, 1300, 650),
    (64, 512, 512),
    (64, 1024, 1024),
    (8, 2200, 2200),
];

/// Numbers from -4 to 4, over most of which activations bend.
fn random(numbers: &mut SmallRng, rows: usize, columns: usize) -> Array2<f32> {
    Array2::from_shape_simple_fn((rows, columns), || numbers.random_range(-4.0..4.0))
}

fn products(criterion: &mut Criterion) {
    for isa in Isa::available() {
        for factors in Factors::ALL {
            let mut group =
                criterion.benchmark_group(format!("product/{}/{factors:?}", isa.name()));
            for (rows, depth, columns) in SIZES {
                let numbers = &mut SmallRng::seed_from_u64(1);
                let (left, right) = (random(numbers, rows, depth), random(numbers, depth, columns));
                let mut product = Product::new(isa, factors, left, right);
                // Multiply-adds: "Gelem/s" is half the GFLOP/s.
                group.throughput(Throughput::Elements((rows * depth * columns) as u64));
                let id = BenchmarkId::from_parameter(format!("{rows}x{depth}x{columns}"));
                group.bench_function(id, |bencher| {
                    bencher.iter(|| black_box(product.run()).len());
                });
            }
            group.finish();
        }
    }
}

fn activations(criterion: &mut Criterion) {
    for isa in Isa::available() {
        let mut group = criterion.benchmark_group(format!("activation/{}", isa.name()));
        let from = random(&mut SmallRng::seed_from_u64(2), 20, 200);
        let mut to = Array2::zeros(from.dim());
        group.throughput(Throughput::Elements(from.len() as u64));
        for activation in [Activation::Sigmoid, Activation::Tanh] {
            group.bench_function(
                BenchmarkId::from_parameter(format!("{activation:?}")),
                |bencher| {
                    bencher.iter(|| activation.run(isa, black_box(from.view()), to.view_mut()));
                },
            );
        }
        group.finish();
    }
}

criterion_group! {
    name = parts;
    config = common::short(20);
    targets = products, activations
}
criterion_main!(parts);
