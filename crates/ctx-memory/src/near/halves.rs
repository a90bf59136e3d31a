//! Numbers of 16 bits (IEEE's half), made and used several at a time on any machine.
//!
//! Only numbers from -1 to 1 are kept, so neither infinity nor what is no number has to be thought
//! of, and those too small for a normal half become 0.

/// The difference between the exponents of a half and of a float.
const BIAS: u32 = 112 << 23;

/// The smallest float that is kept.
const LEAST: u32 = BIAS + (1 << 23);

/// What a query is multiplied by, because halves are used without their bias: 2^112.
const SCALE: f32 = f32::from_bits((127 + 112) << 23);

/// A number from -1 to 1 as a half.
pub(super) fn half(x: f32) -> u16 {
    let bits = x.to_bits();
    let size = bits & 0x7fff_ffff;
    let kept = if size < LEAST { 0 } else { (size - BIAS + 0x1000) >> 13 };
    (bits >> 16 & 0x8000) as u16 | kept as u16
}

/// A half as a number, 2^112 times too small.
#[inline]
fn unbiased(half: u16) -> f32 {
    // The sign is the highest bit of both; what it is spread over is taken away again.
    let spread = i32::from(half as i16) << 13;
    f32::from_bits(spread as u32 & 0x8fff_ffff)
}

/// A half as a number.
pub(super) fn float(half: u16) -> f32 {
    unbiased(half) * SCALE
}

/// A number by which [`product`] multiplies.
pub(super) fn scaled(x: f32) -> f32 {
    x * SCALE
}

/// The sum of the products of halves and [`scaled`] numbers, in an order that a compiler can do
/// several at a time of.
pub(super) fn product(halves: &[u16], scaled: &[f32]) -> f32 {
    const LANES: usize = 16;
    let mut sums = [0f32; LANES];
    let (ones, twos) = (halves.chunks_exact(LANES), scaled.chunks_exact(LANES));
    let rest = ones.remainder().iter().zip(twos.remainder());
    let rest = rest.map(|(half, x)| unbiased(*half) * x).sum::<f32>();
    for (a, b) in ones.zip(twos) {
        for lane in 0..LANES {
            sums[lane] += unbiased(a[lane]) * b[lane];
        }
    }
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_half_is_what_it_was_made_of() {
        for x in [1.0, -1.0, 0.5, 0.1, -0.333, 0.001, -0.000_1, 0.999_99] {
            assert!((float(half(x)) - x).abs() <= x.abs() / 2_000.0, "{x}: {}", float(half(x)));
        }
        assert_eq!((half(1.0), half(-0.5)), (0x3c00, 0xb800));
        for x in [0.0, -0.0, 1e-5, -1e-40] {
            assert_eq!(float(half(x)), 0.0);
        }
    }

    #[test]
    fn a_product_is_the_sum_of_products() {
        for length in [0, 1, 15, 16, 17, 40] {
            let ones: Vec<f32> = (0..length).map(|n| n as f32 / 64.0 - 0.25).collect();
            let halves: Vec<u16> = ones.iter().map(|x| half(*x)).collect();
            let scaled: Vec<f32> = ones.iter().map(|x| scaled(*x)).collect();
            let expected: f32 = ones.iter().map(|x| x * x).sum();
            assert!((product(&halves, &scaled) - expected).abs() < 1e-3, "{length}");
        }
    }
}
