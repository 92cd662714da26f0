//! How a call from C++ ends: errors and panics as values, because neither may unwind into C++.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::ffi::{Code, Status};
use blockcell_kernels::{Error, OutOfMemory};

/// Runs `call` for the operation `op`. An error or a panic is in the status.
pub(super) fn guarded(op: &str, call: impl FnOnce() -> Result<(), Error>) -> Status {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => Status { code: Code::Ok, message: String::new() },
        Ok(Err(error)) => Status { code: code_of(&error), message: error.to_string() },
        Err(panic) => match panic.downcast_ref() {
            Some(OutOfMemory { bytes }) => Status {
                code: Code::ResourceExhausted,
                message: format!("{op}: cannot allocate {bytes} bytes"),
            },
            None => Status { code: Code::Internal, message: complaint(op, &*panic) },
        },
    }
}

/// The code that TensorFlow has for an error.
fn code_of(error: &Error) -> Code {
    match error {
        // As TensorFlow's arrays say it.
        Error::NoSteps { time: 0, .. } => Code::Unimplemented,
        _ => Code::InvalidArgument,
    }
}

/// Runs a `call` that has no status. A panic is said on stderr, and the result is the default.
pub(crate) fn or_default<T: Default>(name: &str, call: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        eprintln!("{}", complaint(name, &*panic));
        T::default()
    })
}

fn complaint(name: &str, panic: &(dyn Any + Send)) -> String {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
    format!("{name}: blockcell panicked: {message}")
}
