//! The environment variables, each with its values and its default.
//!
//! All are read by [`switch`]. It is in the crate of the kernels because they read `BLOCKCELL_ISA` themselves
//! (`Isa::get`), for Rust programs without the bridge. Each variable is read once, when it is first needed.
//! `docs/installing.md` has the same table for users, which a test compares with this file.

use std::env;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, OnceLock};

use blockcell_kernels::{Precision, Weights, switch};

/// Whether the library replaces TensorFlow's kernels for nodes without a label.
pub(crate) static OVERRIDE: LazyLock<bool> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_OVERRIDE",
        &[("1", true, "replace TensorFlow's kernels"), ("0", false, "keep them")],
    )
});

/// Whether graphs are rewritten, and packed copies of constants kept.
pub(crate) static REWRITE: LazyLock<bool> = LazyLock::new(|| {
    switch("BLOCKCELL_REWRITE", &[("1", true, "rewrite graphs"), ("0", false, "do not")])
});

/// What is logged about graph rewrites.
pub(crate) static LOG: LazyLock<u8> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_LOG",
        &[
            ("0", 0, "log nothing"),
            ("1", 1, "log what is rewritten, and what is not and why"),
            ("2", 2, "also log the graphs"),
        ],
    )
});

/// Whether the library has kernels of cuDNN's ops.
pub(crate) static CUDNN: LazyLock<Option<bool>> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_CUDNN",
        &[
            ("auto", None, "if there is no GPU"),
            ("1", Some(true), "always"),
            ("0", Some(false), "never"),
        ],
    )
});

/// Whether threads of TensorFlow's pool move away from a processor that they would share.
pub(crate) static MOVE_THREADS: LazyLock<bool> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_MOVE_THREADS",
        &[("0", false, "do not move threads"), ("1", true, "move them")],
    )
});

/// The precision of the library's matrix products.
pub(crate) static FLOAT32_MATMUL_PRECISION: LazyLock<Precision> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_FLOAT32_MATMUL_PRECISION",
        &[
            ("highest", Precision::Highest, "in float32"),
            ("high", Precision::High, "as sums of two bfloat16 numbers"),
            ("medium", Precision::Medium, "in bfloat16"),
        ],
    )
});

// Read when the library is loaded, because packed copies are kept.
/// The type in which constant weights are packed.
pub(crate) static WEIGHTS: LazyLock<Weights> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_WEIGHTS",
        &[
            ("float32", Weights::Float32, "in the selected precision"),
            ("int8", Weights::Int8, "in int8, for inference"),
            ("int8_except_x", Weights::Int8ExceptX, "in int8, except for those of x"),
        ],
    )
});

/// The precision if the process does not choose one: that of oneDNN if only oneDNN's variables are set.
fn precision_of_environment() -> Precision {
    let says = |name: &str, levels: &[&str]| {
        let value = env::var_os(name).unwrap_or_default();
        levels.iter().any(|level| value.eq_ignore_ascii_case(level))
    };
    let is_set = !says("BLOCKCELL_FLOAT32_MATMUL_PRECISION", &[""]);
    let converts = says("ONEDNN_DEFAULT_FPMATH_MODE", &["bf16", "any"])
        || says("TF_SET_ONEDNN_FPMATH_MODE", &["bf16"]);
    if converts && !is_set { Precision::Medium } else { *FLOAT32_MATMUL_PRECISION }
}

/// An index into [`Precision::ALL`]: the level that the process has chosen, or else that of the environment.
static PRECISION: OnceLock<AtomicUsize> = OnceLock::new();

fn chosen_precision() -> &'static AtomicUsize {
    PRECISION.get_or_init(|| AtomicUsize::new(place_of(precision_of_environment())))
}

fn place_of(level: Precision) -> usize {
    Precision::ALL.iter().position(|&one| one == level).unwrap_or_default()
}

/// The current precision of matrix products.
pub(crate) fn precision() -> Precision {
    Precision::ALL[chosen_precision().load(Ordering::Relaxed)]
}

/// Sets the level by its index into [`Precision::ALL`], if given and valid. Returns the index of the current level.
pub(crate) fn choose_precision(place: Option<usize>) -> usize {
    if let Some(place) = place.filter(|&place| place < Precision::ALL.len()) {
        chosen_precision().store(place, Ordering::Relaxed);
    }
    place_of(precision())
}

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

/// TensorFlow's own variable for the random numbers of cuDNN's dropout.
pub(crate) const RESET_GENERATOR: &str = "TF_CUDNN_RESET_RND_GEN_STATE";

/// The current value of [`RESET_GENERATOR`], parsed as by TensorFlow's `ReadBoolFromEnvVar`. The error is the value if
/// TensorFlow rejects it, which includes an empty one.
pub(crate) fn resets_generator() -> Result<bool, String> {
    let Some(value) = env::var_os(RESET_GENERATOR) else { return Ok(false) };
    let value = value.to_string_lossy();
    match value.to_ascii_lowercase().as_str() {
        "0" | "false" => Ok(false),
        "1" | "true" => Ok(true),
        _ => Err(value.into_owned()),
    }
}
