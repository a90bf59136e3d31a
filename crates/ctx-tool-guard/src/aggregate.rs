//! The cap over all results together.

use ctx_core::{Block, ContextView, Message, Result, Role, Tokens};

use crate::layer::rewrite;
use crate::notice::AGGREGATE_ELISION_NOTICE;
use crate::single::Bounded;

/// Once over the cap, results go until this share of it is left.
const LOW_WATER: f64 = 0.75;

const REASON: &str = "all tool results together took too much";

/// Elides the oldest results when all of them take more than `cap`.
pub(crate) fn elide(view: &mut ContextView, cap: Tokens) -> Result<()> {
    if view.result_total() <= cap {
        return Ok(());
    }
    let target = cap.scale(LOW_WATER);
    let counter = *view.ledger().counter();
    let notice = vec![Block::text(AGGREGATE_ELISION_NOTICE)];
    let size = counter.message(&Message::new(Role::ToolResult, notice.clone()));
    for at in 0..view.len() {
        if view.result_total() <= target {
            break;
        }
        let node = view.node(at);
        let results = node.results().len();
        let elided = Tokens::saturating_from(size.get() * results as u64);
        if results == 0 || !node.is_live() || node.tokens() <= elided || view.is_protected(at) {
            continue;
        }
        rewrite(view, at, |result| {
            let gains = result.content != notice;
            gains.then(|| Bounded { content: notice.clone(), reason: REASON.into() })
        })?;
    }
    Ok(())
}
