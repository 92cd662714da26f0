//! An allocator that places memory against a page that nobody may touch.
//!
//! It takes pages one after the other out of a large range of addresses. It gives none of them out again, so memory
//! that has been freed is out of reach, too.

// An allocator cannot be written without.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::LocalKey;

/// On which side of memory the page is that nobody may touch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Before,
    After,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Side::Before, Side::After];
}

thread_local! {
    static SIDE: Cell<Option<Side>> = const { Cell::new(None) };
    static LIMIT: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Does `work` with another value of a variable of this thread, which gets its own one back, after a panic as well.
fn with<T: 'static, R>(
    variable: &'static LocalKey<Cell<T>>,
    value: T,
    work: impl FnOnce() -> R,
) -> R {
    struct Restored<T: 'static>(&'static LocalKey<Cell<T>>, Option<T>);

    impl<T> Drop for Restored<T> {
        fn drop(&mut self) {
            if let Some(before) = self.1.take() {
                self.0.set(before);
            }
        }
    }

    let _restored = Restored(variable, Some(variable.replace(value)));
    work()
}

/// Does `work`, whose allocations on this thread all have a page on one `side` that nobody may touch.
pub(crate) fn guarded<R>(side: Side, work: impl FnOnce() -> R) -> R {
    with(&SIDE, Some(side), work)
}

/// Does `work`, whose allocations on this thread fail from so many bytes on.
pub(crate) fn limited<R>(bytes: usize, work: impl FnOnce() -> R) -> R {
    with(&LIMIT, bytes, work)
}

/// The allocator of the process: the system's, but for what [`guarded`] and [`limited`] do.
pub(crate) struct Guards;

const PAGE: usize = 4096;

/// The bytes of the range: addresses alone, until a page is used. Emulators, in which the tests run for aarch64, keep
/// some bytes for each of its pages all the same.
const RANGE: usize = 1 << if cfg!(target_arch = "aarch64") { 36 } else { 42 };

/// Where in the range the next memory begins. The page before it stays out of reach.
static NEXT: AtomicUsize = AtomicUsize::new(PAGE);

/// The first address of the range, whose pages nobody may touch at first.
fn range() -> *mut u8 {
    static START: OnceLock<usize> = OnceLock::new();
    let start = START.get_or_init(|| {
        // SAFETY: a new mapping, wherever the system puts it.
        unsafe { map(ptr::null_mut(), RANGE, 0) }.expose_provenance()
    });
    ptr::with_exposed_provenance_mut(*start)
}

/// Maps pages that nobody may touch, and ends the process if there are none.
///
/// # Safety
///
/// With `MAP_FIXED` among the flags, nobody may use what was there before.
unsafe fn map(start: *mut u8, len: usize, flags: i32) -> *mut u8 {
    let flags = flags | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: the caller answers for what was there.
    let mapped = unsafe { libc::mmap(start.cast(), len, libc::PROT_NONE, flags, -1, 0) };
    // A panic would allocate.
    if mapped == libc::MAP_FAILED { std::process::abort() } else { mapped.cast() }
}

/// The bytes of the pages that hold a layout.
fn pages(layout: Layout) -> usize {
    layout.size().div_ceil(PAGE) * PAGE
}

/// Memory for a layout of at most a page's alignment.
fn place(side: Side, layout: Layout) -> *mut u8 {
    let len = pages(layout);
    let offset = NEXT.fetch_add(len + PAGE, Ordering::Relaxed);
    if offset + len + PAGE > RANGE {
        return ptr::null_mut();
    }
    let start = range().wrapping_add(offset);
    // SAFETY: these pages are in the range, and no one else has them.
    if unsafe { libc::mprotect(start.cast(), len, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
        return ptr::null_mut();
    }
    match side {
        Side::Before => start,
        Side::After => {
            let room = len - layout.size();
            start.wrapping_add(room - room % layout.align())
        }
    }
}

// SAFETY: what is given out is as large as the layout and aligned, because its start or its end is that of a page. No
// two allocations share a page of the range, and no page is given out twice. All else is left to the system's.
unsafe impl GlobalAlloc for Guards {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if LIMIT.try_with(Cell::get).is_ok_and(|limit| layout.size() >= limit) {
            return ptr::null_mut();
        }
        match SIDE.try_with(Cell::get) {
            Ok(Some(side)) if layout.align() <= PAGE => place(side, layout),
            // SAFETY: the caller's layout.
            _ => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        let offset = memory.addr().wrapping_sub(range().addr());
        if offset < RANGE {
            let start = memory.wrapping_sub(offset % PAGE);
            // SAFETY: the caller gives up these pages, on which nothing else is.
            unsafe { map(start, pages(layout), libc::MAP_FIXED) };
        } else {
            // SAFETY: it is not in the range, so it is the system's.
            unsafe { System.dealloc(memory, layout) }
        }
    }
}
