//! Facts as a host uses them: files, searches, updates, forgetting.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

mod forget;
mod killed;
mod model;
mod replay;
mod rules;
mod store;

use std::collections::BTreeSet;

use ctx_core::Timestamp;
use ctx_memory::facts::{FactCandidate, FactKind, FactStore, Scope};

fn candidate(kind: FactKind, content: &str, at: i64) -> FactCandidate {
    FactCandidate {
        kind,
        content: content.into(),
        context: String::new(),
        timestamp: Timestamp(at),
        source_entry_ids: vec![format!("e{at}")],
        session_id: "s".into(),
    }
}

fn config(content: &str, at: i64) -> FactCandidate {
    candidate(FactKind::Config, content, at)
}

fn named(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(ToString::to_string).collect()
}

fn open(dir: &tempfile::TempDir) -> FactStore {
    FactStore::open(dir.path().join("knowledge.jsonl"), Scope::Session).unwrap()
}

fn current(store: &FactStore) -> Vec<String> {
    let mut all: Vec<String> =
        store.facts().filter(|fact| fact.is_current()).map(|fact| fact.content.clone()).collect();
    all.sort();
    all
}
