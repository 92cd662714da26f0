//! The part that knows both TensorFlow's shim and the kernels.
//!
//! The shim in `cpp/` asks here which operations there are, what shapes a call's outputs have, and
//! then for the call itself. Tensors cross as shapes and bytes; nothing unwinds across.

// cxx generates the `unsafe` of the calls; the C++ side keeps the promises written beside it.
#![allow(unsafe_code)]

mod cells;
mod ops;
mod sequences;
mod status;
mod tensors;
mod threads;

use blockcell_kernels::{Context, Isa};
use ffi::{Attributes, Input, OpInfo, Output, PartialShape, Pool, Shape, Status};
use ops::{Call, KERNELS, Kernel};
use status::guarded;
use threads::Task;

#[allow(unreachable_pub)]
#[cxx::bridge(namespace = "blockcell")]
mod ffi {
    /// An operation to register.
    struct OpInfo {
        /// Its name in TensorFlow.
        name: &'static str,
        /// Whether it has a kernel for half, beside the one for float.
        half: bool,
        /// Whether TensorFlow has the operation, and kernels for it.
        is_stock: bool,
    }

    /// The attributes of a node. Those an operation does not have are false or 0.
    #[derive(Default)]
    struct Attributes {
        /// The element type is half, not float.
        half: bool,
        use_peephole: bool,
        reset_after: bool,
        forget_bias: f32,
        cell_clip: f32,
    }

    /// The dimensions of an output: the first `rank` of `dims`. One that is not known is -1.
    #[derive(Clone, Copy, Default)]
    struct Shape {
        rank: usize,
        dims: [i64; 3],
    }

    /// What is known of an input's shape while a graph is built. A dimension not known is -1.
    struct PartialShape<'a> {
        has_rank: bool,
        dims: &'a [i64],
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

        /// Which inputs of an operation its kernel works on in place.
        fn in_place(op: &str) -> Vec<usize>;

        /// Checks what is known of the shapes of a call's inputs, and tells what follows for those
        /// of its outputs.
        fn infer(
            op: &str,
            attributes: &Attributes,
            inputs: &[PartialShape],
            outputs: &mut [Shape],
        ) -> Status;

        /// Checks the shapes of a call's inputs and the values of those in int64. Tells the shapes
        /// of its outputs, and how many floats of scratch memory it needs.
        fn plan(
            op: &str,
            attributes: &Attributes,
            inputs: &[Input],
            outputs: &mut [Shape],
            scratch: &mut usize,
        ) -> Status;

        /// Computes a call whose inputs [`plan`] has checked, and whose outputs and scratch memory
        /// are as it told. `in_place` has the inputs that are worked on in place, in the order of
        /// [`in_place`]; in `inputs` they are without data.
        fn compute(
            op: &str,
            attributes: &Attributes,
            pool: &Pool,
            inputs: &[Input],
            in_place: &mut [Output],
            outputs: &mut [Output],
            scratch: &mut [f32],
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
        fn num_threads(self: &Pool) -> usize;
        fn parallel_for(self: &Pool, tasks: usize, cost: u64, task: &Task);
    }
}

fn operations() -> Vec<OpInfo> {
    #[cfg(feature = "failpoints")]
    {
        // Once: the scenario, which is never torn down, holds a lock.
        static SETUP: std::sync::Once = std::sync::Once::new();
        SETUP.call_once(|| std::mem::forget(fail::FailScenario::setup()));
    }
    let info = |kernel: &Kernel| OpInfo {
        name: kernel.op.name,
        half: kernel.has_half(),
        is_stock: kernel.op.is_stock,
    };
    KERNELS.iter().map(info).collect()
}

fn in_place(op: &str) -> Vec<usize> {
    let op = Kernel::of(op).op;
    let inputs = op.inputs.iter().enumerate();
    inputs.filter(|(_, tensor)| op.in_place.contains(&tensor.name)).map(|(n, _)| n).collect()
}

fn infer(
    op: &str,
    attributes: &Attributes,
    inputs: &[PartialShape<'_>],
    outputs: &mut [Shape],
) -> Status {
    guarded(op, || {
        let shapes: Vec<_> = inputs.iter().map(partial).collect();
        let inferred = Kernel::of(op).op.infer(attributes.use_optional(), &shapes)?;
        for (shape, dims) in outputs.iter_mut().zip(inferred) {
            describe(shape, dims.into_iter());
        }
        Ok(())
    })
}

fn partial(shape: &PartialShape<'_>) -> Option<Vec<Option<usize>>> {
    let dims = shape.dims.iter().map(|&dim| usize::try_from(dim).ok());
    shape.has_rank.then(|| dims.collect())
}

fn describe(shape: &mut Shape, dims: impl ExactSizeIterator<Item = Option<usize>>) {
    shape.rank = dims.len();
    for (to, dim) in shape.dims.iter_mut().zip(dims) {
        *to = dim.and_then(|dim| i64::try_from(dim).ok()).unwrap_or(-1);
    }
}

fn plan(
    op: &str,
    attributes: &Attributes,
    inputs: &[Input<'_>],
    outputs: &mut [Shape],
    scratch: &mut usize,
) -> Status {
    guarded(op, || {
        let kernel = Kernel::of(op);
        let op = kernel.op;
        let shapes: Vec<_> = inputs.iter().map(|input| input.dims).collect();
        let sizes = op.check(attributes.use_optional(), &shapes)?;
        for (input, _) in inputs.iter().zip(op.inputs).filter(|(_, tensor)| tensor.is_steps) {
            op.check_steps(&sizes, tensors::steps(input).into_iter().map(i128::from))?;
        }
        for (shape, tensor) in outputs.iter_mut().zip(op.outputs) {
            describe(shape, tensor.dims.iter().map(|&dim| Some(sizes.of(dim))));
        }
        *scratch = kernel.scratch(&sizes, attributes)?;
        Ok(())
    })
}

fn compute(
    op: &str,
    attributes: &Attributes,
    pool: &Pool,
    inputs: &[Input<'_>],
    in_place: &mut [Output<'_>],
    outputs: &mut [Output<'_>],
    scratch: &mut [f32],
) -> Status {
    guarded(op, || {
        let context = &Context { isa: Isa::get(), executor: pool };
        #[cfg(feature = "failpoints")]
        fail::fail_point!("compute");
        #[cfg(feature = "failpoints")]
        fail::fail_point!(&format!("wrong-{op}"), |_| {
            outputs.iter_mut().for_each(|output| output.data.fill(0));
            Ok(())
        });
        let call = Call { context, attributes, inputs, in_place, outputs, scratch };
        Kernel::of(op).compute(call)
    })
}

fn info(tensorflow_running: &str, takeover: &str) -> String {
    let names = |wanted: fn(&Kernel) -> bool| -> Vec<_> {
        KERNELS.iter().filter(|kernel| wanted(kernel)).map(|kernel| kernel.op.name).collect()
    };
    let taken_over =
        if takeover == "off" { Vec::new() } else { names(|kernel| kernel.op.is_stock) };
    serde_json::json!({
        "version": env!("CARGO_PKG_VERSION"),
        "tensorflow_built_for": env!("BLOCKCELL_TENSORFLOW"),
        "tensorflow_running": Some(tensorflow_running).filter(|version| !version.is_empty()),
        "isa": Isa::get().name(),
        "ops": names(|_| true),
        "override": takeover,
        "taken_over": taken_over,
    })
    .to_string()
}
