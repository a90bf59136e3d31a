//! Compaction: the whole tree as one summary that replaces the session's history.

use std::collections::HashMap;

use ctx_engine_sdk::protocol::{IdentifierPolicy, Trigger};
use ctx_engine_sdk::{Compact, CompactResult, Compacted, Result, Row, Session};
use serde_json::json;

use crate::config::{Config, part};
use crate::fold::{Fold, Rest};
use crate::tree::{Tree, is_summary};
use crate::write::Writer;

/// Folds everything before the fresh tail into the root of the tree.
pub(crate) fn compact(
    tree: &mut Tree,
    session: &Session,
    request: &Compact,
    config: &Config,
    writer: &mut Writer<'_, '_>,
) -> Result<CompactResult> {
    if request.identifier_policy == Some(IdentifierPolicy::Anonymize) {
        return Ok(CompactResult::declined("summaries with citations are not anonymous"));
    }
    let (rows, before) = (session.rows(), session.tokens());
    let is_urgent = request.force || request.trigger == Trigger::Overflow;
    let sizes = config.sizes(session.budget().messages);
    let most = request.token_budget.unwrap_or(sizes.threshold);
    if !is_urgent && before <= most {
        return Ok(CompactResult::nothing(format!("{before} tokens fit into {most}")));
    }
    // Each further attempt keeps half of the previous one.
    let deeper = request.attempt.saturating_sub(1).min(16);
    let most = most.min(before);
    let mut sizes = sizes;
    sizes.root = (sizes.root.min(most / 3) >> deeper).max(sizes.summary.min(most / 2));
    let staying: u64 = rows.iter().filter(|row| stays(row)).map(|row| row.tokens).sum();
    let room = most.saturating_sub(sizes.root).saturating_sub(staying);
    let tail = sizes.tail.min(room).min(part(before, 0.5)) >> deeper;
    let Some(cut) = cut(rows, tail) else {
        return Ok(declined(is_urgent, "nothing is older than the newest group"));
    };

    let mut fold = Fold::of(tree, rows);
    fold.fold(tree, cut, Rest::Folded, &sizes, config.fanout, writer)?;
    let root = fold.merge_all(tree, cut, &sizes, config.fanout, writer)?;
    let root = root.and_then(|id| tree.nodes.get(&id));
    let Some(root) = root.filter(|root| !root.text.is_empty()) else {
        return Ok(declined(is_urgent, "nothing new is before the fresh tail"));
    };
    let kept: u64 = rows[cut..].iter().map(|row| row.tokens).sum();
    let older: u64 = rows[..cut].iter().filter(|row| stays(row)).map(|row| row.tokens).sum();
    let after = kept.saturating_add(older).saturating_add(root.tokens);
    if after >= before {
        return Ok(declined(is_urgent, "a summary would not reduce the session"));
    }
    let compacted = Compacted {
        summary: root.text.clone(),
        first_kept_entry_id: rows[cut].id.clone(),
        tokens_before: before,
        tokens_after: Some(after),
        details: Some(json!({
            "root": root.id, "level": root.level, "messages": root.messages,
            "first": root.first, "last": root.last, "children": root.children,
        })),
    };
    tree.top = fold.top();
    Ok(compacted.into())
}

/// Declines an urgent compaction, so that the host compacts, or reports that it is not necessary.
fn declined(is_urgent: bool, reason: &str) -> CompactResult {
    match is_urgent {
        true => CompactResult::declined(reason),
        false => CompactResult::nothing(reason),
    }
}

/// Whether the host keeps a row even if it is before the cut.
fn stays(row: &Row) -> bool {
    row.keep && !is_summary(row)
}

/// Returns the first row to keep. The cut splits no group. It is the first cut after which the rows
/// fit into `tail` tokens, else the last possible cut.
fn cut(rows: &[Row], tail: u64) -> Option<usize> {
    let mut last = HashMap::new();
    for (at, row) in rows.iter().enumerate() {
        last.insert(row.group, at);
    }
    let mut left: u64 = rows.iter().map(|row| row.tokens).sum();
    let (mut reaches, mut found) = (0, None);
    for (at, row) in rows.iter().enumerate() {
        // Whether all groups that began before this row have ended.
        let is_between = at > 0 && reaches < at;
        if is_between && !row.inserted && row.role != "system" && !is_summary(row) {
            found = Some(at);
            if left <= tail {
                break;
            }
        }
        left = left.saturating_sub(row.tokens);
        reaches = reaches.max(last.get(&row.group).copied().unwrap_or(at));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(groups: &[u64]) -> Vec<Row> {
        let row = |(at, group): (usize, &u64)| Row {
            id: format!("r{at}"),
            role: "user".into(),
            tokens: 10,
            group: *group,
            ..Row::default()
        };
        groups.iter().enumerate().map(row).collect()
    }

    #[test]
    fn a_cut_does_not_split_a_group() {
        let all = rows(&[1, 2, 3, 2, 4, 5, 5]);
        for (tail, at) in [(100, 1), (59, 4), (30, 4), (29, 5), (20, 5), (0, 5)] {
            assert_eq!(cut(&all, tail), Some(at), "{tail}");
        }
        assert_eq!(cut(&rows(&[1, 2, 1]), 10), None);
        assert_eq!(cut(&[], 10), None);
    }
}
