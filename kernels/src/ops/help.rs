//! Descriptions of an operation: types and attributes as in TensorFlow's `OpDef`, and the text of `help()`.

use super::{Attribute, Dim, Op, Shape, Tensor};

impl Op {
    /// The inputs, as `name: type`.
    #[must_use]
    pub fn op_def_inputs(&self) -> Vec<String> {
        self.inputs.iter().map(Tensor::op_def).collect()
    }

    /// The outputs, as `name: type`.
    #[must_use]
    pub fn op_def_outputs(&self) -> Vec<String> {
        self.outputs.iter().map(Tensor::op_def).collect()
    }

    /// The attributes, as `name: type` or `name: type = default`.
    #[must_use]
    pub fn op_def_attributes(&self) -> Vec<String> {
        let types: Vec<_> = self.types.iter().map(|of| of.name()).collect();
        let element = (!types.is_empty()).then(|| format!("T: {{{}}}", types.join(", ")));
        let others = self.attributes.iter().map(|of| format!("{}: {}", of.name, of.kind));
        element.into_iter().chain(others).collect()
    }

    /// The text that `help()` shows: what the operation computes, and then `name: description` for each tensor and attribute.
    #[must_use]
    pub fn help(&self) -> String {
        let mut text = paragraphs(self.doc);
        if !self.inputs.is_empty() {
            text += "\nTensors of other shapes raise an `InvalidArgumentError`. Sizes may be zero. There are kernels for \
                     CPUs.\n";
        }
        text.push('\n');
        for tensor in self.inputs.iter().chain(self.outputs) {
            text += &format!("{}: {}\n", tensor.name, tensor.description());
        }
        for attribute in self.attributes {
            text += &format!("{}: {}\n", attribute.name, self.description(attribute));
        }
        text
    }

    /// The description of an attribute.
    #[must_use]
    pub fn description(&self, attribute: &Attribute) -> String {
        let tensors = self.inputs.iter().chain(self.outputs);
        let counted = tensors.filter(|tensor| tensor.list == Some(attribute.name));
        let names: Vec<_> = counted.map(|tensor| format!("`{}`", tensor.name)).collect();
        if names.is_empty() {
            return sentence(attribute.doc);
        }
        format!("The number of tensors in {}.", names.join(" and in "))
    }

    /// What the operation computes, in Markdown.
    #[must_use]
    pub fn help_text(&self) -> String {
        let lines = self.doc.iter().map(|line| line.strip_prefix(' ').unwrap_or(line));
        lines.map(|line| format!("{line}\n")).collect()
    }
}

impl Tensor {
    fn op_def(&self) -> String {
        format!("{}: {}", self.name, self.op_def_type())
    }

    /// Its description, with its shape if the declaration has one.
    #[must_use]
    pub fn description(&self) -> String {
        let text = sentence(self.doc);
        match self.symbols() {
            Some(symbols) if self.shape == Shape::Broadcasts => {
                format!("{text} Shape: `{symbols}`, or one that broadcasts to it.")
            }
            Some(symbols) => format!("{text} Shape: `{symbols}`."),
            None => text,
        }
    }

    /// The shape in symbols, if the declaration has one.
    #[must_use]
    pub fn symbols(&self) -> Option<String> {
        let names: Vec<_> = self.dims.iter().map(|dim| dim.to_string()).collect();
        let is_known = !names.is_empty() || self.shape == Shape::Exact;
        is_known.then(|| format!("[{}]", names.join(", ")))
    }
}

/// The name of the dimension in documentation and messages.
impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Dim::Time | Dim::TimeOrOne | Dim::TimeOrNone => dim_name!(Time),
            Dim::Batch => dim_name!(Batch),
            Dim::Input => dim_name!(Input),
            Dim::Cell | Dim::Optional(_) => dim_name!(Cell),
            Dim::Output => dim_name!(Output),
            Dim::InputCell | Dim::InputCellOrNone => dim_name!(InputCell),
            Dim::InputOutput => dim_name!(InputOutput),
            Dim::Gates(gates) => return write!(f, "{gates} * {}", dim_name!(Cell)),
            Dim::Any(name) => name,
        })
    }
}

/// Lines of documentation joined into one.
fn sentence(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}

/// Lines of documentation, with blocks of code indented instead of fenced.
fn paragraphs(lines: &[&str]) -> String {
    let (mut text, mut is_code) = (String::new(), false);
    for line in lines {
        let line = line.strip_prefix(' ').unwrap_or(line);
        if line.starts_with("```") {
            is_code = !is_code;
            continue;
        }
        let indent = if is_code && !line.is_empty() { "    " } else { "" };
        text += &format!("{indent}{line}\n");
    }
    text
}
