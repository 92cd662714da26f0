//! The activation functions of a cell.

use super::{sigmoid, tanh};
use crate::Error;
use crate::simd::Simd;

/// A function that a cell applies to pre-activations, or to its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// The hyperbolic tangent.
    Tanh,
    /// `1 / (1 + e^-x)`
    Sigmoid,
    /// `max(x, 0)`
    Relu,
    /// `x`
    Linear,
    /// `min(max(x + 3, 0), 6) / 6`, as in Keras 3.
    HardSigmoid,
    /// `min(max(x / 5 + 1 / 2, 0), 1)`, as in Keras 2.
    HardSigmoidKeras2,
}

impl Activation {
    /// All functions.
    pub const ALL: [Activation; 6] = [
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Relu,
        Activation::Linear,
        Activation::HardSigmoid,
        Activation::HardSigmoidKeras2,
    ];

    /// Its name in the attributes of operations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Activation::Tanh => "tanh",
            Activation::Sigmoid => "sigmoid",
            Activation::Relu => "relu",
            Activation::Linear => "linear",
            Activation::HardSigmoid => "hard_sigmoid",
            Activation::HardSigmoidKeras2 => "hard_sigmoid_keras2",
        }
    }

    /// The function of a vector. NaN gives NaN.
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        // In this order of operands NaN survives.
        let within = |x, most| simd.min(most, simd.max(zero, x));
        match self {
            Activation::Tanh => tanh(simd, x),
            Activation::Sigmoid => sigmoid(simd, x),
            Activation::Relu => simd.max(zero, x),
            Activation::Linear => x,
            Activation::HardSigmoid => {
                within(x + simd.splat(3.0), simd.splat(6.0)) / simd.splat(6.0)
            }
            Activation::HardSigmoidKeras2 => within(x * simd.splat(0.2) + simd.splat(0.5), one),
        }
    }

    /// The gradient with respect to `x` from that with respect to `y`, the function of `x`.
    #[inline(always)]
    fn grad<S: Simd>(self, simd: S, d: S::F32, y: S::F32) -> S::F32 {
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        // Of NaN it is `d`, as of numbers above zero.
        let where_above_zero = |d, tested| d - simd.where_within(d, simd.max(zero, tested), zero);
        match self {
            Activation::Tanh => d * (one - y * y),
            Activation::Sigmoid => d * y * (one - y),
            Activation::Relu => where_above_zero(d, y),
            Activation::Linear => d,
            Activation::HardSigmoid => where_above_zero(d / simd.splat(6.0), y * (one - y)),
            Activation::HardSigmoidKeras2 => where_above_zero(d * simd.splat(0.2), y * (one - y)),
        }
    }

    /// The function of a number.
    pub(crate) fn of_number(self, x: f32) -> f32 {
        match self {
            Activation::Tanh => x.tanh(),
            // By a function that older systems have, too.
            #[allow(clippy::cast_possible_truncation)]
            Activation::Sigmoid => (0.5 + 0.5 * (0.5 * f64::from(x)).tanh()) as f32,
            Activation::Relu if x.is_nan() => x,
            Activation::Relu => x.max(0.0),
            Activation::Linear => x,
            Activation::HardSigmoid => (x + 3.0).clamp(0.0, 6.0) / 6.0,
            Activation::HardSigmoidKeras2 => (x * 0.2 + 0.5).clamp(0.0, 1.0),
        }
    }

    /// The derivative at `x`, given `y`, the function of `x`.
    pub(crate) fn slope(self, y: f32) -> f32 {
        let is_inside = y > 0.0 && y < 1.0;
        match self {
            Activation::Tanh => 1.0 - y * y,
            Activation::Sigmoid => y * (1.0 - y),
            Activation::Relu => f32::from(u8::from(y > 0.0)),
            Activation::Linear => 1.0,
            Activation::HardSigmoid => f32::from(u8::from(is_inside)) / 6.0,
            Activation::HardSigmoidKeras2 => f32::from(u8::from(is_inside)) * 0.2,
        }
    }
}

/// The functions of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activations {
    /// The function of the state, and of its new part (candidate or cell input).
    pub state: Activation,
    /// The function of the gates.
    pub gates: Activation,
}

impl Default for Activations {
    fn default() -> Self {
        Activations { state: Activation::Tanh, gates: Activation::Sigmoid }
    }
}

impl Activations {
    /// Those of the attributes `activation` and `recurrent_activation` of an operation.
    ///
    /// # Errors
    ///
    /// [`Error::Attribute`] for an unknown function.
    pub fn new(
        op: &'static str,
        activation: &str,
        recurrent_activation: &str,
    ) -> Result<Activations, Error> {
        let read = |attribute: &str, name: &str| {
            let found = Activation::ALL.into_iter().find(|one| one.name() == name);
            found.ok_or_else(|| {
                let names = Activation::ALL.map(Activation::name).join(", ");
                let expected = format!("{attribute} must be one of {names}");
                Error::Attribute { op, expected, got: name.to_owned() }
            })
        };
        let state = read("activation", activation)?;
        Ok(Activations { state, gates: read("recurrent_activation", recurrent_activation)? })
    }

    /// Whether they are tanh and the logistic function, for which there is code of its own: [`Usual`].
    pub(crate) fn are_usual(self) -> bool {
        self == Activations::default()
    }
}

/// The functions of a cell's equations, and gradients through them.
pub(crate) trait Functions: Copy + Send + Sync + 'static {
    /// A gate, from its pre-activation.
    fn gate<S: Simd>(self, simd: S, x: S::F32) -> S::F32;

    /// The function of the state, and of what may enter it.
    fn state<S: Simd>(self, simd: S, x: S::F32) -> S::F32;

    /// The gradient with respect to the pre-activation of the gate `y`, from that with respect to the gate.
    fn gate_grad<S: Simd>(self, simd: S, d: S::F32, y: S::F32) -> S::F32;

    /// The same through [`Functions::state`].
    fn state_grad<S: Simd>(self, simd: S, d: S::F32, y: S::F32) -> S::F32;
}

/// The logistic function for gates, and tanh.
#[derive(Clone, Copy)]
pub(crate) struct Usual;

impl Functions for Usual {
    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        sigmoid(simd, x)
    }

    #[inline(always)]
    fn state<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        tanh(simd, x)
    }

    #[inline(always)]
    fn gate_grad<S: Simd>(self, simd: S, d: S::F32, y: S::F32) -> S::F32 {
        Activation::Sigmoid.grad(simd, d, y)
    }

    #[inline(always)]
    fn state_grad<S: Simd>(self, simd: S, d: S::F32, y: S::F32) -> S::F32 {
        Activation::Tanh.grad(simd, d, y)
    }
}

/// Any functions: which ones is the same for all elements, so that the processor predicts the branches.
impl Functions for Activations {
    #[inline(always)]
    fn gate<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        self.gates.of(simd, x)
    }

    #[inline(always)]
    fn state<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        self.state.of(simd, x)
    }

    #[inline(always)]
    fn gate_grad<S: Simd>(self, simd: S, d: S::F32, y: S::F32) -> S::F32 {
        self.gates.grad(simd, d, y)
    }

    #[inline(always)]
    fn state_grad<S: Simd>(self, simd: S, d: S::F32, y: S::F32) -> S::F32 {
        self.state.grad(simd, d, y)
    }
}
