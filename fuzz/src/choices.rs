//! Arbitrary bytes as choices. Where there are none left, every choice is the first one.

use arbitrary::{Result, Unstructured};
use blockcell_kernels::lstm;
use blockcell_kernels::unfused::GateColumns;
use blockcell_kernels::{Activation, Activations};

/// Sizes at which kernels change their ways: vectors, tiles and slices of sums.
const EDGES: [usize; 14] = [16, 17, 31, 32, 33, 48, 63, 64, 65, 127, 128, 129, 200, 257];

/// Sizes of tensors that have no element.
const HUGE: [usize; 5] = [1 << 20, 1 << 33, 1 << 62, usize::MAX / 2 + 1, usize::MAX];

/// Numbers at which arithmetic goes wrong.
const SPECIAL: [f32; 10] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE,
    1e-40,
    -0.0,
    1e30,
    88.8,
];

/// The choices in some bytes, one after the other.
pub(crate) struct Choices<'b>(Unstructured<'b>);

impl<'b> Choices<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Choices(Unstructured::new(bytes))
    }

    fn byte(&mut self) -> u8 {
        self.0.arbitrary().unwrap_or(0)
    }

    /// One of the numbers below `count`, which is at most 256.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::from(self.byte()) % count
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, count: usize) -> bool {
        self.below(count) == count - 1
    }

    /// A size: mostly a small one.
    pub(crate) fn size(&mut self) -> usize {
        match self.byte() {
            byte @ 0..200 => usize::from(byte) % 17,
            byte @ 200..250 => EDGES[usize::from(byte) % EDGES.len()],
            byte => HUGE[usize::from(byte) % HUGE.len()],
        }
    }

    /// A small size, also of things that are no dimensions.
    pub(crate) fn small(&mut self) -> usize {
        self.below(5)
    }

    /// A number of steps: mostly one from 0 to `time`.
    pub(crate) fn steps(&mut self, time: usize) -> i64 {
        match self.byte() {
            byte @ 0..200 => (usize::from(byte) % time.saturating_add(1)) as i64,
            200..240 => time as i64,
            byte => {
                let beyond = (time as i64).saturating_add(1);
                [-1, beyond, i64::MIN, i64::MAX, 1 << 33][usize::from(byte) % 5]
            }
        }
    }

    /// The same as an `i32`.
    pub(crate) fn short_steps(&mut self, time: usize) -> i32 {
        let steps = self.steps(time);
        steps.clamp(i32::MIN.into(), i32::MAX.into()) as i32
    }

    pub(crate) fn number(&mut self) -> i64 {
        match self.byte() {
            byte @ 0..240 => i64::from(byte % 40) - 2,
            _ => self.0.arbitrary().unwrap_or(0),
        }
    }

    /// An attribute: mostly of usual magnitude.
    pub(crate) fn float(&mut self) -> f32 {
        match self.byte() {
            byte @ 0..220 => f32::from(byte) / 64.0 - 1.0,
            byte => SPECIAL[usize::from(byte) % SPECIAL.len()],
        }
    }

    /// Gates in any order of columns.
    pub(crate) fn gate_columns(&mut self) -> GateColumns {
        let mut order = [0, 1, 2, 3];
        for place in 0..3 {
            order.swap(place, place + self.below(4 - place));
        }
        GateColumns::new("", &order).expect("a permutation")
    }

    /// Functions of a cell.
    pub(crate) fn activations(&mut self) -> Activations {
        let [state, gates] = [(); 2].map(|()| Activation::ALL[self.below(Activation::ALL.len())]);
        if self.flag() { Activations::default() } else { Activations { state, gates } }
    }

    pub(crate) fn lstm_attributes(&mut self, use_peephole: bool) -> lstm::Attributes {
        lstm::Attributes { use_peephole, forget_bias: self.float(), cell_clip: self.float() }
    }

    /// So many numbers: pseudo-random ones between -1 and 1, and at some places one of another kind.
    pub(crate) fn floats(&mut self, len: usize) -> impl Iterator<Item = f32> + use<> {
        let mut state = u32::from(self.byte());
        let (special, every) = if self.flag() {
            (SPECIAL[self.below(SPECIAL.len())], 1 + self.below(40))
        } else {
            (0.0, usize::MAX)
        };
        (1..=len).map(move |n| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if n % every == 0 { special } else { (state >> 8) as f32 / (1 << 23) as f32 - 1.0 }
        })
    }

    /// Changes a dimension of one of the shapes, once in so many times.
    pub(crate) fn disturb<'s>(
        &mut self,
        once_in: usize,
        shapes: impl IntoIterator<Item = &'s mut Vec<usize>>,
    ) {
        if !self.once_in(once_in) {
            return;
        }
        let mut dims: Vec<_> = shapes.into_iter().flatten().collect();
        if dims.is_empty() {
            return;
        }
        let n = self.below(dims.len().min(256));
        let to = self.size();
        let dim = &mut *dims[n];
        *dim =
            [dim.wrapping_add(1), dim.saturating_sub(1), 0, dim.wrapping_mul(2), to][self.below(5)];
    }
}

/// The product of some sizes, if a tensor of this shape is small enough for a quick call.
pub(crate) fn elements(shape: &[usize]) -> Result<usize> {
    const MOST: usize = 1 << 13;
    let fits = |&len: &usize| len <= MOST;
    // ndarray takes no shape whose sizes other than 0 are too many bytes.
    let addressable = shape
        .iter()
        .filter(|&&size| size > 0)
        .try_fold(8, |len: usize, &size| len.checked_mul(size));
    addressable
        .filter(|&bytes| bytes <= isize::MAX as usize)
        .ok_or(arbitrary::Error::IncorrectFormat)?;
    let len = if shape.contains(&0) {
        Some(0)
    } else {
        shape.iter().try_fold(1, |len: usize, &size| len.checked_mul(size))
    };
    len.filter(fits).ok_or(arbitrary::Error::IncorrectFormat)
}
