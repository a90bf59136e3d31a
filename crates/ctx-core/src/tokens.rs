//! Units of size.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use serde::{Deserialize, Serialize};

/// Tokens of one image: 4,800 characters at 4 per token, as in pi.
pub const IMAGE_TOKENS: u32 = 1_200;

/// A number of model tokens. Arithmetic saturates: it never wraps and never panics.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Tokens(pub u32);

impl Tokens {
    /// Zero tokens.
    pub const ZERO: Self = Self(0);

    /// Returns the number as `u64`, for sums over many requests.
    #[must_use]
    pub fn get(self) -> u64 {
        u64::from(self.0)
    }

    /// Returns `self * ratio`, rounded down; zero if the ratio is negative or NaN.
    #[must_use]
    pub fn scale(self, ratio: f64) -> Self {
        Self((f64::from(self.0) * ratio) as u32)
    }

    /// Clamps a `u64` into the range of the type.
    #[must_use]
    pub fn saturating_from(n: u64) -> Self {
        Self(u32::try_from(n).unwrap_or(u32::MAX))
    }
}

impl Add for Tokens {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Tokens {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Tokens {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Sum for Tokens {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number of characters in UTF-16 units, as JavaScript counts a string.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Chars(pub u32);

impl Chars {
    /// Returns the length of `text` in UTF-16 units.
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self(u32::try_from(utf16_units(text.as_bytes())).unwrap_or(u32::MAX))
    }
}

/// Counts the UTF-16 units of UTF-8 bytes. A split character is counted at its first byte.
pub(crate) fn utf16_units(bytes: &[u8]) -> u64 {
    // Most text is ASCII, and the check costs next to nothing.
    if bytes.is_ascii() {
        return bytes.len() as u64;
    }
    bytes.iter().map(|&b| u64::from(b & 0xC0 != 0x80) + u64::from(b >= 0xF0)).sum()
}

impl fmt::Display for Chars {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
