//! Small tensors of numbers modulo 2^64.

use std::hash::{DefaultHasher, Hash, Hasher};

/// A tensor, row by row.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) elements: Vec<u64>,
}

/// A number that tells values apart.
pub(crate) fn hash(value: &(impl Hash + ?Sized)) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl Tensor {
    pub(crate) fn scalar(value: u64) -> Tensor {
        Tensor { shape: vec![], elements: vec![value] }
    }

    /// Numbers that follow from a seed.
    pub(crate) fn random(sizes: &[i64], seed: &impl Hash) -> Tensor {
        let shape: Vec<_> = sizes.iter().map(|&size| usize::try_from(size).unwrap()).collect();
        let count = shape.iter().product::<usize>();
        Tensor { shape, elements: (0..count).map(|number| hash(&(seed, number))).collect() }
    }

    fn matrix(rows: usize, columns: usize, element: impl Fn(usize, usize) -> u64) -> Tensor {
        let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        let elements = places.map(|(row, column)| element(row, column)).collect();
        Tensor { shape: vec![rows, columns], elements }
    }

    /// Rows and columns, if it is a matrix.
    pub(crate) fn sizes(&self) -> Option<(usize, usize)> {
        match self.shape[..] {
            [rows, columns] => Some((rows, columns)),
            _ => None,
        }
    }

    /// The numbers of a vector or scalar.
    pub(crate) fn integers(&self) -> Vec<i64> {
        self.elements.iter().map(|&element| element as i64).collect()
    }

    fn at(&self, row: usize, column: usize) -> u64 {
        self.elements[row * self.shape[1] + column]
    }

    pub(crate) fn transposed(&self) -> Option<Tensor> {
        let (rows, columns) = self.sizes()?;
        Some(Tensor::matrix(columns, rows, |row, column| self.at(column, row)))
    }

    /// The matrix product.
    pub(crate) fn times(&self, right: &Tensor) -> Option<Tensor> {
        let ((rows, depth), (right_depth, columns)) = (self.sizes()?, right.sizes()?);
        let element = |row, column| {
            let terms = (0..depth).map(|k| self.at(row, k).wrapping_mul(right.at(k, column)));
            terms.fold(0, u64::wrapping_add)
        };
        (depth == right_depth).then(|| Tensor::matrix(rows, columns, element))
    }

    /// The sum of two tensors of one shape.
    pub(crate) fn plus(&self, right: &Tensor) -> Option<Tensor> {
        self.combine(right, u64::wrapping_add)
    }

    pub(crate) fn combine(&self, right: &Tensor, f: fn(u64, u64) -> u64) -> Option<Tensor> {
        let pairs = self.elements.iter().zip(&right.elements);
        let elements = pairs.map(|(&left, &right)| f(left, right)).collect();
        (self.shape == right.shape).then(|| Tensor { shape: self.shape.clone(), elements })
    }

    /// The sum of two matrices or vectors, of which dimensions of size 1 stretch.
    pub(crate) fn broadcast_plus(&self, right: &Tensor) -> Option<Tensor> {
        if self.shape == right.shape {
            return self.plus(right);
        }
        let sizes = |tensor: &Tensor| match tensor.shape[..] {
            [] => Some((1, 1)),
            [columns] => Some((1, columns)),
            [rows, columns] => Some((rows, columns)),
            _ => None,
        };
        let (left_sizes, right_sizes) = (sizes(self)?, sizes(right)?);
        let common = |left: usize, right: usize| match (left, right) {
            (1, other) | (other, 1) => Some(other),
            _ => (left == right).then_some(left),
        };
        let rows = common(left_sizes.0, right_sizes.0)?;
        let columns = common(left_sizes.1, right_sizes.1)?;
        let at = |tensor: &Tensor, sizes: (usize, usize), row: usize, column: usize| {
            tensor.elements[row.min(sizes.0 - 1) * sizes.1 + column.min(sizes.1 - 1)]
        };
        let mut sum = Tensor::matrix(rows, columns, |row, column| {
            let left = at(self, left_sizes, row, column);
            left.wrapping_add(at(right, right_sizes, row, column))
        });
        let rank = self.shape.len().max(right.shape.len());
        sum.shape = sum.shape.split_off(2 - rank);
        Some(sum)
    }

    /// Matrices side by side.
    pub(crate) fn beside(parts: &[&Tensor]) -> Option<Tensor> {
        let sizes: Option<Vec<_>> = parts.iter().map(|part| part.sizes()).collect();
        let rows = sizes?.first()?.0;
        let mut elements = Vec::new();
        for row in 0..rows {
            for part in parts {
                let (part_rows, columns) = part.sizes()?;
                if part_rows != rows {
                    return None;
                }
                elements.extend((0..columns).map(|column| part.at(row, column)));
            }
        }
        let columns = parts.iter().map(|part| part.shape[1]).sum();
        Some(Tensor { shape: vec![rows, columns], elements })
    }

    /// Some rows from the first one on, and some columns; -1 for all that follow.
    pub(crate) fn part(&self, rows: i64, begin: i64, columns: i64) -> Option<Tensor> {
        let (all_rows, all_columns) = self.sizes()?;
        let begin = usize::try_from(begin).ok().filter(|&begin| begin <= all_columns)?;
        let count = |wanted: i64, most: usize| match wanted {
            -1 => Some(most),
            _ => usize::try_from(wanted).ok().filter(|&wanted| wanted <= most),
        };
        let (rows, columns) = (count(rows, all_rows)?, count(columns, all_columns - begin)?);
        Some(Tensor::matrix(rows, columns, |row, column| self.at(row, begin + column)))
    }

    /// The sum over the rows.
    pub(crate) fn row_sum(&self) -> Option<Tensor> {
        let (rows, columns) = self.sizes()?;
        let sum = |column| (0..rows).map(|row| self.at(row, column)).fold(0, u64::wrapping_add);
        Some(Tensor { shape: vec![columns], elements: (0..columns).map(sum).collect() })
    }
}
