//! VMEM, version 1: the format of `vectors.bin`.
//!
//! ```text
//! magic "VMEM" | version u32 | dimensions u32 | count u32      little endian
//! UUID, 16 bytes | dimensions x float32                        count times
//! ```

use crate::SegmentId;

pub(super) const HEADER: usize = 16;
const MAGIC: [u8; 4] = *b"VMEM";
const VERSION: u32 = 1;
pub(super) const UUID: usize = 16;

/// A larger number is invalid, and a length computed from it could not be trusted.
pub(super) const MOST_DIMENSIONS: usize = 1 << 16;

/// Why a header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadHeader {
    #[error("the file ends within its header")]
    Short,
    #[error("not a VMEM file")]
    Magic,
    #[error("unsupported VMEM version {0}")]
    Version(u32),
    #[error("invalid number of dimensions: {0}")]
    Dimensions(u32),
}

pub(super) fn header(dimensions: usize, count: u32) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    let dimensions = u32::try_from(dimensions).unwrap_or(u32::MAX);
    let words = [u32::from_le_bytes(MAGIC), VERSION, dimensions, count];
    for (bytes, word) in header.chunks_exact_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    header
}

/// Returns the dimensions and the count in a header.
pub(super) fn read_header(bytes: &[u8]) -> Result<(usize, u32), BadHeader> {
    let word = |at: usize| {
        let bytes = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let (Some(magic), Some(version), Some(dimensions), Some(count)) =
        (word(0), word(4), word(8), word(12))
    else {
        return Err(BadHeader::Short);
    };
    if magic.to_le_bytes() != MAGIC {
        return Err(BadHeader::Magic);
    }
    if version != VERSION {
        return Err(BadHeader::Version(version));
    }
    match dimensions as usize {
        sound @ 1..=MOST_DIMENSIONS => Ok((sound, count)),
        _ => Err(BadHeader::Dimensions(dimensions)),
    }
}

/// Returns the length of one row in bytes.
pub(super) fn row(dimensions: usize) -> usize {
    UUID + dimensions * 4
}

pub(super) fn write_row(out: &mut Vec<u8>, id: SegmentId, vector: &[f32]) {
    out.extend_from_slice(id.0.as_bytes());
    for value in vector {
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// Returns a row's id and appends its values to `vectors`. Returns `None` and appends nothing if a
/// value is not finite.
pub(super) fn read_row(bytes: &[u8], vectors: &mut Vec<f32>) -> Option<SegmentId> {
    let (id, values) = bytes.split_at_checked(UUID)?;
    let id = SegmentId(uuid::Uuid::from_slice(id).ok()?);
    let before = vectors.len();
    vectors.extend(
        values.chunks_exact(4).filter_map(|b| Some(f32::from_le_bytes(b.try_into().ok()?))),
    );
    if vectors[before..].iter().all(|value| value.is_finite()) {
        return Some(id);
    }
    vectors.truncate(before);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layout_matches_the_format() {
        let id = SegmentId(uuid::Uuid::from_u128(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10));
        let mut bytes = header(2, 1).to_vec();
        write_row(&mut bytes, id, &[1.0, -2.5]);
        let expected = [
            &b"VMEM\x01\0\0\0\x02\0\0\0\x01\0\0\0"[..],
            b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10",
            b"\0\0\x80\x3f\0\0\x20\xc0",
        ]
        .concat();
        assert_eq!(bytes, expected);
        assert_eq!(read_header(&bytes), Ok((2, 1)));
        let mut vectors = Vec::new();
        assert_eq!(read_row(&bytes[HEADER..], &mut vectors), Some(id));
        assert_eq!(vectors, [1.0, -2.5]);
        assert_eq!(bytes.len(), HEADER + row(2));
    }

    #[test]
    fn foreign_headers_are_recognised() {
        let mut bytes = header(2, 1);
        assert_eq!(read_header(&bytes[..15]), Err(BadHeader::Short));
        bytes[4] = 2;
        assert_eq!(read_header(&bytes), Err(BadHeader::Version(2)));
        bytes[0] = b'X';
        assert_eq!(read_header(&bytes), Err(BadHeader::Magic));
        assert_eq!(read_header(&header(0, 1)), Err(BadHeader::Dimensions(0)));
        assert_eq!(read_header(&[0xff; 16]), Err(BadHeader::Magic));
    }
}
