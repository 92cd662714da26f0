//! The environment's switches: what each variable takes, and what it is when nobody sets it.
//!
//! All follow the rule of [`switch`], which is in the crate of the kernels because these read `BLOCKCELL_ISA` by it
//! themselves (`Isa::get`): programs in Rust have that variable, too, and no bridge. Each is read once, when it is
//! first asked for. `docs/installing.md` has the same table for users, which a test compares with this file.

use std::env;
use std::sync::LazyLock;

use blockcell_kernels::switch;

/// Whether the library replaces TensorFlow's kernels for nodes without a label.
pub(crate) static OVERRIDE: LazyLock<bool> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_OVERRIDE",
        &[("1", true, "replace TensorFlow's kernels"), ("0", false, "keep them")],
    )
});

/// Whether graphs are rewritten, and packed copies of constants kept.
pub(crate) static REWRITE: LazyLock<bool> = LazyLock::new(|| {
    switch("BLOCKCELL_REWRITE", &[("1", true, "rewrite graphs"), ("0", false, "leave them")])
});

/// What is printed about the rewriting of graphs.
pub(crate) static LOG: LazyLock<u8> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_LOG",
        &[
            ("0", 0, "print nothing"),
            ("1", 1, "print what is rewritten, and what is not and why"),
            ("2", 2, "print the graphs, too"),
        ],
    )
});

/// Whether the library has kernels of cuDNN's ops.
pub(crate) static CUDNN: LazyLock<Option<bool>> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_CUDNN",
        &[
            ("auto", None, "kernels of cuDNN's ops where there is no GPU"),
            ("1", Some(true), "always"),
            ("0", Some(false), "never"),
        ],
    )
});

/// Whether threads of TensorFlow's pool move away from a processor that they would share.
pub(crate) static MOVE_THREADS: LazyLock<bool> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_MOVE_THREADS",
        &[("0", false, "leave threads where they are"), ("1", true, "move them")],
    )
});

// For C++.

pub(crate) fn overrides() -> bool {
    *OVERRIDE
}

pub(crate) fn wants_rewrites() -> bool {
    *REWRITE
}

pub(crate) fn moves_threads() -> bool {
    *MOVE_THREADS
}

/// TensorFlow's own switch for the numbers of cuDNN's dropout.
pub(crate) const RESET_GENERATOR: &str = "TF_CUDNN_RESET_RND_GEN_STATE";

/// Whether [`RESET_GENERATOR`] is on at this moment, by the rule of TensorFlow's `ReadBoolFromEnvVar`. The error is the
/// value, where TensorFlow refuses it: an empty one, too.
pub(crate) fn resets_generator() -> Result<bool, String> {
    let Some(value) = env::var_os(RESET_GENERATOR) else { return Ok(false) };
    let value = value.to_string_lossy();
    match value.to_ascii_lowercase().as_str() {
        "0" | "false" => Ok(false),
        "1" | "true" => Ok(true),
        _ => Err(value.into_owned()),
    }
}
