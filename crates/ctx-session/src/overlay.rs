//! What ctx adds to a transcript that is not its own.
//!
//! The transcript stays untouched; its compactions, projections and undo are entries of a second
//! file, the overlay, at `$CTX_HOME/overlays/<hash>.jsonl`. The hash is of the transcript's full
//! path and the beginning of its first line, so another transcript at the same place gets an
//! overlay of its own, and one that grows keeps the one it has.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ctx_core::{
    EntryId, Error, ErrorKind, IdSource, Projection, ProjectionStore, RawJson, Result, Timestamp,
};
use serde::{Deserialize, Serialize};

use crate::Transcript;
use crate::clock::{self, Clock};
use crate::disk;
use crate::log::{Body, LogFile, NewEntry, RandomIds, one_line};
use crate::opencode_db;
use crate::paths::{Home, of_home};
use crate::projections::{PROJECTIONS_TYPE, in_force, projections_entry, read_kept};

/// How much of the first line tells transcripts apart. Formats that are one line as a whole grow
/// at its end; their beginning stays.
const HEADER_BYTES: u64 = 1024;

const VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
struct Header {
    #[serde(rename = "type")]
    kind: String,
    version: u64,
    source: String,
}

/// An entry of an overlay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverlayEntry {
    /// Its id; never one of the transcript's.
    pub id: EntryId,
    /// The entry it follows, usually one of the transcript's.
    pub parent: Option<EntryId>,
    /// Its type, for example `compaction`.
    pub kind: String,
    /// The whole line.
    pub line: RawJson,
}

/// All that an overlay holds but its projections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OverlayContents {
    /// The entries, oldest first.
    pub entries: Vec<OverlayEntry>,
    /// How many lines could not be read and were passed over.
    pub bad_lines: usize,
}

/// The overlay of one transcript. Reading one that does not exist yet finds it empty; the first
/// entry creates it.
///
/// Entries are those of a session file ([`NewEntry`]), each naming its parent, so that a reader can
/// hang them into the transcript's tree. Their ids are whole UUIDs, which no transcript's ordinals
/// and short ids collide with.
///
/// From its first write until it is [released](Overlay::release), or dropped, an overlay is the only
/// one that may write: [`store_compaction`](crate::compactions::store_compaction) of the same
/// transcript gets [`ErrorKind::Locked`] meanwhile. Who keeps one open stores compactions through it:
/// [`Overlay::store_compaction`], [`Overlay::undo_compaction`].
#[derive(Debug)]
pub struct Overlay {
    path: PathBuf,
    source: PathBuf,
    clock: Clock,
    writer: Mutex<Option<LogFile>>,
    /// Held from reading what is there until what follows from it is written.
    deciding: Mutex<()>,
}

impl Overlay {
    /// The overlay of the transcript at `source`, which must exist.
    pub fn of(home: &Home, source: &Path) -> Result<Self> {
        let failed = |e| disk::io_error("cannot read the transcript", source, e);
        let mut beginning = Vec::new();
        let full = match opencode_db::parts(source) {
            // Its path names it: it has no beginning that stays as it is.
            Some((database, id)) => std::fs::canonicalize(database).map_err(failed)?.join(id),
            None => {
                let full = std::fs::canonicalize(source).map_err(failed)?;
                BufReader::new(File::open(&full).map_err(failed)?.take(HEADER_BYTES))
                    .read_until(b'\n', &mut beginning)
                    .map_err(failed)?;
                full
            }
        };
        let mut hasher = blake3::Hasher::new();
        hasher.update(full.as_os_str().as_encoded_bytes());
        hasher.update(b"\n");
        hasher.update(beginning.trim_ascii_end());
        let name = hasher.finalize().to_hex();
        let path = home.overlays_dir().join(format!("{}.jsonl", &name[..32]));
        Ok(Self {
            path,
            source: full,
            clock: clock::now,
            writer: Mutex::new(None),
            deciding: Mutex::new(()),
        })
    }

    /// Takes the times of saved projections from `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Where the overlay is, or will be.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The transcript's full path.
    #[must_use]
    pub fn source(&self) -> &Path {
        &self.source
    }

