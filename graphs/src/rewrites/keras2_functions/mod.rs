//! Choice: functions that Keras 2 wrote twice run by cuDNN's operations instead of a loop.
//!
//! For each LSTM and GRU layer, Keras of TensorFlow 2.0 to 2.15 makes two functions of one signature and lets
//! TensorFlow choose one by device. In a SavedModel they look like this:
//!
//! ```text
//! standard_lstm            api_implements="lstm_1f26..." api_preferred_device="CPU"    a while loop
//! gpu_lstm_with_fallback   api_implements="lstm_1f26..." api_preferred_device="GPU"    CudnnRNN
//! ```
//!
//! This library has kernels of cuDNN's operations for CPUs, so the first can be what the second is. For training there
//! are four functions: each of the two has a forward half, which also returns what its backward half takes. What the
//! halves keep differs, so both are exchanged or none.
//!
//! * [`needed`]: which functions a graph needs, and what it reads of them.
//! * [`pairs`]: the two functions for inference, and the four for training. Their types agree.
//! * [`network`]: the second is one layer of cuDNN's LSTM or GRU without dropout. Its weights are in cuDNN's order of
//!   gates; builds of TensorFlow without CUDA write GRUs in Keras's order, and get a [`FunctionEdit`].
//! * [`kept`]: what a forward half keeps reaches its backward half, and nobody else.
//! * [`bodies`]: what the functions become.

mod bodies;
pub(crate) mod function;
mod kept;
mod needed;
mod network;
mod pairs;

use std::fmt;

use function::{Body, Function, FunctionEdit};
use needed::Needed;
use network::Network;
use pairs::{Halves, Pair};

/// What to do with a library of functions: first the edits, then the copies, then the bodies.
#[derive(Debug, Default)]
pub struct Choices {
    /// Functions that become what others are.
    pub chosen: Vec<Choice>,
    /// Changes of nodes.
    pub edits: Vec<FunctionEdit>,
    /// New functions, each a copy of another one.
    pub copies: Vec<Copy>,
    /// What functions do from now on.
    pub bodies: Vec<Body>,
    /// Functions that stay, and why.
    pub kept: Vec<(String, &'static str)>,
}

/// A function under another name, without the attributes by which TensorFlow chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Copy {
    /// Its name.
    pub function: String,
    /// The name of the copy.
    pub copy: String,
}

/// A function that becomes what another one is, under its own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Its name.
    pub function: String,
    /// The other one.
    pub by: String,
    /// The operation that computes it then.
    pub op: String,
}

impl fmt::Display for Choices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Choice { function, by, op } in &self.chosen {
            writeln!(f, "{function} becomes {op} (parts: 1), by function {by}")?;
        }
        for (function, reason) in &self.kept {
            writeln!(f, "{function} (function) is not rewritten: {reason}")?;
        }
        Ok(())
    }
}

/// Chooses among the functions of a library that a graph needs.
///
/// The graph comes as a function without a name, inputs and outputs.
#[must_use]
pub fn choose(functions: &[Function], graph: &Function) -> Choices {
    let mut choices = Choices::default();
    let (pairs, halves) = (Pair::all(functions), Halves::all(functions));
    if pairs.is_empty() && halves.is_empty() {
        return choices;
    }
    let needed = Needed::by(graph, functions);
    for pair in pairs.iter().filter(|pair| needed.has(pair.standard)) {
        let reason = choices.infer(pair, &needed).err();
        choices.kept.extend(reason.map(|reason| (pair.standard.name.clone(), reason)));
    }
    for halves in halves.iter().filter(|halves| needed.has(halves.forward)) {
        let reason = choices.train(halves, &needed).err();
        choices.kept.extend(reason.map(|reason| (halves.forward.name.clone(), reason)));
    }
    choices
}

impl Choices {
    /// Exchanges a function that no gradient is taken of.
    fn infer(&mut self, pair: &Pair<'_>, needed: &Needed<'_>) -> Result<(), &'static str> {
        let Pair { standard, other } = *pair;
        let network = Network::read(other, needed)?;
        needed.allows_calls(standard)?;
        let states = network.states(standard)?;
        let runtime = bodies::runtime(standard);
        needed.allows_outputs(standard, runtime.is_some(), network.is_masked)?;
        self.edits.extend(network.edits()?);
        let full = self.copy(other, standard, "cudnn");
        let empty = self.copy(standard, standard, "loop");
        self.bodies.push(bodies::inference(standard, states, &full, &empty, runtime));
        self.choose(standard, other, network.node.op.clone());
        Ok(())
    }

    /// Exchanges the two halves of a function with a gradient.
    fn train(&mut self, halves: &Halves<'_>, needed: &Needed<'_>) -> Result<(), &'static str> {
        let &Halves { forward, backward, forward_by, backward_by } = halves;
        let network = Network::read(forward_by, needed)?;
        if network.is_masked {
            return Err("a mask is supported in inference only");
        }
        if network.edits()?.iter().any(|edit| !edit.inputs.is_empty()) {
            return Err("weights in Keras's order of gates are supported in inference only");
        }
        let outputs = network.outputs();
        let states = network.states(forward)?;
        halves.agree(outputs)?;
        kept::only_reaches(forward, backward, outputs, needed)?;
        let slots = bodies::Slots::of(halves, outputs)?;
        self.exchange(forward, forward_by, |full, empty, inner| {
            [slots.choose_forward(states, full, empty), slots.pack(full, inner)]
        });
        self.exchange(backward, backward_by, |full, empty, inner| {
            [slots.choose_backward(full, empty), slots.unpack(full, inner)]
        });
        self.choose(forward, forward_by, network.node.op.clone());
        let gradient = network.node.op.replacen("CudnnRNN", "CudnnRNNBackprop", 1);
        self.choose(backward, backward_by, gradient);
        Ok(())
    }

    /// Gives a half new bodies: its own, and that of the copy that calls the other one.
    fn exchange(
        &mut self,
        half: &Function,
        by: &Function,
        bodies: impl Fn(&str, &str, &str) -> [Body; 2],
    ) {
        let full = self.copy(half, half, "cudnn");
        let empty = self.copy(half, half, "loop");
        let inner = self.copy(by, half, "cudnn_half");
        self.bodies.extend(bodies(&full, &empty, &inner));
    }

    /// A copy of a function, named after the one that it serves.
    fn copy(&mut self, function: &Function, serves: &Function, suffix: &str) -> String {
        let copy = format!("{}_{suffix}", serves.name);
        self.copies.push(Copy { function: function.name.clone(), copy: copy.clone() });
        copy
    }

    fn choose(&mut self, function: &Function, by: &Function, op: String) {
        self.chosen.push(Choice { function: function.name.clone(), by: by.name.clone(), op });
    }
}
