//! Vectors as integers.
//!
//! A kept vector is one byte per component, its largest component 127; a cosine to it is off by less
//! than one in a thousand. A query has 16 bits per component. A sum of integers is the same on every
//! machine, in whatever order they are added.

/// The largest component of a kept vector.
const LARGEST: f32 = 127.0;

/// The fixed-point value of 1 in a query.
const ONE: f32 = 32_767.0;

/// Converts a number from -1 to 1 to fixed point.
pub(super) fn fixed(x: f32) -> i16 {
    nearest(x * ONE, ONE) as i16
}

/// Returns the components of a vector as bytes. Returns `None` if it is all zeros or contains a NaN
/// or infinity.
pub(super) fn bytes(vector: &[f32]) -> Option<impl Iterator<Item = i8>> {
    // A NaN stays.
    let larger = |most: f32, x: &f32| if x.abs() <= most || most.is_nan() { most } else { x.abs() };
    let scale = LARGEST / vector.iter().fold(0.0, larger);
    scale.is_normal().then(|| vector.iter().map(move |x| nearest(x * scale, LARGEST) as i8))
}

/// Rounds to the nearest whole number between `-most` and `most`. It does so without `round`, which
/// is a function call on machines without an instruction for it.
fn nearest(x: f32, most: f32) -> f32 {
    let x = x.clamp(-most, most);
    x + 0.5f32.copysign(x)
}

/// Returns the factor that turns a [`product`] with this kept vector into a cosine. The components are
/// signed bytes.
pub(super) fn factor(vector: &[u8]) -> f32 {
    let square = |x: &u8| i64::from(x.cast_signed()).pow(2);
    1.0 / (ONE * (vector.iter().map(square).sum::<i64>() as f32).sqrt())
}

/// Returns the dot product of a kept vector and a query of length 1. No sum exceeds 2^31, up to
/// 260,000 dimensions: their lengths are at most 127 times the square root of these, and 2^15.
#[inline(always)]
pub(super) fn product(kept: &[u8], query: &[i16]) -> i32 {
    let products = kept.iter().zip(query).map(|(a, b)| i32::from(a.cast_signed()) * i32::from(*b));
    products.fold(0, i32::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_survives_quantisation() {
        for x in [1.0, -1.0, 0.5, 0.1, -0.333, 0.001, -0.000_1, 0.999_99, 0.0] {
            let kept = f32::from(fixed(x)) / ONE;
            assert!((kept - x).abs() <= 0.5 / ONE, "{x}: {kept}");
        }
        assert_eq!((fixed(7.0), fixed(-7.0), fixed(f32::NAN)), (32_767, -32_767, 0));
    }

    #[test]
    fn the_largest_component_of_a_kept_vector_is_127() {
        let kept = |vector: &[f32]| bytes(vector).map(|bytes| bytes.collect::<Vec<_>>());
        assert_eq!(kept(&[0.5, -1.0, 0.25, 0.0]), Some(vec![64, -127, 32, 0]));
        assert_eq!(kept(&[1e-30, 1e30]), Some(vec![0, 127]));
        for bad in [&[0.0, 0.0][..], &[1.0, f32::NAN, 2.0], &[f32::INFINITY], &[]] {
            assert_eq!(kept(bad), None, "{bad:?}");
        }
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
            let (one, two) = (vector(1), vector(5));
            let query: Vec<i16> = two.iter().map(|x| fixed(*x)).collect();
            let cosine = |vector: &[f32]| {
                let kept: Vec<u8> = bytes(vector).unwrap().map(i8::cast_unsigned).collect();
                product(&kept, &query) as f32 * factor(&kept)
            };
            let exact: f32 = one.iter().zip(&two).map(|(a, b)| a * b).sum();
            assert!((cosine(&one) - exact).abs() < 1e-3, "{length}");
            assert!((cosine(&two) - 1.0).abs() < 1e-3, "{length}");
        }
    }

    #[test]
    fn no_sum_overflows() {
        let (kept, query) = ([127; 65_536], [fixed(1.0 / 256.0); 65_536]);
        assert!((product(&kept, &query) as f32 * factor(&kept) - 1.0).abs() < 1e-2);
    }
}
