//! Taking a compaction back.

use ctx_core::{Error, ErrorKind, Result};

use super::Proxy;

/// Takes back the compaction in force of a conversation.
pub(super) async fn undo(proxy: &Proxy, id: &str, entry: &str) -> Result<()> {
    let unknown = |what: &'static str| {
        Error::new(ErrorKind::NotFound, what)
            .with("session", id)
            .hint("only the compaction in force of a conversation in memory can be taken back")
    };
    let conversation = proxy.conversations.in_memory(id);
    let conversation = conversation.ok_or_else(|| unknown("the conversation is not in memory"))?;
    let mut work = conversation.work.lock().await;
    let Some(session) = &mut work.session else {
        return Err(unknown("the conversation is not in memory"));
    };
    let is_it = session
        .in_force
        .as_ref()
        .is_some_and(|kept| *kept.id == *entry || *kept.compacted.first_kept_entry_id == *entry);
    if !is_it {
        return Err(unknown("this compaction is not in force").with("compaction", entry));
    }
    session.undo();
    if let Some(keep) = proxy.conversations.keep.as_ref().filter(|_| conversation.is_kept()) {
        work.keep_undone(id, keep);
    }
    proxy.trace.undone(id, entry);
    Ok(())
}
