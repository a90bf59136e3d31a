//! Making what stays fit.

use std::sync::Arc;

use ctx_core::{Message, Tokens, common_cap, shortened};

use crate::History;

use super::Shortened;
use super::room::Room;

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
    tokens: Tokens,
    is_results: bool,
    form: Option<Arc<Message>>,
}

/// Shortens what stays after a cut until it fits: the tool results that are kept, then all tool
/// results, then everything. The largest give most.
pub(super) fn fit(history: &History, cut: usize, room: &Room) -> Fit {
    let items = history.items.iter().enumerate();
    let mut stays: Vec<Stay> = items
        .filter(|(at, item)| *at >= cut || item.stays)
        .map(|(at, item)| Stay {
            at,
            tokens: item.tokens,
            is_results: item.has_results,
            form: None,
        })
        .collect();
    let steps: [(Tokens, fn(&Stay, usize) -> bool, fn(&Stay, usize) -> bool); 3] = [
        (room.kept, |stay, cut| stay.at >= cut, |stay, cut| stay.at >= cut && stay.is_results),
        (room.messages, |_, _| true, |stay, _| stay.is_results),
        (room.messages, |_, _| true, |_, _| true),
    ];
    for (most, counts, gives) in steps {
        let total: Tokens = stays.iter().filter(|s| counts(s, cut)).map(|s| s.tokens).sum();
        if total > most {
            let giving: Vec<&mut Stay> = stays.iter_mut().filter(|s| gives(s, cut)).collect();
            shorten(history, giving, total - most);
        }
    }
    let sum = |before: bool| {
        stays.iter().filter(|s| (s.at < cut) == before).map(|s| s.tokens).sum::<Tokens>()
    };
    let (kept, staying) = (sum(false), sum(true));
    let forms = stays.into_iter().filter_map(|s| Some(Shortened { at: s.at, form: s.form? }));
    Fit { kept, staying, shortened: forms.collect() }
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
