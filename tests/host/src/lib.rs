//! The pieces of TensorFlow's C API that a program needs to build a graph and run it, made safe.
//!
//! Everything that TensorFlow allocates is freed when its owner goes out of scope, and what must
//! not outlive a graph borrows it. The functions of the C API are those that `tensorflow-sys`
//! declares; which TensorFlow they are of is decided when the program is linked.

mod graph;
mod library;
mod session;
mod status;
mod tensor;

use std::ffi::{CStr, CString};

pub use graph::{Attribute, Graph, Operation, Output};
pub use library::Library;
pub use session::{Options, Session};
pub use status::Error;
pub use tensor::{Element, Tensor};
pub use tensorflow_sys::{TF_Code as Code, TF_DataType as DataType};

/// TensorFlow's version, such as "2.21.0".
#[must_use]
pub fn version() -> &'static str {
    // SAFETY: the version is a constant, terminated string inside TensorFlow.
    let version = unsafe { CStr::from_ptr(tensorflow_sys::TF_Version()) };
    version.to_str().expect("an ASCII version")
}

/// A name as C has it.
///
/// # Panics
///
/// If there is a zero byte in it.
fn c_string(name: &str) -> CString {
    CString::new(name).expect("no zero byte in a name")
}

/// A size as C has it.
///
/// # Panics
///
/// If it is larger than an `int`.
fn c_int(size: usize) -> std::ffi::c_int {
    size.try_into().expect("a size that fits in an int")
}
