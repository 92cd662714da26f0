//! Tiles: eight matrices of up to 16 rows of 16 lanes, as AMX has them, and their model in plain Rust.
//!
//! A product takes two tiles: rows of a left factor, and columns of a right one, packed as elsewhere. The sum of lane `m, n`
//! gets the products of all lanes `m, k` of the one and `k, n` of the other.

use super::bf16::{add, mul_add, numbers};
use super::int8::products;

/// Most rows of a tile.
pub(crate) const TILE_ROWS: usize = 16;

/// Lanes in a row of a tile.
pub(crate) const TILE_LANES: usize = 16;

/// Tiles.
const TILES: usize = 8;

/// The rows of each tile. One without rows must not be used.
pub(crate) type Heights = [usize; TILES];

/// Eight tiles, by their numbers.
pub(crate) trait Tiles {
    /// Makes zeros of a tile.
    fn zero<const TILE: usize>(&mut self);

    /// Reads a tile: the first lanes, and for each row those that are `pitch` further than those of the row before.
    fn load<const TILE: usize>(&mut self, from: &[f32], pitch: usize);

    /// Writes a tile in the same way.
    fn store<const TILE: usize>(&self, to: &mut [f32], pitch: usize);

    /// Adds products of pairs of numbers in bfloat16 to a tile of numbers (`TDPBF16PS`). `B` has all rows.
    fn add_pairs<const SUMS: usize, const A: usize, const B: usize>(&mut self);

    /// Adds products of four terms in int8 to a tile of int32 (`TDPBSSD`). `B` has all rows.
    fn add_quads<const SUMS: usize, const A: usize, const B: usize>(&mut self);
}

/// A piece of work with tiles that returns an `R`.
pub(crate) trait WithTiles<R = ()> {
    /// Does the work. Implementations are `#[inline(always)]`.
    fn run<T: Tiles>(self, tiles: &mut T) -> R;
}

/// Panics if rows of a tile, `pitch` apart from each other, are not in a slice of this length, or if there are none.
#[inline(always)]
pub(super) fn check(rows: usize, pitch: usize, len: usize) {
    let last = rows.checked_sub(1).expect("a tile with rows") * pitch;
    assert!(len >= TILE_LANES && last <= len - TILE_LANES, "a tile within a slice");
}

type Tile = [[f32; TILE_LANES]; TILE_ROWS];

/// Tiles in plain Rust, which compute what the instructions do, bit for bit but for the bits of NaN (Intel's manual, volume
/// 2, TDPBF16PS and TDPBSSD).
pub(super) struct Model {
    heights: Heights,
    tiles: [Tile; TILES],
}

impl Model {
    pub(super) fn new(heights: Heights) -> Self {
        assert!(heights.iter().all(|&rows| rows <= TILE_ROWS));
        // Nobody may rely on what they hold.
        Model { heights, tiles: [[[f32::NAN; TILE_LANES]; TILE_ROWS]; TILES] }
    }

    /// Sets each of the sums to what `sum` makes of it, the lanes of a row of `a` and those of a column of `b`.
    fn add<const SUMS: usize, const A: usize, const B: usize>(
        &mut self,
        sum: impl Fn(f32, &[[f32; 2]; TILE_LANES]) -> f32,
    ) {
        assert!(self.heights[SUMS] == self.heights[A] && self.heights[B] == TILE_LANES);
        let (a, b) = (self.tiles[A], self.tiles[B]);
        for (sums, row) in self.tiles[SUMS].iter_mut().zip(a).take(self.heights[A]) {
            for (n, to) in sums.iter_mut().enumerate() {
                *to = sum(*to, &std::array::from_fn(|k| [row[k], b[k][n]]));
            }
        }
    }
}

impl Tiles for Model {
    fn zero<const TILE: usize>(&mut self) {
        assert!(self.heights[TILE] > 0);
        self.tiles[TILE] = Tile::default();
    }

    fn load<const TILE: usize>(&mut self, from: &[f32], pitch: usize) {
        check(self.heights[TILE], pitch, from.len());
        for (m, to) in self.tiles[TILE].iter_mut().take(self.heights[TILE]).enumerate() {
            to.copy_from_slice(&from[m * pitch..][..TILE_LANES]);
        }
    }

    fn store<const TILE: usize>(&self, to: &mut [f32], pitch: usize) {
        check(self.heights[TILE], pitch, to.len());
        for (m, from) in self.tiles[TILE].iter().take(self.heights[TILE]).enumerate() {
            to[m * pitch..][..TILE_LANES].copy_from_slice(from);
        }
    }

