//! The products around a cell: `BlockcellMatMulAddN`, `BlockcellMatMulSlice` and
//! `BlockcellBiasAddGradAddN`, against sums in float64.

use blockcell_kernels::mat_mul::{
    AddNInputs, AddNOutputs, BiasInputs, BiasOutputs, Part, SliceInputs, SliceOutputs, add_n,
    bias_add_grad_add_n, slice,
};
use blockcell_kernels::ops::DataType;
use blockcell_kernels::{Context, Element, Error, Isa, Serial};
use half::{bf16, f16};
use ndarray::{Array, Array1, Array2, Axis, Dimension, concatenate, s};

use crate::common::compare::{Failures, close, same_bits};
use crate::common::data::Data;
use crate::common::executors::executors;

/// One rounding, and what sums in `f32` add to it.
fn tolerance<E: Element>() -> f64 {
    match E::TYPE {
        DataType::BFloat16 => 8e-3,
        DataType::Half => 1e-3,
        _ => 3e-6,
    }
}

/// A matrix of numbers that the element type has.
fn matrix<E: Element>(data: &mut Data, rows: usize, columns: usize) -> Array2<E> {
    let numbers = data.uniform(&[rows, columns], 1.0);
    let numbers = numbers.into_dimensionality::<ndarray::Ix2>().expect("a matrix");
    numbers.mapv(|number| E::from_f32(number as f32))
}

fn wide<E: Element, D: Dimension>(array: &Array<E, D>) -> Array<f64, D> {
    array.mapv(|number| f64::from(number.to_f32()))
}

fn views<E, D: Dimension>(list: &[Array<E, D>]) -> Vec<ndarray::ArrayView<'_, E, D>> {
    list.iter().map(|array| array.view()).collect()
}

fn data(seed: usize) -> Data {
    Data::new(seed as u64, |number| number)
}

