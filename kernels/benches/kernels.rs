//! The kernels alone, without TensorFlow: on one thread, with every instruction set of the machine.
//!
//! `cargo bench --bench kernels -- gru_block_cell_grad/avx512` runs a part of them.

mod common;

use std::hint::black_box;

use blockcell_kernels::{Context, Isa, Serial, gru, lstm};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ndarray::{Array, Array1, Array2, Dimension, ShapeBuilder};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Batch, and input and cell size.
const SHAPES: [(usize, usize); 7] =
    [(1, 128), (20, 200), (32, 256), (64, 512), (20, 650), (20, 1500), (128, 1024)];

/// Numbers from 0 to 1, as gates have. For the other tensors any numbers take the same time.
fn random<D: Dimension>(random: &mut SmallRng, shape: impl ShapeBuilder<Dim = D>) -> Array<f32, D> {
    Array::from_shape_simple_fn(shape, || random.random())
}

/// Calls `bench` for every instruction set and shape, in a group set up for it.
fn for_all(
    criterion: &mut Criterion,
    name: &str,
    work: fn(usize, usize) -> Throughput,
    bench: fn(&mut criterion::Bencher<'_>, &Context<'_>, usize, usize),
) {
    for isa in Isa::available() {
        let mut group = criterion.benchmark_group(format!("{name}/{}", isa.name()));
        for (batch, size) in SHAPES {
            let context = Context::new(isa, &Serial);
            let id = BenchmarkId::from_parameter(format!("{batch}x{size}"));
            group.throughput(work(batch, size));
            group.bench_function(id, |bencher| bench(bencher, &context, batch, size));
        }
        group.finish();
    }
}

fn gru_block_cell_grad(criterion: &mut Criterion) {
    // Multiply-adds of the two products, so that "Gelem/s" is half the GFLOP/s.
    let work = |batch, size| Throughput::Elements((batch * 2 * size * 3 * size) as u64);
    for_all(criterion, "gru_block_cell_grad", work, |bencher, context, batch, size| {
        let numbers = &mut SmallRng::seed_from_u64(1);
        let row = (batch, size);
        let [x, h_prev, r, u, c, d_h] = [(); 6].map(|()| random(numbers, row));
        let w_ru = random(numbers, (2 * size, 2 * size));
        let w_c = random(numbers, (2 * size, size));
        let [b_ru, b_c] = [2 * size, size].map(Array1::zeros);
        let inputs = gru::BlockCellGradInputs {
            x: x.view(),
            h_prev: h_prev.view(),
            w_ru: w_ru.view(),
            w_c: w_c.view(),
            b_ru: b_ru.view(),
            b_c: b_c.view(),
            r: r.view(),
            u: u.view(),
            c: c.view(),
            d_h: d_h.view(),
        };
        let [mut d_x, mut d_h_prev, mut d_c_bar] = [row; 3].map(Array2::zeros);
        let mut d_r_bar_u_bar = Array2::zeros((batch, 2 * size));
        bencher.iter(|| {
            let outputs = gru::BlockCellGradOutputs {
                d_x: d_x.view_mut(),
                d_h_prev: d_h_prev.view_mut(),
                d_c_bar: d_c_bar.view_mut(),
                d_r_bar_u_bar: d_r_bar_u_bar.view_mut(),
            };
            gru::block_cell_grad(context, black_box(inputs), outputs).expect("right shapes");
        });
    });
}

fn lstm_block_cell_grad(criterion: &mut Criterion) {
    // Eight matrices are read; cs_prev_grad and the four parts of dicfo are written.
    let work = |batch, size| Throughput::Bytes((batch * size * 13 * size_of::<f32>()) as u64);
    for_all(criterion, "lstm_block_cell_grad", work, |bencher, context, batch, size| {
        lstm_bench(bencher, context, false, batch, size);
    });
    // With peepholes cs is read too.
    let work = |batch, size| Throughput::Bytes((batch * size * 14 * size_of::<f32>()) as u64);
    for_all(criterion, "lstm_block_cell_grad_peephole", work, |bencher, context, batch, size| {
        lstm_bench(bencher, context, true, batch, size);
    });
}

fn lstm_bench(
    bencher: &mut criterion::Bencher<'_>,
    context: &Context<'_>,
    use_peephole: bool,
    batch: usize,
    size: usize,
) {
    let numbers = &mut SmallRng::seed_from_u64(2);
    let row = (batch, size);
    let [x, cs_prev, h_prev, i, cs, f] = [(); 6].map(|()| random(numbers, row));
    let [o, ci, co, cs_grad, h_grad] = [(); 5].map(|()| random(numbers, row));
    let [wci, wcf, wco] = [(); 3].map(|()| random(numbers, size));
    let (w, b) = (Array2::zeros((2 * size, 4 * size)), Array1::zeros(4 * size));
    let inputs = lstm::BlockCellGradInputs {
        x: x.view(),
        cs_prev: cs_prev.view(),
        h_prev: h_prev.view(),
        w: w.view(),
        wci: wci.view(),
        wcf: wcf.view(),
        wco: wco.view(),
        b: b.view(),
        i: i.view(),
        cs: cs.view(),
        f: f.view(),
        o: o.view(),
        ci: ci.view(),
        co: co.view(),
        cs_grad: cs_grad.view(),
        h_grad: h_grad.view(),
    };
    let mut cs_prev_grad = Array2::zeros(row);
    let mut dicfo = Array2::zeros((batch, 4 * size));
    let [mut wci_grad, mut wcf_grad, mut wco_grad] = [size; 3].map(Array1::zeros);
    bencher.iter(|| {
        let outputs = lstm::BlockCellGradOutputs {
            cs_prev_grad: cs_prev_grad.view_mut(),
            dicfo: dicfo.view_mut(),
            wci_grad: wci_grad.view_mut(),
            wcf_grad: wcf_grad.view_mut(),
            wco_grad: wco_grad.view_mut(),
        };
        lstm::block_cell_grad(context, use_peephole, black_box(inputs), outputs)
            .expect("right shapes");
    });
}

criterion_group! {
    name = kernels;
    config = common::short(10);
    targets = gru_block_cell_grad, lstm_block_cell_grad
}
criterion_main!(kernels);
