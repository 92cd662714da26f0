//! The functions of a cell: those that most have, and others by their names.

use super::{expm1_of_negative, log1p_of_exp, sigmoid, tanh};
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
    /// `min(max(x + 3, 0), 6) / 6`, as Keras 3 has it.
    HardSigmoid,
    /// `min(max(x / 5 + 1 / 2, 0), 1)`, as Keras 2 has it.
    HardSigmoidKeras2,
    /// `x / (1 + |x|)`
    Softsign,
    /// `ln(1 + e^x)`
    Softplus,
    /// `x` above 0, and `e^x - 1` below (Clevert et al., 2015).
    Elu,
    /// `1.0507 x` above 0, and `1.7581 (e^x - 1)` below (Klambauer et al., 2017).
    Selu,
}

/// The factor of `x` in [`Activation::Selu`], and that of `e^x - 1`.
const SELU: [f32; 2] = [1.050_700_9, 1.758_099_3];

impl Activation {
    /// All that there are.
    pub const ALL: [Activation; 10] = [
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::Relu,
        Activation::Linear,
        Activation::HardSigmoid,
        Activation::HardSigmoidKeras2,
        Activation::Softsign,
        Activation::Softplus,
        Activation::Elu,
        Activation::Selu,
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
            Activation::Softsign => "softsign",
            Activation::Softplus => "softplus",
            Activation::Elu => "elu",
            Activation::Selu => "selu",
        }
    }

    /// The function of a vector. NaN gives NaN.
    #[inline(always)]
    fn of<S: Simd>(self, simd: S, x: S::F32) -> S::F32 {
        let (zero, one) = (simd.splat(0.0), simd.splat(1.0));
        // In this order of operands NaN survives.
        let within = |x, most| simd.min(most, simd.max(zero, x));
        let below_zero = |x| expm1_of_negative(simd, simd.min(zero, x));
        match self {
            Activation::Tanh => tanh(simd, x),
            Activation::Sigmoid => sigmoid(simd, x),
            Activation::Relu => simd.max(zero, x),
            Activation::Linear => x,
            Activation::HardSigmoid => {
                within(x + simd.splat(3.0), simd.splat(6.0)) / simd.splat(6.0)
            }
            Activation::HardSigmoidKeras2 => within(x * simd.splat(0.2) + simd.splat(0.5), one),
            Activation::Softsign => x / (one + simd.abs(x)),
            Activation::Softplus => simd.max(zero, x) + log1p_of_exp(simd, zero - simd.abs(x)),
            Activation::Elu => simd.max(zero, x) + below_zero(x),
            Activation::Selu => {
                let [above, below] = SELU.map(|factor| simd.splat(factor));
                above * simd.max(zero, x) + below * below_zero(x)
            }
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
            Activation::Softsign => {
                let rest = one - simd.abs(y);
                d * rest * rest
            }
            // The derivative is the logistic function of x.
            Activation::Softplus => zero - d * expm1_of_negative(simd, zero - y),
            Activation::Elu => d * (one + simd.min(zero, y)),
            Activation::Selu => {
                let [above, below] = SELU.map(|factor| simd.splat(factor));
                d * above + where_above_zero(d * (y + (below - above)), zero - y)
            }
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
            Activation::Softsign => x / (1.0 + x.abs()),
            // Older systems have no version of the exponential function that the linker would take.
            #[allow(clippy::cast_possible_truncation)]
            Activation::Softplus => {
                let root = (-0.5 * f64::from(x.abs())).exp_m1() + 1.0;
                (f64::from(x).max(0.0) + (root * root).ln_1p()) as f32
            }
            Activation::Elu if x < 0.0 => x.exp_m1(),
            Activation::Elu => x,
            Activation::Selu if x < 0.0 => SELU[1] * x.exp_m1(),
            Activation::Selu => SELU[0] * x,
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
            Activation::Softsign => (1.0 - y.abs()).powi(2),
            Activation::Softplus => -(-y).exp_m1(),
            Activation::Elu => 1.0 + y.min(0.0),
            Activation::Selu if y < 0.0 => y + SELU[1],
            Activation::Selu => SELU[0],
        }
    }
}

/// The functions of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activations {
    /// Of what may enter the state, and of the state.
    pub state: Activation,
    /// Of the gates.
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
    /// [`Error::Attribute`] if a function is not known.
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
