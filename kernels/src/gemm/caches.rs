//! The processor's caches.

use std::sync::OnceLock;

use crate::tuning::{SECOND_LEVEL_BYTES, WEIGHTS_SHARE};

/// The bytes of a core's second level cache.
fn second_level() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    let [least, most] = SECOND_LEVEL_BYTES;
    *BYTES.get_or_init(|| told().unwrap_or(least).clamp(least, most))
}

/// The most weights that stay in the second level cache of every thread, beside all else.
pub(super) fn small_weights() -> usize {
    let (part, whole) = WEIGHTS_SHARE;
    second_level() / size_of::<f32>() * part / whole
}

/// What the processor tells of it, if that is the same on every core: results must not depend on the core that is
/// asked.
#[cfg(target_arch = "x86_64")]
fn told() -> Option<usize> {
    /// Of leaf 7, EDX: there are cores of several kinds (Intel's manual, volume 2, CPUID).
    const HYBRID: u32 = 1 << 15;
    let cpu = raw_cpuid::CpuId::new();
    if cpu.get_extended_feature_info().is_some() && raw_cpuid::cpuid!(7, 0).edx & HYBRID != 0 {
        return None;
    }
    let second = cpu.get_cache_parameters()?.find(|cache| cache.level() == 2)?;
    let lines = second.sets() * second.associativity() * second.physical_line_partitions();
    Some(lines * second.coherency_line_size())
}

#[cfg(not(target_arch = "x86_64"))]
fn told() -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    /// Linux lists the caches of each processor as files.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_tells_the_same_size() {
        let processors = fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten();
        let files = processors.map(|processor| processor.path().join("cache/index2/size"));
        let sizes: Vec<_> = files.filter_map(|file| fs::read_to_string(file).ok()).collect();
        let Some(size) = sizes.first() else {
            return; // Some systems list none.
        };
        let kilobytes: usize = size.trim().trim_end_matches('K').parse().expect("a size in KiB");
        let is_same = sizes.iter().all(|other| other == size);
        let [least, most] = super::SECOND_LEVEL_BYTES;
        let bytes = if is_same { kilobytes << 10 } else { least };
        assert_eq!(super::second_level(), bytes.clamp(least, most));
    }
}
