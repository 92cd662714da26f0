//! The one file that knows both TensorFlow's shim and the kernels.
//!
//! The shim in `cpp/` asks here which operations there are, what shapes a call's outputs have, and
//! then for the call itself. Tensors cross as shapes and bytes; nothing unwinds across.

// cxx generates the `unsafe` of the calls; the C++ side keeps the promises written beside it.
#![allow(unsafe_code)]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Mutex;

use bytemuck::Pod;
use half::f16;
use ndarray::{ArrayView1, ArrayView2, ArrayViewMut1, ArrayViewMut2};

use crate::ops::{self, DataType, Op};
use crate::{Context, Element, Error, Executor, Isa, gru, lstm};

#[allow(unreachable_pub)]
#[cxx::bridge(namespace = "blockcell")]
mod ffi {
    /// An operation to register.
    struct OpInfo {
        /// Its name in TensorFlow.
        name: &'static str,
        /// Whether it has a kernel for half, beside the one for float.
        half: bool,
    }

    /// The attributes of a node. Those an operation does not have are ignored.
    struct Attributes {
        /// The element type is half, not float.
        half: bool,
        use_peephole: bool,
    }

    /// The dimensions of an output that is to be allocated: the first `rank` of `dims`.
    #[derive(Clone, Copy, Default)]
    struct Shape {
        rank: usize,
        dims: [usize; 3],
    }

    /// A tensor to read.
    struct Input<'a> {
        dims: &'a [usize],
        data: &'a [u8],
    }

    /// A tensor to write. It shares no memory with any other of the call.
    struct Output<'a> {
        dims: &'a [usize],
        data: &'a mut [u8],
    }

    enum Code {
        Ok,
        InvalidArgument,
        Internal,
    }

    /// How a call ended.
    struct Status {
        code: Code,
        message: String,
    }

    extern "Rust" {
        /// Every operation that has kernels.
        fn operations() -> Vec<OpInfo>;

        /// Checks the shapes of a call's inputs and tells those of its outputs.
        fn plan(
            op: &str,
            attributes: &Attributes,
            inputs: &[Input],
            outputs: &mut [Shape],
        ) -> Status;

        /// Computes a call whose inputs [`plan`] has checked and whose outputs have its shapes.
        fn compute(
            op: &str,
            attributes: &Attributes,
            pool: &Pool,
            inputs: &[Input],
            outputs: &mut [Output],
        ) -> Status;

        /// What the op `BlockcellInfo` returns. `tensorflow_running` may be empty: not known.
        fn info(tensorflow_running: &str, takeover: &str) -> String;

        /// A parallel section of a call, for [`Pool`] to run.
        type Task<'a>;

        /// Runs the tasks `begin` to `end - 1`. Never unwinds.
        unsafe fn run<'a>(self: &Task<'a>, begin: usize, end: usize);
    }

    // SAFETY: `parallel_for` calls `task` only before it returns, and with numbers below `tasks`.
    unsafe extern "C++" {
        include!("cpp/pool.h");

        /// TensorFlow's intra-op thread pool.
        type Pool;

        /// Runs all `tasks`, each of about `cost` processor cycles, and returns when they are done.
        fn parallel_for(self: &Pool, tasks: usize, cost: u64, task: &Task);
    }
}

use ffi::{Attributes, Code, Input, OpInfo, Output, Pool, Shape, Status};

fn operations() -> Vec<OpInfo> {
    #[cfg(feature = "failpoints")]
    {
        // Once: the scenario, which is never torn down, holds a lock.
        static SETUP: std::sync::Once = std::sync::Once::new();
        SETUP.call_once(|| std::mem::forget(fail::FailScenario::setup()));
    }
    let half = |op: &Op| op.types.contains(&DataType::Half);
    ops::ALL.iter().map(|op| OpInfo { name: op.name, half: half(op) }).collect()
}

