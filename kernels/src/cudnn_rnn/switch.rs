//! Whether a process runs these operations on its processors.

/// Whether a process gets these kernels, as an environment variable says: `0` is never, `1` is always,
/// and `auto`, which is the default, is where it has no GPU.
///
/// With a GPU, TensorFlow has kernels of its own. A network whose forward pass ran there and whose
/// backward pass ran here would mix two layouts of `reserve_space`.
///
/// `has_gpu` is asked only if it matters. The answer is `None` if the variable has another value.
#[must_use]
pub fn switch(value: Option<&str>, has_gpu: impl FnOnce() -> bool) -> Option<bool> {
    match value {
        Some("0") => Some(false),
        Some("1") => Some(true),
        None | Some("" | "auto") => Some(!has_gpu()),
        Some(_) => None,
    }
}

/// What an environment variable of TensorFlow's says that is on or off, as its `ReadBoolFromEnvVar`
/// reads one; `None` if TensorFlow refuses the value.
#[must_use]
pub fn tensorflow_flag(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "0" | "false" => Some(false),
        "1" | "true" => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{switch, tensorflow_flag};

    #[test]
    fn flags_are_read_as_tensorflow_reads_them() {
        let known = [("0", false), ("False", false), ("1", true), ("TRUE", true)];
        known.into_iter().for_each(|(value, on)| assert_eq!(tensorflow_flag(value), Some(on)));
        ["", "yes", "2", " 1"]
            .into_iter()
            .for_each(|value| assert_eq!(tensorflow_flag(value), None));
    }

    #[test]
    fn a_gpu_counts_only_where_the_variable_leaves_it_open() {
        for has_gpu in [false, true] {
            assert_eq!(switch(None, || has_gpu), Some(!has_gpu));
            assert_eq!(switch(Some(""), || has_gpu), Some(!has_gpu));
            assert_eq!(switch(Some("auto"), || has_gpu), Some(!has_gpu));
        }
        let unasked = || unreachable!("the variable has said it");
        assert_eq!(switch(Some("0"), unasked), Some(false));
        assert_eq!(switch(Some("1"), unasked), Some(true));
        for other in ["on", "01", " 1"] {
            assert_eq!(switch(Some(other), unasked), None);
        }
    }
}
