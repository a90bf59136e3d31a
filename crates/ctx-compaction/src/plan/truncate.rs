//! Truncates the kept messages until they fit.

use std::sync::Arc;

use ctx_core::{Message, Tokens, common_cap, shortened};

use crate::History;

use super::TruncatedMessage;
use super::budget::RequestBudget;

/// The minimum size of a truncated message, where the configuration leaves a choice.
const LEAST: Tokens = Tokens(16);

/// The messages that stay, as sent.
pub(super) struct Fit {
    pub(super) kept: Tokens,
    pub(super) staying: Tokens,
    pub(super) shortened: Vec<TruncatedMessage>,
}

/// One message that stays.
struct Stay {
    at: usize,
    is_kept: bool,
    tokens: Tokens,
    is_results: bool,
    form: Option<Arc<Message>>,
}

/// Selects some of the messages that stay.
type Which = fn(&Stay) -> bool;

/// Truncates the messages that stay after a cut until they fit: first the kept tool results, then
/// all tool results, then everything. The largest are truncated most.
pub(super) fn fit(history: &History, cut: usize, budget: &RequestBudget) -> Fit {
    let items = history.items.iter().enumerate();
    let mut stays: Vec<Stay> = items
        .filter(|(at, item)| *at >= cut || item.stays)
        .map(|(at, item)| Stay {
            at,
            is_kept: at >= cut,
            tokens: item.tokens,
            is_results: item.has_results,
            form: None,
        })
        .collect();
    // Limit, the messages it applies to, and those that may be truncated.
    let steps: [(Tokens, Which, Which); 3] = [
        (budget.kept, |stay| stay.is_kept, |stay| stay.is_kept && stay.is_results),
        (budget.messages, |_| true, |stay| stay.is_results),
        (budget.messages, |_| true, |_| true),
    ];
    for (most, counts, gives) in steps {
        let total = sum(&stays, counts);
        if total > most {
            shorten(history, stays.iter_mut().filter(|stay| gives(stay)).collect(), total - most);
        }
    }
    let (kept, staying) = (sum(&stays, |stay| stay.is_kept), sum(&stays, |stay| !stay.is_kept));
    let forms =
        stays.into_iter().filter_map(|s| Some(TruncatedMessage { at: s.at, form: s.form? }));
    Fit { kept, staying, shortened: forms.collect() }
}

fn sum(stays: &[Stay], which: Which) -> Tokens {
    stays.iter().filter(|stay| which(stay)).map(|stay| stay.tokens).sum()
}

/// Frees `over` tokens with one common cap, as far as possible.
fn shorten(history: &History, stays: Vec<&mut Stay>, over: Tokens) {
    let sizes: Vec<Tokens> = stays.iter().map(|stay| stay.tokens).collect();
    let cap = common_cap(&sizes, sizes.iter().copied().sum::<Tokens>() - over).max(LEAST);
    for stay in stays.into_iter().filter(|stay| stay.tokens > cap) {
        let counter = history.ledger.counter();
        // An unreadable message is left unchanged: the request is trimmed again before sending.
        let Ok(message) = history.items[stay.at].message() else { continue };
        let form = shortened(&message, cap, counter);
        let tokens = counter.message(&form);
        if tokens < stay.tokens {
            stay.tokens = tokens;
            stay.form = Some(Arc::new(form));
        }
    }
}
