//! Tensors.

use std::ptr::NonNull;

use half::{bf16, f16};
use tensorflow_sys as tf;

use crate::c_int;

/// A type of tensor elements.
///
/// # Safety
///
/// `TYPE`'s elements have the size of this type, and any bits are a value of it.
pub unsafe trait Element: Copy {
    /// What TensorFlow calls it.
    const TYPE: tf::TF_DataType;
}

// SAFETY: both are IEEE 754 binary32.
unsafe impl Element for f32 {
    const TYPE: tf::TF_DataType = tf::TF_FLOAT;
}

// SAFETY: both are the upper halves of IEEE 754 binary32.
unsafe impl Element for bf16 {
    const TYPE: tf::TF_DataType = tf::TF_BFLOAT16;
}

// SAFETY: both are IEEE 754 binary16.
unsafe impl Element for f16 {
    const TYPE: tf::TF_DataType = tf::TF_HALF;
}

// SAFETY: both are integers of 64 bits in two's complement.
unsafe impl Element for i64 {
    const TYPE: tf::TF_DataType = tf::TF_INT64;
}

/// A tensor in TensorFlow's memory.
#[derive(Debug)]
pub struct Tensor(NonNull<tf::TF_Tensor>);

impl Tensor {
    /// Copies `data`, in row-major order.
    ///
    /// # Panics
    ///
    /// If `data` is not as large as `shape`.
    #[must_use]
    pub fn new<T: Element>(shape: &[usize], data: &[T]) -> Self {
        assert_eq!(shape.iter().product::<usize>(), data.len(), "elements of shape {shape:?}");
        let dims: Vec<_> = shape.iter().map(|&n| i64::try_from(n).expect("a dimension")).collect();
        let (rank, bytes) = (c_int(dims.len()), size_of_val(data));
        // SAFETY: dims has `rank` elements, and `bytes` is the size of elements of that shape.
        let tensor = unsafe { tf::TF_AllocateTensor(T::TYPE, dims.as_ptr(), rank, bytes) };
        let tensor = Tensor(NonNull::new(tensor).expect("memory for a tensor"));
        if !data.is_empty() {
            // SAFETY: the tensor was allocated with the size of data, and nobody else has it yet.
            unsafe { data.as_ptr().copy_to_nonoverlapping(tensor.address().cast(), data.len()) }
        }
        tensor
    }

    /// Takes over a tensor that a call returned.
    ///
    /// # Safety
    ///
    /// `tensor` is null or a tensor that nobody else frees or writes to.
    pub(crate) unsafe fn from_ptr(tensor: *mut tf::TF_Tensor) -> Option<Self> {
        NonNull::new(tensor).map(Tensor)
    }

    pub(crate) fn as_ptr(&self) -> *mut tf::TF_Tensor {
        self.0.as_ptr()
    }

    fn address(&self) -> *mut u8 {
        // SAFETY: the tensor is alive.
        unsafe { tf::TF_TensorData(self.as_ptr()) }.cast()
    }

    fn bytes(&self) -> usize {
        // SAFETY: the tensor is alive.
        unsafe { tf::TF_TensorByteSize(self.as_ptr()) }
    }

    /// The type of its elements.
    #[must_use]
    pub fn data_type(&self) -> tf::TF_DataType {
        // SAFETY: the tensor is alive. Its type is one of the enum: no others can be asked for.
        unsafe { tf::TF_TensorType(self.as_ptr()) }
    }

    /// Its dimensions.
    #[must_use]
    pub fn shape(&self) -> Vec<usize> {
        // SAFETY: the tensor is alive.
        let rank = unsafe { tf::TF_NumDims(self.as_ptr()) };
        // SAFETY: the tensor is alive, and it has these axes.
        let dims = (0..rank).map(|axis| unsafe { tf::TF_Dim(self.as_ptr(), axis) });
        dims.map(|n| n.try_into().expect("a dimension")).collect()
    }

    /// Its elements in row-major order.
    ///
    /// # Panics
    ///
    /// If they are not of type `T`.
    #[must_use]
    pub fn data<T: Element>(&self) -> &[T] {
        assert_eq!(self.data_type(), T::TYPE);
        let len = self.bytes() / size_of::<T>();
        if len == 0 {
            return &[]; // The address may be null.
        }
        let address = self.address().cast::<T>();
        assert!(address.is_aligned());
        // SAFETY: there are `len` elements at the address, any bits are a `T`, and nobody writes to
        // a tensor once it is made.
        unsafe { std::slice::from_raw_parts(address, len) }
    }

    /// The string in a scalar.
    ///
    /// # Panics
    ///
    /// If it is not a scalar string, or not UTF-8.
    #[must_use]
    pub fn string(&self) -> &str {
        assert_eq!((self.data_type(), self.shape()), (tf::TF_STRING, vec![]));
        let string = self.address().cast::<tf::TF_TString>();
        assert!(string.is_aligned());
        // SAFETY: a scalar string's data is one TF_TString.
        let (data, len) =
            unsafe { (tf::TF_StringGetDataPointer(string), tf::TF_StringGetSize(string)) };
        // SAFETY: these are its bytes, which nobody writes to once the tensor is made; a string
        // without any is stored in the TF_TString itself, so the pointer is never null.
        let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) };
        std::str::from_utf8(bytes).expect("a string in UTF-8")
    }
}

impl Drop for Tensor {
    fn drop(&mut self) {
        // SAFETY: the tensor is ours and not used again.
        unsafe { tf::TF_DeleteTensor(self.as_ptr()) }
    }
}
