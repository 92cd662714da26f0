//! Running graphs.

use std::ptr::{self, NonNull};

use tensorflow_sys as tf;

use crate::status::Status;
use crate::{Error, Graph, Output, Tensor, c_int};

/// How a session is to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The threads of a single operation; 0 leaves the number to TensorFlow.
    ///
    /// TensorFlow makes one pool for all sessions of a process, and heeds the first one's wish,
    /// unless the environment has `TF_OVERRIDE_GLOBAL_THREADPOOL=1`.
    pub intra_op_threads: u8,
}

impl Options {
    /// As a serialized `tensorflow.ConfigProto`.
    fn serialized(self) -> Vec<u8> {
        // Field 2, `intra_op_parallelism_threads`, is a varint: seven bits in each byte, the low
        // ones first, and a mark on all bytes but the last.
        const TAG: u8 = 2 << 3;
        match self.intra_op_threads {
            threads @ ..0x80 => vec![TAG, threads],
            threads => vec![TAG, threads, 1],
        }
    }
}

struct SessionOptions(NonNull<tf::TF_SessionOptions>);

impl SessionOptions {
    fn new(options: Options) -> Result<Self, Error> {
        // SAFETY: no preconditions; the result is ours.
        let made =
            SessionOptions(NonNull::new(unsafe { tf::TF_NewSessionOptions() }).expect("options"));
        let (status, config) = (Status::new(), options.serialized());
        // SAFETY: the options are alive, and config has this length.
        unsafe {
            tf::TF_SetConfig(made.as_ptr(), config.as_ptr().cast(), config.len(), status.as_ptr());
        }
        status.check().map(|()| made)
    }

    fn as_ptr(&self) -> *mut tf::TF_SessionOptions {
        self.0.as_ptr()
    }
}

impl Drop for SessionOptions {
    fn drop(&mut self) {
        // SAFETY: the options are ours and not used again.
        unsafe { tf::TF_DeleteSessionOptions(self.as_ptr()) }
    }
}

/// Runs a graph.
#[derive(Debug)]
pub struct Session<'g> {
    graph: &'g Graph,
    session: NonNull<tf::TF_Session>,
}

impl<'g> Session<'g> {
    /// A session in this process.
    ///
    /// # Errors
    ///
    /// TensorFlow cannot make one.
    pub fn new(graph: &'g Graph, options: Options) -> Result<Self, Error> {
        let (options, status) = (SessionOptions::new(options)?, Status::new());
        // SAFETY: graph and options are alive; the session is deleted before the graph it borrows,
        // and has a copy of the options.
        let session =
            unsafe { tf::TF_NewSession(graph.as_ptr(), options.as_ptr(), status.as_ptr()) };
        status.check()?;
        let session = NonNull::new(session).expect("a session, as there was no error");
        Ok(Session { graph, session })
    }

    /// Computes `fetches`, with the values of placeholders given in `feeds`.
    ///
    /// # Errors
    ///
    /// An operation refused its inputs or failed.
    ///
    /// # Panics
    ///
    /// If a feed or fetch is of another graph.
    pub fn run(
        &self,
        feeds: &[(Output<'_>, &Tensor)],
        fetches: &[Output<'_>],
    ) -> Result<Vec<Tensor>, Error> {
        let inputs: Vec<_> = feeds.iter().map(|(output, _)| output.of(self.graph)).collect();
        let values: Vec<_> = feeds.iter().map(|(_, tensor)| tensor.as_ptr()).collect();
        let outputs: Vec<_> = fetches.iter().map(|output| output.of(self.graph)).collect();
        let mut results = vec![ptr::null_mut(); fetches.len()];
        let status = Status::new();
        // SAFETY: the session is alive, as is its graph, which has all inputs and outputs. Values
        // are as many as inputs, and results as outputs. TensorFlow does not write to the values:
        // it takes a share in their memory, and a kernel reuses only what is not shared.
        unsafe {
            tf::TF_SessionRun(
                self.session.as_ptr(),
                ptr::null(),
                inputs.as_ptr(),
                values.as_ptr(),
                c_int(inputs.len()),
                outputs.as_ptr(),
                results.as_mut_ptr(),
                c_int(outputs.len()),
                ptr::null(),
                0,
                ptr::null_mut(),
                status.as_ptr(),
            );
        }
        // SAFETY: each is ours, or null where there is no result because of an error.
        let results = results.into_iter().map(|result| unsafe { Tensor::from_ptr(result) });
        let results: Option<Vec<_>> = results.collect();
        status.check()?;
        Ok(results.expect("every result, as there was no error"))
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        let status = Status::new();
        // SAFETY: the session is ours and not used again.
        unsafe { tf::TF_DeleteSession(self.session.as_ptr(), status.as_ptr()) }
    }
}
