//! Making what stays fit.

use std::sync::Arc;

use ctx_core::{Message, Tokens, common_cap, shortened};

use crate::History;

use super::Shortened;
use super::room::RequestRoom;

/// No message is shortened below this, where the configuration leaves a choice.
const LEAST: Tokens = Tokens(16);

/// What stays, as it goes out.
pub(super) struct Fit {
    pub(super) kept: Tokens,
    pub(super) staying: Tokens,
    pub(super) shortened: Vec<Shortened>,
}

/// One message that stays.
struct Stay {
    at: usize,
    is_kept: bool,
    tokens: Tokens,
    is_results: bool,
    form: Option<Arc<Message>>,
}

/// Some of the messages that stay.
type Which = fn(&Stay) -> bool;

/// Shortens what stays after a cut until it fits: the tool results that are kept, then all tool
/// results, then everything. The largest give most.
pub(super) fn fit(history: &History, cut: usize, room: &RequestRoom) -> Fit {
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
    // How much those that count may measure, and which of them give.
    let steps: [(Tokens, Which, Which); 3] = [
        (room.kept, |stay| stay.is_kept, |stay| stay.is_kept && stay.is_results),
        (room.messages, |_| true, |stay| stay.is_results),
        (room.messages, |_| true, |_| true),
    ];
    for (most, counts, gives) in steps {
        let total = sum(&stays, counts);
        if total > most {
            shorten(history, stays.iter_mut().filter(|stay| gives(stay)).collect(), total - most);
        }
    }
    let (kept, staying) = (sum(&stays, |stay| stay.is_kept), sum(&stays, |stay| !stay.is_kept));
    let forms = stays.into_iter().filter_map(|s| Some(Shortened { at: s.at, form: s.form? }));
    Fit { kept, staying, shortened: forms.collect() }
}

fn sum(stays: &[Stay], which: Which) -> Tokens {
    stays.iter().filter(|stay| which(stay)).map(|stay| stay.tokens).sum()
}

/// Frees `over` tokens by one common cap, as far as can be.
fn shorten(history: &History, stays: Vec<&mut Stay>, over: Tokens) {
    let sizes: Vec<Tokens> = stays.iter().map(|stay| stay.tokens).collect();
    let cap = common_cap(&sizes, sizes.iter().copied().sum::<Tokens>() - over).max(LEAST);
    for stay in stays.into_iter().filter(|stay| stay.tokens > cap) {
        let counter = history.ledger.counter();
        // One that cannot be read is left as it is: what goes out is trimmed once more anyway.
        let Ok(message) = history.items[stay.at].message() else { continue };
        let form = shortened(&message, cap, counter);
        let tokens = counter.message(&form);
        if tokens < stay.tokens {
            stay.tokens = tokens;
            stay.form = Some(Arc::new(form));
        }
    }
}
