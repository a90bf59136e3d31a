//! The format of a journal. Each sync writes one frame; a frame contains one record per commit.
//!
//! A frame is `magic, epoch, length of its records, check, records`; a record is `member, offset,
//! length of path, length of data, check, path, data`. Numbers are little-endian. A check is a
//! CRC-32, which detects torn writes, not forgery. A frame whose epoch differs from the first
//! frame's epoch is left over from an earlier round.

use std::path::PathBuf;

use ctx_core::Result;

use crate::newer::newer;

const MAGIC: [u8; 8] = *b"ctxjrnl1";

pub(super) const FRAME_HEADER: usize = 8 + 8 + 8 + 4;
const RECORD_HEADER: usize = 8 + 8 + 4 + 4 + 4;

/// Bytes that belong at an offset of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct JournalRecord<'a> {
    pub(super) member: u64,
    pub(super) offset: u64,
    pub(super) path: &'a [u8],
    pub(super) data: &'a [u8],
}

impl JournalRecord<'_> {
    /// Appends the record to `out`. Returns `false` if it is too long for its length fields.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> bool {
        let (Ok(path), Ok(data)) = (u32::try_from(self.path.len()), u32::try_from(self.data.len()))
        else {
            return false;
        };
        let mut header = [0; RECORD_HEADER];
        header[..8].copy_from_slice(&self.member.to_le_bytes());
        header[8..16].copy_from_slice(&self.offset.to_le_bytes());
        header[16..20].copy_from_slice(&path.to_le_bytes());
        header[20..24].copy_from_slice(&data.to_le_bytes());
        let check = check(&[&header[..24], self.path, self.data]);
        header[24..].copy_from_slice(&check);
        out.extend_from_slice(&header);
        out.extend_from_slice(self.path);
        out.extend_from_slice(self.data);
        true
    }
}

/// Fills in the header of a frame: `frame` begins with space for it, followed by the records.
pub(super) fn seal(frame: &mut [u8], epoch: u64) {
    let length = frame.len().saturating_sub(FRAME_HEADER) as u64;
    let Some(header) = frame.first_chunk_mut::<FRAME_HEADER>() else { return };
    header[..8].copy_from_slice(&MAGIC);
    header[8..16].copy_from_slice(&epoch.to_le_bytes());
    header[16..24].copy_from_slice(&length.to_le_bytes());
    let check = check(&[&header[..24]]);
    header[24..].copy_from_slice(&check);
}

/// Returns all records of the newest round, in order, up to the first incomplete one.
///
/// # Errors
///
/// If the journal is of a newer version: this version would find no records in it, and lose them.
pub(super) fn read(journal: &[u8]) -> Result<Vec<JournalRecord<'_>>> {
    let (name, known) = MAGIC.split_at(7);
    if let Some(found) = journal.strip_prefix(name).and_then(<[u8]>::first)
        && found.is_ascii_digit()
        && *found > known[0]
    {
        return Err(newer("journal", char::from(*found), char::from(known[0])));
    }
    let mut records = Vec::new();
    let mut rest = journal;
    let mut epoch = None;
    while let Some((frame_epoch, mut frame, after, whole)) = frame(rest) {
        if *epoch.get_or_insert(frame_epoch) != frame_epoch {
            break;
        }
        while let Some((record, left)) = record(frame) {
            records.push(record);
            frame = left;
        }
        if !whole || !frame.is_empty() {
            break;
        }
        rest = after;
    }
    Ok(records)
}

fn frame(bytes: &[u8]) -> Option<(u64, &[u8], &[u8], bool)> {
    let (header, body) = bytes.split_first_chunk::<FRAME_HEADER>()?;
    if header[..8] != MAGIC || header[24..] != check(&[&header[..24]]) {
        return None;
    }
    let epoch = u64::from_le_bytes(*header[8..].first_chunk()?);
    let length = usize::try_from(u64::from_le_bytes(*header[16..].first_chunk()?)).ok()?;
    match body.split_at_checked(length) {
        Some((records, after)) => Some((epoch, records, after, true)),
        // The file ends inside the frame: its first records may still be complete.
        None => Some((epoch, body, &[], false)),
    }
}

fn record(bytes: &[u8]) -> Option<(JournalRecord<'_>, &[u8])> {
    let (header, body) = bytes.split_first_chunk::<RECORD_HEADER>()?;
    let path = usize::try_from(u32::from_le_bytes(*header[16..].first_chunk()?)).ok()?;
    let data = usize::try_from(u32::from_le_bytes(*header[20..].first_chunk()?)).ok()?;
    let (path, body) = body.split_at_checked(path)?;
    let (data, rest) = body.split_at_checked(data)?;
    if header[24..] != check(&[&header[..24], path, data]) {
        return None;
    }
    let member = u64::from_le_bytes(*header.first_chunk()?);
    let offset = u64::from_le_bytes(*header[8..].first_chunk()?);
    Some((JournalRecord { member, offset, path, data }, rest))
}

fn check(parts: &[&[u8]]) -> [u8; 4] {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().to_le_bytes()
}

/// Returns the path of a record. On systems other than Unix it must be valid UTF-8.
pub(super) fn path_of(bytes: &[u8]) -> Option<PathBuf> {
    #[cfg(unix)]
    return Some(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes).into());
    #[cfg(not(unix))]
    return std::str::from_utf8(bytes).ok().map(PathBuf::from);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame_of(epoch: u64, records: &[(u64, &[u8])]) -> Vec<u8> {
        let mut frame = vec![0; FRAME_HEADER];
        for &(offset, data) in records {
            assert!(JournalRecord { member: 1, offset, path: b"/s", data }.write(&mut frame));
        }
        seal(&mut frame, epoch);
        frame
    }

    fn offsets(journal: &[u8]) -> Vec<u64> {
        read(journal).unwrap_or_default().iter().map(|r| r.offset).collect()
    }

    #[test]
    fn a_round_is_read_up_to_its_end() {
        let mut journal = frame_of(4, &[(0, b"a"), (1, b"b")]);
        journal.extend(frame_of(4, &[(2, b"c")]));
        assert_eq!(offsets(&journal), [0, 1, 2]);
        let whole = journal.clone();
        journal.extend(frame_of(3, &[(9, b"old")]));
        assert_eq!(offsets(&journal), [0, 1, 2]);
        journal.truncate(whole.len());
        journal.extend([0; 500]);
        assert_eq!(offsets(&journal), [0, 1, 2]);
        assert_eq!(offsets(&whole[..whole.len() - 1]), [0, 1]);
        assert_eq!(offsets(b""), [0u64; 0]);
    }

    proptest! {
        #[test]
        fn damage_never_invents_a_record(at in 0usize..300, bit in 0u8..8) {
            let mut journal = frame_of(1, &[(0, b"hello"), (5, b"world")]);
            journal.extend(frame_of(1, &[(10, b"again")]));
            let at = at % journal.len();
            journal[at] ^= 1 << bit;
            let found = offsets(&journal);
            prop_assert!([0, 5, 10].starts_with(&found), "{found:?}");
            prop_assert!(found.len() < 3);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(read(&bytes).unwrap().is_empty());
        }
    }
}
