//! The processor's caches.

use std::sync::OnceLock;

use crate::tuning::{SECOND_LEVEL_BYTES, WEIGHTS_SHARE};

/// The bytes of a core's second level cache.
fn second_level() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    let [least, most] = SECOND_LEVEL_BYTES;
    *BYTES.get_or_init(|| told().unwrap_or(least).clamp(least, most))
}

/// The most bytes of weights that stay in the second level cache of every thread, beside all else.
pub(super) fn small_weights() -> usize {
    let (part, whole) = WEIGHTS_SHARE;
    second_level() * part / whole
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

/// What the system tells of it, if that is the same of every core: programs cannot ask these processors.
#[cfg(not(target_arch = "x86_64"))]
fn told() -> Option<usize> {
    listed("/sys/devices/system/cpu")
}

/// The size by Linux's files, which are in a folder for each processor.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn listed(folder: impl AsRef<std::path::Path>) -> Option<usize> {
    let processors = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut sizes = processors.filter_map(|processor| second_level_of(&processor.path()));
    let size = sizes.next()?;
    sizes.all(|other| other == size).then_some(size)
}

/// The size of the second level cache of one processor, if the system lists it.
#[cfg(any(test, not(target_arch = "x86_64")))]
fn second_level_of(processor: &std::path::Path) -> Option<usize> {
    let caches = std::fs::read_dir(processor.join("cache")).ok()?.flatten();
    let mut caches = caches.map(|cache| cache.path()).filter(|cache| {
        std::fs::read_to_string(cache.join("level")).is_ok_and(|level| level.trim() == "2")
    });
    let size = std::fs::read_to_string(caches.next()?.join("size")).ok()?;
    let kilobytes: usize = size.trim().strip_suffix('K')?.parse().ok()?;
    Some(kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use std::{env, fs, process};

    /// Some systems list none.
    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_tells_the_same_size() {
        let [least, most] = super::SECOND_LEVEL_BYTES;
        let listed = super::listed("/sys/devices/system/cpu");
        if listed.is_some() {
            assert_eq!(Some(super::second_level()), listed.map(|bytes| bytes.clamp(least, most)));
        }
    }

    #[test]
    fn listed_sizes_count_if_all_are_the_same() {
        let folder = env::temp_dir().join(format!("blockcell-caches-{}", process::id()));
        let list = |processor: &str, index: usize, level: usize, size: &str| {
            let cache = folder.join(processor).join("cache").join(format!("index{index}"));
            fs::create_dir_all(&cache).expect("a folder");
            fs::write(cache.join("level"), format!("{level}\n")).expect("a file");
            fs::write(cache.join("size"), format!("{size}\n")).expect("a file");
        };
        assert_eq!(super::listed(&folder), None);
        for processor in ["cpu0", "cpu1"] {
            list(processor, 0, 1, "64K");
            list(processor, 2, 2, "1024K");
            list(processor, 3, 3, "32768K");
        }
        fs::create_dir_all(folder.join("cpufreq")).expect("a folder");
        assert_eq!(super::listed(&folder), Some(1 << 20));
        list("cpu1", 2, 2, "2048K");
        assert_eq!(super::listed(&folder), None);
        fs::remove_dir_all(&folder).expect("the folder");
    }
}
