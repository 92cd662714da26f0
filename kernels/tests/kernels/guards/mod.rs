//! Calls whose tensors, and all other memory, lie against a page that nobody may touch: on either side, on each
//! instruction set. A kernel that reads or writes one element too many ends the process. The last line on stderr
//! names the call then (`cargo test guards -- --nocapture`).

pub(crate) mod allocator;

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;

use blockcell_kernels::lstm::{Attributes, BlockCellInputs, BlockCellOutputs, block_cell};
use blockcell_kernels::{Context, Element, Isa, OutOfMemory, Serial};
use half::{bf16, f16};
use ndarray::{Array1, Array2, ArrayD};

use crate::common::Tensors;
use crate::common::data::Sizes;
use crate::common::kernels::kernels;
use crate::cudnn_rnn;
use crate::unfused_layers::call::{Call, Cell};
use crate::{products, unfused, unfused_gru};
use allocator::{Side, guarded, limited};

/// Few and many rows, whole vectors and parts of them, sums longer than a slice, cells of more than one tile, and
/// more weights than the caches of a core hold.
const SIZES: [Sizes; 13] = [
    Sizes::new(0, 2, 3, 4),
    Sizes::new(1, 1, 1, 1),
    Sizes::new(3, 1, 16, 17),
    Sizes::new(2, 1, 5, 64),
    Sizes::new(3, 2, 5, 9),
    Sizes::new(2, 3, 31, 15),
    Sizes::new(2, 5, 7, 33),
    Sizes::new(3, 7, 130, 31),
    Sizes::new(2, 13, 3, 48),
    Sizes::new(2, 15, 64, 16),
    Sizes::new(2, 29, 9, 70),
    Sizes::new(1, 65, 1, 130),
    Sizes::new(1, 2, 300, 530),
];

/// Does `work` on both sides of a page, each in a thread of its own: the kernels keep memory for each thread.
fn on_both_sides(case: &str, work: impl Fn() + Sync) {
    for side in Side::BOTH {
        eprintln!("{case}, page {side:?}");
        thread::scope(|scope| scope.spawn(|| guarded(side, &work)).join()).expect("the call ends");
    }
}

