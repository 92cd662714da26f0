//! The part that knows both TensorFlow's functions and the choice among them.
//!
//! The graph pass in `cpp/implementations.cc` describes a library of functions here, and does what comes
//! back. What is chosen, and when, is decided in the crate `blockcell_graphs`.

use blockcell_graphs as graphs;
use ffi::{Definition, FunctionBody, FunctionCopy, Implementations, NodeEdit};

use crate::bridge::has_cudnn;
use crate::graphs::{count, log, node_def, pass};

// cxx generates the `unsafe` of the calls. We rely on `cpp/implementations.cc` to keep the bytes of all definitions,
// and to leave them as they are, until a call returns. Nothing here keeps a slice longer.
#[allow(unreachable_pub, unsafe_code)]
#[cxx::bridge(namespace = "blockcell")]
mod ffi {
    /// A serialised `FunctionDef` or `NodeDef`.
    struct Definition<'a> {
        bytes: &'a [u8],
    }

    /// A function under another name, without the attributes by which TensorFlow chooses.
    struct FunctionCopy {
        function: String,
        copy: String,
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

    /// A serialised `NodeDef`.
    struct NewFunctionNode {
        definition: Vec<u8>,
    }

    /// What a function does from now on.
    struct FunctionBody {
        function: String,
        nodes: Vec<NewFunctionNode>,
        /// The tensors that are its outputs, in their order.
        results: Vec<String>,
    }

    /// What to do with a library of functions: first the edits, then the copies, then the bodies.
    #[derive(Default)]
    struct Implementations {
        edits: Vec<NodeEdit>,
        copies: Vec<FunctionCopy>,
        bodies: Vec<FunctionBody>,
    }

    extern "Rust" {
        /// Whether functions may be computed by others.
        fn wants_implementations() -> bool;

        /// Which functions of a library are computed by others, in a graph of these nodes.
        fn choose_implementations(
            functions: &[Definition],
            nodes: &[Definition],
        ) -> Implementations;
    }
}

fn wants_implementations() -> bool {
    has_cudnn()
}

fn choose_implementations(
    functions: &[Definition<'_>],
    nodes: &[Definition<'_>],
) -> Implementations {
    pass("the pass that chooses implementations of functions", || {
        let functions = functions.iter().map(|one| node_def::describe_function(one.bytes));
        let nodes = nodes.iter().map(|one| node_def::describe_function_node(one.bytes));
        // What cannot be read may use any function in any way.
        let (Some(functions), Some(nodes)) =
            (functions.collect::<Option<Vec<_>>>(), nodes.collect())
        else {
            return Implementations::default();
        };
        let graph = graphs::Function { nodes, ..graphs::Function::default() };
        let choices = graphs::choose(&functions, &graph);
        log::functions(&choices.to_string());
        choices.chosen.iter().for_each(|choice| count(&choice.op));
        Implementations {
            edits: choices.edits.into_iter().map(edit).collect(),
            copies: choices.copies.into_iter().map(copy).collect(),
            bodies: choices.bodies.into_iter().map(body).collect(),
        }
    })
}

fn edit(edit: graphs::FunctionEdit) -> NodeEdit {
    let graphs::FunctionEdit { function, node, inputs, infers } = edit;
    NodeEdit { function, node, inputs, infers }
}

fn copy(copy: graphs::FunctionCopy) -> FunctionCopy {
    let graphs::FunctionCopy { function, copy } = copy;
    FunctionCopy { function, copy }
}

fn body(body: graphs::Body) -> FunctionBody {
    let graphs::Body { function, nodes, results } = body;
    let definition =
        |node| ffi::NewFunctionNode { definition: node_def::encode_function_node(node) };
    FunctionBody { function, nodes: nodes.into_iter().map(definition).collect(), results }
}
