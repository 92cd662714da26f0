//! What operations compute. `None` stands for inputs that they refuse.

use std::rc::Rc;

use blockcell_graphs::{Attribute, Node, Values};

use super::tensor::{Tensor, hash};

/// Which inputs' elements a node reads. Of the others it passes the memory on, or wants the shape.
pub(crate) fn reads(node: &Node) -> Vec<usize> {
    let inputs = 0..node.inputs.len();
    match node.op.as_str() {
        "Identity" | "RefIdentity" | "Enter" | "Merge" => Vec::new(),
        "AddN" if node.inputs.len() == 1 => Vec::new(),
        "Switch" | "RefSwitch" => vec![1],
        "Assign" | "AssignAdd" => vec![1],
        // x, h_prev, weights and biases.
        "LSTMBlockCellGrad" => inputs.filter(|input| ![0, 2, 3, 7].contains(input)).collect(),
        "GRUBlockCellGrad" => inputs.filter(|&input| input > 5).collect(),
        _ => inputs.collect(),
    }
}

/// The outputs of a node that passes no memory on.
pub(crate) fn compute(node: &Node, inputs: &[Rc<Tensor>]) -> Option<Vec<Tensor>> {
    let [first, second] = [0, 1].map(|number| inputs.get(number).map(|input| &**input));
    let all: Vec<&Tensor> = inputs.iter().map(|input| &**input).collect();
    let one = match node.op.as_str() {
        "LSTMBlockCellGrad" => return lstm(node, inputs),
        "GRUBlockCellGrad" => return gru(node, inputs),
        "BlockcellMatMulSlice" => return mat_mul_slice(node, first?, second?),
        "BlockcellMatMulAddN" => mat_mul_add_n(node, &all),
        "BlockcellBiasAddGradAddN" => bias_add_grad_add_n(node, &all),
        "Const" => constant(node),
        "Add" | "AddV2" => first?.broadcast_plus(second?),
        "AddN" => sum(&all),
        "Mul" => first?.combine(second?, u64::wrapping_mul),
        "ConcatV2" => Tensor::beside(all.split_last()?.1),
        "MatMul" => mat_mul(node, first?, second?),
        "BiasAddGrad" => first?.row_sum(),
        "Slice" => {
            let (begin, size) = (inputs[1].integers(), inputs[2].integers());
            first?.part(size[0], begin[1], size[1]).filter(|_| begin[0] == 0)
        }
        // Something that nobody knows, of the same shape.
        "Tanh" => {
            Some(Tensor { elements: first?.elements.iter().map(hash).collect(), ..first?.clone() })
        }
        "Sink" => Some(Tensor::scalar(hash(&all))),
        other => panic!("the executor does not know {other}"),
    };
    Some(vec![one?])
}

/// An attribute of a node, also one that is there for the executor alone.
pub(super) fn attribute<'n>(node: &'n Node, name: &str) -> Option<&'n Attribute> {
    node.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value)
}

fn constant(node: &Node) -> Option<Tensor> {
    let Some(Attribute::Constant(constant)) = node.attribute("value") else { return None };
    let Values::Ints(values) = &constant.values else { return None };
    let shape = constant.shape.iter().map(|&size| size as usize).collect();
    Some(Tensor { shape, elements: values.iter().map(|&value| value as u64).collect() })
}

fn mat_mul(node: &Node, left: &Tensor, right: &Tensor) -> Option<Tensor> {
    let factor = |tensor: &Tensor, flag: &str| {
        if node.flag(flag) { tensor.transposed() } else { Some(tensor.clone()) }
    };
    factor(left, "transpose_a")?.times(&factor(right, "transpose_b")?)
}

/// The sum of tensors of one shape.
fn sum(tensors: &[&Tensor]) -> Option<Tensor> {
    let (first, others) = tensors.split_first()?;
    others.iter().try_fold((*first).clone(), |sum, tensor| sum.plus(tensor))
}

fn int(node: &Node, name: &str) -> Option<i64> {
    match attribute(node, name)? {
        Attribute::Int(number) => Some(*number),
        _ => None,
    }
}

fn count(node: &Node, name: &str) -> usize {
    usize::try_from(int(node, name).expect("the attribute is set")).expect("it is a count")
}

fn mat_mul_add_n(node: &Node, inputs: &[&Tensor]) -> Option<Tensor> {
    let (products, lefts) = (count(node, "num_b"), count(node, "num_a"));
    let (left, rest) = inputs.split_at(lefts);
    let (right, addends) = rest.split_at(products);
    assert_eq!(addends.len(), count(node, "num_addends"));
    let mut terms = Vec::new();
    for (number, right) in right.iter().enumerate() {
        let parts = lefts / products;
        let own = &left[number * parts..][..parts];
        if own.iter().zip(left).any(|(part, first)| part.shape[1] != first.shape[1]) {
            return None;
        }
        terms.push(Tensor::beside(own)?.transposed()?.times(right)?);
    }
    sum(&terms.iter().chain(addends.iter().copied()).collect::<Vec<_>>())
}

fn bias_add_grad_add_n(node: &Node, inputs: &[&Tensor]) -> Option<Tensor> {
    let (row_sums, addends) = inputs.split_at(count(node, "num_out_backprop"));
    assert_eq!(addends.len(), count(node, "num_addends"));
    let terms: Option<Vec<_>> = row_sums.iter().map(|dz| dz.row_sum()).collect();
    sum(&terms?.iter().chain(addends.iter().copied()).collect::<Vec<_>>())
}

fn mat_mul_slice(node: &Node, left: &Tensor, right: &Tensor) -> Option<Vec<Tensor>> {
    let (Some(Attribute::Ints(begins)), Some(Attribute::Ints(sizes))) =
        (attribute(node, "begins"), attribute(node, "sizes"))
    else {
        return None;
    };
    let product = left.times(&right.transposed()?)?;
    let columns = begins.iter().zip(sizes);
    columns.map(|(&begin, &size)| product.part(int(node, "rows")?, begin, size)).collect()
}

/// Gradients that nobody knows, of the shapes that inputs have to have.
fn lstm(node: &Node, inputs: &[Rc<Tensor>]) -> Option<Vec<Tensor>> {
    let ((batch, width), (rows, cells)) = (inputs[0].sizes()?, inputs[2].sizes()?);
    let fits = rows == batch
        && inputs[3].shape == [width + cells, 4 * cells]
        && inputs[7].shape == [4 * cells];
    fits.then(|| {
        vec![gradient(node, inputs, 0, batch, cells), gradient(node, inputs, 1, batch, 4 * cells)]
    })
}

fn gru(node: &Node, inputs: &[Rc<Tensor>]) -> Option<Vec<Tensor>> {
    let ((batch, width), (rows, cells)) = (inputs[0].sizes()?, inputs[1].sizes()?);
    let fits = rows == batch
        && inputs[2].shape == [width + cells, 2 * cells]
        && inputs[3].shape == [width + cells, cells];
    let output = |index, columns| gradient(node, inputs, index, batch, columns);
    fits.then(|| vec![output(0, width), output(1, cells), output(2, cells), output(3, 2 * cells)])
}

fn gradient(
    node: &Node,
    inputs: &[Rc<Tensor>],
    index: usize,
    rows: usize,
    columns: usize,
) -> Tensor {
    let read: Vec<_> = reads(node).into_iter().map(|input| &inputs[input]).collect();
    Tensor::random(&[rows as i64, columns as i64], &(index, read))
}
