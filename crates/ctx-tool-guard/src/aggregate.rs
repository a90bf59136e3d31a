//! The cap on the total of all results.

use ctx_core::{Block, Chars, ContextView, Node, Result, Tokens, ToolResult};

use crate::notice::{AGGREGATE_ELISION_NOTICE, preserved_line};
use crate::replacement::{Replacement, rewrite};

/// Above the cap, results are elided until this share of it is left, or less if that would soon be
/// full again.
const LOW_WATER: f64 = 0.75;

/// How many more results of the usual size must fit after eliding, because each elision changes the
/// provider's cached prefix. Three results minus the notices. A quarter of the cap is always left.
const SLACK: f64 = 2.9;
const LEAST_LEFT: f64 = 0.25;

const REASON: &str = "all tool results together exceed their cap";

/// Elides the oldest results when the total exceeds `cap`.
pub(crate) fn elide(view: &mut ContextView, cap: Tokens) -> Result<()> {
    if view.result_total() <= cap {
        return Ok(());
    }
    let counter = *view.ledger().counter();
    let size = counter.text(AGGREGATE_ELISION_NOTICE);
    let holds_one = |node: &&Node| {
        node.is_live() && !node.results().is_empty() && node.tokens().get() > 2 * size.get()
    };
    let count = view.nodes().iter().filter(holds_one).count() as u64;
    let usual = Tokens::saturating_from(view.result_total().get() / count.max(1));
    let target = cap - usual.scale(SLACK);
    let target = target.clamp(cap.scale(LEAST_LEFT), cap.scale(LOW_WATER));
    for at in 0..view.len() {
        if view.result_total() <= target {
            break;
        }
        let node = view.node(at);
        let results = node.results().len();
        let least = Tokens::saturating_from(size.get() * results as u64);
        if results == 0 || !node.is_live() || node.tokens() <= least || view.is_protected(at) {
            continue;
        }
        rewrite(view, at, elided)?;
    }
    Ok(())
}

/// Returns the notice, with the path of the whole text if known; `None` if it is not shorter.
fn elided(result: &ToolResult) -> Option<Replacement> {
    let text = result.plain_text();
    let mut notice = AGGREGATE_ELISION_NOTICE.to_owned();
    if let Some(line) = preserved_line(&text) {
        notice = format!("{notice}\n{line}");
    }
    (u64::from(Chars::of(&notice).0) < result.chars())
        .then(|| Replacement { content: vec![Block::text(notice)], reason: REASON.into() })
}
