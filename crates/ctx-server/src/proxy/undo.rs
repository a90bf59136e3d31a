//! Undoes compactions.

use ctx_core::{Error, ErrorKind, Result};

use super::Proxy;

/// Undoes the compaction in force of a conversation.
pub(super) async fn undo(proxy: &Proxy, id: &str, entry: &str) -> Result<()> {
    let unknown = |what: &'static str| {
        Error::new(ErrorKind::NotFound, what)
            .with("session", id)
            .hint("only the compaction in force of a conversation in memory can be undone")
    };
    let conversation = proxy.conversations.in_memory(id);
    let conversation = conversation.ok_or_else(|| unknown("the conversation is not in memory"))?;
    let mut state = conversation.state.lock().await;
    let Some(session) = &mut state.session else {
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
    if let Some(store) = proxy.conversations.store.as_ref().filter(|_| conversation.is_stored()) {
        state.save_undone(id, store);
    }
    proxy.trace.undone(id, entry);
    Ok(())
}
