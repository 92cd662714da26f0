//! The part that knows both TensorFlow's shim and the kernels.
//!
//! The shim in `cpp/` asks here which operations there are, what shapes a call's outputs have, and
//! then for the call itself. Tensors cross as shapes and bytes. Panics do not cross: every function
//! that the shim calls catches them ([`status`]).

mod cudnn;
mod kernels;
mod products;
mod status;
mod tensors;
mod threads;

use blockcell_kernels::{Context, Error, Isa};
use ffi::{Attributes, Input, OpInfo, Output, PartialShape, Pool, Shape, Status};
use kernels::{BlockKernel, Call, KERNELS, Kernel};
use products::{
    bias_add_grad_add_n, bias_add_grad_add_n_shape, mat_mul_add_n, mat_mul_add_n_shape,
    mat_mul_slice, mat_mul_slice_shapes,
};
use status::guarded;
pub(crate) use status::or_default;
use tensors::{Inputs, Outputs};
use threads::Task;

// cxx generates the `unsafe` of the calls. What the C++ side has to keep is written beside each.
#[allow(unreachable_pub, unsafe_code)]
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

    /// The attributes of a node. Those that an operation does not have are false, 0 or empty; `is_training` and
    /// `time_major` are true then.
    #[derive(Default)]
    struct Attributes {
        /// The element type is half, not float.
        half: bool,
        use_peephole: bool,
        reset_after: bool,
        forget_bias: f32,
        cell_clip: f32,
        rnn_mode: String,
        input_mode: String,
        direction: String,
        dropout: f32,
        seed: i64,
        seed2: i64,
        num_proj: i64,
        num_params: i64,
        num_params_weights: i64,
        num_params_biases: i64,
        is_training: bool,
        time_major: bool,
        /// The type S of sizes is int64, not int32.
        size_is_int64: bool,
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
    ///
    /// TensorFlow does not initialise the memory of outputs and scratch, and yet it is `&mut [u8]`
    /// and `&mut [f32]` here and in the kernels. This is sound for three reasons. Every bit pattern
    /// is a valid `u8` and `f32`. The memory comes from an allocator behind this interface, which
    /// the compiler cannot see into: to Rust its bytes have values, which are only not known. And
    /// no kernel lets such a value decide anything: some load one before they store a result there,
    /// but then they do not use it.
    struct Output<'a> {
        dims: &'a [usize],
        data: &'a mut [u8],
    }

    /// Which parts of a product `BlockcellMatMulSlice` computes.
    struct Slices<'a> {
        /// The number of rows, or -1 for all.
        rows: i64,
        /// The first column of each part.
        begins: &'a [i64],
        /// The number of columns of each part, or -1 for all that follow.
        sizes: &'a [i64],
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

        /// How an operation is computed.
        type Kernel;

        /// The kernel of an operation, which lives as long as the library; null if there is none.
        fn find_kernel(op: &str) -> *const Kernel;

        /// Which inputs of the operation the kernel works on in place.
        fn in_place(self: &Kernel) -> Vec<usize>;

        /// Checks what is known of the shapes of a call's inputs, and tells what follows for those
        /// of its outputs.
        fn infer(
            self: &Kernel,
            attributes: &Attributes,
            inputs: &[PartialShape],
            outputs: &mut [Shape],
        ) -> Status;

        /// Checks the shapes of a call's inputs and the values of those in int64. Tells the shapes
        /// of its outputs, and how many floats of scratch memory it needs.
        fn plan(
            self: &Kernel,
            attributes: &Attributes,
            inputs: &[Input],
            outputs: &mut [Shape],
            scratch: &mut usize,
        ) -> Status;

        /// Computes a call whose inputs [`plan`] has checked, and whose outputs and scratch memory
        /// are as it told. `number` counts the calls of a node. `in_place` has the inputs that are
        /// worked on in place, in the order of [`in_place`]; in `inputs` they are without data.
        #[allow(clippy::too_many_arguments)]
        fn compute(
            self: &Kernel,
            attributes: &Attributes,
            number: u64,
            pool: &Pool,
            inputs: &[Input],
            in_place: &mut [Output],
            outputs: &mut [Output],
            scratch: &mut [f32],
        ) -> Status;

        /// Checks what is known of the shapes of a call of `BlockcellMatMulAddN`, and tells that of
        /// its output.
        fn mat_mul_add_n_shape(
            addends: &[PartialShape],
            a: &[PartialShape],
            b: &[PartialShape],
            sum: &mut Shape,
        ) -> Status;

        /// Computes a call of `BlockcellMatMulAddN`, whose output has the shape that
        /// [`mat_mul_add_n_shape`] tells. With `holds_addend` it holds another summand.
        fn mat_mul_add_n(
            half: bool,
            pool: &Pool,
            addends: &[Input],
            a: &[Input],
            b: &[Input],
            holds_addend: bool,
            sum: &mut Output,
        ) -> Status;

        /// Checks what is known of the shapes of a call of `BlockcellMatMulSlice`, and tells those of
        /// its outputs.
        fn mat_mul_slice_shapes(
            a: &PartialShape,
            b: &PartialShape,
            slices: &Slices,
            parts: &mut [Shape],
        ) -> Status;

        /// Computes a call of `BlockcellMatMulSlice`, whose outputs have the shapes that
        /// [`mat_mul_slice_shapes`] tells.
        fn mat_mul_slice(
            half: bool,
            pool: &Pool,
            a: &Input,
            b: &Input,
            slices: &Slices,
            parts: &mut [Output],
        ) -> Status;

        /// Checks what is known of the shapes of a call of `BlockcellBiasAddGradAddN`, and tells that
        /// of its output.
        fn bias_add_grad_add_n_shape(
            addends: &[PartialShape],
            out_backprop: &[PartialShape],
            sum: &mut Shape,
        ) -> Status;

        /// Computes a call of `BlockcellBiasAddGradAddN`, whose output has the shape that
        /// [`bias_add_grad_add_n_shape`] tells.
        fn bias_add_grad_add_n(
            half: bool,
            pool: &Pool,
            addends: &[Input],
            out_backprop: &[Input],
            sum: &mut Output,
        ) -> Status;

        /// What the op `BlockcellInfo` returns. `tensorflow_running` may be empty: not known.
        fn info(tensorflow_running: &str, takeover: &str) -> String;

        /// A parallel section of a call, for [`Pool`] to run.
        type Task<'a>;

        /// Runs the tasks `begin` to `end - 1`. Never unwinds.
        unsafe fn run<'a>(self: &Task<'a>, begin: usize, end: usize);
    }

    // SAFETY: `parallel_for` calls `task` only before it returns, and with numbers below `tasks`. It
    // does so from several threads at once; `Task` is `Sync`, which `threads.rs` asserts.
    unsafe extern "C++" {
        include!("cpp/pool.h");

        /// TensorFlow's intra-op thread pool.
        type Pool;

        /// How many threads `parallel_for` uses at most.
        fn num_threads(self: &Pool) -> usize;

        /// Runs all `tasks`, each of about `cost` processor cycles, and returns when they are done.
        fn parallel_for(self: &Pool, tasks: usize, cost: u64, task: &Task);
    }
}

