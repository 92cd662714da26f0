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

#[cfg(test)]
mod tests {
    use super::switch;

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
