//! The processor's caches.

use std::sync::OnceLock;

/// The least and the most bytes that [`second_level`] tells: with other caches nothing was measured, and some virtual
/// machines tell sizes that no processor has.
const LEAST: usize = 1 << 20;
const MOST: usize = 2 << 20;

/// The bytes of a core's second level cache.
pub(super) fn second_level() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    *BYTES.get_or_init(|| told().unwrap_or(LEAST).clamp(LEAST, MOST))
}

/// What the processor tells of it.
#[cfg(target_arch = "x86_64")]
fn told() -> Option<usize> {
    let cpu = raw_cpuid::CpuId::new();
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
    /// Linux lists the caches of a processor as files.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_tells_the_same_size() {
        let Ok(size) = std::fs::read_to_string("/sys/devices/system/cpu/cpu0/cache/index2/size")
        else {
            return; // Some systems list none.
        };
        let kilobytes: usize = size.trim().trim_end_matches('K').parse().expect("a size in KiB");
        assert_eq!(super::second_level(), (kilobytes << 10).clamp(super::LEAST, super::MOST));
    }
}