    /// Reads the entries. Damaged lines are counted and passed over.
    pub fn read(&self) -> Result<OverlayContents> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Head {
            #[serde(rename = "type")]
            kind: String,
            id: EntryId,
            #[serde(default)]
            parent_id: Option<EntryId>,
            #[serde(default)]
            custom_type: Option<String>,
        }
        let failed = |e| disk::io_error("cannot read the overlay", &self.path, e);
        let mut contents = OverlayContents::default();
        let mut reader = match File::open(&self.path) {
            Ok(file) => BufReader::new(file),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(contents),
            Err(e) => return Err(failed(e)),
        };
        let mut line = Vec::new();
        let mut first = true;
        while {
            line.clear();
            reader.read_until(b'\n', &mut line).map_err(failed)? > 0
        } {
            if std::mem::take(&mut first) && check_header(&line).is_ok() {
                continue;
            }
            let text = std::str::from_utf8(line.trim_ascii()).unwrap_or_default();
            match serde_json::from_str::<Head>(text) {
                Ok(head) if head.custom_type.as_deref() == Some(PROJECTIONS_TYPE) => {}
                Ok(head) => contents.entries.push(OverlayEntry {
                    id: head.id,
                    parent: head.parent_id,
                    kind: head.kind,
                    line: RawJson::from_text(text),
                }),
                Err(_) if line.trim_ascii().is_empty() => {}
                Err(_) => contents.bad_lines += 1,
            }
        }
        Ok(contents)
    }

    /// Appends an entry as a child of `parent` and returns its id. It is on disk when this
    /// returns. While an overlay has a writer, others get [`ErrorKind::Locked`].
    pub fn append(
        &self,
        entry: &NewEntry,
        parent: Option<&EntryId>,
        now: Timestamp,
    ) -> Result<EntryId> {
        self.write(entry, parent, now, true)
    }

    pub(crate) fn append_body(
        &self,
        entry: &impl Body,
        parent: &EntryId,
        now: Timestamp,
    ) -> Result<EntryId> {
        self.write(entry, Some(parent), now, true)
    }

    /// Keeps other threads from storing what would rest on the same state.
    pub(crate) fn decide(&self) -> MutexGuard<'_, ()> {
        self.deciding.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins writing, so that no other process does. Creates the overlay if there is none.
    pub(crate) fn lock(&self) -> Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if writer.is_none() {
            *writer = Some(self.open_file()?);
        }
        Ok(())
    }

    /// Writes to a file that was opened already.
    #[cfg(test)]
    pub(crate) fn with_writer(self, file: LogFile) -> Self {
        Self { writer: Mutex::new(Some(file)), ..self }
    }

    /// Ends writing, so that another process may.
    pub fn release(&self) -> Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.take().map_or(Ok(()), |mut file| file.close())
    }

    fn write(
        &self,
        entry: &impl Body,
        parent: Option<&EntryId>,
        now: Timestamp,
        durable: bool,
    ) -> Result<EntryId> {
        let id: EntryId = RandomIds.next_id().into();
        let mut line = Vec::new();
        entry.write_line(&id, parent.map(|p| &**p), now, &mut line)?;
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match &mut *writer {
            Some(file) => file,
            none => none.insert(self.open_file()?),
        };
        let before = file.len();
        file.append(&line)?;
        if durable && let Err(e) = file.commit() {
            file.take_back_to(before)?;
            return Err(e);
        }
        Ok(id)
    }

    fn open_file(&self) -> Result<LogFile> {
        let header = Header {
            kind: "overlay".into(),
            version: VERSION,
            source: self.source.to_string_lossy().into_owned(),
        };
        let mut line = Vec::new();
        one_line(&header, &mut line)?;
        match LogFile::create(&self.path, &line) {
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            created => return created.map_err(of_home),
        }
        let accept =
            |first: &[u8]| check_header(first).map_err(|e| e.with("path", self.path.display()));
        LogFile::open(&self.path, accept).map_err(of_home)
    }
}

pub(crate) fn check_header(line: &[u8]) -> Result<()> {
    match serde_json::from_slice::<Header>(line) {
        Ok(header) if header.kind == "overlay" && header.version == VERSION => Ok(()),
        Ok(header) if header.kind == "overlay" => {
            Err(Error::new(ErrorKind::UnknownFormat, "the overlay has another version")
                .with("version", header.version)
                .with("supported", VERSION)
                .hint(
                    "use a ctx that knows this version, or move the file away to begin a new \
                     overlay; the transcript is not affected",
                ))
        }
        _ => Err(Error::new(ErrorKind::Corrupt, "the overlay's first line is damaged")
            .hint("move the file away to begin a new overlay; the transcript is not affected")),
    }
}

