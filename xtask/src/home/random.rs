//! Ids of pseudo-random numbers, which are the same every time.

use ctx_testkit::Random;

/// Returns eight hex digits, like pi's entry ids.
pub(crate) fn hex8(random: &mut Random) -> String {
    format!("{:08x}", random.next() as u32)
}

/// Returns a UUID of version 4.
pub(crate) fn uuid(random: &mut Random) -> String {
    let (a, b) = (random.next(), random.next());
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        a >> 32,
        (a >> 16) & 0xffff,
        a & 0xfff,
        0x8000 | (b >> 48) & 0x3fff,
        b & 0xffff_ffff_ffff
    )
}

/// Returns letters and digits, as in the ids and signatures of a provider.
pub(crate) fn letters(random: &mut Random, count: usize) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz123456789";
    (0..count).map(|_| char::from(random.pick(ALPHABET))).collect()
}
