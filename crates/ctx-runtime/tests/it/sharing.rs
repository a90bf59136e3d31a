//! Sessions of one process that share a memory.

// Test helpers may unwrap.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use ctx_config::Config;
use ctx_core::{Entry, MemoryStore, Message, RecallRequest, Role, Tokens};
use ctx_runtime::{MemoryLocation, SessionSpec, SharedMemories};
use serde_json::json;

const FACT: &str = "the staging database listens on port 5433";

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.unwrap().block_on(work)
}

fn opened(
    memories: &SharedMemories,
    folder: &Path,
    session: &str,
    passages: u32,
) -> Arc<dyn MemoryStore> {
    let recall = json!({ "passages": passages });
    let memory =
        json!({ "enabled": true, "crossSession": true, "evictionDays": 0, "recall": recall });
    let config = json!({ "agents": { "defaults": { "memoryContext": memory } } });
    let config = Config::parse(&config.to_string()).unwrap();
    let wanted = SessionSpec { window: Some(Tokens(32_000)), ..SessionSpec::default() };
    let resolved = wanted.resolve(&config).unwrap();
    let at = MemoryLocation::Folder(folder.to_owned());
    let warn = |warning| panic!("{warning}");
    memories.of_session(&resolved, &at, ("main", session), None, warn).unwrap().unwrap()
}

fn recalled(memory: &Arc<dyn MemoryStore>) -> usize {
    let request = RecallRequest {
        query: "which port does the staging database use?".into(),
        min_score: 0.5,
        passages: 5,
        facts: 5,
        ..RecallRequest::default()
    };
    block_on(memory.recall(request)).unwrap().passages.len()
}

#[test]
fn sessions_with_equal_configuration_share_one_memory() {
    let folder = tempfile::tempdir().unwrap();
    let memories = SharedMemories::default();
    let one = opened(&memories, folder.path(), "one", 20);
    let two = opened(&memories, folder.path(), "two", 20);
    let apart = opened(&memories, folder.path(), "apart", 10);
    assert_eq!((recalled(&two), recalled(&apart)), (0, 0), "all are open");
    one.archive(&[Arc::new(Entry::in_memory("e1", Message::text(Role::User, FACT)))]).unwrap();
    block_on(one.flush()).unwrap();
    assert_eq!(recalled(&two), 1, "what one archives, the other finds");
    assert_eq!(recalled(&apart), 1, "a recall reads what others have archived");
    drop((one, two));
    let later = opened(&memories, folder.path(), "later", 20);
    assert_eq!(recalled(&later), 1, "a memory without users is opened again");
}
