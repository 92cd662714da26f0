//! Checks of shapes whose dimensions are those of one call alone, such as those of a product.

use std::fmt;

use crate::ops::{Op, PartialShape};
use crate::{Error, error};

/// One tensor of a call: its name, and its place in a list.
pub(crate) type Name = (&'static str, Option<usize>);

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
    op: &'static Op,
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
        let expected = format!("[{}] = {}", symbols.join(", "), error::shape(&numbers));
        return Err(Error::Shape { op: op.name, tensor, index, expected, got: got.clone() });
    }
    for (dim, got) in dims.iter_mut().zip(got) {
        *dim.number = dim.number.or(*got);
    }
    Ok(())
}
