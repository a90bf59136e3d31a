//! Sticky projections on disk: as `custom` entries, one for each save.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{EntryId, Error, ErrorKind, Projection, ProjectionStore, RawJson, Result};
use serde::Deserialize;

use crate::Transcript;
use crate::clock::{self, Clock};
use crate::disk;
use crate::log::{NewEntry, SessionLog};
use crate::opencode_db;

/// The `customType` of the entries.
pub const PROJECTIONS_TYPE: &str = "ctx.projections";

/// What a compaction's entry holds if forms came with it. Inside of a text the quotes are escaped.
const OF_COMPACTION: &str = "\"projections\":[";

/// The projections of a session of ours, kept in the session itself.
///
/// They hold for the session as a whole, not for a branch: a projection names the entry and the
/// content it stands for. A save appends to the log and is made durable by its next commit.
#[derive(Clone, Debug)]
pub struct SessionProjections {
    log: Arc<Mutex<SessionLog>>,
    clock: Clock,
}

impl SessionProjections {
    /// Projections in `log`, which is shared with whoever appends messages.
    #[must_use]
    pub fn new(log: Arc<Mutex<SessionLog>>) -> Self {
        Self { log, clock: clock::now }
    }

    /// Takes the entries' times from `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }
}

impl ProjectionStore for SessionProjections {
    fn load(&self) -> Result<Vec<Projection>> {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        in_force(read_kept(log.path())?, || Transcript::open(log.path()))
    }

    fn save(&self, projections: &[Projection]) -> Result<()> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.append_projections(projections, (self.clock)()).map(drop)
    }
}

/// The entry that saves `projections`, unless there are none.
pub(crate) fn projections_entry(projections: &[Projection]) -> Result<Option<NewEntry>> {
    if projections.is_empty() {
        return Ok(None);
    }
    let data = serde_json::to_string(projections).map_err(|e| {
        Error::new(ErrorKind::InvalidInput, "the projections cannot be written as JSON").source(e)
    })?;
    Ok(Some(NewEntry::Custom {
        custom_type: PROJECTIONS_TYPE.into(),
        data: Some(RawJson::from_text(data)),
    }))
}

/// Forms that were kept together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Kept {
    /// The compaction they came with, if they did.
    pub(crate) by: Option<EntryId>,
    pub(crate) projections: Vec<Projection>,
}

/// The forms that hold on the way to the leaf of a transcript, which is opened if there are any of
/// compactions.
pub(crate) fn in_force(
    kept: Vec<Kept>,
    transcript: impl FnOnce() -> Result<Transcript>,
) -> Result<Vec<Projection>> {
    if kept.iter().any(|kept| kept.by.is_some()) {
        return transcript()?.forms_in_force(None, kept);
    }
    Ok(kept.into_iter().flat_map(|kept| kept.projections).collect())
}

/// All projections in a file of entries, oldest first. Lines and projections that cannot be read
/// are passed over: without its projection a message goes out in a new form, which costs a cached
/// prefix and nothing else.
pub(crate) fn read_kept(path: &Path) -> Result<Vec<Kept>> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head {
        #[serde(rename = "type", default)]
        kind: String,
        #[serde(default)]
        id: Option<EntryId>,
        #[serde(default)]
        custom_type: Option<String>,
        #[serde(default)]
        data: Option<RawJson>,
        #[serde(default, rename = "ctx")]
        mark: Option<MarkHead>,
    }
    #[derive(Deserialize)]
    struct MarkHead {
        #[serde(default)]
        projections: Vec<RawJson>,
    }
    if opencode_db::parts(path).is_some() {
        return Ok(Vec::new());
    }
    let failed = |e| disk::io_error("cannot read the projections", path, e);
    let finders =
        [PROJECTIONS_TYPE, OF_COMPACTION].map(|text| memchr::memmem::Finder::new(text.as_bytes()));
    let mut reader = BufReader::with_capacity(256 << 10, disk::open(path).map_err(failed)?);
    let mut line = Vec::new();
    let mut found = Vec::new();
    while {
        line.clear();
        reader.read_until(b'\n', &mut line).map_err(failed)? > 0
    } {
        if finders.iter().all(|finder| finder.find(&line).is_none()) {
            continue;
        }
        let Ok(head) = serde_json::from_slice::<Head>(&line) else { continue };
        let (by, projections) = match (head.mark, head.data) {
            (Some(mark), _) if head.kind == "compaction" => (head.id, mark.projections),
            (_, Some(data)) if head.custom_type.as_deref() == Some(PROJECTIONS_TYPE) => {
                (None, serde_json::from_str(data.as_str()).unwrap_or_default())
            }
            _ => continue,
        };
        let projections = projections.iter();
        let projections: Vec<Projection> =
            projections.filter_map(|p| serde_json::from_str(p.as_str()).ok()).collect();
        if !projections.is_empty() {
            found.push(Kept { by, projections });
        }
    }
    Ok(found)
}

#[cfg(test)]
pub(crate) mod tests {
    use ctx_core::{ContentHash, Message, Projected, ProjectionKey, Role, Timestamp};

    use super::*;
    use crate::log::{LogOptions, tests::new_session};

    pub(crate) fn sample(entry: &str, form: Projected) -> Projection {
        let hash = ContentHash::of(&Message::text(Role::User, entry));
        let key = ProjectionKey { entry: entry.into(), hash };
        Projection { key, layer: "pruning".into(), form, reason: "old".into() }
    }

    #[test]
    fn projections_live_in_the_session() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let log = new_session(&path, LogOptions::default());
        let log = Arc::new(Mutex::new(log));
        let store = SessionProjections::new(log.clone()).with_clock(|| Timestamp(5));
        assert_eq!(store.load().unwrap(), []);
        store.save(&[]).unwrap();
        assert_eq!(log.lock().unwrap().leaf(), None);

        let short = Arc::new(Message::text(Role::User, "short"));
        let saved = [sample("a", Projected::Dropped), sample("b", Projected::Replaced(short))];
        store.save(&saved[..1]).unwrap();
        store.save(&saved[1..]).unwrap();
        assert_eq!(store.load().unwrap(), saved);

        let text = std::fs::read_to_string(&path).unwrap();
        let broken = text.replacen("\"hash\"", "\"hush\"", 1) + "{\"customType\":\"ctx.projections";
        std::fs::write(&path, broken).unwrap();
        assert_eq!(store.load().unwrap(), saved[1..]);
    }
}
