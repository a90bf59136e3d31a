//! Clearing old tool results.

use ctx_core::{Block, ContextView, Message, Result, Tokens};

use super::{Clear, KeepResults, LAYER};

const REASON: &str = "an old tool result";

/// Replaces old tool results by the placeholder. Says whether any was.
pub(super) fn clear(view: &mut ContextView, clear: Clear) -> Result<bool> {
    let old = match clear.keeps {
        KeepResults::Newest(count) => {
            let all = uncleared(view, clear.placeholder, view.len());
            all.get(..all.len().saturating_sub(count)).unwrap_or_default().to_vec()
        }
        KeepResults::Tokens { protect, minimum, turns } => {
            let all = uncleared(view, clear.placeholder, before_turns(view, turns));
            let mut sum = Tokens::ZERO;
            let beyond = |&at: &usize| {
                sum += view.node(at).tokens();
                sum > Tokens(protect)
            };
            let old: Vec<usize> = all.into_iter().rev().filter(beyond).collect();
            let freed: Tokens = old.iter().map(|&at| view.node(at).tokens()).sum();
            if freed > Tokens(minimum) { old } else { Vec::new() }
        }
    };
    for &at in &old {
        replace(view, at, clear.placeholder)?;
    }
    Ok(!old.is_empty())
}

/// Clears results, oldest first, until the request measures `most` or none is left to clear.
pub(super) fn clear_down_to(view: &mut ContextView, clear: Clear, most: Tokens) -> Result<bool> {
    let mut any = false;
    for at in uncleared(view, clear.placeholder, view.len()) {
        if view.used() <= most {
            break;
        }
        replace(view, at, clear.placeholder)?;
        any = true;
    }
    Ok(any)
}

/// Positions before `end` whose results are worth clearing, oldest first.
fn uncleared(view: &ContextView, placeholder: &str, end: usize) -> Vec<usize> {
    let counter = *view.ledger().counter();
    let cleared = counter.text(placeholder);
    let nodes = view.nodes().iter().enumerate().take(end);
    let worth = nodes.filter(|(_, node)| {
        let results = u32::try_from(node.results().len()).unwrap_or(u32::MAX);
        let least = Tokens(cleared.0.saturating_mul(results));
        node.is_live() && results > 0 && node.tokens() > least
    });
    worth.map(|(at, _)| at).collect()
}

/// Where the newest `turns` messages of the user begin.
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

fn replace(view: &mut ContextView, at: usize, placeholder: &str) -> Result<()> {
    let mut form = Message::clone(&*view.node(at).message()?);
    for block in &mut form.blocks {
        if let Block::ToolResult(result) = block {
            result.content = vec![Block::text(placeholder)];
        }
    }
    view.replace(at, form, LAYER, REASON)
}
