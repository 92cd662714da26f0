//! Graphs and their operations.

use std::ptr::NonNull;

use tensorflow_sys as tf;

use crate::status::Status;
use crate::{Error, c_int, c_string};

/// A graph of operations.
#[derive(Debug)]
pub struct Graph(NonNull<tf::TF_Graph>);

/// An attribute of an operation.
#[derive(Clone, Copy, Debug)]
pub enum Attribute<'a> {
    /// A truth value.
    Bool(bool),
    /// A number.
    Float(f32),
    /// A string.
    String(&'a str),
    /// A type of elements.
    Type(tf::TF_DataType),
}

/// A node of a graph.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'g> {
    graph: &'g Graph,
    operation: NonNull<tf::TF_Operation>,
}

/// A result of a node.
#[derive(Clone, Copy, Debug)]
pub struct Output<'g> {
    operation: Operation<'g>,
    index: usize,
}

impl Graph {
    /// An empty graph.
    #[must_use]
    pub fn new() -> Self {
        // SAFETY: no preconditions; the result is ours.
        Graph(NonNull::new(unsafe { tf::TF_NewGraph() }).expect("a graph"))
    }

    pub(crate) fn as_ptr(&self) -> *mut tf::TF_Graph {
        self.0.as_ptr()
    }

    /// Adds a node called `name` that runs `op`.
    ///
    /// Attributes that follow from the types of the inputs need not be given.
    ///
    /// # Errors
    ///
    /// There is no such operation or there is a node of that name, or inputs or attributes do not
    /// fit.
    ///
    /// # Panics
    ///
    /// If an input is of another graph, or there is a zero byte in a name.
    pub fn add(
        &self,
        op: &str,
        name: &str,
        inputs: &[Output<'_>],
        attributes: &[(&str, Attribute<'_>)],
    ) -> Result<Operation<'_>, Error> {
        let inputs: Vec<_> = inputs.iter().map(|input| input.of(self)).collect();
        let attributes: Vec<_> =
            attributes.iter().map(|(name, value)| (c_string(name), value)).collect();
        let (op, name, status) = (c_string(op), c_string(name), Status::new());
        // From here on nothing panics: only TF_FinishOperation frees the description.
        // SAFETY: the graph is alive, the names are terminated strings that TensorFlow copies.
        let node = unsafe { tf::TF_NewOperation(self.as_ptr(), op.as_ptr(), name.as_ptr()) };
        for input in inputs {
            // SAFETY: the description is not finished; the input is of this graph, so it is alive.
            unsafe { tf::TF_AddInput(node, input) }
        }
        for (name, value) in &attributes {
            let name = name.as_ptr();
            // SAFETY: the description is not finished, and TensorFlow copies name and value.
            unsafe {
                match value {
                    Attribute::Bool(value) => tf::TF_SetAttrBool(node, name, (*value).into()),
                    Attribute::Float(value) => tf::TF_SetAttrFloat(node, name, *value),
                    Attribute::String(value) => {
                        tf::TF_SetAttrString(node, name, value.as_ptr().cast(), value.len());
                    }
                    Attribute::Type(value) => tf::TF_SetAttrType(node, name, *value),
                }
            }
        }
        // SAFETY: the description is ours and not used again.
        let operation = unsafe { tf::TF_FinishOperation(node, status.as_ptr()) };
        status.check()?;
        let operation = NonNull::new(operation).expect("a node, as there was no error");
        Ok(Operation { graph: self, operation })
    }

    /// Adds a node called `name` whose value is given when the graph is run, in any shape.
    ///
    /// # Errors
    ///
    /// As [`Graph::add`].
    pub fn placeholder(&self, name: &str, dtype: tf::TF_DataType) -> Result<Output<'_>, Error> {
        let attributes = [("dtype", Attribute::Type(dtype))];
        Ok(self.add("Placeholder", name, &[], &attributes)?.output(0))
    }
}

impl Default for Graph {
    fn default() -> Self {
        Graph::new()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the graph is ours and not used again; sessions and nodes have borrowed it.
        unsafe { tf::TF_DeleteGraph(self.as_ptr()) }
    }
}

impl<'g> Operation<'g> {
    /// Result number `index`.
    ///
    /// # Panics
    ///
    /// If there are not as many.
    #[must_use]
    pub fn output(self, index: usize) -> Output<'g> {
        // SAFETY: the node is alive, as its graph is.
        let outputs = unsafe { tf::TF_OperationNumOutputs(self.operation.as_ptr()) };
        assert!(c_int(index) < outputs, "result {index} of a node that has {outputs}");
        Output { operation: self, index }
    }
}

impl Output<'_> {
    /// For a call that reads nodes of `graph`.
    ///
    /// # Panics
    ///
    /// If this is of another graph, which TensorFlow would not notice.
    pub(crate) fn of(&self, graph: &Graph) -> tf::TF_Output {
        assert!(std::ptr::eq(self.operation.graph, graph), "a node of another graph");
        tf::TF_Output { oper: self.operation.operation.as_ptr(), index: c_int(self.index) }
    }
}
