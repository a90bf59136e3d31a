//! Creating a session from the content of another one.

use std::path::Path;

use ctx_core::{Error, ErrorKind, Result};

use crate::disk;
use crate::schema::{NewSession, PI_VERSION, header_line, write_json_line};
use crate::transcript::Transcript;

/// Writes a ctx session with the entries of the current branch of `transcript`, under the same ids.
/// Compactions and projections stay in force. The session is on disk when this returns. Unfinished
/// tool calls are not copied, because only the original session will get their results.
///
/// # Errors
///
/// [`ErrorKind::Conflict`] if the file exists, [`ErrorKind::Io`], and errors from reading.
pub fn fork(transcript: &Transcript, path: &Path, session: &NewSession) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(Error::new(ErrorKind::Conflict, "the session already exists")
            .with("path", path.display())
            .hint("choose another id for the new session"));
    }
    let mut indices = transcript.path(None)?;
    if let Some((under_way, _)) = transcript.context(None)?.open_calls()? {
        let at = transcript.index_of(&under_way);
        if let Some(at) = indices.iter().position(|index| Some(*index) == at) {
            indices.truncate(at);
        }
    }
    let mut bytes = header_line(session)?;
    let migrate = transcript.header.version.is_none_or(|version| version < PI_VERSION);
    let mut parent = None;
    for index in indices {
        let Some(entry) = transcript.entries.get(index) else { continue };
        write_json_line(&mut bytes, &transcript.pi_line(entry, parent, migrate)?)?;
        parent = Some(index);
    }
    disk::create_private_dir(disk::parent(path))?;
    disk::write_atomic(path, &bytes)
}

#[cfg(test)]
mod tests {
    use ctx_core::{EntryId, RawJson, Timestamp};

    use super::*;
    use crate::key::FileId;
    use crate::log::{LogOptions, SessionLog};
    use crate::schema::NewEntry;

    fn named(id: &str) -> NewSession {
        NewSession {
            id: FileId::new(id).unwrap(),
            timestamp: Timestamp(1_765_233_665_306),
            cwd: "/src".into(),
            parent_session: Some("parent".into()),
        }
    }

    fn append(log: &mut SessionLog, json: &str) -> EntryId {
        let entry = NewEntry::message(RawJson::from_text(json));
        log.append(&entry, Timestamp(1_765_233_665_307)).unwrap()
    }

    fn ids(transcript: &Transcript) -> Vec<String> {
        let entries = transcript.context(None).unwrap().entries;
        entries.iter().map(|entry| entry.id().to_string()).collect()
    }

    const CALL: &str = r#"{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"spawn","arguments":{}},{"type":"toolCall","id":"c2","name":"spawn","arguments":{}}]}"#;

    #[test]
    fn a_fork_contains_the_current_branch_without_unfinished_calls() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let mut log = SessionLog::create(&path, &named("a"), LogOptions::default()).unwrap();
        let first = append(&mut log, r#"{"role":"user","content":"one"}"#);
        append(&mut log, r#"{"role":"assistant","content":[{"type":"text","text":"left"}]}"#);
        log.branch(Some(first.clone())).unwrap();
        let second = append(&mut log, r#"{"role":"user","content":"two"}"#);
        append(&mut log, CALL);
        append(
            &mut log,
            r#"{"role":"toolResult","toolCallId":"c1","toolName":"spawn","content":[]}"#,
        );
        log.commit().unwrap();

        let to = dir.path().join("b.jsonl");
        let parent = Transcript::open(&path).unwrap();
        fork(&parent, &to, &named("b")).unwrap();
        let forked = Transcript::open(&to).unwrap();
        assert_eq!(forked.problems, []);
        assert_eq!(ids(&forked), [first.to_string(), second.to_string()]);
        assert_eq!(forked.header.id.as_deref(), Some("b"));
        assert_eq!(forked.header.parent_session.as_deref(), Some("parent"));
        let mut log = SessionLog::open(&to, LogOptions::default()).unwrap();
        append(&mut log, r#"{"role":"user","content":"three"}"#);
        assert_eq!(ids(&Transcript::open(&path).unwrap()).len(), 4, "the parent is unchanged");

        let error = fork(&parent, &to, &named("b")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
    }

    #[test]
    fn a_fork_contains_answered_calls() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jsonl");
        let mut log = SessionLog::create(&path, &named("a"), LogOptions::default()).unwrap();
        append(&mut log, r#"{"role":"user","content":"one"}"#);
        append(&mut log, CALL);
        for id in ["c1", "c2"] {
            let result = format!(
                r#"{{"role":"toolResult","toolCallId":"{id}","toolName":"spawn","content":[]}}"#
            );
            append(&mut log, &result);
        }
        let to = dir.path().join("b.jsonl");
        fork(&Transcript::open(&path).unwrap(), &to, &named("b")).unwrap();
        assert_eq!(ids(&Transcript::open(&to).unwrap()).len(), 4);
    }
}