/// The same on each instruction set. `work` must return the same as it does outside.
fn same_on_both_sides<R: PartialEq + Debug + Sync>(
    case: &str,
    work: impl Fn(&Context<'_>) -> R + Sync,
) {
    for isa in Isa::available() {
        let work = || work(&Context::new(isa, &Serial));
        let want = work();
        on_both_sides(&format!("{case}, {}", isa.name()), || assert_eq!(work(), want, "{case}"));
    }
}

/// The page is there: the system cannot read a byte of it either.
#[test]
#[allow(unsafe_code)]
fn nothing_can_be_read_beside_what_is_guarded() {
    use std::os::fd::AsRawFd;

    let (_reader, writer) = std::io::pipe().expect("a pipe");
    // SAFETY: the system says so if the byte cannot be read.
    let reads = |byte: *const u8| unsafe { libc::write(writer.as_raw_fd(), byte.cast(), 1) } == 1;
    for len in [1, 3, 1024, 1025, 3000] {
        for side in Side::BOTH {
            let mut memory = guarded(side, || vec![1.0_f32; len]);
            let (first, last) =
                (memory.as_ptr().cast::<u8>(), memory.as_ptr_range().end.cast::<u8>());
            assert!(reads(first) && reads(last.wrapping_sub(1)), "{len}, {side:?}");
            let beside = [first.wrapping_sub(1), last];
            assert!(!reads(beside[usize::from(side == Side::After)]), "{len}, {side:?}");
            memory.push(2.0);
            assert!(!reads(first), "freed, {len}, {side:?}");
        }
    }
}

/// Bits, which are equal where numbers are not: in NaN.
fn bits(tensors: Tensors) -> Vec<Vec<u64>> {
    let bits = |tensor: ArrayD<f64>| tensor.iter().map(|value| value.to_bits()).collect();
    tensors.into_iter().map(bits).collect()
}

#[test]
fn cells_and_sequences() {
    for kernel in kernels() {
        for sizes in SIZES {
            let inputs = kernel.inputs(sizes, 1);
            same_on_both_sides(&format!("{}, {sizes:?}", kernel.name()), |context| {
                bits(kernel.outputs(context, sizes, &inputs))
            });
        }
    }
}

fn layers<E: Element>() {
    for cell in Cell::all() {
        for sizes in SIZES {
            let mut ending = Call::new::<E>(cell, sizes, 1);
            ending.end_rows(sizes.time as i32);
            for call in [Call::new::<E>(cell, sizes, 1), ending] {
                same_on_both_sides(&format!("layer of {cell:?}, {sizes:?}"), |context| {
                    call.run::<E>(context).map(bits)
                });
            }
        }
    }
}

#[test]
fn loops_of_cells() {
    layers::<f32>();
    layers::<f16>();
    layers::<bf16>();
}

fn networks<E: Element + bytemuck::Pod>(round: fn(f64) -> f64) {
    for mode in cudnn_rnn::MODES {
        for sizes in [[1, 1, 1, 1], [4, 3, 2, 5], [3, 2, 5, 5], [3, 20, 6, 33]] {
            for case in cudnn_rnn::values::networks(mode, sizes) {
                let given = case.tensors(1, round);
                same_on_both_sides(&format!("{case:?}"), |context| {
                    let (forward, backward) =
                        cudnn_rnn::both::<E>(context, &case, &given).expect("a right call");
                    bits([forward.output, backward.input].map(|tensor| tensor.into_dyn()).into())
                });
            }
        }
    }
}

#[test]
fn networks_of_cudnn() {
    networks::<f32>(cudnn_rnn::to_float);
    networks::<f16>(cudnn_rnn::to_half);
    on_both_sides("parameters of cuDNN", cudnn_rnn::canonical::there_and_back);
}

/// The tests of these, on both sides.
#[test]
fn products_and_plain_cells() {
    on_both_sides("sums of products", products::sums_of_products);
    on_both_sides("slices of products", products::slices_of_products);
    on_both_sides("sums of rows", products::sums_of_rows);
    on_both_sides("forward steps of plain LSTMs", unfused::a_state_broadcasts_or_is_left_out);
    on_both_sides("backward steps", unfused::gradients_are_lists_of_summands);
    on_both_sides("sums in backward steps", unfused::a_state_larger_than_the_gates_is_added_up);
    on_both_sides("backward steps of plain GRUs, c", unfused_gru::candidate_and_update_gate);
    on_both_sides("backward steps of plain GRUs, r", unfused_gru::reset_gate);
}

/// The memory of a tile, which no caller passes: a call without it panics with what it lacks, and the next one works.
#[test]
fn a_call_without_memory_for_its_tiles_can_be_caught() {
    let (batch, input_size, cell_size) = (64, 3, 200);
    let size = (batch, cell_size);
    let [x, w] = [(batch, input_size), (input_size + cell_size, 4 * cell_size)].map(Array2::zeros);
    let state = Array2::<f32>::zeros(size);
    let (peephole, b) = (Array1::zeros(cell_size), Array1::zeros(4 * cell_size));
    let attributes = Attributes { use_peephole: false, forget_bias: 1.0, cell_clip: 0.0 };
    let mut results = [(); 7].map(|()| Array2::zeros(size));
    let mut call = || {
        let [i, cs, f, o, ci, co, h] = results.each_mut().map(|result| result.view_mut());
        let (cs_prev, h_prev, wci) = (state.view(), state.view(), peephole.view());
        let (x, w, b) = (x.view(), w.view(), b.view());
        let inputs = BlockCellInputs { x, cs_prev, h_prev, w, wci, wcf: wci, wco: wci, b };
        let outputs = BlockCellOutputs { i, cs, f, o, ci, co, h };
        block_cell(&Context::default(), &attributes, inputs, outputs)
    };
    let caught = limited(50_000, || catch_unwind(AssertUnwindSafe(&mut call)));
    let lacking = caught.expect_err("there is no memory").downcast::<OutOfMemory>();
    assert!(lacking.expect("it says so").bytes > 50_000);
    assert_eq!(call(), Ok(()));
}
