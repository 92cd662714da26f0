//! Libraries of operations and kernels.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use tensorflow_sys as tf;

use crate::Error;
use crate::status::Status;

/// A loaded library. Its operations and kernels stay in TensorFlow when this goes out of scope.
#[derive(Debug)]
pub struct Library(NonNull<tf::TF_Library>);

impl Library {
    /// Loads the library at `path`, as `tf.load_op_library` does. A second time does nothing.
    ///
    /// # Errors
    ///
    /// There is no such file, or it is not a library that fits this TensorFlow.
    ///
    /// # Panics
    ///
    /// If there is a zero byte in `path`.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let path = CString::new(path.as_os_str().as_bytes()).expect("no zero byte in a path");
        let status = Status::new();
        // SAFETY: path is a terminated string. TensorFlow guards its registries by locks.
        let library = unsafe { tf::TF_LoadLibrary(path.as_ptr(), status.as_ptr()) };
        status.check()?;
        Ok(Library(NonNull::new(library).expect("a library, as there was no error")))
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is ours and not used again.
        unsafe { tf::TF_DeleteLibraryHandle(self.0.as_ptr()) }
    }
}
