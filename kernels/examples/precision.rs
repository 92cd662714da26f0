//! How many times as fast sequences are at *medium* as at *highest*, on one thread, the levels in turns call by call. With
//! `--constants` weights are constants, and the third side has them in int8. With `--fastest` the fastest calls are compared,
//! for machines that do other work, in place of the fastest quarters.
//!
//! `cargo run --release --example precision -- 50x8x256 20x20x200` takes these shapes: time, batch, and cell size, which
//! is the input size, too.

use std::time::Instant;

use blockcell_kernels::ops::{Keeps, Sizes};
use blockcell_kernels::{
    Constant, Constants, Context, Copies, Isa, Precision, Serial, Weights, block_gru, block_lstm,
    lstm,
};
use ndarray::{Array1, Array2, Array3, s};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// What is compared with the first one.
const SIDES: [(Precision, Weights); 3] = [
    (Precision::Highest, Weights::Float32),
    (Precision::Medium, Weights::Float32),
    (Precision::Highest, Weights::Int8),
];

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
    /// Of the weights, for each side, if they are constants.
    copies: Option<[[Copies; 3]; SIDES.len()]>,
}

impl Sequence {
    fn new([time, batch, cells]: [usize; 3], constants: bool) -> Self {
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
            copies: constants.then(Default::default),
        }
    }

    fn call(&mut self, layer: Layer, side: usize) {
        let (precision, weights) = SIDES[side];
        let Sequence { sizes, x, state, w, w_ru, w_c, b, kept, h, h_last, scratch, copies } = self;
        let matrices =
            [&*w, &*w_ru, &*w_c].map(|w| bytemuck::cast_slice(w.as_slice().expect("no gaps")));
        let constants = copies.iter().flat_map(|copies| matrices.iter().zip(&copies[side]));
        let constants: Vec<_> =
            constants.map(|(&bytes, copies)| Constant { bytes, copies }).collect();
        let constants = Constants(&constants);
        let context =
            &Context { precision, weights, constants, ..Context::new(Isa::get(), &Serial) };
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
                let attributes =
                    block_gru::Attributes { reset_after, ..block_gru::Attributes::default() };
                block_gru::forward(context, attributes, inputs, outputs, Keeps::All, scratch)
            }
        }
        .expect("a call of the right shapes");
    }
}

/// Times in milliseconds, the least first, of each side, and the largest difference of its h from the first's.
fn measure(layer: Layer, shape: [usize; 3], constants: bool) -> Vec<(Vec<f64>, f32)> {
    let mut sequence = Sequence::new(shape, constants);
    let sides = 0..if constants { SIDES.len() } else { 2 };
    let states = sides.clone().map(|side| {
        sequence.call(layer, side);
        sequence.h.clone()
    });
    let states: Vec<_> = states.collect();
    let scale = states[0].iter().fold(0.0f32, |most, h| most.max(h.abs()));
    let mut found: Vec<_> = states
        .iter()
        .map(|h| {
            let differences = states[0].iter().zip(h).map(|(a, b)| (a - b).abs());
            (Vec::new(), differences.fold(0.0, f32::max) / scale)
        })
        .collect();
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < SECONDS || found[0].0.len() < 8 {
        for (side, (times, _)) in sides.clone().zip(&mut found) {
            let start = Instant::now();
            sequence.call(layer, side);
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    found.iter_mut().for_each(|(times, _)| times.sort_by(f64::total_cmp));
    found
}

fn main() {
    let usual = ["50x1x512", "50x4x256", "50x8x256", "20x20x200", "50x32x256", "35x20x650"];
    let (options, given): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|given| given.starts_with("--"));
    let has = |option: &str| options.iter().any(|given| given == option);
    let names = if given.is_empty() { usual.map(String::from).to_vec() } else { given };
    let (part, what) = if has("--fastest") { (0, "calls") } else { (1, "quarters") };
    println!("instruction set {}; ratios of the fastest {what}", Isa::get().name());
    for name in names {
        let sizes: Vec<usize> = name.split('x').filter_map(|size| size.parse().ok()).collect();
        let Ok(shape) = sizes.try_into() else {
            eprintln!("{name} is no shape such as 50x8x256");
            continue;
        };
        let gru = [false, true].map(|reset_after| Layer::Gru { reset_after });
        for layer in [Layer::Lstm, gru[0], gru[1]] {
            let found = measure(layer, shape, has("--constants"));
            let quarters: Vec<_> =
                found.iter().map(|(times, _)| times[part * times.len() / 4]).collect();
            print!("{name} {layer:?}: {:.3} ms", quarters[0]);
            let others = quarters.iter().zip(&found).zip(SIDES).skip(1);
            for ((quarter, (_, difference)), (precision, weights)) in others {
                let side = if weights == Weights::Int8 { weights.name() } else { precision.name() };
                let ratio = quarters[0] / quarter;
                print!(", {side} {quarter:.3} ms: {ratio:.2}, differs by {difference:.1e}");
            }
            println!();
        }
    }
}
