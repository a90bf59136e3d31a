//! The tree in the host's store: a key for each summary, and a key for the head of the session.
//!
//! Summaries are written before the head that names them. If a process is killed in between, the
//! next one finds the old head, folds again, and writes the same ids.

use std::collections::VecDeque;

use ctx_engine_sdk::protocol::service;
use ctx_engine_sdk::{Host, LogLevel, Result};
use serde::{Deserialize, Serialize};

use crate::tree::{Node, Parked, Tree};

/// The head of a session: its state without the summaries.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StoreHeader {
    top: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parked: Option<Parked>,
    committed: VecDeque<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
}

/// Loads a session's tree. It is empty without a store, or if nothing is stored.
pub(crate) fn load(session: &str, host: &mut Host<'_>) -> Result<Tree> {
    let mut tree = Tree::default();
    if !host.offers(service::GET) {
        return Ok(tree);
    }
    let Some(head) = read::<StoreHeader>(&head_key(session), host)? else { return Ok(tree) };
    let mut open = head.top.clone();
    while let Some(id) = open.pop() {
        if tree.nodes.contains_key(&id) {
            continue;
        }
        // A missing summary is ignored: its messages are folded again.
        if let Some(node) = read::<Node>(&node_key(session, &id), host)? {
            open.extend(node.children.iter().cloned());
            tree.nodes.insert(id, node);
        }
    }
    (tree.top, tree.parked) = (head.top, head.parked);
    (tree.committed, tree.origin) = (head.committed, head.origin);
    Ok(tree)
}

/// Writes a summary.
pub(crate) fn save_node(session: &str, node: &Node, host: &mut Host<'_>) -> Result<()> {
    if host.offers(service::PUT) {
        host.put(&node_key(session, &node.id), serde_json::to_value(node)?)?;
    }
    Ok(())
}

/// Writes the head.
pub(crate) fn save_head(session: &str, tree: &Tree, host: &mut Host<'_>) -> Result<()> {
    if host.offers(service::PUT) {
        let head = StoreHeader {
            top: tree.top.clone(),
            parked: tree.parked.clone(),
            committed: tree.committed.clone(),
            origin: tree.origin.clone(),
        };
        host.put(&head_key(session), serde_json::to_value(head)?)?;
    }
    Ok(())
}

/// Removes a session's head. The summaries stay in the store, but nothing names them.
pub(crate) fn forget(session: &str, host: &mut Host<'_>) -> Result<()> {
    if host.offers(service::PUT) {
        host.put(&head_key(session), serde_json::Value::Null)?;
    }
    Ok(())
}

/// Reads a value. A damaged value is logged, and treated as missing.
fn read<T: for<'de> Deserialize<'de>>(key: &str, host: &mut Host<'_>) -> Result<Option<T>> {
    let value = host.get(key)?;
    if value.is_null() {
        return Ok(None);
    }
    match serde_json::from_value(value) {
        Ok(read) => Ok(Some(read)),
        Err(error) => {
            host.log(LogLevel::Warn, format!("invalid value of '{key}' in the store: {error}"));
            Ok(None)
        }
    }
}

fn head_key(session: &str) -> String {
    format!("head/{session}")
}

fn node_key(session: &str, id: &str) -> String {
    format!("node/{session}/{id}")
}
