//! The part that knows both TensorFlow's functions and the choice among them.
//!
//! The graph pass in `cpp/implementations.cc` describes a library of functions here, and does what comes
//! back. What is chosen, and when, is decided in the crate `blockcell_graphs`.

use blockcell_graphs as graphs;
use ffi::{FunctionUse, Implementation, Implementations, NodeEdit, UseKind};

use crate::bridge::{has_cudnn, or_default};
use crate::graphs::{count, log, node_def};

#[allow(unreachable_pub, unsafe_code)]
#[cxx::bridge(namespace = "blockcell")]
mod ffi {
    /// A serialised `FunctionDef`.
    struct FunctionDefinition<'a> {
        definition: &'a [u8],
    }

    enum UseKind {
        /// It is called.
        Call,
        /// An output of a call is read.
        Read,
        /// It is used in another way.
        Other,
    }

    /// What the graph itself does with a function.
    struct FunctionUse<'a> {
        function: &'a str,
        kind: UseKind,
        /// Which output is read.
        output: usize,
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
            graph: &[FunctionUse],
        ) -> Implementations;
    }
}

fn wants_implementations() -> bool {
    has_cudnn()
}

fn choose_implementations(
    functions: &[ffi::FunctionDefinition<'_>],
    graph: &[FunctionUse<'_>],
) -> Implementations {
    or_default("the pass that chooses implementations of functions", || {
        let described = functions.iter().map(|one| node_def::describe_function(one.definition));
        // What cannot be read may use any function in any way.
        let Some(functions) = described.collect::<Option<Vec<_>>>() else {
            return Implementations::default();
        };
        let used = |used: &FunctionUse<'_>| graphs::Used {
            function: used.function.to_owned(),
            how: match used.kind {
                UseKind::Call => graphs::FunctionUse::Call,
                UseKind::Read => graphs::FunctionUse::Read(used.output),
                _ => graphs::FunctionUse::Other,
            },
        };
        let choices = graphs::choose(&functions, &graph.iter().map(used).collect::<Vec<_>>());
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
