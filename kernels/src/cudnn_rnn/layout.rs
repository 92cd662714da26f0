//! The positions of the parameters of each pseudo-layer in the buffer.

use std::ops::Range;

use super::{Attributes, InputMode, Mode};
use crate::Error;

/// The layout of the buffer `params`.
///
/// The buffer begins with the weights of each pseudo-layer: the matrices that are multiplied by its inputs, one for
/// each gate, and then those that are multiplied by its state. Each is row-major, `[num_units, inputs]`. The biases
/// follow in the same order: those of the products with the inputs and those of the products with the state,
/// `[num_units]` each. The order of the gates is i, f, c, o in an LSTM and r, i, n in a GRU. With `skip_input` the
/// first layer has no matrices for its inputs, but it has their biases. With a projection, each pseudo-layer has one
/// more matrix after those for its state, `[num_proj, num_units]`, and its state and its outputs have `num_proj`
/// columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The kind of cells.
    pub mode: Mode,
    /// The number of layers, at least 1.
    pub num_layers: usize,
    /// 1 or 2.
    pub directions: usize,
    /// The number of units in each direction of each layer.
    pub num_units: usize,
    /// The number of columns of the first layer's inputs.
    pub input_size: usize,
    /// Whether the first layer uses its inputs without multiplying them by weights.
    pub skip_input: bool,
    /// The size of the projection of the outputs of an LSTM, at most `num_units`; 0 for none.
    pub num_proj: usize,
}

/// A matrix or a bias in the buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its shape.
    pub shape: Vec<usize>,
    /// Its place in the buffer.
    pub range: Range<usize>,
}

/// The parameters of a pseudo-layer: places in the buffer.
pub(super) struct Places {
    /// `[gates * num_units, inputs]`
    pub(super) w: Range<usize>,
    /// `[gates * num_units, output_size]`
    pub(super) r: Range<usize>,
    /// `[num_proj, num_units]`; empty without a projection.
    pub(super) p: Range<usize>,
    /// Two vectors `[gates * num_units]`, one after the other.
    pub(super) biases: Range<usize>,
}

/// A network, and the sizes of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its parameters.
    pub layout: Layout,
    /// The number of steps.
    pub time: usize,
    /// The number of rows.
    pub batch: usize,
}

impl Layout {
    /// The layout of a network with these attributes and sizes.
    ///
    /// # Errors
    ///
    /// [`Error::Attribute`] for `skip_input` with different sizes, a network without layers, or a projection that is
    /// larger than `num_units` or not in an LSTM; [`Error::Overflow`] for a buffer that cannot be addressed.
    pub fn new(
        op: &'static str,
        attributes: &Attributes,
        [num_layers, num_units, input_size]: [usize; 3],
    ) -> Result<Self, Error> {
        let num_proj = attributes.projection(op)?;
        if num_proj > num_units {
            let expected = format!("num_proj must be at most num_units = {num_units}");
            return Err(Error::Attribute { op, expected, got: num_proj.to_string() });
        }
        if num_layers == 0 {
            let expected = "num_layers must be at least 1".to_owned();
            return Err(Error::Attribute { op, expected, got: "0".to_owned() });
        }
        let skip_input = match attributes.input_mode {
            InputMode::LinearInput => false,
            InputMode::AutoSelect => input_size == num_units,
            InputMode::SkipInput if input_size == num_units => true,
            InputMode::SkipInput => {
                let expected =
                    format!("with skip_input input_size must be num_units = {num_units}");
                return Err(Error::Attribute { op, expected, got: input_size.to_string() });
            }
        };
        let (mode, directions) = (attributes.rnn_mode, attributes.directions());
        let layout =
            Layout { mode, num_layers, directions, num_units, input_size, skip_input, num_proj };
        let overflow = || Error::Overflow { op, tensor: "params", shape: "[params_size]".into() };
        let largest = isize::MAX as usize / size_of::<f32>();
        // Saturating sums and products: what is too large stays so.
        if layout.weights_len(num_layers) > largest || layout.len() > largest {
            return Err(overflow());
        }
        Ok(layout)
    }

