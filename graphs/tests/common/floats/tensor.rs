//! Tensors of numbers, and what TensorFlow's small operations make of them. None stands for an error.

/// A tensor. Whole numbers and truth values are numbers, too.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) elements: Vec<f64>,
}

impl Tensor {
    pub(crate) fn new(shape: Vec<usize>, elements: Vec<f64>) -> Tensor {
        assert_eq!(shape.iter().product::<usize>(), elements.len());
        Tensor { shape, elements }
    }

    pub(crate) fn scalar(value: f64) -> Tensor {
        Tensor::new(Vec::new(), vec![value])
    }

    pub(crate) fn vector(elements: Vec<f64>) -> Tensor {
        Tensor::new(vec![elements.len()], elements)
    }

    pub(crate) fn filled(shape: &[usize], value: f64) -> Tensor {
        Tensor::new(shape.to_vec(), vec![value; shape.iter().product()])
    }

    pub(crate) fn number(&self) -> Option<f64> {
        self.shape.is_empty().then(|| self.elements[0])
    }

    /// Sizes, places or axes.
    pub(crate) fn sizes(&self) -> Option<Vec<i64>> {
        (self.shape.len() <= 1).then(|| self.elements.iter().map(|&one| one as i64).collect())
    }

    pub(crate) fn map(&self, of: impl Fn(f64) -> f64) -> Tensor {
        Tensor::new(self.shape.clone(), self.elements.iter().map(|&one| of(one)).collect())
    }

    /// Element by element, broadcast.
    pub(crate) fn zip(&self, other: &Tensor, of: impl Fn(f64, f64) -> f64) -> Option<Tensor> {
        let shape = broadcast(&self.shape, &other.shape)?;
        let (left, right) = (self.spread(&shape)?, other.spread(&shape)?);
        let pairs = left.elements.iter().zip(&right.elements);
        Some(Tensor::new(shape, pairs.map(|(&left, &right)| of(left, right)).collect()))
    }

    pub(crate) fn plus(&self, other: &Tensor) -> Option<Tensor> {
        self.zip(other, |left, right| left + right)
    }

    pub(crate) fn times(&self, other: &Tensor) -> Option<Tensor> {
        self.zip(other, |left, right| left * right)
    }

    /// Broadcast to a shape.
    pub(crate) fn spread(&self, shape: &[usize]) -> Option<Tensor> {
        if broadcast(&self.shape, shape)? != shape {
            return None;
        }
        let missing = shape.len() - self.shape.len();
        let elements = (0..shape.iter().product()).map(|place| {
            let (mut rest, mut from, mut stride) = (place, 0, 1);
            for axis in (0..shape.len()).rev() {
                let at = rest % shape[axis];
                rest /= shape[axis];
                if axis >= missing {
                    let size = self.shape[axis - missing];
                    from += stride * if size == 1 { 0 } else { at };
                    stride *= size;
                }
            }
            self.elements[from]
        });
        Some(Tensor::new(shape.to_vec(), elements.collect()))
    }

    /// Added up to a shape that broadcasts to this one.
    pub(crate) fn sum_to(&self, shape: &[usize]) -> Option<Tensor> {
        let places = Tensor::new(
            shape.to_vec(),
            (0..shape.iter().product::<usize>()).map(|place| place as f64).collect(),
        );
        let mut sum = Tensor::filled(shape, 0.0);
        for (&place, value) in places.spread(&self.shape)?.elements.iter().zip(&self.elements) {
            sum.elements[place as usize] += value;
        }
        Some(sum)
    }

    /// Added up along axes.
    pub(crate) fn sum(&self, axes: &[i64], keeps: bool) -> Option<Tensor> {
        let axes = axes.iter().map(|&axis| self.axis(axis as f64)).collect::<Option<Vec<_>>>()?;
        let mut small = self.shape.clone();
        axes.iter().for_each(|&axis| small[axis] = 1);
        let sum = self.sum_to(&small)?;
        if keeps {
            return Some(sum);
        }
        let left = (0..small.len()).filter(|axis| !axes.contains(axis)).map(|axis| small[axis]);
        Some(Tensor::new(left.collect(), sum.elements))
    }

    pub(crate) fn reshaped(&self, shape: &[i64]) -> Option<Tensor> {
        let mut sizes = shape.iter().filter(|&&size| size >= 0);
        let known = sizes.try_fold(1_i64, |product, &size| product.checked_mul(size))?;
        let open = shape.iter().filter(|&&size| size < 0).count();
        let count = self.elements.len() as i64;
        let fill = if open == 1 && known > 0 { count / known } else { 1 };
        let shape: Vec<_> =
            shape.iter().map(|&size| if size < 0 { fill } else { size } as usize).collect();
        let fits = open <= 1 && known.checked_mul(fill) == Some(count);
        fits.then(|| Tensor::new(shape, self.elements.clone()))
    }

    /// The axis that a number names.
    pub(crate) fn axis(&self, axis: f64) -> Option<usize> {
        let rank = self.shape.len() as f64;
        let axis = if axis < 0.0 { axis + rank } else { axis };
        (0.0 <= axis && axis < rank).then_some(axis as usize)
    }

