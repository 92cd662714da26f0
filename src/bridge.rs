//! The part that knows both TensorFlow's shim and the kernels.
//!
//! The shim in `cpp/` asks here which operations there are, what shapes a call's outputs have, and
//! then for the call itself. Tensors cross as shapes and bytes. Panics do not cross: every function
//! that the shim calls catches them ([`status`]).

mod attributes;
mod block;
mod constants;
mod cudnn;
mod info;
mod int8_errors;
mod kernels;
mod lists;
mod loops;
mod normalized;
mod own_ops;
mod runs;
mod status;
mod tensors;
mod threads;
mod unfused;
mod variables;

use constants::{keeps_weights, note_constants, own_name, packs_weights, wants_constants};
pub(crate) use cudnn::is_on as has_cudnn;
use info::info;
use kernels::{Kernel, make_kernel, operations};
use own_ops::{infer, own_ops};
pub(crate) use status::or_default;
use threads::Task;

use crate::switches::{self, moves_threads, overrides};

// cxx generates the `unsafe` of the calls. We rely on the C++ side for what no type says: slices and references are
// valid until a call returns, and nobody writes there meanwhile but through a `&mut`. What else it has to keep is
// written beside each type and function.
#[allow(unreachable_pub, unsafe_code)]
#[cxx::bridge(namespace = "blockcell")]
mod ffi {
    /// An operation to register.
    struct OpInfo {
        /// Its name in TensorFlow.
        name: &'static str,
        /// The element types T that it has kernels for, as numbers of TensorFlow's `DataType`.
        types: Vec<i32>,
        /// Whether TensorFlow has the operation, and kernels for it.
        is_stock: bool,
    }

    /// An operation that this library defines, as TensorFlow's `OpDefBuilder` takes it.
    struct OpDefinition {
        name: &'static str,
        /// `name: type`, where the type may be that of an attribute, or a list such as `N * T`.
        inputs: Vec<String>,
        outputs: Vec<String>,
        /// `name: type`, or `name: type = default`.
        attributes: Vec<String>,
        doc: String,
        is_stateful: bool,
    }

    /// The types of attributes.
    enum AttributeKind {
        Bool,
        Int,
        Float,
        String,
        /// A `tf.DType`, as its number.
        Type,
        /// A list of integers.
        Ints,
    }

    /// An attribute of a node. The fields that are not of its kind are false, 0 or empty.
    #[derive(Default)]
    struct AttributeValue {
        /// Whether the node has it.
        found: bool,
        flag: bool,
        number: i64,
        real: f32,
        text: String,
        numbers: Vec<i64>,
    }

    /// The dimensions of an output: the first `rank` of `dims`. One that is not known is
    /// `usize::MAX`, which is TensorFlow's -1. Only what broadcasts has more than three.
    #[derive(Clone, Copy, Default)]
    struct Shape {
        rank: usize,
        dims: [usize; 8],
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
    /// and `&mut [f32]` here and in the kernels. Rust does not promise that this is sound. We rely
    /// on the compiler not to see that the memory is uninitialised: it comes from an allocator
    /// behind this interface. Every bit pattern is a valid `u8` and `f32`, but a value need not even
    /// stay the same, because pages that were freed lazily may change until they are written. So no
    /// kernel may let such a value decide anything, which is what carries: some load one before they
    /// store a result there, but then they do not use it.
    struct Output<'a> {
        dims: &'a [usize],
        data: &'a mut [u8],
    }

    /// What a call needs beside the memory of its inputs and outputs.
    struct Plan {
        /// How many floats of scratch memory.
        scratch: usize,
        /// The input whose memory may become that of the first output, if it has the same shape and
        /// nobody else needs it; -1 for none.
        forward_input: i32,
    }

    enum Code {
        Ok,
        InvalidArgument,
        Unimplemented,
        ResourceExhausted,
        Internal,
    }

    /// How a call ended.
    #[derive(Clone)]
    struct Status {
        code: Code,
        message: String,
    }

    /// An attribute of a node, which is a list of numbers.
    struct ConstantsNote {
        attribute: String,
        numbers: Vec<i64>,
    }

