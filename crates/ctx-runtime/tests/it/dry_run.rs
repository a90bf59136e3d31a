//! Memory in a dry run: its files are read and, even if damaged, not changed.

// Test helpers may unwrap.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_config::Config;
use ctx_core::{Entry, MemoryStore, Message, RecallRequest, Role};
use ctx_runtime::{MemoryLocation, SessionSpec, SharedMemories};
use serde_json::json;

fn memory(at: &MemoryLocation) -> Arc<dyn MemoryStore> {
    let config = json!({ "agents": { "defaults": { "memoryContext": { "enabled": true } } } });
    let config = Config::parse(&config.to_string()).unwrap();
    let resolved = SessionSpec::default().resolve(&config).unwrap();
    let memories = SharedMemories::default();
    let memory = memories.of_session(&resolved, at, ("main", "s1"), None, |w| panic!("{w}"));
    memory.unwrap().expect("it is enabled")
}

fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    all.sort();
    all
}

#[test]
fn a_dry_run_finds_archived_messages_and_keeps_a_damaged_index() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let said = "the parrot of the lighthouse keeper is called Quillon";
    runtime.block_on(async {
        let first = memory(&MemoryLocation::Folder(folder.path().to_owned()));
        first
            .archive(&[Arc::new(Entry::in_memory("e1", Message::text(Role::User, said)))])
            .unwrap();
        first.flush().await.unwrap();
    });
    let index = folder.path().join("lexical");
    std::fs::create_dir_all(&index).unwrap();
    std::fs::write(index.join("meta.json"), "damaged").unwrap();
    std::fs::remove_file(folder.path().join("vectors.bin")).unwrap();
    let before = files(folder.path());
    let dry = memory(&MemoryLocation::ReadOnly(folder.path().to_owned()));
    let request = RecallRequest {
        query: "what is the parrot of the lighthouse keeper called?".into(),
        min_score: 0.5,
        passages: 5,
        ..RecallRequest::default()
    };
    let found = runtime.block_on(dry.recall(request)).unwrap();
    assert_eq!(found.passages[0].text, said);
    assert!(found.warnings.iter().any(|warning| warning.contains("is not used")), "{found:?}");
    runtime.block_on(dry.flush()).unwrap();
    assert_eq!(files(folder.path()), before);
}
