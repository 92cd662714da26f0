//! The checks of a call.

use ndarray::{ArrayBase, Data, Dimension};

use super::layout::Network;
use super::memory::Activations;
use super::{Attributes, Layout, Mode};
use crate::Error;
use crate::error::known;

/// The shapes of the inputs of a call.
#[derive(Clone, Copy, Debug)]
pub struct Shapes<'a> {
    /// `[time, batch, input_size]`, or `[batch, time, input_size]` without `time_major`.
    pub input: &'a [usize],
    /// `[num_layers * directions, batch, num_units]`, or the batch first.
    pub input_h: &'a [usize],
    /// The same in an LSTM, otherwise any.
    pub input_c: &'a [usize],
    /// `[params_size]`
    pub params: &'a [usize],
    /// `[batch]`, where each row has a length of its own.
    pub sequence_lengths: Option<&'a [usize]>,
}

/// The shapes of the further inputs of a backward pass.
#[derive(Clone, Copy, Debug)]
pub struct BackpropShapes<'a> {
    /// output, output_h and output_c.
    pub outputs: [&'a [usize]; 3],
    /// The gradients with respect to these.
    pub backprops: [&'a [usize]; 3],
    /// The number of elements of the reserve space in memory of `f32`, and the factor from there to the
    /// tensor's: 2 of 16 bits.
    pub reserve_space: (&'a [usize], usize),
}

/// A dimension in symbols, and what it must be, if that is known.
type Dim = (&'static str, Option<usize>);

const PSEUDO_LAYERS: &str = "num_layers * directions";
const UNITS: Dim = ("num_units", None);

impl Network {
    /// Checks the shapes of the inputs of a call, and its attributes.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] for the first tensor that does not fit, [`Error::Attribute`] for an attribute that
    /// does not, [`Error::Overflow`] for sizes that cannot be addressed.
    pub fn new(
        op: &'static str,
        attributes: &Attributes,
        shapes: &Shapes<'_>,
    ) -> Result<Self, Error> {
        if !(0.0..=1.0).contains(&attributes.dropout) {
            let expected = "dropout must be between 0 and 1".to_owned();
            return Err(Error::Attribute { op, expected, got: attributes.dropout.to_string() });
        }
        let check = Check { op, time_major: attributes.time_major };
        let [time, batch, input_size] = check.tensor(
            "input",
            shapes.input,
            [("time", None), ("batch", None), ("input_size", None)],
        )?;
        let num_proj = attributes.projection(op)?;
        let columns = if num_proj == 0 { UNITS } else { ("num_proj", Some(num_proj)) };
        let dims = [(PSEUDO_LAYERS, None), ("batch", Some(batch)), columns];
        let [pseudo_layers, _, output_size] = check.tensor("input_h", shapes.input_h, dims)?;
        let directions = attributes.directions();
        if pseudo_layers == 0 || !pseudo_layers.is_multiple_of(directions) {
            let axis = if attributes.time_major { "first" } else { "second" };
            let expected = format!(
                "the {axis} axis of input_h, {PSEUDO_LAYERS}, must be a multiple of {directions} above 0"
            );
            return Err(Error::Attribute { op, expected, got: pseudo_layers.to_string() });
        }
        let num_units = if num_proj == 0 {
            output_size
        } else {
            let dims = [(PSEUDO_LAYERS, Some(pseudo_layers)), ("batch", Some(batch)), UNITS];
            check.tensor("input_c", shapes.input_c, dims)?[2]
        };
        let sizes = [pseudo_layers / directions, num_units, input_size];
        let network = Network { layout: Layout::new(op, attributes, sizes)?, time, batch };
        if attributes.rnn_mode == Mode::Lstm {
            check.tensor("input_c", shapes.input_c, network.cell_state())?;
        }
        network.layout.check_params(op, shapes.params)?;
        if let Some(lengths) = shapes.sequence_lengths {
            check.vector("sequence_lengths", lengths, ("batch", batch))?;
        }
        network.check_sizes(op, attributes)?;
        Ok(network)
    }

    /// Checks the shapes of the further inputs of a backward pass.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] for the first tensor that does not fit.
    pub fn check_backprop(
        &self,
        op: &'static str,
        attributes: &Attributes,
        shapes: &BackpropShapes<'_>,
    ) -> Result<(), Error> {
        let check = Check { op, time_major: attributes.time_major };
        let names = [
            ["output", "output_h", "output_c"],
            ["output_backprop", "output_h_backprop", "output_c_backprop"],
        ];
        for (names, shapes) in names.into_iter().zip([shapes.outputs, shapes.backprops]) {
            check.tensor(names[0], shapes[0], self.output())?;
            check.tensor(names[1], shapes[1], self.state())?;
            if self.layout.mode == Mode::Lstm {
                check.tensor(names[2], shapes[2], self.cell_state())?;
            }
        }
        let (got, factor) = shapes.reserve_space;
        let expected = self.reserve_space(attributes).saturating_mul(factor);
        check.vector("reserve_space", got, ("reserve_space_size", expected)).map(|_| ())
    }

    /// Checks the lengths of the rows.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] for the first one that is negative or above `time`.
    pub fn check_lengths(&self, op: &'static str, lengths: &[i32]) -> Result<(), Error> {
        let fits = |&length: &i32| usize::try_from(length).is_ok_and(|n| n <= self.time);
        match lengths.iter().position(|length| !fits(length)) {
            None => Ok(()),
            Some(n) => Err(Error::Value {
                op,
                tensor: "sequence_lengths",
                index: Some(n),
                time: self.time,
                got: lengths[n].into(),
            }),
        }
    }

    /// The number of elements of `f32` that a forward pass in training leaves for the backward pass.
    ///
    /// With `N = time * batch * num_units` it is `7 N` (LSTM), `5 N` (GRU) or `N` for each pseudo-layer, and
    /// `directions * N` for each pair of neighbouring layers, twice if there is dropout. With `M = time * batch *
    /// num_proj`, a projection makes this `7 N + M`, and `directions * M`.
    #[must_use]
    pub fn reserve_space(&self, attributes: &Attributes) -> usize {
        Activations::new(*self, attributes.dropout > 0.0, true).len()
    }

    /// The shape of the output.
    #[must_use]
    pub fn output_shape(&self, attributes: &Attributes) -> [usize; 3] {
        in_order(attributes.time_major, self.output()).map(|(_, size)| size.unwrap_or(0))
    }

    /// The number of elements of the outputs of a pseudo-layer.
    pub(super) fn outputs(&self) -> usize {
        self.time.saturating_mul(self.batch).saturating_mul(self.layout.output_size())
    }

    /// The number of cells in all steps of a pseudo-layer.
    pub(super) fn cells(&self) -> usize {
        self.time.saturating_mul(self.batch).saturating_mul(self.layout.num_units)
    }

    fn output(&self) -> [Dim; 3] {
        let projected = self.layout.num_proj > 0;
        let symbol = if projected { "directions * num_proj" } else { "directions * num_units" };
        let columns = (symbol, Some(self.layout.output_columns()));
        [("time", Some(self.time)), ("batch", Some(self.batch)), columns]
    }

    fn state(&self) -> [Dim; 3] {
        let symbol = if self.layout.num_proj > 0 { "num_proj" } else { "num_units" };
        self.state_of((symbol, Some(self.layout.output_size())))
    }

    fn cell_state(&self) -> [Dim; 3] {
        self.state_of(("num_units", Some(self.layout.num_units)))
    }

    fn state_of(&self, columns: Dim) -> [Dim; 3] {
        let pseudo_layers = (PSEUDO_LAYERS, Some(self.layout.pseudo_layers()));
        [pseudo_layers, ("batch", Some(self.batch)), columns]
    }

    /// Checks that what follows from the inputs can be addressed. A dimension of 0 counts as 1, as in `ndarray`.
    fn check_sizes(&self, op: &'static str, attributes: &Attributes) -> Result<(), Error> {
        let whole = |dims: [usize; 3]| {
            dims.iter().fold(size_of::<f32>(), |size, &dim| size.saturating_mul(dim.max(1)))
        };
        let columns = self.layout.most_columns();
        let reserve_space = self.reserve_space(attributes).saturating_mul(size_of::<f32>());
        let sizes =
            [("output", whole([self.time, self.batch, columns])), ("reserve_space", reserve_space)];
        match sizes.into_iter().find(|&(_, size)| isize::try_from(size).is_err()) {
            None => Ok(()),
            Some((tensor, _)) => {
                let shape = "time * batch * num_units and more".to_owned();
                Err(Error::Overflow { op, tensor, shape })
            }
        }
    }
}

/// Puts dimensions in the order of tensors; it is its own inverse.
fn in_order<T>(time_major: bool, [first, batch, last]: [T; 3]) -> [T; 3] {
    if time_major { [first, batch, last] } else { [batch, first, last] }
}

/// Checks shapes of tensors.
struct Check {
    op: &'static str,
    time_major: bool,
}

impl Check {
    /// Checks a shape whose first two dimensions may change places, and returns it in the order of `dims`.
    fn tensor(
        &self,
        tensor: &'static str,
        got: &[usize],
        dims: [Dim; 3],
    ) -> Result<[usize; 3], Error> {
        let got = self.fits(tensor, got, in_order(self.time_major, dims))?;
        Ok(in_order(self.time_major, got))
    }

    fn vector(
        &self,
        tensor: &'static str,
        got: &[usize],
        (symbol, size): (&'static str, usize),
    ) -> Result<[usize; 1], Error> {
        self.fits(tensor, got, [(symbol, Some(size))])
    }

    fn fits<const N: usize>(
        &self,
        tensor: &'static str,
        got: &[usize],
        dims: [Dim; N],
    ) -> Result<[usize; N], Error> {
        let fits = |sizes: &[usize; N]| {
            sizes.iter().zip(&dims).all(|(&got, (_, size))| size.is_none_or(|size| size == got))
        };
        if let Some(sizes) = got.try_into().ok().filter(fits) {
            return Ok(sizes);
        }
        let symbols = dims.map(|(symbol, _)| symbol).join(", ");
        let sizes = dims.map(|(_, size)| size);
        let expected = if sizes.iter().all(Option::is_none) {
            format!("[{symbols}]")
        } else {
            format!("[{symbols}] = [{}]", known(&sizes))
        };
        Err(Error::shape(self.op, tensor, expected, got))
    }
}

/// Checks the shape and the layout of a view.
pub(super) fn check_view<S: Data, D: Dimension>(
    op: &'static str,
    tensor: &'static str,
    view: &ArrayBase<S, D>,
    expected: &[usize],
) -> Result<(), Error> {
    let got = view.shape();
    if got != expected {
        return Err(Error::shape(op, tensor, format!("{expected:?}"), got));
    }
    if view.is_standard_layout() { Ok(()) } else { Err(Error::Layout { op, tensor }) }
}
