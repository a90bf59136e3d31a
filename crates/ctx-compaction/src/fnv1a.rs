//! A small hash for texts that is equal on every machine.

/// FNV-1a. The jitter must be the same on every machine and with every compiler version, which the
/// standard hasher does not guarantee.
pub(crate) fn fnv1a(parts: &[&[u8]]) -> u64 {
    let step = |hash: u64, &byte: &u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = parts.iter().flat_map(|part| part.iter()).fold(0xcbf2_9ce4_8422_2325, step);
    // The last bytes alone would affect the low bits too weakly for a remainder.
    hash ^ (hash >> 29)
}
