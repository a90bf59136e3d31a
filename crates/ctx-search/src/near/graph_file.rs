//! A graph in a file, so that it need not be rebuilt at every start.
//!
//! ```text
//! the graph, as usearch writes it
//! UUID, 16 bytes                      for each vector: the id of its segment
//! magic "ctxgraph" | version u32 | dimensions u32 | vectors u64 | expansion u64 | owner u64 |
//! CRC-32 of all before | CRC-32 of this    little endian
//! ```
//!
//! A file that consists of the footer only, with an expansion of 0, records that a graph over this
//! many vectors has too little recall. A writer holds the file's lock.
//!
//! The file is derived. A file that is torn, damaged, or made from other vectors or by another
//! embedder is ignored, and the graph is rebuilt. usearch trusts what it reads, so the checksums
//! are verified first.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use ctx_core::{Error, ErrorKind, Result};

use super::{Graph, Rows};
use crate::{SegmentId, disk};

const MAGIC: &[u8; 8] = b"ctxgraph";
const VERSION: u32 = 1;
const FOOTER: usize = 48;
const UUID: usize = 16;

/// The expansion of a file without a graph, because a graph over this many vectors has too little
/// recall.
const WEAK: u64 = 0;

/// The footer of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Footer {
    dimensions: u32,
    vectors: u64,
    expansion: u64,
    /// The embedder that made the vectors.
    owner: u64,
    sum: u32,
}

impl Footer {
    fn bytes(self) -> [u8; FOOTER] {
        let mut bytes = Vec::with_capacity(FOOTER);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(self.dimensions.to_le_bytes());
        for number in [self.vectors, self.expansion, self.owner] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend(self.sum.to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        let mut footer = [0; FOOTER];
        footer.iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        footer
    }

    fn read(bytes: &[u8; FOOTER]) -> Option<Self> {
        let small = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let large = |at: usize| Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let is_whole = crc32fast::hash(&bytes[..FOOTER - 4]) == small(FOOTER - 4)?;
        let sound = is_whole && bytes.starts_with(MAGIC) && small(8)? == VERSION;
        let (vectors, expansion, owner) = (large(16)?, large(24)?, large(32)?);
        sound.then_some(Self { dimensions: small(12)?, vectors, expansion, owner, sum: small(40)? })
    }
}

impl Graph {
    /// Writes the graph to `path`. `id_of` returns the segment of the vector in a slot; `owner` is
    /// the embedder of all vectors.
    ///
    /// # Errors
    ///
    /// If the file cannot be written; it is removed then.
    pub fn save(
        &self,
        path: &Path,
        owner: &str,
        dimensions: usize,
        id_of: impl Fn(usize) -> Option<SegmentId>,
    ) -> Result<()> {
        let temporary = disk::temporary(path);
        let written = self.write(&temporary, owner, dimensions, id_of);
        let put = written.and_then(|()| {
            let renamed = std::fs::rename(&temporary, path);
            renamed.map_err(|e| disk::io_error("cannot keep the graph of vectors", path, e))
        });
        if put.is_err() {
            // Best effort: the error that matters is the one being reported.
            let _ = std::fs::remove_file(&temporary);
        }
        put
    }

    /// Records in `path` that a graph over `rows` has too little recall, so that it is not rebuilt
    /// at every start.
    ///
    /// # Errors
    ///
    /// If the file cannot be written.
    pub fn save_weak(path: &Path, owner: &str, rows: &Rows) -> Result<()> {
        let footer = Footer {
            dimensions: rows.dimensions() as u32,
            vectors: rows.count() as u64,
            expansion: WEAK,
            owner: fingerprint(owner),
            sum: crc32fast::hash(&[]),
        };
        disk::replace(path, |out| out.write_all(&footer.bytes()))
    }

    /// Returns the number of vectors for which `path` records too little recall, if it does.
    pub fn weak(path: &Path, owner: &str, dimensions: usize) -> Option<usize> {
        let bytes = (std::fs::metadata(path).ok()?.len() == FOOTER as u64).then_some(path)?;
        let footer = Footer::read(disk::read(bytes).ok()?.as_slice().try_into().ok()?)?;
        let fits = footer.dimensions as usize == dimensions && footer.owner == fingerprint(owner);
        usize::try_from(footer.vectors).ok().filter(|_| fits && footer.expansion == WEAK)
    }