    extern "Rust" {
        /// Whether nodes are told which of their inputs are constants, as far as the environment says.
        fn wants_constants() -> bool;

        /// Whether kernels of this operation pack weights, which constants spare them.
        fn packs_weights(op: &str) -> bool;

        /// Whether the kernel of a node of such an operation is to keep packed weights.
        fn keeps_weights(op: &str, attributes: &NodeAttributes) -> bool;

        /// A name for a node by which no other graph of a session finds its kernel; `number` is of this node alone.
        fn own_name(node: &str, number: i64) -> String;

        /// What tells a kernel in this process that these of its inputs are these constants, by a number of each. The
        /// number 0 is that of every variable which the graph only reads.
        fn note_constants(inputs: &[i64], constants: &[i64]) -> ConstantsNote;

        /// Every operation that has kernels.
        fn operations() -> Vec<OpInfo>;

        /// Every operation that this library defines.
        fn own_ops() -> Vec<OpDefinition>;

        /// Checks what is known of the shapes of the inputs of one of these, and tells what follows
        /// for those of its outputs.
        fn infer(
            op: &str,
            attributes: &NodeAttributes,
            inputs: &[PartialShape],
            outputs: &mut [Shape],
        ) -> Status;

        /// How the calls of a node are computed.
        type Kernel;

        /// The kernel of a node with this name. Its [`status`] tells whether there is one.
        fn make_kernel(op: &str, name: &str, attributes: &NodeAttributes) -> Box<Kernel>;

        /// Whether there is a kernel for the node's operation and attributes.
        fn status(self: &Kernel) -> Status;

        /// Which inputs the kernel works on in place.
        fn in_place(self: &Kernel) -> Vec<usize>;

        /// Checks the shapes of a call's inputs and the values of those in int64. Tells the shapes
        /// of its outputs, and what else it needs. Outputs that nobody reads may be smaller than others.
        fn plan(
            self: &Kernel,
            inputs: &[Input],
            is_read: &[bool],
            outputs: &mut [Shape],
            plan: &mut Plan,
        ) -> Status;

        /// Computes a call whose inputs [`plan`] has checked, and whose outputs and scratch memory
        /// are as it told. `in_place` has the inputs that are worked on in place, in the order of
        /// [`in_place`]; in `inputs` they are without data. So is `forward_input` of the plan with
        /// `forwarded`: the first output holds its elements.
        #[allow(clippy::too_many_arguments)]
        fn compute(
            self: &Kernel,
            pool: &Pool,
            tensors: &Tensors,
            inputs: &[Input],
            in_place: &mut [Output],
            outputs: &mut [Output],
            forwarded: bool,
            scratch: &mut [f32],
        ) -> Status;

        /// What the op `BlockcellInfo` returns. `tensorflow_running` may be empty: not known.
        fn info(tensorflow_running: &str) -> String;

        /// Whether the library's kernels replace TensorFlow's.
        fn overrides() -> bool;

        /// Whether threads may be moved to other processors.
        fn moves_threads() -> bool;

        /// A parallel section of a call, for [`Pool`] to run.
        type Task<'a>;

        /// Runs the tasks `begin` to `end - 1`. Never unwinds.
        unsafe fn run<'a>(self: &Task<'a>, begin: usize, end: usize);
    }

    // SAFETY: `get` reads the attributes of a node that outlives the call.
    unsafe extern "C++" {
        include!("cpp/attributes.h");

        /// The attributes of a node.
        type NodeAttributes;

        /// The attribute of this name and kind.
        fn get(self: &NodeAttributes, name: &str, kind: AttributeKind) -> AttributeValue;
    }

    // SAFETY: `lists_gpus` takes nothing, and TensorFlow's registry of devices has a lock.
    unsafe extern "C++" {
        include!("cpp/library.h");

        /// Whether TensorFlow finds a GPU for this process.
        fn lists_gpus() -> bool;
    }

    // SAFETY: a `Tensors` is as long there as the call whose inputs it has, and `hold` is called with one of their
    // places. A `HeldTensor` has a reference of its own.
    unsafe extern "C++" {
        include!("cpp/variables.h");

        /// The input tensors of a call.
        type Tensors;

        /// A tensor whose buffer nobody writes as long as this is there.
        type HeldTensor;

        /// Holds an input; null where its memory is not TensorFlow's.
        fn hold(self: &Tensors, input: usize) -> UniquePtr<HeldTensor>;

        /// Whether nobody else holds the buffer.
        fn is_last(self: &HeldTensor) -> bool;
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

/// For Python: chooses how precise matrix products are, by a place in `Precision::ALL`. Returns the place of what holds
/// from then on, which stays as it is with any other number.
// No function of another library has this name: nothing else is asked for by it.
#[allow(unreachable_pub, unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn blockcell_float32_matmul_precision(place: i32) -> i32 {
    let place = switches::choose_precision(usize::try_from(place).ok());
    i32::try_from(place).unwrap_or_default()
}

/// For Python: begins to note errors of layers whose weights are in int8 if `wanted` is not zero, otherwise ends it.
// As above.
#[allow(unreachable_pub, unsafe_code)]
#[unsafe(no_mangle)]
pub extern "C" fn blockcell_note_int8_errors(wanted: i32) {
    int8_errors::ask_for(wanted != 0);
}
