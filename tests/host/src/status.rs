//! How a call of TensorFlow ended.

use std::ffi::CStr;
use std::fmt;
use std::ptr::NonNull;

use tensorflow_sys as tf;

/// Why TensorFlow refused or failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The kind of error.
    pub code: tf::TF_Code,
    /// TensorFlow's message.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.code, self.message)
    }
}

impl std::error::Error for Error {}

/// The place where a call reports how it ended.
pub(crate) struct Status(NonNull<tf::TF_Status>);

impl Status {
    pub(crate) fn new() -> Self {
        // SAFETY: no preconditions; the result is ours.
        Status(NonNull::new(unsafe { tf::TF_NewStatus() }).expect("a status"))
    }

    /// For a call to write to.
    pub(crate) fn as_ptr(&self) -> *mut tf::TF_Status {
        self.0.as_ptr()
    }

    /// What the last call wrote.
    pub(crate) fn check(&self) -> Result<(), Error> {
        // SAFETY: the status is alive, and the codes that TensorFlow uses are those of the enum.
        let code = unsafe { tf::TF_GetCode(self.as_ptr()) };
        if code == tf::TF_OK {
            return Ok(());
        }
        // SAFETY: the message is a terminated string that lives as long as the status is unchanged.
        let message = unsafe { CStr::from_ptr(tf::TF_Message(self.as_ptr())) };
        Err(Error { code, message: message.to_string_lossy().into_owned() })
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: the status is ours and not used again.
        unsafe { tf::TF_DeleteStatus(self.as_ptr()) }
    }
}
