//! 16-bit fixed-point numbers, in units of 1/32,767.
//!
//! The components of a unit vector are between -1 and 1 and mostly small, so fixed point loses no
//! more of a cosine than IEEE's f16: less than one in ten thousand. Integers are multiplied and
//! added eight at a time on every machine, with the same sum on each.

use wide::{i16x8, i32x4};

/// The fixed-point value of 1.
const ONE: f32 = 32_767.0;

/// Converts a number from -1 to 1 to fixed point.
pub(super) fn fixed(x: f32) -> i16 {
    // NaN becomes 0, and a value out of range is clamped. Rounds to nearest without `round`, which
    // is a function call on machines without an instruction for it.
    let x = (x * ONE).clamp(-ONE, ONE);
    (x + 0.5f32.copysign(x)) as i16
}

/// Converts a fixed-point number back.
pub(super) fn float(fixed: i16) -> f32 {
    f32::from(fixed) / ONE
}

/// Returns the dot product of two unit vectors. No partial sum exceeds 2^30 (apart from rounding),
/// because neither vector is longer than 2^15.
pub(super) fn product(one: &[i16], two: &[i16]) -> f32 {
    // Explicit, because a binary that is optimised for size has no vectorised loops.
    let ((one, last), (two, other)) = (one.as_chunks(), two.as_chunks());
    let products = one.iter().zip(two).map(|(a, b)| i16x8::new(*a).dot(i16x8::new(*b)));
    let sum = products.fold(i32x4::ZERO, |sum, product| sum + product).reduce_add();
    let products = last.iter().zip(other).map(|(a, b)| i32::from(*a) * i32::from(*b));
    products.fold(sum, i32::wrapping_add) as f32 / (ONE * ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_survives_quantisation() {
        for x in [1.0, -1.0, 0.5, 0.1, -0.333, 0.001, -0.000_1, 0.999_99, 0.0] {
            assert!((float(fixed(x)) - x).abs() <= 0.5 / 32_767.0, "{x}: {}", float(fixed(x)));
        }
        assert_eq!((fixed(7.0), fixed(-7.0), fixed(f32::NAN)), (32_767, -32_767, 0));
    }

    #[test]
    fn a_product_is_the_cosine() {
        for length in [1, 15, 16, 17, 384, 4_096] {
            let vector = |seed: u64| -> Vec<f32> {
                let mut seed = seed;
                let mut next = || {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
                    (seed >> 40) as f32 / (1u64 << 24) as f32 - 0.4
                };
                let raw: Vec<f32> = (0..length).map(|_| next()).collect();
                let size = raw.iter().map(|x| x * x).sum::<f32>().sqrt();
                raw.iter().map(|x| x / size).collect()
            };
            let kept = |vector: &[f32]| -> Vec<i16> { vector.iter().map(|x| fixed(*x)).collect() };
            let (one, two) = (vector(1), vector(5));
            let cosine: f32 = one.iter().zip(&two).map(|(a, b)| a * b).sum();
            assert!((product(&kept(&one), &kept(&two)) - cosine).abs() < 1e-4, "{length}");
            assert!((product(&kept(&one), &kept(&one)) - 1.0).abs() < 1e-4, "{length}");
        }
    }
}
