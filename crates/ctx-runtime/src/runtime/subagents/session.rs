//! Creates the session of a subagent.

use ctx_core::{Error, ErrorKind, Result, Toolbox};
use ctx_session::key::{AgentScope, FileId, PeerId, SessionKey};
use ctx_session::{LogOptions, NewSession, SessionEntry, SessionLog, SessionStore};
use tracing::Span;

use super::ContextMode;
use crate::runtime::Runtime;
use crate::session::{OpenReason, Session, SessionPool, missing_file};
use crate::sync::spawn_blocking;

/// Returns the number of subagents in a key: 0 for a user's session.
pub(super) fn depth(key: &SessionKey) -> u32 {
    match key {
        SessionKey::Agent { scope: AgentScope::Subagent(chain), .. } => {
            let more = chain.as_str().matches(":subagent:").count();
            u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1)
        }
        _ => 0,
    }
}

/// Creates the key of a subagent: `agent:<agent>:subagent:<id>`, appended to the parent's key.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] if the key becomes too long.
pub(super) fn key(parent: &SessionKey, id: &str) -> Result<SessionKey> {
    let agent = parent.agent().cloned().unwrap_or_else(FileId::main);
    let chain = match parent {
        SessionKey::Agent { scope: AgentScope::Subagent(chain), .. } => {
            format!("{chain}:subagent:{id}")
        }
        _ => id.to_owned(),
    };
    let scope = AgentScope::Subagent(PeerId::new(chain)?);
    let key = SessionKey::Agent { agent, scope, thread: None };
    // Normalised by parsing it.
    key.to_string().parse()
}

/// A subagent that is about to start.
#[derive(Clone)]
pub(super) struct SubagentStart {
    pub(super) parent: SessionKey,
    pub(super) child: SessionKey,
    pub(super) mode: ContextMode,
    pub(super) depth: u32,
}

impl Runtime {
    /// Creates the session of a subagent, and resolves its model, window and engine. On failure the
    /// session is removed.
    pub(super) async fn begin_subagent(
        &self,
        start: SubagentStart,
        tools: &dyn Toolbox,
    ) -> Result<()> {
        let (pool, of) = (self.inner.sessions.clone(), start.clone());
        let entry = spawn_blocking(move || create(&pool, &of)).await?;
        let prepared = self.prepare_subagent(&start.child, tools).await;
        if prepared.is_err() {
            let pool = self.inner.sessions.clone();
            let removed = spawn_blocking(move || remove(&pool, &start.child, &entry)).await;
            if let Err(error) = removed {
                tracing::warn!(
                    "cannot remove the session of a subagent that did not start: {error}"
                );
            }
        }
        prepared
    }

    async fn prepare_subagent(&self, child: &SessionKey, tools: &dyn Toolbox) -> Result<()> {
        let work = |mut session: Session, _| async move {
            let prepared = session.prepare_any(&self.inner.sessions, tools.specs()).await;
            (session, prepared)
        };
        self.with_session(Span::current(), child, OpenReason::Existing, work).await
    }
}

fn store(pool: &SessionPool, child: &SessionKey) -> SessionStore {
    let agent = child.agent().cloned().unwrap_or_else(FileId::main);
    SessionStore::at(pool.home.sessions_file(&agent))
}

fn create(pool: &SessionPool, start: &SubagentStart) -> Result<SessionEntry> {
    let now = (pool.settings.clock)();
    let mut entry = SessionEntry::new(pool.settings.ids.next_id(), now);
    entry.session_started_at = Some(now);
    entry.spawned_by = Some(start.parent.to_string());
    entry.spawn_depth = Some(start.depth);
    let path = pool.home.transcript(&start.child, &entry)?;
    let agent = start.parent.agent().cloned().unwrap_or_else(FileId::main);
    let parent = SessionStore::at(pool.home.sessions_file(&agent)).get(&start.parent)?;
    let parent = parent.map(|parent| pool.home.transcript(&start.parent, &parent)).transpose()?;
    let new = NewSession {
        id: FileId::new(&entry.session_id)?,
        timestamp: now,
        cwd: std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned(),
        parent_session: parent.as_ref().map(|path| path.display().to_string()),
    };
    match (start.mode, parent) {
        (ContextMode::Isolated, _) => {
            SessionLog::create(&path, &new, LogOptions::default())?.close()?;
        }
        (ContextMode::Forked, Some(parent)) => {
            if !parent.exists() {
                return Err(missing_file(&start.parent, &parent));
            }
            ctx_session::fork(&ctx_session::open(&pool.home, &parent)?, &path, &new)?;
        }
        (ContextMode::Forked, None) => {
            return Err(Error::new(ErrorKind::NotFound, "no session to fork from")
                .with("session", &start.parent)
                .hint("send a message in the session first, or start an isolated subagent"));
        }
    }
    store(pool, &start.child).update(|sessions| sessions.insert(&start.child, entry.clone()))?;
    Ok(entry)
}

/// Removes an empty session.
fn remove(pool: &SessionPool, child: &SessionKey, entry: &SessionEntry) -> Result<()> {
    store(pool, child).update(|sessions| Ok(sessions.remove(child)))?;
    let path = pool.home.transcript(child, entry)?;
    ctx_session::discard_session(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subagent_key_contains_its_ancestors() {
        for (parent, child, of_child) in [
            ("agent:a:main", "agent:a:subagent:7b", 1),
            ("agent:a:telegram:group:-1:topic:4", "agent:a:subagent:7b", 1),
            ("agent:a:subagent:1c", "agent:a:subagent:1c:subagent:7b", 2),
            ("agent:a:subagent:1c:subagent:2d", "agent:a:subagent:1c:subagent:2d:subagent:7b", 3),
            ("cron:daily", "agent:main:subagent:7b", 1),
        ] {
            let parent: SessionKey = parent.parse().unwrap();
            let key = key(&parent, "7b").unwrap();
            assert_eq!(key.to_string(), child);
            assert_eq!((depth(&parent) + 1, depth(&key)), (of_child, of_child));
        }
        let long: SessionKey = format!("agent:a:subagent:{}", "x".repeat(100)).parse().unwrap();
        let named = key(&long, &"y".repeat(ctx_session::key::MAX_KEY_BYTES));
        assert_eq!(named.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
}
