//! CRC-32C, eight bytes at a time.

const POLY: u32 = 0x82f6_3b78;

static TABLES: [[u32; 256]; 8] = tables();

const fn tables() -> [[u32; 256]; 8] {
    let mut t = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut c = i as u32;
        let mut k = 0;
        while k < 8 { c = if c & 1 == 1 { (c >> 1) ^ POLY } else { c >> 1 }; k += 1; }
        t[0][i] = c;
        i += 1;
    }
    let mut s = 1;
    while s < 8 {
        let mut i = 0;
        while i < 256 { t[s][i] = (t[s - 1][i] >> 8) ^ t[0][(t[s - 1][i] & 255) as usize]; i += 1; }
        s += 1;
    }
    t
}

/// The checksum of `bytes`.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut c = !0u32;
    for b in bytes { c = (c >> 8) ^ TABLES[0][((c ^ *b as u32) & 255) as usize]; }
    !c
}