fn plan(op: &str, attributes: &Attributes, inputs: &[Input<'_>], outputs: &mut [Shape]) -> Status {
    status(
        op,
        guarded(|| {
            let op = by_name(op);
            let shapes: Vec<_> = inputs.iter().map(|input| input.dims).collect();
            let sizes = op.check(attributes.use_peephole, &shapes)?;
            for (shape, tensor) in outputs.iter_mut().zip(op.outputs) {
                shape.rank = tensor.dims.len();
                for (to, &dim) in shape.dims.iter_mut().zip(tensor.dims) {
                    *to = sizes.of(dim);
                }
            }
            Ok(())
        }),
    )
}

fn compute(
    op: &str,
    attributes: &Attributes,
    pool: &Pool,
    inputs: &[Input<'_>],
    outputs: &mut [Output<'_>],
) -> Status {
    status(
        op,
        guarded(|| {
            let op = by_name(op);
            let context = &Context { isa: Isa::get(), executor: pool };
            #[cfg(feature = "failpoints")]
            fail::fail_point!("compute");
            if std::ptr::eq(op, &ops::GRU_BLOCK_CELL_GRAD) {
                gru_block_cell_grad(context, inputs, outputs)
            } else if std::ptr::eq(op, &ops::LSTM_BLOCK_CELL_GRAD) {
                if attributes.half {
                    lstm_block_cell_grad::<f16>(context, attributes, inputs, outputs)
                } else {
                    lstm_block_cell_grad::<f32>(context, attributes, inputs, outputs)
                }
            } else {
                unreachable!("{} has no kernel", op.name)
            }
        }),
    )
}

fn by_name(name: &str) -> &'static Op {
    Op::by_name(name).unwrap_or_else(|| panic!("{name} is not registered"))
}

fn gru_block_cell_grad(
    context: &Context<'_>,
    inputs: &[Input<'_>],
    outputs: &mut [Output<'_>],
) -> Result<(), Error> {
    let [x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, d_h] = exactly(inputs);
    let [d_x, d_h_prev, d_c_bar, d_r_bar_u_bar] = exactly_mut(outputs);
    gru::block_cell_grad(
        context,
        gru::BlockCellGradInputs {
            x: matrix(x),
            h_prev: matrix(h_prev),
            w_ru: matrix(w_ru),
            w_c: matrix(w_c),
            b_ru: vector(b_ru),
            b_c: vector(b_c),
            r: matrix(r),
            u: matrix(u),
            c: matrix(c),
            d_h: matrix(d_h),
        },
        gru::BlockCellGradOutputs {
            d_x: matrix_mut(d_x),
            d_h_prev: matrix_mut(d_h_prev),
            d_c_bar: matrix_mut(d_c_bar),
            d_r_bar_u_bar: matrix_mut(d_r_bar_u_bar),
        },
    )
}

fn lstm_block_cell_grad<E: Element + Pod>(
    context: &Context<'_>,
    attributes: &Attributes,
    inputs: &[Input<'_>],
    outputs: &mut [Output<'_>],
) -> Result<(), Error> {
    let [x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, cs_grad, h_grad] =
        exactly(inputs);
    let [cs_prev_grad, dicfo, wci_grad, wcf_grad, wco_grad] = exactly_mut(outputs);
    lstm::block_cell_grad::<E>(
        context,
        attributes.use_peephole,
        lstm::BlockCellGradInputs {
            x: matrix(x),
            cs_prev: matrix(cs_prev),
            h_prev: matrix(h_prev),
            w: matrix(w),
            wci: vector(wci),
            wcf: vector(wcf),
            wco: vector(wco),
            b: vector(b),
            i: matrix(i),
            cs: matrix(cs),
            f: matrix(f),
            o: matrix(o),
            ci: matrix(ci),
            co: matrix(co),
            cs_grad: matrix(cs_grad),
            h_grad: matrix(h_grad),
        },
        lstm::BlockCellGradOutputs {
            cs_prev_grad: matrix_mut(cs_prev_grad),
            dicfo: matrix_mut(dicfo),
            wci_grad: vector_mut(wci_grad),
            wcf_grad: vector_mut(wcf_grad),
            wco_grad: vector_mut(wco_grad),
        },
    )
}

fn info(tensorflow_running: &str, takeover: &str) -> String {
    let ops: Vec<_> = ops::ALL.iter().map(|op| op.name).collect();
    let taken_over = if takeover == "off" { &[][..] } else { &ops };
    serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "tensorflow_built_for": env!("BLOCKCELL_TENSORFLOW"),
        "tensorflow_running": Some(tensorflow_running).filter(|version| !version.is_empty()),
        "isa": Isa::get().name(),
        "ops": ops,
        "override": takeover,
        "taken_over": taken_over,
    })
    .to_string()
}

// Tensors. The shapes were checked by `plan`, so a failure here is a defect of this library: it
// panics, and the call ends with an Internal error.

fn exactly<'s, 'a, const N: usize>(inputs: &'s [Input<'a>]) -> &'s [Input<'a>; N] {
    inputs.try_into().expect("as many inputs as the operation has")
}

fn exactly_mut<'s, 'a, const N: usize>(outputs: &'s mut [Output<'a>]) -> &'s mut [Output<'a>; N] {
    outputs.try_into().expect("as many outputs as the operation has")
}

