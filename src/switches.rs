//! The environment's switches: what each variable takes, and what it is when nobody sets it.
//!
//! All follow the rule of [`switch`], which is in the crate of the kernels because these read `BLOCKCELL_ISA` by it
//! themselves (`Isa::get`): programs in Rust have that variable, too, and no bridge. Each is read once, when it is
//! first asked for. `docs/installing.md` has the same table for users, which a test compares with this file.

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

/// How precise matrix products of the library's kernels are.
pub(crate) static FLOAT32_MATMUL_PRECISION: LazyLock<Precision> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_FLOAT32_MATMUL_PRECISION",
        &[
            ("highest", Precision::Highest, "in float32"),
            ("high", Precision::High, "in two parts in bfloat16"),
            ("medium", Precision::Medium, "in bfloat16"),
        ],
    )
});

// Read when the library is loaded, because packed copies are kept.
/// What weights that are constants are packed as.
pub(crate) static WEIGHTS: LazyLock<Weights> = LazyLock::new(|| {
    switch(
        "BLOCKCELL_WEIGHTS",
        &[
            ("float32", Weights::Float32, "as the precision says"),
            ("int8", Weights::Int8, "in int8, for inference"),
            ("int8_except_x", Weights::Int8ExceptX, "in int8, but for those of x"),
        ],
    )
});

/// How precise they are if nobody chooses in the process: as oneDNN's if only its variables say something.
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

/// Places in [`Precision::ALL`]: what the process has chosen, if anything, otherwise what the environment says.
static PRECISION: OnceLock<AtomicUsize> = OnceLock::new();

fn chosen_precision() -> &'static AtomicUsize {
    PRECISION.get_or_init(|| AtomicUsize::new(place_of(precision_of_environment())))
}

fn place_of(level: Precision) -> usize {
    Precision::ALL.iter().position(|&one| one == level).unwrap_or_default()
}

/// How precise matrix products are from now on.
pub(crate) fn precision() -> Precision {
    Precision::ALL[chosen_precision().load(Ordering::Relaxed)]
}

/// Chooses a level by its place in [`Precision::ALL`], if there is one. Returns the place of what holds from then on.
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