impl ProjectionStore for Overlay {
    fn load(&self) -> Result<Vec<Projection>> {
        match read_kept(&self.path) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            kept => in_force(kept?, || Transcript::open(&self.source)?.with_overlay(self)),
        }
    }

    /// A projection lost in a power cut costs a cached prefix; that is not worth a sync a turn.
    fn save(&self, projections: &[Projection]) -> Result<()> {
        let Some(entry) = projections_entry(projections)? else { return Ok(()) };
        self.write(&entry, None, (self.clock)(), false).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::Projected;

    use super::*;
    use crate::projections::tests::sample;

    fn setup() -> (tempfile::TempDir, Home, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home"));
        let source = dir.path().join("theirs.jsonl");
        std::fs::write(&source, "{\"type\":\"session\",\"id\":\"x\"}\n").unwrap();
        (dir, home, source)
    }

    fn compaction() -> NewEntry {
        NewEntry::Compaction {
            summary: "s".into(),
            first_kept_entry_id: "00000002".into(),
            tokens_before: 9,
            tokens_after: None,
            details: None,
            from_hook: None,
        }
    }

    #[test]
    fn entries_and_projections_come_back_and_the_transcript_is_untouched() {
        let (_dir, home, source) = setup();
        let before = std::fs::read(&source).unwrap();
        let overlay = Overlay::of(&home, &source).unwrap();
        assert_eq!(overlay.read().unwrap(), OverlayContents::default());
        assert_eq!(overlay.load().unwrap(), []);
        assert!(!home.root().exists());

        let leaf: EntryId = "00000007".into();
        let id = overlay.append(&compaction(), Some(&leaf), Timestamp(1)).unwrap();
        let saved = [sample("a", Projected::Dropped)];
        overlay.save(&saved).unwrap();
        overlay.append(&NewEntry::undo(&id), Some(&id), Timestamp(2)).unwrap();

        let again = Overlay::of(&home, &source).unwrap();
        let contents = again.read().unwrap();
        let kinds: Vec<_> = contents.entries.iter().map(|e| e.kind.as_str()).collect();
        assert_eq!((kinds, contents.bad_lines), (vec!["compaction", "custom"], 0));
        assert_eq!(contents.entries[0].parent, Some(leaf));
        let undo = &contents.entries[1];
        assert!(undo.line.as_str().contains(&format!(r#""data":{{"targetId":"{id}"}}"#)));
        assert_eq!(undo.parent, Some(id));
        assert_eq!(again.load().unwrap(), saved);
        assert_eq!(std::fs::read(&source).unwrap(), before);
        assert_eq!(std::fs::read_dir(source.parent().unwrap()).unwrap().count(), 2);
    }

    #[test]
    fn one_writer_at_a_time_and_damage_is_passed_over() {
        let (_dir, home, source) = setup();
        let first = Overlay::of(&home, &source).unwrap();
        first.append(&compaction(), None, Timestamp(1)).unwrap();
        let second = Overlay::of(&home, &source).unwrap();
        let error = second.append(&compaction(), None, Timestamp(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        first.release().unwrap();

        let mut text = std::fs::read_to_string(first.path()).unwrap();
        text.push_str("nonsense\n{\"type\":\"compaction\",\"id\":\"torn");
        std::fs::write(first.path(), &text).unwrap();
        assert_eq!(second.read().unwrap().bad_lines, 2);
        second.append(&compaction(), None, Timestamp(1)).unwrap();
        let contents = second.read().unwrap();
        assert_eq!((contents.entries.len(), contents.bad_lines), (2, 1));
    }

    #[test]
    fn a_first_line_that_is_not_known_says_what_to_do() {
        let (_dir, home, source) = setup();
        let overlay = Overlay::of(&home, &source).unwrap();
        std::fs::create_dir_all(overlay.path().parent().unwrap()).unwrap();
        let newer = "{\"type\":\"overlay\",\"version\":2,\"source\":\"/\"}\n";
        for (line, kind) in [(newer, ErrorKind::UnknownFormat), ("{}\n", ErrorKind::Corrupt)] {
            std::fs::write(overlay.path(), line).unwrap();
            let error = overlay.append(&compaction(), None, Timestamp(1)).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.hint_text().is_some_and(|hint| hint.contains("move the file away")));
            assert_eq!(std::fs::read_to_string(overlay.path()).unwrap(), line);
        }
    }

    #[test]
    fn a_growing_transcript_keeps_its_overlay_and_a_new_one_gets_another() {
        let (_dir, home, source) = setup();
        let path = |source: &Path| Overlay::of(&home, source).unwrap().path().to_owned();
        let first = path(&source);
        let text = std::fs::read_to_string(&source).unwrap();
        std::fs::write(&source, format!("{text}{text}")).unwrap();
        assert_eq!(path(&source), first);
        std::fs::write(&source, "{\"type\":\"session\",\"id\":\"y\"}\n").unwrap();
        assert_ne!(path(&source), first);
        let gone = Overlay::of(&home, Path::new("/no/such/file")).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
    }
}
