//! The part that knows both TensorFlow's functions and the choice among them.
//!
//! The graph pass in `cpp/implementations.cc` describes a library of functions here, and does what comes
//! back. What is chosen, and when, is decided in the crate `blockcell_graphs`.

use blockcell_graphs as graphs;
use ffi::{FunctionRead, Implementation, Implementations, NodeEdit};

use crate::bridge::{has_cudnn, or_default};
use crate::graphs::{count, log, node_def};

#[allow(unreachable_pub, unsafe_code)]
#[cxx::bridge(namespace = "blockcell")]
mod ffi {
    /// A serialised `FunctionDef`.
    struct FunctionDefinition<'a> {
        definition: &'a [u8],
    }

    /// An output of a call that somebody in the graph reads.
    struct FunctionRead<'a> {
        function: &'a str,
        /// -1 if the function is used in another way than by a call.
        output: i32,
    }

    /// A function that becomes what another one is, under its own name.
    struct Implementation {
        function: String,
        by: String,
    }

    /// A change of a node of a function.
    struct NodeEdit {
        function: String,
        node: String,
        /// What it takes; empty if that stays.
        inputs: Vec<String>,
        /// Whether `is_training` becomes false.
        infers: bool,
    }

    /// What to do with a library of functions: first the edits.
    #[derive(Default)]
    struct Implementations {
        edits: Vec<NodeEdit>,
        chosen: Vec<Implementation>,
    }

    extern "Rust" {
        /// Whether functions may be computed by others.
        fn wants_implementations() -> bool;

        /// Which functions of a library are computed by others.
        fn choose_implementations(
            functions: &[FunctionDefinition],
            reads: &[FunctionRead],
        ) -> Implementations;
    }
}

fn wants_implementations() -> bool {
    has_cudnn()
}

fn choose_implementations(
    functions: &[ffi::FunctionDefinition<'_>],
    reads: &[FunctionRead<'_>],
) -> Implementations {
    or_default("the pass that chooses implementations of functions", || {
        let described = functions.iter().map(|one| node_def::describe_function(one.definition));
        // What cannot be read may use any function in any way.
        let Some(functions) = described.collect::<Option<Vec<_>>>() else {
            return Implementations::default();
        };
        let read = |read: &FunctionRead<'_>| graphs::Read {
            function: read.function.to_owned(),
            output: usize::try_from(read.output).ok(),
        };
        let choices = graphs::choose(&functions, &reads.iter().map(read).collect::<Vec<_>>());
        log::functions(&choices.to_string());
        choices.chosen.iter().for_each(|choice| count(&choice.op));
        let edits = choices.edits.into_iter().map(|edit| NodeEdit {
            function: edit.function,
            node: edit.node,
            inputs: edit.inputs,
            infers: edit.infers,
        });
        let chosen = choices
            .chosen
            .into_iter()
            .map(|choice| Implementation { function: choice.function, by: choice.by });
        Implementations { edits: edits.collect(), chosen: chosen.collect() }
    })
}
