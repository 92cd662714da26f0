//! AMX: tiles in registers (Sapphire Rapids and later). Stable Rust has no intrinsics for them, so the instructions are
//! inline assembly.
//!
//! Linux gives tiles only to processes that have asked for them. A thread has tiles from [`Amx::configure`] on, until what
//! that returns is dropped, within one call: nothing else of the process sees them.

use std::arch::asm;
use std::marker::PhantomData;
use std::sync::OnceLock;

use raw_cpuid::CpuId;

use super::tiles::{Heights, TILE_LANES, TILE_ROWS, Tiles, check};

/// Proof of AMX-TILE, AMX-BF16 and AMX-INT8, and of the system's permission to use tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Amx(());

impl Amx {
    /// The token, if the processor has the instructions and the system permits them. It is asked once.
    pub(super) fn new() -> Option<Self> {
        static HAS_TILES: OnceLock<bool> = OnceLock::new();
        let has_tiles = || has_instructions() && system_saves_tiles() && system_permits_tiles();
        HAS_TILES.get_or_init(has_tiles).then_some(Amx(()))
    }

    /// Gives this thread tiles of these heights.
    #[inline(always)]
    pub(super) fn configure(self, heights: Heights) -> Configured {
        let configuration = Configuration::new(heights);
        // SAFETY: `self` proves the instruction and the permission. The configuration has 64 bytes and is valid: its palette is
        // the one that all processors with AMX have, no tile is larger than that palette allows, and all else is zero.
        unsafe {
            asm!("ldtilecfg [{}]", in(reg) &raw const configuration, options(nostack, preserves_flags));
        }
        Configured { heights, of_this_thread: PhantomData }
    }
}

fn has_instructions() -> bool {
    let features = CpuId::new().get_extended_feature_info();
    features.is_some_and(|all| all.has_amx_tile() && all.has_amx_bf16() && all.has_amx_int8())
}

/// Whether the system saves tiles, and their configuration, when it switches threads.
fn system_saves_tiles() -> bool {
    /// XTILECFG and XTILEDATA, of XCR0.
    const TILES: u32 = 1 << 17 | 1 << 18;
    if !CpuId::new().get_feature_info().is_some_and(|features| features.has_oxsave()) {
        return false;
    }
    let states: u32;
    // SAFETY: OSXSAVE says that the instruction may be executed. It only writes to these registers.
    unsafe {
        asm!("xgetbv", in("ecx") 0, out("eax") states, out("edx") _, options(nomem, nostack, preserves_flags));
    }
    states & TILES == TILES
}

/// Asks Linux for the permission to use tiles, which holds for all threads of the process. It is refused where a seccomp
/// filter says so, or where a thread has an alternate signal stack that is too small for tiles.
fn system_permits_tiles() -> bool {
    const ARCH_PRCTL: usize = 158;
    const ARCH_REQ_XCOMP_PERM: usize = 0x1023;
    const XTILEDATA: usize = 18;
    let mut result = ARCH_PRCTL;
    // SAFETY: this call of the system takes two numbers, and touches no memory of the process. System calls change RCX and
    // R11 beside their result.
    unsafe {
        asm!(
            "syscall",
            inout("rax") result,
            in("rdi") ARCH_REQ_XCOMP_PERM,
            in("rsi") XTILEDATA,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    result == 0
}

/// What LDTILECFG reads.
#[repr(C, align(64))]
struct Configuration {
    palette: u8,
    start_row: u8,
    reserved: [u8; 14],
    row_bytes: [u16; 16],
    rows: [u8; 16],
}

const _: () = assert!(size_of::<Configuration>() == 64);

impl Configuration {
    #[inline(always)]
    fn new(heights: Heights) -> Self {
        let (mut row_bytes, mut rows) = ([0; 16], [0; 16]);
        for (n, height) in heights.into_iter().enumerate() {
            assert!(height <= TILE_ROWS);
            rows[n] = height as u8;
            row_bytes[n] = if height > 0 { (size_of::<f32>() * TILE_LANES) as u16 } else { 0 };
        }
        Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes, rows }
    }
}

/// The tiles of this thread.
pub(crate) struct Configured {
    heights: Heights,
    of_this_thread: PhantomData<*mut ()>,
}

impl Drop for Configured {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: an `Amx` has made `self`, so the instruction is there.
        unsafe { asm!("tilerelease", options(nostack, preserves_flags)) }
    }
}

// SAFETY of every block below: `self` is there only while this thread has tiles that are configured by its heights. What a
// tile must be for an instruction is asserted, and for those that access memory that all rows are in the slice.
impl Tiles for Configured {
    #[inline(always)]
    fn zero<const TILE: usize>(&mut self) {
        assert!(self.heights[TILE] > 0);
        // SAFETY: see above; the tile has rows.
        unsafe { asm!("tilezero tmm{}", const TILE, options(nostack, preserves_flags)) }
    }

    #[inline(always)]
    fn load<const TILE: usize>(&mut self, from: &[f32], pitch: usize) {
        check(self.heights[TILE], pitch, from.len());
        // SAFETY: see above; rows of 64 bytes, so many bytes apart, are in the slice.
        unsafe {
            asm!(
                "tileloadd tmm{}, [{} + {}]",
                const TILE,
                in(reg) from.as_ptr(),
                in(reg) size_of::<f32>() * pitch,
                options(nostack, preserves_flags, readonly),
            );
        }
    }

    #[inline(always)]
    fn store<const TILE: usize>(&self, to: &mut [f32], pitch: usize) {
        check(self.heights[TILE], pitch, to.len());
        // SAFETY: see above; rows of 64 bytes, so many bytes apart, are in the slice.
        unsafe {
            asm!(
                "tilestored [{} + {}], tmm{}",
                in(reg) to.as_mut_ptr(),
                in(reg) size_of::<f32>() * pitch,
                const TILE,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    fn add_pairs<const SUMS: usize, const A: usize, const B: usize>(&mut self) {
        self.assert_product(SUMS, A, B);
        // SAFETY: see above; the shapes of the tiles fit, and they are three.
        unsafe {
            asm!(
                "tdpbf16ps tmm{}, tmm{}, tmm{}",
                const SUMS,
                const A,
                const B,
                options(nostack, preserves_flags),
            );
        }
    }

    #[inline(always)]
    fn add_quads<const SUMS: usize, const A: usize, const B: usize>(&mut self) {
        self.assert_product(SUMS, A, B);
        // SAFETY: see above; the shapes of the tiles fit, and they are three.
        unsafe {
            asm!(
                "tdpbssd tmm{}, tmm{}, tmm{}",
                const SUMS,
                const A,
                const B,
                options(nostack, preserves_flags),
            );
        }
    }
}

impl Configured {
    /// Panics if tiles have no product.
    #[inline(always)]
    fn assert_product(&self, sums: usize, a: usize, b: usize) {
        let heights = [sums, a, b].map(|tile| self.heights[tile]);
        assert!(heights[0] > 0 && heights[0] == heights[1] && heights[2] == TILE_LANES);
        assert!(sums != a && sums != b && a != b);
    }
}
