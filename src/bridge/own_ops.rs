//! The operations that this library defines, as TensorFlow takes them.

use blockcell_kernels::Error;
use blockcell_kernels::ops::{self, Inferred, Lists, Op, PartialShape as Known};

use super::attributes::Attributes;
use super::ffi::{NodeAttributes, OpDefinition, PartialShape, Shape, Status};
use super::kernels::{by_name, describe};
use super::status::{guarded, or_default};

pub(super) fn own_ops() -> Vec<OpDefinition> {
    let own = || ops::all().filter(|op| !op.is_stock);
    or_default("own_ops", || own().map(definition).collect())
}

fn definition(op: &Op) -> OpDefinition {
    OpDefinition {
        name: op.name,
        inputs: op.op_def_inputs(),
        outputs: op.op_def_outputs(),
        attributes: op.op_def_attributes(),
        doc: op.help(),
        is_stateful: op.is_stateful,
    }
}

pub(super) fn infer(
    op: &str,
    attributes: &NodeAttributes,
    inputs: &[PartialShape<'_>],
    outputs: &mut [Shape],
) -> Status {
    guarded(op, || {
        let known = |shape: &PartialShape<'_>| {
            let dims = shape.dims.iter().map(|&dim| usize::try_from(dim).ok());
            shape.has_rank.then(|| dims.collect())
        };
        let inputs: Vec<_> = inputs.iter().map(known).collect();
        let own = Op::by_name(op).expect("an operation of this library");
        let inferred = infer_known(own, Attributes::new(own, attributes), &inputs)?;
        for (output, dims) in outputs.iter_mut().zip(inferred.outputs) {
            describe(own.name, output, dims.into_iter())?;
        }
        Ok(())
    })
}

fn infer_known(
    op: &'static Op,
    attributes: Attributes<'_>,
    inputs: &[Known],
) -> Result<Inferred, Error> {
    match by_name(op.name) {
        Some(operation) => operation.infer(attributes, inputs),
        // `BlockcellInfo` has a kernel of its own.
        None => op.infer(false, &Lists::new(op, &[], &[1], inputs)),
    }
}