    /// Products of lower numbers have a sum of their own, and so have those of upper ones. Each product is added with one
    /// rounding. At the end the two sums are added, and then added to what is there.
    fn add_pairs<const SUMS: usize, const A: usize, const B: usize>(&mut self) {
        self.add::<SUMS, A, B>(|sum, lanes| {
            let mut halves = [0.0; 2];
            for lanes in lanes {
                let [a, b] = lanes.map(numbers);
                for (half, to) in halves.iter_mut().enumerate() {
                    *to = mul_add(a[half], b[half], *to);
                }
            }
            add(sum, add(halves[0], halves[1]))
        });
    }

    fn add_quads<const SUMS: usize, const A: usize, const B: usize>(&mut self) {
        self.add::<SUMS, A, B>(|sum, lanes| {
            let all = lanes.iter().fold(sum.to_bits(), |sum, &[a, b]| {
                sum.wrapping_add(products(a.to_bits(), b.to_bits()).cast_unsigned())
            });
            f32::from_bits(all)
        });
    }
}

#[cfg(test)]
mod tests {
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;
    use crate::Isa;
    use crate::simd::TileUnit;

    /// A product of tiles.
    struct Product<'a> {
        a: &'a [f32],
        b: &'a [f32],
        sums: &'a mut [f32],
        int8: bool,
    }

    /// A pitch that is longer than a row.
    const PITCH: usize = 19;

    const LEN: usize = TILE_ROWS * PITCH;

    impl WithTiles for Product<'_> {
        #[inline(always)]
        fn run<T: Tiles>(self, tiles: &mut T) {
            tiles.load::<3>(self.sums, PITCH);
            tiles.load::<5>(self.a, PITCH);
            tiles.load::<7>(self.b, PITCH);
            match self.int8 {
                true => tiles.add_quads::<3, 5, 7>(),
                false => tiles.add_pairs::<3, 5, 7>(),
            }
            tiles.store::<3>(self.sums, PITCH);
        }
    }

    /// The sums of rows of lanes, the first of these `rows`.
    fn sums(unit: TileUnit, rows: usize, [a, b, c]: [&[f32]; 3], int8: bool) -> Vec<f32> {
        let mut sums = c.to_vec();
        let heights = [16, 16, 16, rows, 16, rows, 16, 16];
        unit.run(heights, Product { a, b, sums: &mut sums, int8 });
        sums
    }

    /// The model, and AMX where the processor has it.
    fn units() -> impl Iterator<Item = TileUnit> {
        let best = Isa::available().last().and_then(|isa| isa.tiles());
        [TileUnit::Model].into_iter().chain(best)
    }

    /// Bits of all kinds of numbers in bfloat16: any at all, such as are near each other or near the least normal one, and
    /// special ones.
    fn number(rng: &mut SmallRng, kind: u32) -> u16 {
        const SPECIAL: [u16; 9] = [0, 1, 0x7f, 0x80, 0x3f80, 0x7f7f, 0x7f80, 0x7fc5, 0xff80];
        let any: u16 = rng.random();
        match kind {
            0 => any,
            1 => any & 0x807f | rng.random_range(120..136) << 7,
            2 => any & 0x807f | rng.random_range(52..82) << 7,
            _ => SPECIAL[usize::from(any) % SPECIAL.len()],
        }
    }

    fn lanes(rng: &mut SmallRng, kind: u32) -> Vec<f32> {
        let mut half = || u32::from(number(rng, kind));
        (0..LEN).map(|_| f32::from_bits(half() | half() << 16)).collect()
    }

    fn same(got: f32, want: f32) -> bool {
        got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan()
    }

    /// Where the processor has AMX, the model computes what the instructions do, bit for bit. Elements between the rows stay,
    /// and so do rows that the tile does not have.
    #[test]
    fn sums_of_pairs_are_those_of_the_instruction() {
        let mut rng = SmallRng::seed_from_u64(1);
        for case in 0..400 {
            let [a, b, c] = [0; 3].map(|_| lanes(&mut rng, case % 5));
            let rows = rng.random_range(1..=TILE_ROWS);
            let want = sums(TileUnit::Model, rows, [&a, &b, &c], false);
            for (at, (&want, &before)) in want.iter().zip(&c).enumerate() {
                let is_sum = at / PITCH < rows && at % PITCH < TILE_LANES;
                assert!(is_sum || want.to_bits() == before.to_bits(), "{case}: {at}");
            }
            for unit in units() {
                let got = sums(unit, rows, [&a, &b, &c], false);
                let is_same = got.iter().zip(&want).all(|(&got, &want)| same(got, want));
                assert!(is_same, "{case}, {unit:?}: {got:?}, want {want:?}");
            }
        }
    }

    /// The order of sums, and what is not normal, in the first lanes of the first row.
    #[test]
    fn sums_of_pairs_are_as_documented() {
        let sum = |unit: TileUnit, terms: &[[[f32; 2]; 2]], c: f32| {
            let [mut a, mut b] = [0; 2].map(|_| vec![0.0; LEN]);
            let pair = |[low, high]: [f32; 2]| {
                f32::from_bits(low.to_bits() >> 16 | high.to_bits() & 0xffff_0000)
            };
            for (k, &[of_a, of_b]) in terms.iter().enumerate() {
                (a[k], b[k * PITCH]) = (pair(of_a), pair(of_b));
            }
            sums(unit, 1, [&a, &b, &vec![c; LEN]], false)[0]
        };
        let (small, least) = (2f32.powi(-25), f32::MIN_POSITIVE);
        let (large, infinite) = (f32::from_bits(0x7f7f_0000), f32::INFINITY);
        for unit in units() {
            let sum = |terms: &[[[f32; 2]; 2]], c| sum(unit, terms, c);
            assert_eq!(sum(&[[[2.0, 3.0], [0.5, -7.0]]], 10.0), -10.0);
            // Each half has a sum of its own, and what was there is added at the end.
            let terms = [[[1.0, small], [1.0, 1.0]], [[-1.0, 0.0], [1.0, 1.0]]];
            assert_eq!(sum(&terms, 0.0), small);
            assert_eq!(sum(&terms, 1.0), 1.0);
            assert_eq!(sum(&[[[small, small], [1.0, 1.0]]], 1.0), 1.0);
            // A product is not rounded before it is added, so only a sum can be too large.
            let terms = [[[-large, 0.0], [1.0, 0.0]], [[2f32.powi(64), 0.0], [2f32.powi(64), 0.0]]];
            assert_eq!(sum(&terms, 0.0), 2f32.powi(120));
            assert_eq!(sum(&[[[large, 0.0], [large, 0.0]]], 0.0), infinite);
            assert_eq!(sum(&[[[infinite, 1.0], [1.0, 1.0]]], 0.0), infinite);
            assert!(sum(&[[[infinite, 1.0], [0.0, 1.0]]], 0.0).is_nan());
            assert!(sum(&[[[infinite, -infinite], [1.0, 1.0]]], 0.0).is_nan());
            assert_eq!(sum(&[[[least, 0.0], [1.0, 0.0]]], 0.0), least);
            assert_eq!(sum(&[[[least, 0.0], [0.5, 0.0]]], 0.0), 0.0);
            assert_eq!(sum(&[[[least / 2.0, 0.0], [1e30, 0.0]]], 0.0), 0.0);
            assert_eq!(sum(&[[[1.5 * least, -least], [1.0, 1.0]]], 0.0), 0.0);
            assert_eq!(sum(&[], least / 2.0), 0.0);
        }
    }

    /// Sums of products in int8 are those of integers, which wrap around.
    #[test]
    fn sums_of_quads_are_exact() {
        let mut rng = SmallRng::seed_from_u64(2);
        for case in 0..100 {
            let mut lanes = || -> Vec<f32> {
                let mut lane = || match case {
                    0 => 0x8080_8080,
                    1 => 0x7f7f_7f7f,
                    _ => rng.random(),
                };
                (0..LEN).map(|_| f32::from_bits(lane())).collect()
            };
            let [a, b, c] = [lanes(), lanes(), lanes()];
            let rows = case % TILE_ROWS + 1;
            let terms = |lane: f32| lane.to_bits().to_le_bytes().map(|term| i32::from(term as i8));
            for unit in units() {
                let got = sums(unit, rows, [&a, &b, &c], true);
                for (m, n) in (0..rows).flat_map(|m| (0..TILE_LANES).map(move |n| (m, n))) {
                    let products = (0..TILE_LANES).flat_map(|k| {
                        let (a, b) = (terms(a[m * PITCH + k]), terms(b[k * PITCH + n]));
                        a.into_iter().zip(b).map(|(a, b)| a * b)
                    });
                    let want = products.sum::<i32>().cast_unsigned();
                    let want = c[m * PITCH + n].to_bits().wrapping_add(want);
                    assert_eq!(got[m * PITCH + n].to_bits(), want, "{case}, {unit:?}: {m}, {n}");
                }
            }
        }
    }

    #[test]
    #[should_panic = "within a slice"]
    fn rows_must_be_there() {
        let (a, mut c) = (vec![0.0; LEN], vec![0.0; 3 * PITCH]);
        let product = Product { a: &a, b: &a, sums: &mut c, int8: false };
        TileUnit::Model.run([16, 16, 16, 4, 16, 4, 16, 16], product);
    }
}