fn operations() -> Vec<OpInfo> {
    or_default("operations", || {
        #[cfg(feature = "failpoints")]
        {
            // Once: the scenario, which is never torn down, holds a lock.
            static SETUP: std::sync::Once = std::sync::Once::new();
            SETUP.call_once(|| std::mem::forget(fail::FailScenario::setup()));
        }
        let info = |kernel: &Kernel| OpInfo {
            name: kernel.name(),
            half: kernel.has_half(),
            is_stock: kernel.is_stock(),
        };
        KERNELS.iter().map(info).collect()
    })
}

fn find_kernel(op: &str) -> *const Kernel {
    let kernel = KERNELS.iter().find(|kernel| kernel.name() == op);
    kernel.map_or(std::ptr::null(), std::ptr::from_ref)
}

impl Kernel {
    fn in_place(&self) -> Vec<usize> {
        or_default(self.name(), || match self {
            Kernel::Block(kernel) => {
                let inputs = kernel.op.inputs.iter().enumerate();
                let in_place =
                    inputs.filter(|(_, tensor)| kernel.op.in_place.contains(&tensor.name));
                in_place.map(|(n, _)| n).collect()
            }
            Kernel::Cudnn(kernel) => kernel.in_place(),
        })
    }

    fn infer(
        &self,
        attributes: &Attributes,
        inputs: &[PartialShape<'_>],
        outputs: &mut [Shape],
    ) -> Status {
        guarded(self.name(), || {
            let Kernel::Block(BlockKernel { op, .. }) = self else {
                unreachable!("TensorFlow has a shape function for it");
            };
            let shapes: Vec<_> = inputs.iter().map(partial).collect();
            let inferred = op.infer(attributes.use_optional(), &shapes)?;
            for (shape, dims) in outputs.iter_mut().zip(inferred) {
                describe(shape, dims.into_iter());
            }
            Ok(())
        })
    }

    fn plan(
        &self,
        attributes: &Attributes,
        inputs: &[Input<'_>],
        outputs: &mut [Shape],
        scratch: &mut usize,
    ) -> Status {
        guarded(self.name(), || {
            let floats = match self {
                Kernel::Block(kernel) => kernel.plan(attributes, inputs, outputs)?,
                Kernel::Cudnn(kernel) => kernel.plan(attributes, inputs, outputs)?,
            };
            if floats > isize::MAX as usize / size_of::<f32>() {
                let (op, shape) = (self.name(), format!("[{floats}]"));
                return Err(Error::Overflow { op, tensor: "the scratch memory", shape });
            }
            *scratch = floats;
            Ok(())
        })
    }

    #[allow(clippy::too_many_arguments)]
    fn compute(
        &self,
        attributes: &Attributes,
        number: u64,
        pool: &Pool,
        inputs: &[Input<'_>],
        in_place: &mut [Output<'_>],
        outputs: &mut [Output<'_>],
        scratch: &mut [f32],
    ) -> Status {
        guarded(self.name(), || {
            let context = &Context { isa: Isa::get(), executor: pool };
            #[cfg(feature = "failpoints")]
            fail::fail_point!("compute");
            #[cfg(feature = "failpoints")]
            fail::fail_point!(&format!("wrong-{}", self.name()), |_| {
                outputs.iter_mut().for_each(|output| output.data.fill(0));
                Ok(())
            });
            match self {
                Kernel::Block(kernel) => {
                    let inputs = Inputs::new(kernel.op, inputs);
                    let in_place = Outputs::new(in_place, kernel.op.in_place.len());
                    let outputs = Outputs::new(outputs, kernel.op.outputs.len());
                    kernel.run(Call { context, attributes, inputs, in_place, outputs, scratch })
                }
                Kernel::Cudnn(kernel) => {
                    let node = attributes;
                    kernel.compute(cudnn::Call {
                        context,
                        node,
                        number,
                        inputs,
                        in_place,
                        outputs,
                        scratch,
                    })
                }
            }
        })
    }
}

fn partial(shape: &PartialShape<'_>) -> Option<Vec<Option<usize>>> {
    let dims = shape.dims.iter().map(|&dim| usize::try_from(dim).ok());
    shape.has_rank.then(|| dims.collect())
}

fn describe(shape: &mut Shape, dims: impl ExactSizeIterator<Item = Option<usize>>) {
    shape.rank = dims.len();
    assert!(shape.rank <= shape.dims.len(), "an output of rank {}", shape.rank);
    for (to, dim) in shape.dims.iter_mut().zip(dims) {
        *to = dim.and_then(|dim| i64::try_from(dim).ok()).unwrap_or(-1);
    }
}

fn info(tensorflow_running: &str, takeover: &str) -> String {
    or_default("BlockcellInfo", || {
        let rewrites = takeover != "off" && crate::graphs::wants_rewrites();
        let names = |wanted: fn(&Kernel) -> bool| -> Vec<_> {
            KERNELS.iter().filter(|kernel| wanted(kernel)).map(|kernel| kernel.name()).collect()
        };
        let taken_over =
            if takeover == "off" { Vec::new() } else { names(|kernel| kernel.is_stock()) };
        serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "tensorflow_built_for": env!("BLOCKCELL_TENSORFLOW"),
            "tensorflow_running": Some(tensorflow_running).filter(|version| !version.is_empty()),
            "isa": Isa::get().name(),
            "ops": names(|_| true),
            "override": takeover,
            "taken_over": taken_over,
            "rewrite": if rewrites { "on" } else { "off" },
            "rewritten": crate::graphs::rewritten(),
        })
        .to_string()
    })
}