    fn write(
        &self,
        path: &Path,
        owner: &str,
        dimensions: usize,
        id_of: impl Fn(usize) -> Option<SegmentId>,
    ) -> Result<()> {
        let failed = |e| disk::io_error("cannot keep the graph of vectors", path, e);
        let Some(name) = path.to_str() else {
            return Err(Error::new(
                ErrorKind::Io,
                "the path of the vector graph is not valid UTF-8",
            )
            .with("path", path.display())
            .hint("it is rebuilt at every start; the rest of memory is not affected"));
        };
        // Created first with private permissions, before usearch writes to it.
        let made = disk::private().write(true).create(true).truncate(true).open(path);
        made.map_err(failed)?;
        self.index.save(name).map_err(super::graph::failed)?;
        let append = || -> io::Result<()> {
            let mut file = File::options().read(true).append(true).open(path)?;
            let mut sum = crc32fast::Hasher::new();
            add_to(&mut sum, &mut BufReader::with_capacity(1 << 20, &mut file))?;
            let mut out = BufWriter::new(&mut file);
            for slot in 0..self.size() {
                let id = id_of(slot).unwrap_or(SegmentId(uuid::Uuid::nil()));
                sum.update(id.0.as_bytes());
                out.write_all(id.0.as_bytes())?;
            }
            let footer = Footer {
                dimensions: dimensions as u32,
                vectors: self.size() as u64,
                expansion: self.expansion as u64,
                owner: fingerprint(owner),
                sum: sum.finalize(),
            };
            out.write_all(&footer.bytes())?;
            out.flush()?;
            drop(out);
            file.sync_all()
        };
        append().map_err(failed)
    }

    /// Loads the graph at `path` if it covers the first of `rows`, most of them. `slot_of` returns
    /// the current slot of a segment's vector. Returns `None` without such a graph.
    ///
    /// # Errors
    ///
    /// If the file exists and cannot be read.
    pub fn load(
        path: &Path,
        owner: &str,
        rows: &Rows,
        slot_of: impl Fn(SegmentId) -> Option<usize>,
    ) -> Result<Option<Self>> {
        let file = match disk::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(|e| disk::io_error("cannot read the graph", path, e))?,
        };
        let read = read(&file, owner, rows.dimensions());
        let read = read.map_err(|e| disk::io_error("cannot read the graph", path, e))?;
        let (Some((footer, ids)), Some(name)) = (read, path.to_str()) else { return Ok(None) };
        let Some((slots, covered)) = places(&ids, slot_of) else { return Ok(None) };
        let expansion = usize::try_from(footer.expansion).unwrap_or(usize::MAX).clamp(1, 4_096);
        let graph = Self::of_file(name, rows.dimensions(), expansion, slots, covered)?;
        Ok(graph.filter(|graph| graph.is_of(rows)))
    }
}

/// Reads the footer and the ids of the vectors; `None` if anything is invalid.
fn read(
    mut file: &File,
    owner: &str,
    dimensions: usize,
) -> io::Result<Option<(Footer, Vec<SegmentId>)>> {
    let length = file.metadata()?.len();
    let Some(end) = length.checked_sub(FOOTER as u64) else { return Ok(None) };
    let bytes = disk::read_at(file, end, FOOTER as u64)?;
    let Some(footer) = <&[u8; FOOTER]>::try_from(&*bytes).ok().and_then(Footer::read) else {
        return Ok(None);
    };
    let fits = footer.dimensions as usize == dimensions && footer.owner == fingerprint(owner);
    let names = footer.vectors.checked_mul(UUID as u64).filter(|names| *names <= end);
    let (Some(names), true) = (names, fits) else { return Ok(None) };
    file.seek(SeekFrom::Start(0))?;
    let mut sum = crc32fast::Hasher::new();
    add_to(&mut sum, &mut BufReader::with_capacity(1 << 20, file).take(end - names))?;
    let ids = disk::read_at(file, end - names, names)?;
    sum.update(&ids);
    if sum.finalize() != footer.sum {
        return Ok(None);
    }
    let (ids, _) = ids.as_chunks::<UUID>();
    let ids = ids.iter().map(|id| SegmentId(uuid::Uuid::from_bytes(*id))).collect();
    Ok(Some((footer, ids)))
}

/// Returns the current slots of the vectors of a graph, by key, and how many of the first slots
/// they cover. Returns `None` if they are not the first, or if many no longer exist.
fn places(
    ids: &[SegmentId],
    slot_of: impl Fn(SegmentId) -> Option<usize>,
) -> Option<(Vec<u32>, usize)> {
    let mut covered = 0;
    let mut slots = Vec::with_capacity(ids.len());
    for id in ids {
        let slot = slot_of(*id);
        if slot.is_some_and(|slot| slot != covered) {
            return None;
        }
        slots.push(slot.map_or(super::graph::GONE, |slot| slot as u32));
        covered += usize::from(slot.is_some());
    }
    (covered > 0 && covered >= ids.len() / 4 * 3).then_some((slots, covered))
}

fn add_to(sum: &mut crc32fast::Hasher, from: &mut impl Read) -> io::Result<()> {
    let mut bytes = vec![0; 1 << 20];
    loop {
        match from.read(&mut bytes)? {
            0 => return Ok(()),
            read => sum.update(&bytes[..read]),
        }
    }
}