/// What `call` makes of an output, for every instruction set and executor, must be `want`, and the same
/// bits for every executor.
fn check<E: Element, D: Dimension>(
    failures: &mut Failures,
    case: &str,
    want: &Array<f64, D>,
    call: impl Fn(&Context<'_>) -> Array<E, D>,
) {
    let want = want.clone().into_dyn();
    for isa in Isa::available() {
        let first = wide(&call(&Context::new(isa, &Serial))).into_dyn();
        let case = format!("{case}, {}, {}", E::TYPE.name(), isa.name());
        failures.note(&case, close("result", &first, &want, tolerance::<E>()));
        for (name, executor) in executors() {
            let got = wide(&call(&Context::new(isa, &**executor))).into_dyn();
            failures.note(format!("{case}, {name}"), same_bits("result", &got, &first));
        }
    }
}

/// A sum of products: rows of each product, widths of the parts, columns, other summands.
struct Sum {
    rows: &'static [usize],
    widths: &'static [usize],
    columns: usize,
    addends: usize,
}

const SUMS: [Sum; 13] = [
    Sum { rows: &[], widths: &[], columns: 17, addends: 3 },
    Sum { rows: &[1], widths: &[1], columns: 1, addends: 0 },
    Sum { rows: &[0], widths: &[3], columns: 5, addends: 0 },
    Sum { rows: &[3, 0, 2], widths: &[0, 4], columns: 17, addends: 1 },
    Sum { rows: &[5, 1], widths: &[0], columns: 3, addends: 0 },
    Sum { rows: &[4], widths: &[2, 3], columns: 0, addends: 1 },
    Sum { rows: &[20; 7], widths: &[7, 16], columns: 31, addends: 0 },
    Sum { rows: &[20; 13], widths: &[33, 65], columns: 130, addends: 2 },
    Sum { rows: &[127, 1, 128, 129], widths: &[15, 1, 17], columns: 33, addends: 1 },
    Sum { rows: &[300, 7], widths: &[96], columns: 64, addends: 0 },
    Sum { rows: &[20], widths: &[100, 97], columns: 530, addends: 1 },
    Sum { rows: &[2; 65], widths: &[13], columns: 16, addends: 0 },
    Sum { rows: &[64], widths: &[193], columns: 15, addends: 3 },
];

fn sums<E: Element>(failures: &mut Failures) {
    for (n, Sum { rows, widths, columns, addends }) in SUMS.iter().enumerate() {
        let mut data = data(n);
        let a: Vec<_> = rows
            .iter()
            .flat_map(|&k| widths.iter().map(move |&width| (k, width)))
            .map(|(k, width)| matrix::<E>(&mut data, k, width))
            .collect();
        let b: Vec<_> = rows.iter().map(|&k| matrix::<E>(&mut data, k, *columns)).collect();
        let height = if widths.is_empty() { 33 } else { widths.iter().sum() };
        let addends: Vec<_> =
            (0..*addends).map(|_| matrix::<E>(&mut data, height, *columns)).collect();
        let mut want = Array2::zeros((height, *columns));
        for (a, b) in a.chunks(widths.len().max(1)).zip(&b) {
            let parts: Vec<_> = a.iter().map(wide).collect();
            let parts: Vec<_> = parts.iter().map(|part| part.view()).collect();
            let a: Array2<f64> = concatenate(Axis(1), &parts).expect("as many rows");
            want += &a.t().dot::<Array2<f64>>(&wide(b));
        }
        addends.iter().for_each(|addend| want += &wide(addend));
        let (a, b, addends) = (views(&a), views(&b), views(&addends));
        for in_place in [false, true] {
            if in_place && addends.is_empty() {
                continue;
            }
            let case = format!("sum {n}, in place: {in_place}");
            check(failures, &case, &want, |context| {
                let (mut sum, others) = match in_place {
                    true => (addends[0].to_owned(), &addends[1..]),
                    false => (Array2::from_elem(want.dim(), E::from_f32(f32::NAN)), &addends[..]),
                };
                let (a, b, addends) = (a.clone(), b.clone(), others.to_vec());
                let (inputs, outputs) =
                    (AddNInputs { a, b, addends }, AddNOutputs { sum: sum.view_mut() });
                add_n(context, inputs, in_place, outputs).expect("a right call");
                sum
            });
        }
    }
}

#[test]
pub(crate) fn sums_of_products() {
    let mut failures = Failures::default();
    sums::<f32>(&mut failures);
    sums::<f16>(&mut failures);
    sums::<bf16>(&mut failures);
    failures.finish();
}

/// Rows and columns of the left factor and rows of the right one, with the rows and columns to compute.
type Slice = (usize, usize, usize, i64, &'static [(i64, i64)]);

const SLICES: [Slice; 10] = [
    (1, 1, 1, -1, &[(0, -1)]),
    (0, 3, 4, -1, &[(0, 2), (2, 2)]),
    (3, 0, 4, -1, &[(0, 4)]),
    (2, 5, 0, -1, &[(0, -1), (0, 0)]),
    (20, 33, 17, -1, &[(0, 7), (7, 10)]),
    (20, 130, 65, 13, &[(3, -1), (60, 5), (0, 65)]),
    (15, 64, 31, 0, &[(0, 31)]),
    (64, 16, 200, 63, &[(1, 1), (0, 199)]),
    (200, 520, 130, -1, &[(0, 64), (64, 66)]),
    (41, 15, 16, 41, &[(16, -1), (0, 16)]),
];

fn slices<E: Element>(failures: &mut Failures) {
    for (n, &(k, depth, m, rows, parts)) in SLICES.iter().enumerate() {
        let mut data = data(n);
        let (a, b) = (matrix::<E>(&mut data, k, depth), matrix::<E>(&mut data, m, depth));
        let (left, right) = (wide(&a), wide(&b));
        let product = left.dot(&right.t().to_owned());
        let height = usize::try_from(rows).unwrap_or(k);
        let columns: Vec<_> = parts.iter().map(|&(begin, size)| Part { begin, size }).collect();
        let wanted: Vec<_> = parts
            .iter()
            .map(|&(begin, size)| {
                let end = if size < 0 { m as i64 } else { begin + size };
                product.slice(s![..height, begin as usize..end as usize]).to_owned()
            })
            .collect();
        for (p, want) in wanted.iter().enumerate() {
            check(failures, &format!("slice {n}, part {p}"), want, |context| {
                let nan = E::from_f32(f32::NAN);
                let mut parts: Vec<_> =
                    wanted.iter().map(|want| Array2::from_elem(want.dim(), nan)).collect();
                let inputs = SliceInputs { a: a.view(), b: b.view() };
                let parts_of_call = parts.iter_mut().map(|part| part.view_mut()).collect();
                let outputs = SliceOutputs { parts: parts_of_call };
                slice(context, inputs, rows, &columns, outputs).expect("a right call");
                parts.swap_remove(p)
            });
        }
    }
}

#[test]
pub(crate) fn slices_of_products() {
    let mut failures = Failures::default();
    slices::<f32>(&mut failures);
    slices::<f16>(&mut failures);
    slices::<bf16>(&mut failures);
    failures.finish();
}

fn biases<E: Element>(failures: &mut Failures) {
    let cases: [(&[usize], usize, usize); 6] = [
        (&[1], 1, 0),
        (&[0], 5, 0),
        (&[3, 64, 65], 17, 1),
        (&[20; 9], 530, 0),
        (&[4], 0, 1),
        (&[130], 256, 2),
    ];
    for (n, (rows, columns, addends)) in cases.into_iter().enumerate() {
        let mut data = data(n);
        let gradients: Vec<_> = rows.iter().map(|&k| matrix::<E>(&mut data, k, columns)).collect();
        let addends: Vec<Array1<E>> =
            (0..addends).map(|_| matrix::<E>(&mut data, 1, columns).row(0).to_owned()).collect();
        let mut want = Array1::zeros(columns);
        gradients.iter().for_each(|gradient| want += &wide(gradient).sum_axis(Axis(0)));
        addends.iter().for_each(|addend| want += &wide(addend));
        let (gradients, addends) = (views(&gradients), views(&addends));
        check(failures, &format!("bias {n}"), &want, |context| {
            let mut sum = Array1::from_elem(columns, E::from_f32(f32::NAN));
            let inputs = BiasInputs { addends: addends.clone(), out_backprop: gradients.clone() };
            let outputs = BiasOutputs { sum: sum.view_mut() };
            bias_add_grad_add_n(context, inputs, outputs).expect("a right call");
            sum
        });
    }
}

#[test]
pub(crate) fn sums_of_rows() {
    let mut failures = Failures::default();
    biases::<f32>(&mut failures);
    biases::<f16>(&mut failures);
    biases::<bf16>(&mut failures);
    failures.finish();
}

fn outputs(part: &mut Array2<f32>) -> SliceOutputs<'_, f32> {
    SliceOutputs { parts: vec![part.view_mut()] }
}

#[test]
fn wrong_calls_are_errors() {
    let context = Context::default();
    let zeros = |rows, columns| Array2::<f32>::zeros((rows, columns));
    let (four, five, tall) = (zeros(2, 4), zeros(2, 5), zeros(3, 4));
    let call = |addends: &[&Array2<f32>], a: &[&Array2<f32>], b: &[&Array2<f32>]| {
        let [addends, a, b] =
            [addends, a, b].map(|list| list.iter().map(|m| m.view()).collect::<Vec<_>>());
        let mut sum = zeros(4, 5);
        let (inputs, outputs) = (AddNInputs { a, b, addends }, AddNOutputs { sum: sum.view_mut() });
        add_n(&context, inputs, false, outputs).map_err(|error| error.to_string())
    };
    assert_eq!(call(&[], &[&four], &[&five]), Ok(()));
    let name = "BlockcellMatMulAddN";
    type List<'a> = &'a [&'a Array2<f32>];
    let cases: [(List<'_>, List<'_>, List<'_>, &str); 6] = [
        (&[], &[], &[], "expected 1 summands, got 0"),
        (&[], &[&four], &[&five, &five], "expected 2 matrices in a, got 1"),
        (&[], &[&tall], &[&five], "a[0] must have shape [k_0, m_0] = [2, ?], got [3, 4]"),
        (
            &[],
            &[&four, &five],
            &[&five, &five],
            "a[1] must have shape [k_1, m_0] = [2, 4], got [2, 5]",
        ),
        (
            &[],
            &[&four, &four],
            &[&five, &four],
            "b[1] must have shape [k_1, n] = [?, 5], got [2, 4]",
        ),
        (&[&four], &[&four], &[&five], "addends[0] must have shape [m, n] = [4, 5], got [2, 4]"),
    ];
    for (addends, a, b, message) in cases {
        assert_eq!(call(addends, a, b), Err(format!("{name}: {message}")));
    }
    let inputs = SliceInputs { a: four.view(), b: tall.view() };
    let part = Part { begin: 2, size: 2 };
    let mut out = zeros(2, 2);
    let refused = slice(&context, inputs, -1, &[part], outputs(&mut out));
    assert_eq!(
        refused.map_err(|error| error.to_string()),
        Err("BlockcellMatMulSlice: columns 2 to 2 + 2 are not inside of 0 to 3".to_owned())
    );
    let inputs = SliceInputs { a: four.view(), b: five.view() };
    let refused = slice(&context, inputs, -1, &[part], outputs(&mut out));
    assert!(matches!(refused, Err(Error::Shape { tensor: "b", .. })));
}
