//! Archives that depend on nothing but their entries: no times, no owners, a fixed order.

use std::io::{Cursor, Write};

use anyhow::Result;
use flate2::{Compression, GzBuilder};
use zip::write::{SimpleFileOptions, ZipWriter};

use super::Entry;

/// Returns a gzipped tar archive.
pub(super) fn tar_gz(mut entries: Vec<Entry>) -> Result<Vec<u8>> {
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    // The header of gzip names a system, which is not the one that builds.
    let gzip = GzBuilder::new().operating_system(255).write(Vec::new(), Compression::default());
    let mut tar = tar::Builder::new(gzip);
    for Entry { path, bytes, is_executable } in &entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len().try_into()?);
        header.set_mode(mode(*is_executable));
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        tar.append_data(&mut header, path, bytes.as_slice())?;
    }
    Ok(tar.into_inner()?.finish()?)
}

/// Returns a zip archive, in the order of the entries. Its times are 1980, the first that zip has.
pub(super) fn zip(entries: &[Entry]) -> Result<Vec<u8>> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default();
    for Entry { path, bytes, is_executable } in entries {
        zip.start_file(path.as_str(), options.unix_permissions(mode(*is_executable)))?;
        zip.write_all(bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

fn mode(is_executable: bool) -> u32 {
    if is_executable { 0o755 } else { 0o644 }
}
