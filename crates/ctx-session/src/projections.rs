//! Projections of messages on disk: in a ctx session itself, otherwise in the overlay.

use std::path::{Path, PathBuf};

use ctx_core::{Projection, Result};

use crate::clock;
use crate::log::{LogOptions, SessionLog, is_foreign};
use crate::overlay::Overlay;
use crate::paths::Home;
use crate::schema::projections_entry;

/// Stores projections, and returns the file that contains them. They are on disk when this returns.
///
/// # Errors
///
/// [`ErrorKind::Locked`](ctx_core::ErrorKind::Locked) while another process writes to it, and `ErrorKind::Io`.
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ctx_core::{Message, Projected, Role, Timestamp};

    use crate::log::LogOptions;
    use crate::log::tests::{new_session, sample};
    use crate::transcript::Transcript;

    #[test]
    fn projections_live_in_the_session() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.jsonl");
        let mut log = new_session(&path, LogOptions::default());
        let load = || Transcript::open(&path).unwrap().projections(None).unwrap();
        assert_eq!(load(), []);
        log.append_projections(&[], Timestamp(5)).unwrap();
        assert_eq!(log.leaf(), None);

        let short = Arc::new(Message::text(Role::User, "short"));
        let saved = [sample("a", Projected::Dropped), sample("b", Projected::Replaced(short))];
        log.append_projections(&saved[..1], Timestamp(5)).unwrap();
        log.append_projections(&saved[1..], Timestamp(5)).unwrap();
        assert_eq!(load(), saved);

        let text = std::fs::read_to_string(&path).unwrap();
        let broken = text.replacen("\"hash\"", "\"hush\"", 1) + "{\"customType\":\"ctx.projections";
        std::fs::write(&path, broken).unwrap();
        assert_eq!(load(), saved[1..]);
    }
}
