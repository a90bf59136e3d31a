//! Clears old tool results.

use ctx_core::{Block, ContextView, Message, Result, Tokens};

use super::{Clear, KeepResults, LAYER};

const REASON: &str = "an old tool result";

/// Replaces old tool results by the placeholder. Stops at the newest result that was cleared
/// before, because all older results were cleared then.
pub(super) fn clear(view: &mut ContextView, clear: Clear) -> Result<()> {
    let end = match clear.keeps {
        KeepResults::Newest(_) => view.len(),
        KeepResults::Tokens { turns, .. } => before_turns(view, turns),
    };
    let is_new = |&at: &usize| view.node(at).layer() != Some(LAYER);
    let newest_first = (0..end).rev().filter(|&at| is_worth(view, at)).take_while(is_new);
    let old: Vec<usize> = match clear.keeps {
        KeepResults::Newest(count) => newest_first.skip(count).collect(),
        KeepResults::Tokens { protect, minimum, .. } => {
            let mut sum = Tokens::ZERO;
            let beyond = |&at: &usize| {
                sum += view.node(at).tokens();
                sum > Tokens(protect)
            };
            let old: Vec<usize> = newest_first.filter(beyond).collect();
            let freed: Tokens = old.iter().map(|&at| view.node(at).tokens()).sum();
            if freed > Tokens(minimum) { old } else { Vec::new() }
        }
    };
    old.into_iter().try_for_each(|at| replace(view, at, clear.placeholder))
}

/// Clears results, oldest first, until the request has at most `most` tokens or none is left to
/// clear.
pub(super) fn clear_down_to(view: &mut ContextView, clear: Clear, most: Tokens) -> Result<()> {
    for at in 0..view.len() {
        if view.used() > most && is_worth(view, at) {
            replace(view, at, clear.placeholder)?;
        }
    }
    Ok(())
}

/// Whether a position holds results that are not cleared yet.
fn is_worth(view: &ContextView, at: usize) -> bool {
    let node = view.node(at);
    node.is_live() && !node.results().is_empty()
}

/// Returns where the newest `turns` messages of the user begin.
fn before_turns(view: &ContextView, turns: usize) -> usize {
    if turns == 0 {
        return view.len();
    }
    let users = (0..view.len()).rev().filter(|&at| {
        let node = view.node(at);
        node.is_live() && node.is_user()
    });
    users.take(turns).last().unwrap_or(0)
}

/// A result that is not larger than the placeholder stays, because clearing it would free nothing.
fn replace(view: &mut ContextView, at: usize, placeholder: &str) -> Result<()> {
    let results = u32::try_from(view.node(at).results().len()).unwrap_or(u32::MAX);
    let cleared = view.ledger().counter().text(placeholder).0.saturating_mul(results);
    if view.node(at).tokens() <= Tokens(cleared) {
        return Ok(());
    }
    let mut form = Message::clone(&*view.node(at).message()?);
    for block in &mut form.blocks {
        if let Block::ToolResult(result) = block {
            result.content = vec![Block::text(placeholder)];
        }
    }
    view.replace(at, form, LAYER, REASON)
}
