//! The order of the gates in the columns of an LSTM cell's weights.

use crate::Error;
use crate::lstm::step::{GateOrder, ICFO};

/// The order of a cell's gates in the columns of its weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GateColumns(GateOrder);

impl GateColumns {
    /// Reads the attribute `gate_order` of an operation: the positions of the input gate, the cell input, the forget
    /// gate and the output gate.
    ///
    /// # Errors
    ///
    /// [`Error::Attribute`] if these are not the numbers from 0 to 3.
    pub fn new(op: &'static str, gate_order: &[i64]) -> Result<GateColumns, Error> {
        let place = |wanted: usize| {
            let number = *gate_order.get(wanted)?;
            let is_new = !gate_order[..wanted].contains(&number);
            usize::try_from(number).ok().filter(|&number| is_new && number < 4)
        };
        match [0, 1, 2, 3].map(place) {
            [Some(i), Some(ci), Some(f), Some(o)] if gate_order.len() == 4 => {
                Ok(GateColumns([i, ci, f, o]))
            }
            _ => {
                let expected = "gate_order must have each of 0, 1, 2 and 3 once".to_owned();
                Err(Error::Attribute { op, expected, got: format!("{gate_order:?}") })
            }
        }
    }

    pub(super) fn order(self) -> GateOrder {
        self.0
    }
}

/// Input gate, cell input, forget gate, output gate: the order of `LSTMBlockCell`.
impl Default for GateColumns {
    fn default() -> GateColumns {
        GateColumns(ICFO)
    }
}