/// The elements behind `bytes`. An empty tensor may have an address that is not aligned.
fn elements<E: Pod>(bytes: &[u8]) -> &[E] {
    if bytes.is_empty() { &[] } else { bytemuck::cast_slice(bytes) }
}

fn elements_mut<E: Pod>(bytes: &mut [u8]) -> &mut [E] {
    if bytes.is_empty() { &mut [] } else { bytemuck::cast_slice_mut(bytes) }
}

fn matrix<'a, E: Pod>(input: &Input<'a>) -> ArrayView2<'a, E> {
    let shape: [usize; 2] = input.dims.try_into().expect("a matrix");
    ArrayView2::from_shape(shape, elements(input.data)).expect("as large as its shape")
}

fn vector<'a, E: Pod>(input: &Input<'a>) -> ArrayView1<'a, E> {
    ArrayView1::from(elements(input.data))
}

fn matrix_mut<'a, E: Pod>(output: &'a mut Output<'_>) -> ArrayViewMut2<'a, E> {
    let shape: [usize; 2] = output.dims.try_into().expect("a matrix");
    ArrayViewMut2::from_shape(shape, elements_mut(output.data)).expect("as large as its shape")
}

fn vector_mut<'a, E: Pod>(output: &'a mut Output<'_>) -> ArrayViewMut1<'a, E> {
    ArrayViewMut1::from(elements_mut(output.data))
}

// Threads.

/// A parallel section: the work, and the first panic in it.
struct Task<'a> {
    work: &'a (dyn Fn(usize) + Sync),
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Task<'_> {
    fn run(&self, begin: usize, end: usize) {
        let work = || {
            #[cfg(feature = "failpoints")]
            fail::fail_point!("task");
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
}

// Errors.

/// How a call that was not refused failed all the same: the message of a panic.
type Outcome = Result<Result<(), Error>, String>;

/// Runs `call` and catches what must not unwind into C++.
fn guarded(call: impl FnOnce() -> Result<(), Error>) -> Outcome {
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let message = panic.downcast_ref::<String>().map(String::as_str);
        message.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
    })
}

fn status(op: &str, outcome: Outcome) -> Status {
    match outcome {
        Ok(Ok(())) => Status { code: Code::Ok, message: String::new() },
        Ok(Err(error)) => Status { code: Code::InvalidArgument, message: error.to_string() },
        Err(panic) => {
            Status { code: Code::Internal, message: format!("{op}: blockcell panicked: {panic}") }
        }
    }
}
