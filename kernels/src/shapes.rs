//! Checks of the shapes of tensors that are in lists, or have a shape of no table.

use std::fmt;

use ndarray::{ArrayBase, Data, Dimension};

use crate::Error;
use crate::error::known;
use crate::ops::PartialShape;

/// One tensor of a list: the name of the list, and the tensor's place in it.
pub(crate) type Name = (&'static str, usize);

/// A dimension, and what is known of it so far.
pub(crate) struct Dim<'a> {
    symbol: &'static str,
    /// Which of several dimensions with this symbol.
    index: Option<usize>,
    number: &'a mut Option<usize>,
}

impl<'a> Dim<'a> {
    pub(crate) fn new(symbol: &'static str, number: &'a mut Option<usize>) -> Self {
        Dim { symbol, index: None, number }
    }

    pub(crate) fn indexed(
        symbol: &'static str,
        index: usize,
        number: &'a mut Option<usize>,
    ) -> Self {
        Dim { symbol, index: Some(index), number }
    }
}

impl fmt::Display for Dim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.symbol)?;
        self.index.map_or(Ok(()), |index| write!(f, "_{index}"))
    }
}

/// Checks what is known of a shape against `dims`, which take their numbers from it.
pub(crate) fn bind(
    op: &'static str,
    (tensor, index): Name,
    got: &PartialShape,
    dims: &mut [Dim<'_>],
) -> Result<(), Error> {
    let Some(got) = got else { return Ok(()) };
    let fits = |(dim, &got): (&Dim<'_>, &Option<usize>)| {
        dim.number.zip(got).is_none_or(|(number, got)| number == got)
    };
    if got.len() != dims.len() || !dims.iter().zip(got).all(fits) {
        let symbols: Vec<_> = dims.iter().map(Dim::to_string).collect();
        let numbers: Vec<_> = dims.iter().map(|dim| *dim.number).collect();
        let expected = format!("[{}] = [{}]", symbols.join(", "), known(&numbers));
        return Err(Error::ListShape { op, tensor, index, expected, got: got.clone() });
    }
    for (dim, got) in dims.iter_mut().zip(got) {
        *dim.number = dim.number.or(*got);
    }
    Ok(())
}

/// Checks that a tensor of float elements with such dimensions can be addressed.
pub(crate) fn check_size(
    op: &'static str,
    tensor: &'static str,
    symbols: &str,
    dims: &[Option<usize>],
) -> Result<(), Error> {
    let size = dims
        .iter()
        .try_fold(size_of::<f32>(), |size, dim| size.checked_mul(dim.unwrap_or(1).max(1)));
    match size.and_then(|size| isize::try_from(size).ok()) {
        Some(_) => Ok(()),
        None => Err(Error::Overflow { op, tensor, shape: symbols.to_owned() }),
    }
}

/// All that is known of a view's shape.
pub(crate) fn shape_of<S: Data, D: Dimension>(view: &ArrayBase<S, D>) -> PartialShape {
    Some(view.shape().iter().copied().map(Some).collect())
}

/// Checks that a view lies in memory as the kernels read it.
pub(crate) fn check_layout<S: Data, D: Dimension>(
    op: &'static str,
    tensor: &'static str,
    view: &ArrayBase<S, D>,
) -> Result<(), Error> {
    if view.is_standard_layout() { Ok(()) } else { Err(Error::Layout { op, tensor }) }
}

/// Checks the shape of an output.
pub(crate) fn check_output<S: Data, D: Dimension>(
    op: &'static str,
    tensor: Name,
    view: &ArrayBase<S, D>,
    expected: &[Option<usize>],
) -> Result<(), Error> {
    let (list, index) = tensor;
    let got = view.shape();
    if expected.iter().copied().eq(got.iter().copied().map(Some)) {
        return Ok(());
    }
    let expected = format!("[{}]", known(expected));
    let got = got.iter().copied().map(Some).collect();
    Err(Error::ListShape { op, tensor: list, index, expected, got })
}
