//! What the tests and fuzz targets of several crates share: operations made of bytes, and numbers drawn from a seed.
//! Nothing that ships uses it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use arbitrary::{Arbitrary, Result, Unstructured};

/// Operations up to the end of the input. A plain `Vec` would toss a coin before each one, so that random input gives
/// one on average.
///
/// ```
/// use arbitrary::{Arbitrary, Unstructured};
/// use stayfast_testkit::Ops;
///
/// let Ops(ops) = Ops::<u8>::arbitrary(&mut Unstructured::new(&[3, 1, 4]))?;
/// assert_eq!(ops, [3, 1, 4]);
/// # Ok::<(), arbitrary::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Ops<T>(pub Vec<T>);

impl<'a, T: Arbitrary<'a>> Arbitrary<'a> for Ops<T> {
    fn arbitrary(input: &mut Unstructured<'a>) -> Result<Ops<T>> {
        let mut ops = Vec::new();
        while !input.is_empty() {
            ops.push(input.arbitrary()?);
        }
        Ok(Ops(ops))
    }
}

/// So many operations from a seed, the same in every run, with `words` of 8 bytes to choose each from.
pub fn drawn<T: for<'a> Arbitrary<'a>>(seed: u64, count: usize, words: usize) -> Vec<T> {
    let mut bytes = alloc::vec![0; count * words * 8];
    SplitMix(seed).fill(&mut bytes);
    let mut source = Unstructured::new(&bytes);
    // Beyond the end of its input `arbitrary` makes zeros, so this ends early for no type of operation.
    (0..count).map_while(|_| T::arbitrary(&mut source).ok()).collect()
}

/// Predictable numbers and bytes, the same for the same seed: SplitMix64 (Steele, Lea, Flood: Fast splittable
/// pseudorandom number generators, 2014).
///
/// ```
/// use stayfast_testkit::SplitMix;
///
/// assert_eq!(SplitMix(0).draw(), 0xe220_a839_7b1d_cdaf);
/// ```
#[derive(Clone, Debug)]
pub struct SplitMix(pub u64);

impl SplitMix {
    /// Numbers that depend on the seed and on the number of the run, and on nothing else.
    pub fn new(seed: u64, run: u64) -> SplitMix {
        SplitMix(SplitMix(seed).draw() ^ run.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Fills `bytes`, eight from each number.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.draw().to_le_bytes()[..chunk.len()]);
        }
    }
}