    /// The number of elements of the buffer.
    #[must_use]
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        let biases = self.pseudo_layers().saturating_mul(self.biases_len());
        self.weights_len(self.num_layers).saturating_add(biases)
    }

    /// Checks the shape of a buffer.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] for one of another rank or size.
    pub fn check_params(&self, op: &'static str, got: &[usize]) -> Result<(), Error> {
        if *got == [self.len()] {
            return Ok(());
        }
        let expected = format!("[params_size] = [{}]", self.len());
        Err(Error::shape(op, "params", expected, got))
    }

    /// The number of pseudo-layers.
    #[must_use]
    pub fn pseudo_layers(&self) -> usize {
        self.num_layers.saturating_mul(self.directions)
    }

    /// The number of columns of the outputs of one direction: `num_proj`, or `num_units` without a projection.
    #[must_use]
    pub fn output_size(&self) -> usize {
        if self.num_proj == 0 { self.num_units } else { self.num_proj }
    }

    /// The columns of the outputs of a layer.
    pub(super) fn output_columns(&self) -> usize {
        self.directions.saturating_mul(self.output_size())
    }

    /// The columns of the inputs of a layer.
    pub(super) fn columns(&self, layer: usize) -> usize {
        if layer == 0 { self.input_size } else { self.output_columns() }
    }

    /// The columns of the widest inputs or outputs of a layer.
    pub(super) fn most_columns(&self) -> usize {
        self.input_size.max(self.output_columns())
    }

    /// Whether the inputs of a layer are multiplied by matrices.
    pub(super) fn has_w(&self, layer: usize) -> bool {
        layer > 0 || !self.skip_input
    }

    /// The columns of the matrices that are multiplied by the inputs of a layer.
    fn columns_of_w(&self, layer: usize) -> usize {
        if self.has_w(layer) { self.columns(layer) } else { 0 }
    }

    /// The shapes of what [`Layout::places`] tells of a layer.
    pub(super) fn shapes(&self, layer: usize) -> [(usize, usize); 4] {
        let rows = self.rows();
        let (w, r) = ((rows, self.columns_of_w(layer)), (rows, self.output_size()));
        [w, r, (self.num_proj, self.num_units), (2, rows)]
    }

    /// The rows of the matrices of all gates.
    pub(super) fn rows(&self) -> usize {
        self.mode.gates().saturating_mul(self.num_units)
    }

    /// The number of biases of a pseudo-layer.
    fn biases_len(&self) -> usize {
        self.rows().saturating_mul(2)
    }

    /// The number of weights in one direction of a layer.
    fn weights_of(&self, layer: usize) -> usize {
        let columns = self.columns_of_w(layer).saturating_add(self.output_size());
        let projection = self.num_proj.saturating_mul(self.num_units);
        self.rows().saturating_mul(columns).saturating_add(projection)
    }

    /// The number of weights of the first layers.
    fn weights_len(&self, layers: usize) -> usize {
        let others = layers.saturating_sub(1).saturating_mul(self.weights_of(1));
        let first = if layers == 0 { 0 } else { self.weights_of(0) };
        first.saturating_add(others).saturating_mul(self.directions)
    }

    /// Where the parameters of one direction of a layer are.
    pub(super) fn places(&self, layer: usize, direction: usize) -> Places {
        let start = self.weights_len(layer) + direction * self.weights_of(layer);
        let r = start + self.rows() * self.columns_of_w(layer);
        let p = r + self.rows() * self.output_size();
        let end = start + self.weights_of(layer);
        let pseudo_layer = layer * self.directions + direction;
        let biases = self.weights_len(self.num_layers) + pseudo_layer * self.biases_len();
        Places { w: start..r, r: r..p, p: p..end, biases: biases..biases + self.biases_len() }
    }

    /// The numbers of matrices and of biases.
    #[must_use]
    pub fn counts(&self) -> [usize; 2] {
        let biases = 2 * self.mode.gates();
        let weights = biases + usize::from(self.num_proj > 0);
        [weights, biases].map(|count| self.pseudo_layers().saturating_mul(count))
    }

    /// All matrices in their order in the buffer: `[num_units, inputs]` each, and `[num_proj, num_units]`.
    pub fn weights(&self) -> impl Iterator<Item = Region> {
        let (gates, units) = (self.mode.gates(), self.num_units);
        let projections = usize::from(self.num_proj > 0);
        self.all_places().flat_map(move |(layer, Places { w, r, p, .. })| {
            let of_w = regions(w.start, gates, vec![units, self.columns_of_w(layer)]);
            let of_r = regions(r.start, gates, vec![units, self.output_size()]);
            let of_p = regions(p.start, projections, vec![self.num_proj, units]);
            of_w.chain(of_r).chain(of_p)
        })
    }

    /// All biases in their order in the buffer, `[num_units]` each.
    pub fn biases(&self) -> impl Iterator<Item = Region> {
        let (gates, units) = (self.mode.gates(), self.num_units);
        let places = self.all_places();
        places.flat_map(move |(_, all)| regions(all.biases.start, 2 * gates, vec![units]))
    }

    fn all_places(&self) -> impl Iterator<Item = (usize, Places)> {
        let both = |layer| (0..self.directions).map(move |direction| (layer, direction));
        let places = (0..self.num_layers).flat_map(both);
        places.map(|(layer, direction)| (layer, self.places(layer, direction)))
    }
}

/// Neighbouring regions of one shape.
fn regions(start: usize, count: usize, shape: Vec<usize>) -> impl Iterator<Item = Region> {
    let size: usize = shape.iter().product();
    (0..count).map(move |n| {
        let range = start + n * size..start + (n + 1) * size;
        Region { shape: shape.clone(), range }
    })
}
