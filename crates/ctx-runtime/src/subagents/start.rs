//! The session of a subagent: its key, and its beginning.

use ctx_core::{Error, ErrorKind, Result, Toolbox};
use ctx_session::key::{AgentScope, FileId, PeerId, SessionKey};
use ctx_session::log::{LogOptions, NewSession, SessionLog};
use ctx_session::store::{SessionEntry, SessionStore};

use super::ContextMode;
use crate::runtime::{Inner, Opening, Runtime};
use crate::session::{blocking, gone};

/// How many subagents a key stands for: none for a session of a user.
pub(super) fn depth(key: &SessionKey) -> u32 {
    match key {
        SessionKey::Agent { scope: AgentScope::Subagent(chain), .. } => {
            let more = chain.as_str().matches(":subagent:").count();
            u32::try_from(more).unwrap_or(u32::MAX).saturating_add(1)
        }
        _ => 0,
    }
}

/// The key of a subagent: `agent:<agent>:subagent:<id>`, behind that of the one that starts it.
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
    // As it will be read again.
    key.to_string().parse()
}

/// A subagent that is about to start.
#[derive(Clone)]
pub(super) struct Birth {
    pub(super) parent: SessionKey,
    pub(super) child: SessionKey,
    pub(super) mode: ContextMode,
    pub(super) depth: u32,
}

impl Runtime {
    /// Begins the session of a subagent, and settles what it is run with. Where that fails nothing is
    /// left of it.
    pub(super) async fn begin_subagent(&self, birth: Birth, tools: &dyn Toolbox) -> Result<()> {
        let (inner, of) = (self.inner.clone(), birth.clone());
        let entry = blocking(move || create(&inner, &of)).await?;
        let settled = self.settle_subagent(&birth.child, tools).await;
        if settled.is_err() {
            let inner = self.inner.clone();
            let removed = blocking(move || remove(&inner, &birth.child, &entry)).await;
            if let Err(error) = removed {
                tracing::warn!("a subagent that did not start left its session: {error}");
            }
        }
        settled
    }

    async fn settle_subagent(&self, child: &SessionKey, tools: &dyn Toolbox) -> Result<()> {
        let work = async {
            let (mut session, _) = self.take(child, Opening::AsItIs).await?;
            let settled = session.settle_any(&self.inner, tools.specs()).await;
            self.put_back(session, settled.as_ref().err()).await;
            settled
        };
        self.inner.lanes.run(child.clone(), work).await
    }
}

fn store(inner: &Inner, child: &SessionKey) -> SessionStore {
    let agent = child.agent().cloned().unwrap_or_else(FileId::main);
    SessionStore::at(inner.home.sessions_file(&agent))
}

fn create(inner: &Inner, birth: &Birth) -> Result<SessionEntry> {
    let now = (inner.settings.clock)();
    let mut entry = SessionEntry::new(inner.settings.ids.next_id(), now);
    entry.session_started_at = Some(now);
    entry.spawned_by = Some(birth.parent.to_string());
    entry.spawn_depth = Some(birth.depth);
    let path = inner.home.transcript(&birth.child, &entry)?;
    let agent = birth.parent.agent().cloned().unwrap_or_else(FileId::main);
    let sessions = SessionStore::at(inner.home.sessions_file(&agent)).load()?;
    let parent = match sessions.get(&birth.parent) {
        Some(parent) => Some(inner.home.transcript(&birth.parent, parent)?),
        None => None,
    };
    let new = NewSession {
        id: FileId::new(&entry.session_id)?,
        timestamp: now,
        cwd: std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned(),
        parent_session: parent.as_ref().map(|path| path.display().to_string()),
    };
    match (birth.mode, parent) {
        (ContextMode::Isolated, _) => {
            SessionLog::create(&path, &new, LogOptions::default())?.close()?;
        }
        (ContextMode::Forked, Some(parent)) => {
            if !parent.exists() {
                return Err(gone(&birth.parent, &parent));
            }
            ctx_session::fork(&ctx_session::open(&inner.home, &parent)?, &path, &new)?;
        }
        (ContextMode::Forked, None) => {
            return Err(Error::new(ErrorKind::NotFound, "there is no session to fork from")
                .with("session", &birth.parent)
                .hint("say something in the session first, or start an isolated subagent"));
        }
    }
    store(inner, &birth.child).update(|sessions| sessions.insert(&birth.child, entry.clone()))?;
    Ok(entry)
}

/// Removes a session in which nothing was said.
fn remove(inner: &Inner, child: &SessionKey, entry: &SessionEntry) -> Result<()> {
    store(inner, child).update(|sessions| Ok(sessions.remove(child)))?;
    let path = inner.home.transcript(child, entry)?;
    ctx_session::retire::discard(&path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_say_who_started_whom() {
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
