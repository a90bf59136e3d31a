//! The handles of the history that the agent needs after the cut.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::Tokens;

use super::session::{Item, Speaker};

/// How far after the cut a use counts.
pub(super) const HORIZON: Tokens = Tokens(30_000);

/// A handle that occurs before the cut, not in the kept tail, and that the agent uses afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needed {
    /// The handle.
    pub(super) handle: u32,
    /// The first message that uses it, as an index into the messages after the cut.
    pub(super) used_by: usize,
    /// Whether neither a result nor the user says it between the cut and that use.
    pub(super) strict: bool,
}

/// Returns the messages within the horizon.
pub(super) fn horizon(after: &[Arc<Item>]) -> &[Arc<Item>] {
    let mut sum = Tokens::ZERO;
    let end = after.iter().position(|item| {
        let is_over = sum >= HORIZON;
        sum += item.tokens;
        is_over
    });
    &after[..end.unwrap_or(after.len())]
}

/// Returns the handles that messages after the cut need, in the order of their use. `before` is the
/// history without the kept tail.
pub(super) fn needed(before: &[Arc<Item>], tail: &[Arc<Item>], uses: &[Arc<Item>]) -> Vec<Needed> {
    let said = |items: &[Arc<Item>]| -> HashSet<u32> {
        items.iter().flat_map(|item| item.said.iter().copied()).collect()
    };
    let (old, kept) = (said(before), said(tail));
    let (mut used, mut said_after) = (HashSet::new(), HashSet::<u32>::new());
    let mut found = Vec::new();
    for (used_by, item) in uses.iter().enumerate() {
        if item.speaker != Speaker::Agent {
            said_after.extend(&item.said);
            continue;
        }
        for &handle in &item.said {
            if used.insert(handle) && old.contains(&handle) && !kept.contains(&handle) {
                found.push(Needed { handle, used_by, strict: !said_after.contains(&handle) });
            }
        }
    }
    found
}
