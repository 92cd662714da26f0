//! How a call ended: errors and panics as statuses.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::ffi::{Code, Status};
use blockcell_kernels::Error;

/// Runs `call` for the operation `op`, and catches what must not unwind into C++.
pub(super) fn guarded(op: &str, call: impl FnOnce() -> Result<(), Error>) -> Status {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Status { code: Code::Ok, message: String::new() },
        Ok(Err(error)) => Status { code: Code::InvalidArgument, message: error.to_string() },
        Err(panic) => {
            let message = panic.downcast_ref::<String>().map(String::as_str);
            let message = message.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            Status { code: Code::Internal, message: format!("{op}: blockcell panicked: {message}") }
        }
    }
}
