//! How many times as fast sequences are at *medium* as at *highest*, on one thread, the levels in turns call by call.
//!
//! `cargo run --release --example precision -- 50x8x256 20x20x200` takes these shapes: time, batch, and cell size, which
//! is the input size, too.

use std::time::Instant;

use blockcell_kernels::ops::{Keeps, Sizes};
use blockcell_kernels::{Context, Isa, Precision, Serial, block_gru, block_lstm, lstm};
use ndarray::{Array1, Array2, Array3, s};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const LEVELS: [Precision; 2] = [Precision::Highest, Precision::Medium];

/// How long a row of the table takes, at least, in seconds.
const SECONDS: f64 = 1.5;

#[derive(Clone, Copy, Debug)]
enum Layer {
    Lstm,
    Gru { reset_after: bool },
}

/// Tensors of a layer.
struct Sequence {
    sizes: Sizes,
    x: Array3<f32>,
    state: Array2<f32>,
    /// `[input_size + cell_size, 4 * cell_size]`
    w: Array2<f32>,
    /// The same for the gates and the candidate of a GRU.
    w_ru: Array2<f32>,
    w_c: Array2<f32>,
    b: Array1<f32>,
    kept: [Array3<f32>; 6],
    h: Array3<f32>,
    h_last: Array2<f32>,
    scratch: Vec<f32>,
}

impl Sequence {
    fn new([time, batch, cells]: [usize; 3]) -> Self {
        let mut rng = SmallRng::seed_from_u64(1);
        let limit = (3.0 / cells as f32).sqrt();
        let sizes =
            Sizes { time, batch, input_size: cells, cell_size: cells, optional: [0, 0, cells] };
        let scratch = block_lstm::forward_scratch(&sizes).max(block_gru::forward_scratch(&sizes));
        let states = Array3::zeros((time, batch, cells));
        let w = Array2::from_shape_simple_fn((2 * cells, 4 * cells), || {
            rng.random_range(-limit..limit)
        });
        Sequence {
            sizes,
            x: Array3::from_shape_simple_fn(states.dim(), || rng.random_range(-1.0..1.0)),
            state: Array2::zeros((batch, cells)),
            w_ru: w.slice(s![.., ..2 * cells]).to_owned(),
            w_c: w.slice(s![.., ..cells]).to_owned(),
            w,
            b: Array1::zeros(4 * cells),
            kept: [(); 6].map(|()| states.clone()),
            h: states,
            h_last: Array2::zeros((batch, cells)),
            scratch: vec![0.0; scratch],
        }
    }

    fn call(&mut self, layer: Layer, precision: Precision) {
        let context = &Context { precision, ..Context::new(Isa::get(), &Serial) };
        let Sequence { sizes, x, state, w, w_ru, w_c, b, kept, h, h_last, scratch } = self;
        let (cells, none) = (sizes.cell_size, Array1::zeros(sizes.cell_size));
        let [a0, a1, a2, a3, a4, a5] = kept.each_mut().map(|tensor| tensor.view_mut());
        match layer {
            Layer::Lstm => {
                let inputs = block_lstm::Inputs {
                    seq_len_max: sizes.time,
                    x: x.view(),
                    cs_prev: state.view(),
                    h_prev: state.view(),
                    w: w.view(),
                    wci: none.view(),
                    wcf: none.view(),
                    wco: none.view(),
                    b: b.view(),
                };
                let outputs = block_lstm::Outputs {
                    i: a0,
                    cs: a1,
                    f: a2,
                    o: a3,
                    ci: a4,
                    co: a5,
                    h: h.view_mut(),
                };
                let attributes =
                    lstm::Attributes { use_peephole: false, forget_bias: 0.0, cell_clip: 0.0 };
                let variant = block_lstm::Variant::BlockLstmV2;
                let all = Keeps::All;
                block_lstm::forward(context, variant, &attributes, inputs, outputs, all, scratch)
            }
            Layer::Gru { reset_after } => {
                let lengths = Array1::from_elem(sizes.batch, sizes.time as i64);
                let inputs = block_gru::Inputs {
                    sequence_length: lengths.view(),
                    x: x.view(),
                    h_prev: state.view(),
                    w_ru: w_ru.view(),
                    w_c: w_c.view(),
                    b_ru: b.slice(s![..2 * cells]),
                    b_c: none.view(),
                    b_hc: none.view(),
                };
                let outputs = block_gru::Outputs {
                    r: a0,
                    u: a1,
                    c: a2,
                    hc: a3,
                    h: h.view_mut(),
                    h_last: h_last.view_mut(),
                };
                block_gru::forward(context, reset_after, inputs, outputs, Keeps::All, scratch)
            }
        }
        .expect("a call of the right shapes");
    }
}

/// Times in milliseconds, the least first, at each level, and the largest difference of h.
fn measure(layer: Layer, shape: [usize; 3]) -> ([Vec<f64>; 2], f32) {
    let mut sequence = Sequence::new(shape);
    let [highest, medium] = LEVELS.map(|level| {
        sequence.call(layer, level);
        sequence.h.clone()
    });
    let scale = highest.iter().fold(0.0f32, |most, h| most.max(h.abs()));
    let differences = highest.iter().zip(&medium).map(|(a, b)| (a - b).abs());
    let difference = differences.fold(0.0, f32::max) / scale;
    let (mut times, start) = ([Vec::new(), Vec::new()], Instant::now());
    while start.elapsed().as_secs_f64() < SECONDS || times[0].len() < 8 {
        for (level, times) in LEVELS.into_iter().zip(&mut times) {
            let start = Instant::now();
            sequence.call(layer, level);
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    (times, difference)
}

fn main() {
    let usual = ["50x1x512", "50x4x256", "50x8x256", "20x20x200", "50x32x256", "35x20x650"];
    let given: Vec<String> = std::env::args().skip(1).collect();
    let names = if given.is_empty() { usual.map(String::from).to_vec() } else { given };
    println!("instruction set {}; ratios of the fastest quarters", Isa::get().name());
    for name in names {
        let sizes: Vec<usize> = name.split('x').filter_map(|size| size.parse().ok()).collect();
        let Ok(shape) = sizes.try_into() else {
            eprintln!("{name} is no shape such as 50x8x256");
            continue;
        };
        let gru = [false, true].map(|reset_after| Layer::Gru { reset_after });
        for layer in [Layer::Lstm, gru[0], gru[1]] {
            let ([highest, medium], difference) = measure(layer, shape);
            let quarter = highest.len() / 4;
            println!(
                "{name} {layer:?}: {:.3} ms, {:.3} ms: {:.2}; differ by {difference:.1e}",
                highest[quarter],
                medium[quarter],
                highest[quarter] / medium[quarter],
            );
        }
    }
}
