//! Tables of the tensors of each operation, written apart from those of the library.
//!
//! A table is a list of pieces such as `"x:T,B,D w:D+C,4C"`: names with dimensions in time, batch,
//! input and cell size.

use crate::common::data::Sizes;

/// The pieces of a table.
pub(crate) type Table = &'static [&'static str];

pub(crate) const LSTM_WEIGHTS: &str = "w:D+C,4C wci:I wcf:F wco:O b:4C";
pub(crate) const LSTM_WEIGHT_GRADS: &str =
    "w_grad:D+C,4C wci_grad:I wcf_grad:F wco_grad:O b_grad:4C";
pub(crate) const LSTM_STEPS: &str = "i:T,B,C cs:T,B,C f:T,B,C o:T,B,C ci:T,B,C co:T,B,C h:T,B,C";
pub(crate) const GRU_WEIGHTS: &str = "w_ru:D+C,2C w_c:D+C,C b_ru:2C b_c:C";
pub(crate) const GRU_WEIGHT_GRADS: &str = "w_ru_grad:D+C,2C w_c_grad:D+C,C b_ru_grad:2C b_c_grad:C";
pub(crate) const GRU_STEPS: &str = "r:T,B,C u:T,B,C c:T,B,C hc:T,B,C h:T,B,C";

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) name: &'static str,
    /// Such as `"B"` or `"D+C"`.
    pub(crate) dims: Vec<&'static str>,
}

/// The rows of a table.
pub(crate) fn rows(table: Table) -> Vec<Row> {
    let row = |text: &'static str| {
        let (name, dims) = text.split_once(':').expect("a name and dimensions");
        Row { name, dims: dims.split(',').filter(|dim| !dim.is_empty()).collect() }
    };
    table.iter().flat_map(|piece| piece.split(' ')).map(row).collect()
}

impl Row {
    /// The shape for some sizes. Optional vectors that are not used have odd lengths.
    pub(crate) fn shape(&self, sizes: Sizes, uses_optional: bool) -> Vec<usize> {
        let symbol = |symbol: char| match symbol {
            'T' => sizes.time,
            'B' => sizes.batch,
            'D' => sizes.input_size,
            'C' => sizes.cell_size,
            'I' | 'F' | 'O' | 'H' if uses_optional => sizes.cell_size,
            'I' | 'H' => sizes.cell_size + 3,
            'F' => 0,
            'O' => sizes.cell_size,
            _ => panic!("no symbol {symbol}"),
        };
        let term = |term: &str| match term.strip_prefix(|c: char| c.is_ascii_digit()) {
            Some(rest) => term[..1].parse::<usize>().expect("a digit") * value(rest, symbol),
            None => value(term, symbol),
        };
        self.dims.iter().map(|dim| dim.split('+').map(term).sum()).collect()
    }
}

fn value(symbols: &str, symbol: impl Fn(char) -> usize) -> usize {
    symbols.chars().map(symbol).product()
}