/// Returns a hash of the embedder's name.
fn fingerprint(owner: &str) -> u64 {
    u64::from(crc32fast::hash(owner.as_bytes())) << 32 | owner.len() as u64
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use uuid::Uuid;

    use super::*;
    use crate::near::{Built, Direction};

    fn id(slot: usize) -> SegmentId {
        SegmentId(Uuid::from_u128(slot as u128 + 1))
    }

    fn slot(id: SegmentId) -> Option<usize> {
        Some(id.0.as_u128() as usize - 1)
    }

    /// Returns vectors on a circle, starting at another angle for each `turned`.
    fn rows(count: u32, turned: f32) -> Rows {
        let mut rows = Rows::new(2);
        for row in 0..count {
            let angle = row as f32 * std::f32::consts::TAU / count as f32 + turned;
            assert!(rows.add(row, &[angle.cos(), angle.sin()]));
        }
        rows
    }

    fn kept(folder: &tempfile::TempDir) -> std::path::PathBuf {
        let Ok(Built::Good(graph)) = Graph::build(&rows(300, 0.0), &AtomicBool::new(false)) else {
            panic!("a circle has structure");
        };
        let path = folder.path().join("vectors.graph");
        graph.save(&path, "model", 2, |slot| Some(id(slot))).unwrap();
        path
    }

    #[test]
    fn a_saved_graph_finds_the_same_vectors() {
        let folder = tempfile::tempdir().unwrap();
        let path = kept(&folder);
        let others = Graph::load(&path, "model", &rows(300, 3.0), slot).unwrap();
        assert!(others.is_none(), "other vectors are where its own were");
        let graph = Graph::load(&path, "model", &rows(300, 0.0), slot).unwrap().unwrap();
        let east = Direction::of(&[1.0, 0.0]).unwrap();
        assert!(graph.size() == 300 && graph.near(&east).unwrap().contains(&0));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn removed_vectors_are_not_found_and_many_removals_invalidate_the_graph() {
        let folder = tempfile::tempdir().unwrap();
        let path = kept(&folder);
        let all = rows(300, 0.0);
        let mut rest = Rows::new(2);
        let vector = |slot: usize| -> Vec<f32> {
            let angle = slot as f32 * std::f32::consts::TAU / 300.0;
            vec![angle.cos(), angle.sin()]
        };
        (30..300).for_each(|slot| assert!(rest.add(slot as u32 - 30, &vector(slot))));
        let later = |id: SegmentId| slot(id)?.checked_sub(30);
        let graph = Graph::load(&path, "model", &rest, later).unwrap().unwrap();
        let near = graph.near(&Direction::of(&vector(30)).unwrap()).unwrap();
        assert!(graph.size() == 270 && near.contains(&0) && near.iter().all(|slot| *slot < 270));
        let few = |id: SegmentId| slot(id).filter(|slot| *slot < 100);
        assert!(Graph::load(&path, "model", &all, few).unwrap().is_none());
        let mixed = |id: SegmentId| slot(id).map(|slot| 299 - slot);
        assert!(Graph::load(&path, "model", &all, mixed).unwrap().is_none());
    }

    #[test]
    fn a_record_of_low_recall_is_saved_and_is_not_a_graph() {
        let folder = tempfile::tempdir().unwrap();
        let path = kept(&folder);
        assert_eq!(Graph::weak(&path, "model", 2), None);
        Graph::save_weak(&path, "model", &rows(300, 0.0)).unwrap();
        assert!(Graph::load(&path, "model", &rows(300, 0.0), slot).unwrap().is_none());
        assert_eq!(Graph::weak(&path, "model", 2), Some(300));
        assert_eq!((Graph::weak(&path, "other", 2), Graph::weak(&path, "model", 3)), (None, None));
        std::fs::write(&path, [7; FOOTER]).unwrap();
        assert_eq!(Graph::weak(&path, "model", 2), None);
    }

    #[test]
    fn torn_damaged_and_foreign_files_are_not_graphs() {
        let folder = tempfile::tempdir().unwrap();
        let path = kept(&folder);
        let bytes = std::fs::read(&path).unwrap();
        let load = |owner: &str, bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            Graph::load(&path, owner, &rows(300, 0.0), slot).unwrap().is_some()
        };
        assert!(load("model", &bytes) && !load("other", &bytes));
        for length in [0, 1, FOOTER, bytes.len() / 2, bytes.len() - 1] {
            assert!(!load("model", &bytes[..length]), "{length}");
        }
        for at in [0, 40, bytes.len() / 2, bytes.len() - FOOTER - 1, bytes.len() - 20] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x40;
            assert!(!load("model", &damaged), "{at}");
        }
        assert!(Graph::load(&path, "model", &Rows::new(3), slot).unwrap().is_none());
        std::fs::remove_file(&path).unwrap();
        assert!(Graph::load(&path, "model", &rows(300, 0.0), slot).unwrap().is_none());
    }
}
