//! ctx's additions to transcripts of other programs.
//!
//! The transcript is not changed; its compactions, projections and undos are entries of a second
//! file, the overlay, at `$CTX_HOME/overlays/<hash>.jsonl`. The hash covers the transcript's full
//! path and the beginning of its first line, so another transcript at the same path gets its own
//! overlay, and a transcript that grows keeps its overlay.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use ctx_core::{EntryId, ErrorKind, IdSource, Projection, Result, Timestamp};

use crate::clock;
use crate::disk::{self, LogFile, is_newer};
use crate::formats::{in_database, is_transcript};
use crate::log::{LogOptions, RandomIds, SessionLog, is_foreign};
use crate::paths::{Home, with_home_hint};
use crate::read::{ProblemKind, Problems};
use crate::schema::{NewEntry, check_overlay_header, overlay_header_line, projections_entry};
use crate::transcript::Transcript;

/// The bytes of the first line that identify a transcript. A transcript that is a single line grows
/// at its end; its beginning stays the same.
const HEADER_BYTES: u64 = 1024;

/// The overlay of one transcript. An overlay that does not exist yet is empty; the first entry
/// creates it.
///
/// It has the same entries as a session file ([`NewEntry`]). Each names its parent, so that a
/// reader can add it to the transcript's tree. Their ids are full UUIDs, which never collide with a
/// transcript's ordinals and short ids.
#[derive(Debug)]
pub struct Overlay {
    /// Its path, whether it exists or not.
    pub path: PathBuf,
    source: PathBuf,
}

impl Overlay {
    /// Returns the overlay of the transcript at `source`, which must exist.
    pub fn of(home: &Home, source: &Path) -> Result<Self> {
        let failed = |e| disk::io_error("cannot read the transcript", source, e);
        let mut beginning = Vec::new();
        let full = match in_database(source) {
            // A database has no constant beginning, so its path identifies it.
            Some((_, database, id)) => std::fs::canonicalize(database).map_err(failed)?.join(id),
            None => {
                let full = std::fs::canonicalize(source).map_err(failed)?;
                BufReader::new(disk::open(&full).map_err(failed)?.take(HEADER_BYTES))
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
        Ok(Self { path, source: full })
    }

    /// Appends an entry, if no other writer has the overlay open.
    pub(crate) fn append(
        &self,
        entry: &NewEntry,
        parent: Option<&EntryId>,
        now: Timestamp,
    ) -> Result<EntryId> {
        append(&mut self.writer()?, entry, parent, now)
    }

    /// Opens the overlay for appending, and creates it if it does not exist. Until the writer is
    /// dropped, others get [`ErrorKind::Locked`].
    pub(crate) fn writer(&self) -> Result<LogFile> {
        let line = overlay_header_line(&self.source)?;
        match LogFile::create(&self.path, &line) {
            Err(e) if e.kind() == ErrorKind::Conflict => {}
            created => return created.map_err(with_home_hint),
        }
        let accept = |first: &[u8]| {
            check_overlay_header(first).map_err(|e| e.with("path", self.path.display()))
        };
        LogFile::open(&self.path, accept).map_err(with_home_hint)
    }
}

/// Appends an entry to an overlay as a child of `parent`, and returns its id. It is on disk when
/// this returns.
pub(crate) fn append(
    file: &mut LogFile,
    entry: &NewEntry,
    parent: Option<&EntryId>,
    now: Timestamp,
) -> Result<EntryId> {
    let id: EntryId = RandomIds.next_id().into();
    file.append_durably(&entry.line(&id, parent, now)?)?;
    Ok(id)
}

/// Opens a transcript with its overlay: compactions and their undos. An overlay that cannot be read
/// is a `Problem`, because the transcript is readable without it.
///
/// # Errors
///
/// Those of [`Transcript::open`]; [`ErrorKind::UnknownFormat`] if a newer ctx wrote the overlay: it
/// may list messages that were forgotten.
pub fn open(home: &Home, path: &Path) -> Result<Transcript> {
    let mut transcript = Transcript::open(path)?;
    // Finding an overlay requires the beginning of the file, and a pipe can be read only once.
    if !is_transcript(path) {
        return Ok(transcript);
    }
    let overlay = Overlay::of(home, path)?;
    if let Err(error) = transcript.add_overlay_entries(&overlay.path) {
        if is_newer(&error) {
            return Err(error);
        }
        let mut problems = Problems::default();
        let text = format!("the overlay is ignored: {error}");
        problems.note(0, ProblemKind::DamagedOverlay, text);
        transcript.problems.extend(problems.finish().0);
    }
    Ok(transcript)
}

/// Stores projections, and returns the file that contains them. They are on disk when this returns.
///
/// # Errors
///
/// [`ErrorKind::Locked`] while another process writes to it, and [`ErrorKind::Io`].
pub fn save_projections(home: &Home, path: &Path, projections: &[Projection]) -> Result<PathBuf> {
    match SessionLog::open(path, LogOptions::default()) {
        Ok(mut log) => {
            log.append_projections(projections, clock::now())?;
            log.commit()?;
            Ok(path.to_owned())
        }
        Err(error) if is_foreign(&error) => {
            let overlay = Overlay::of(home, path)?;
            if let Some(entry) = projections_entry(projections)? {
                overlay.append(&entry, None, clock::now())?;
            }
            Ok(overlay.path)
        }
        Err(error) => Err(error),
    }
}

impl Transcript {
    /// Adds the entries of an overlay to the tree: compactions and their undos. A missing overlay
    /// adds nothing; a second overlay is ignored.
    ///
    /// Entries that are damaged or refer to missing entries are skipped and reported as problems.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the overlay exists and cannot be read.
    pub(crate) fn with_overlay(mut self, overlay: &Overlay) -> Result<Self> {
        self.add_overlay_entries(&overlay.path)?;
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::Projected;
    use serde::Deserialize;

    use super::*;
    use crate::log::tests::sample;
    use crate::schema::PROJECTIONS_TYPE;

    #[derive(Debug, PartialEq, Deserialize)]
    struct OverlayEntry {
        id: EntryId,
        #[serde(rename = "parentId")]
        parent: Option<EntryId>,
        #[serde(rename = "type")]
        kind: String,
        #[serde(skip)]
        line: String,
    }

    #[derive(Debug, Default, PartialEq)]
    struct OverlayContents {
        entries: Vec<OverlayEntry>,
        bad_lines: usize,
    }

    impl Overlay {
        /// Reads the entries without the projections.
        fn read(&self) -> std::io::Result<OverlayContents> {
            let mut contents = OverlayContents::default();
            let text = match disk::read_to_string(&self.path) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(contents),
                text => text?,
            };
            for line in text.lines().skip(1).filter(|line| !line.contains(PROJECTIONS_TYPE)) {
                match serde_json::from_str::<OverlayEntry>(line) {
                    Ok(entry) => contents.entries.push(OverlayEntry { line: line.into(), ..entry }),
                    Err(_) => contents.bad_lines += 1,
                }
            }
            Ok(contents)
        }
    }

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
            ctx: None,
        }
    }

