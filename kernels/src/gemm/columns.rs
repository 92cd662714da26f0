//! The columns of a tile, and where they are in a row of its sums.

use std::ops::Range;

use super::tiling::padded;

/// Ranges of columns.
pub(crate) type Strips<'s> = &'s [Range<usize>];

/// The sums in a row of a tile, or in `depth` rows of its packed right factor.
pub(super) fn packed_len(depth: usize, strips: Strips<'_>) -> usize {
    depth * runs(strips).map(|columns| padded(columns.len())).sum::<usize>()
}

/// The sums in a row of a tile.
pub(crate) fn pitch(strips: Strips<'_>) -> usize {
    packed_len(1, strips)
}

/// Runs of strips that are neighbours.
pub(super) fn runs(strips: Strips<'_>) -> impl Iterator<Item = Range<usize>> {
    let runs = strips.chunk_by(|strip, next| strip.end == next.start);
    runs.map(|run| run[0].start..run[run.len() - 1].end)
}

/// Where each strip is in a row of sums.
pub(super) fn places(strips: Strips<'_>) -> impl Iterator<Item = Range<usize>> {
    let mut end: usize = 0;
    let mut last = None;
    strips.iter().map(move |strip| {
        if last != Some(strip.start) {
            end = padded(end);
        }
        let start = end;
        (end, last) = (start + strip.len(), Some(strip.end));
        start..end
    })
}