    /// The part that begins somewhere, of a size.
    pub(crate) fn slice(&self, begins: &[i64], sizes: &[i64]) -> Option<Tensor> {
        if begins.len() != self.shape.len() || sizes.len() != begins.len() {
            return None;
        }
        let mut part = self.clone();
        for axis in 0..begins.len() {
            let begin = usize::try_from(begins[axis]).ok()?;
            let rest = part.shape[axis].checked_sub(begin)?;
            let size = if sizes[axis] == -1 { rest } else { usize::try_from(sizes[axis]).ok()? };
            part = part.cut(axis, begin, (size <= rest).then_some(size)?);
        }
        Some(part)
    }

    fn cut(&self, axis: usize, begin: usize, size: usize) -> Tensor {
        let inner: usize = self.shape[axis + 1..].iter().product();
        let whole = self.shape[axis] * inner;
        let mut shape = self.shape.clone();
        shape[axis] = size;
        let rows = self.elements.chunks(whole.max(1));
        let elements =
            rows.flat_map(|row| row[begin * inner..(begin + size) * inner].iter().copied());
        Tensor::new(shape, elements.collect())
    }

    pub(crate) fn split(&self, axis: f64, count: usize) -> Option<Vec<Tensor>> {
        let axis = self.axis(axis)?;
        let size = self.shape[axis] / count;
        let is_even = size * count == self.shape[axis];
        is_even.then(|| (0..count).map(|part| self.cut(axis, part * size, size)).collect())
    }

    /// Parts of these sizes, of which one may be -1 for what the others leave.
    pub(crate) fn split_sizes(&self, axis: f64, sizes: &[i64]) -> Option<Vec<Tensor>> {
        let axis = self.axis(axis)?;
        let all = i64::try_from(self.shape[axis]).ok()?;
        let known: i64 = sizes.iter().filter(|&&size| size >= 0).sum();
        let is_open = |size: &&i64| **size < 0;
        let is_whole = match sizes.iter().filter(is_open).count() {
            0 => known == all,
            1 => known <= all,
            _ => false,
        };
        let size = |size: i64| usize::try_from(if size < 0 { all - known } else { size }).ok();
        let sizes = sizes.iter().map(|&one| size(one)).collect::<Option<Vec<_>>>()?;
        let mut begin = 0;
        let parts = sizes.into_iter().map(|size| {
            begin += size;
            self.cut(axis, begin - size, size)
        });
        is_whole.then(|| parts.collect())
    }

    /// The element of this number along the first axis.
    pub(crate) fn at(&self, place: usize) -> Option<Tensor> {
        let size = *self.shape.first()?;
        let part = (place < size).then(|| self.cut(0, place, 1))?;
        Some(Tensor::new(self.shape[1..].to_vec(), part.elements))
    }

    /// The product of two matrices, which may be transposed.
    pub(crate) fn product(&self, other: &Tensor, [left, right]: [bool; 2]) -> Option<Tensor> {
        let (left, right) = (self.turned(left)?, other.turned(right)?);
        let ([rows, inner], [same, columns]) =
            (left.shape[..].try_into().ok()?, right.shape[..].try_into().ok()?);
        if inner != same {
            return None;
        }
        let one = |row: usize, column: usize| {
            let terms = (0..inner)
                .map(|k| left.elements[row * inner + k] * right.elements[k * columns + column]);
            terms.sum::<f64>()
        };
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        Some(Tensor::new(
            vec![rows, columns],
            places.map(|(row, column)| one(row, column)).collect(),
        ))
    }

    fn turned(&self, turns: bool) -> Option<Tensor> {
        let &[rows, columns] = &self.shape[..] else { return None };
        if !turns {
            return Some(self.clone());
        }
        let places = (0..columns).flat_map(|column| (0..rows).map(move |row| (row, column)));
        let elements = places.map(|(row, column)| self.elements[row * columns + column]);
        Some(Tensor::new(vec![columns, rows], elements.collect()))
    }
}

/// Tensors side by side.
pub(crate) fn concat(parts: &[Tensor], axis: f64) -> Option<Tensor> {
    let axis = parts[0].axis(axis)?;
    let mut shape = parts[0].shape.clone();
    shape[axis] = 0;
    for part in parts {
        let mut other = part.shape.clone();
        shape[axis] += std::mem::replace(other.get_mut(axis)?, shape[axis]);
        other[axis] = shape[axis];
        if other != shape {
            return None;
        }
    }
    let outer: usize = shape[..axis].iter().product();
    let mut elements = Vec::new();
    for row in 0..outer {
        for part in parts {
            let size = part.elements.len() / outer;
            elements.extend(&part.elements[row * size..(row + 1) * size]);
        }
    }
    Some(Tensor::new(shape, elements))
}

/// Tensors of one shape, one after the other.
pub(crate) fn stack(parts: &[Tensor]) -> Option<Tensor> {
    let first = parts.first()?;
    let shape = [&[parts.len()], &first.shape[..]].concat();
    let are_same = parts.iter().all(|part| part.shape == first.shape);
    are_same.then(|| {
        Tensor::new(shape, parts.iter().flat_map(|part| part.elements.iter().copied()).collect())
    })
}

/// The shape that two shapes broadcast to.
pub(crate) fn broadcast(one: &[usize], other: &[usize]) -> Option<Vec<usize>> {
    let rank = one.len().max(other.len());
    let size = |shape: &[usize], axis: usize| {
        (axis + shape.len()).checked_sub(rank).map_or(1, |axis| shape[axis])
    };
    let both = |axis| match (size(one, axis), size(other, axis)) {
        (1, size) | (size, 1) => Some(size),
        (left, right) => (left == right).then_some(left),
    };
    (0..rank).map(both).collect()
}
