//! Tensors of any element type, and the views of them that the kernels take.

use std::slice;

use arbitrary::Result;
use blockcell_kernels::Element;
use blockcell_kernels::ops::Source;
use half::{bf16, f16};
use ndarray::{ArrayView, ArrayViewMut, Dimension};

use crate::choices::{Choices, elements};

/// Elements, in memory of exactly their number.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Float(Box<[f32]>),
    BFloat16(Box<[bf16]>),
    Half(Box<[f16]>),
    Short(Box<[i32]>),
    Long(Box<[i64]>),
    Byte(Box<[u8]>),
}

/// A type of elements.
pub(crate) trait Held: Sized {
    fn read(values: &Values) -> &[Self];
    fn write(values: &mut Values) -> &mut [Self];
    fn values(elements: Box<[Self]>) -> Values;
}

macro_rules! held {
    ($($type:ty = $kind:ident),+ $(,)?) => {
        $(impl Held for $type {
            fn read(values: &Values) -> &[Self] {
                match values {
                    Values::$kind(elements) => elements,
                    _ => unreachable!("a tensor of another type"),
                }
            }

            fn write(values: &mut Values) -> &mut [Self] {
                match values {
                    Values::$kind(elements) => elements,
                    _ => unreachable!("a tensor of another type"),
                }
            }

            fn values(elements: Box<[Self]>) -> Values {
                Values::$kind(elements)
            }
        })+
    };
}

held!(f32 = Float, bf16 = BFloat16, f16 = Half, i32 = Short, i64 = Long, u8 = Byte);

#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) shape: Vec<usize>,
    values: Values,
}

impl Tensor {
    /// Numbers to compute with.
    pub(crate) fn of<E: Element + Held>(
        choices: &mut Choices<'_>,
        shape: &[usize],
    ) -> Result<Self> {
        let len = elements(shape)?;
        let elements = choices.floats(len).map(E::from_f32).collect();
        Ok(Tensor { shape: shape.to_vec(), values: E::values(elements) })
    }

    /// One for each shape.
    pub(crate) fn all<E: Element + Held>(
        choices: &mut Choices<'_>,
        shapes: &[Vec<usize>],
    ) -> Result<Vec<Self>> {
        shapes.iter().map(|shape| Tensor::of::<E>(choices, shape)).collect()
    }

    /// Something to be written.
    pub(crate) fn zeros<E: Element + Held>(shape: &[usize]) -> Result<Self> {
        let elements = vec![E::from_f32(0.0); elements(shape)?].into();
        Ok(Tensor { shape: shape.to_vec(), values: E::values(elements) })
    }

    /// Of these elements, which must be as many as the shape says.
    pub(crate) fn new<E: Held>(shape: &[usize], elements: Vec<E>) -> Self {
        Tensor { shape: shape.to_vec(), values: E::values(elements.into()) }
    }

    pub(crate) fn fill(&mut self, value: f32) {
        match &mut self.values {
            Values::Float(elements) => elements.fill(value),
            Values::BFloat16(elements) => elements.fill(bf16::from_f32(value)),
            Values::Half(elements) => elements.fill(f16::from_f32(value)),
            Values::Short(_) | Values::Long(_) | Values::Byte(_) => {
                unreachable!("nothing is written to these")
            }
        }
    }

    /// Whether both have the same bits.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (&self.values, &other.values) {
            (Values::Float(a), Values::Float(b)) => {
                a.iter().map(|a| a.to_bits()).eq(b.iter().map(|b| b.to_bits()))
            }
            (Values::BFloat16(a), Values::BFloat16(b)) => {
                a.iter().map(|a| a.to_bits()).eq(b.iter().map(|b| b.to_bits()))
            }
            (Values::Half(a), Values::Half(b)) => {
                a.iter().map(|a| a.to_bits()).eq(b.iter().map(|b| b.to_bits()))
            }
            _ => false,
        }
    }

    pub(crate) fn elements<E: Held>(&self) -> &[E] {
        E::read(&self.values)
    }

    pub(crate) fn elements_mut<E: Held>(&mut self) -> &mut [E] {
        E::write(&mut self.values)
    }

    pub(crate) fn view<E: Held, D: Dimension>(&self) -> ArrayView<'_, E, D> {
        let view = ArrayView::from_shape(dimension::<D>(&self.shape), E::read(&self.values));
        view.expect("as large as its shape")
    }

    pub(crate) fn view_mut<E: Held, D: Dimension>(&mut self) -> ArrayViewMut<'_, E, D> {
        let shape = dimension::<D>(&self.shape);
        ArrayViewMut::from_shape(shape, E::write(&mut self.values)).expect("as large as its shape")
    }
}

fn dimension<D: Dimension>(shape: &[usize]) -> D {
    let mut dimension = D::zeros(shape.len());
    dimension.slice_mut().copy_from_slice(shape);
    dimension
}

/// Views of all.
pub(crate) fn views<E: Held, D: Dimension>(tensors: &[Tensor]) -> Vec<ArrayView<'_, E, D>> {
    tensors.iter().map(Tensor::view).collect()
}

/// Tensors that are read, in the order of an operation.
pub(crate) struct Inputs<'a>(pub(crate) Vec<&'a Tensor>);

impl<'a> Inputs<'a> {
    fn take(&mut self) -> &'a Tensor {
        self.0.remove(0)
    }
}

impl<'a, E: Held, D: Dimension> Source<ArrayView<'a, E, D>> for Inputs<'a> {
    fn next(&mut self) -> ArrayView<'a, E, D> {
        self.take().view()
    }
}

/// A number of steps, which is never negative in the Rust API.
impl Source<usize> for Inputs<'_> {
    fn next(&mut self) -> usize {
        usize::try_from(self.take().elements::<i64>()[0]).unwrap_or(usize::MAX)
    }
}

/// Tensors that are written, in the order of an operation.
pub(crate) struct Outputs<'a>(pub(crate) slice::IterMut<'a, Tensor>);

impl<'a, E: Held, D: Dimension> Source<ArrayViewMut<'a, E, D>> for Outputs<'a> {
    fn next(&mut self) -> ArrayViewMut<'a, E, D> {
        self.0.next().expect("as many as the operation has").view_mut()
    }
}