    #[test]
    fn entries_and_projections_come_back_and_the_transcript_is_untouched() {
        let (_dir, home, source) = setup();
        let before = std::fs::read(&source).unwrap();
        let overlay = Overlay::of(&home, &source).unwrap();
        assert_eq!(overlay.read().unwrap(), OverlayContents::default());
        assert_eq!(open(&home, &source).unwrap().projections(None).unwrap(), []);
        assert!(!home.root.exists());

        let leaf: EntryId = "00000007".into();
        let id = overlay.append(&compaction(), Some(&leaf), Timestamp(1)).unwrap();
        let saved = [sample("a", Projected::Dropped)];
        assert_eq!(save_projections(&home, &source, &saved).unwrap(), overlay.path);
        overlay.append(&NewEntry::undo(&id), Some(&id), Timestamp(2)).unwrap();

        let again = Overlay::of(&home, &source).unwrap();
        let contents = again.read().unwrap();
        let kinds: Vec<_> = contents.entries.iter().map(|e| e.kind.as_str()).collect();
        assert_eq!((kinds, contents.bad_lines), (vec!["compaction", "custom"], 0));
        assert_eq!(contents.entries[0].parent, Some(leaf));
        let undo = &contents.entries[1];
        assert!(undo.line.contains(&format!(r#""data":{{"targetId":"{id}"}}"#)));
        assert_eq!(undo.parent, Some(id));
        assert_eq!(open(&home, &source).unwrap().projections(None).unwrap(), saved);
        assert_eq!(std::fs::read(&source).unwrap(), before);
        assert_eq!(std::fs::read_dir(source.parent().unwrap()).unwrap().count(), 2);
    }

    #[test]
    fn there_is_one_writer_at_a_time_and_damage_is_skipped() {
        let (_dir, home, source) = setup();
        let first = Overlay::of(&home, &source).unwrap();
        let mut held = first.writer().unwrap();
        append(&mut held, &compaction(), None, Timestamp(1)).unwrap();
        let second = Overlay::of(&home, &source).unwrap();
        let error = second.append(&compaction(), None, Timestamp(1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Locked);
        drop(held);

        let mut text = std::fs::read_to_string(&first.path).unwrap();
        text.push_str("nonsense\n{\"type\":\"compaction\",\"id\":\"torn");
        std::fs::write(&first.path, &text).unwrap();
        assert_eq!(second.read().unwrap().bad_lines, 2);
        second.append(&compaction(), None, Timestamp(1)).unwrap();
        let contents = second.read().unwrap();
        assert_eq!((contents.entries.len(), contents.bad_lines), (2, 1));
    }

    #[test]
    fn an_unknown_first_line_is_an_error_with_a_hint() {
        let (_dir, home, source) = setup();
        let overlay = Overlay::of(&home, &source).unwrap();
        std::fs::create_dir_all(overlay.path.parent().unwrap()).unwrap();
        let newer = "{\"type\":\"overlay\",\"version\":2,\"source\":\"/\"}\n";
        for (line, kind) in [(newer, ErrorKind::UnknownFormat), ("{}\n", ErrorKind::Corrupt)] {
            std::fs::write(&overlay.path, line).unwrap();
            let error = overlay.append(&compaction(), None, Timestamp(1)).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.hint_text().is_some_and(|hint| hint.contains("move the file away")));
            assert_eq!(std::fs::read_to_string(&overlay.path).unwrap(), line);
        }
    }

    #[test]
    fn a_growing_transcript_keeps_its_overlay_and_a_new_one_gets_another() {
        let (_dir, home, source) = setup();
        let path = |source: &Path| Overlay::of(&home, source).unwrap().path;
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
