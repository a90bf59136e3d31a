//! Recovery after a provider rejects a request as too long.

use ctx_core::{
    CompactionTrigger, ContextView, Error, ErrorKind, RESERVE_MAX_SHARE, Result, Tokens, shortened,
};

use super::compact::WindowShare;
use super::{Turn, is_disk_error};
use crate::host::{Event, NoticeKind};

/// Maximum number of compactions per turn. (OpenClaw.)
const MAX_COMPACTIONS: u32 = 3;

/// The layer name of the edits of recovery in manifests.
const LAYER: &str = "overflow";

/// Maximum size of the newest tool result and of any other, as shares of the messages' budget.
const NEWEST_SHARE: f64 = 0.25;
const OTHER_SHARE: f64 = 0.02;
const LEAST: Tokens = Tokens(128);

/// The new limit after a rejected request, as a share of that request; and its minimum, as a share
/// of the smallest window that the guard accepts.
const BELOW_REFUSED: f64 = 0.9;
const LEAST_SHARE: f64 = 0.76;

/// The state of recovery in a turn.
#[derive(Debug, Default)]
pub(super) struct OverflowRecovery {
    truncated: bool,
    compactions: u32,
}

impl Turn<'_> {
    /// Makes the session smaller after the provider rejected the request: first by truncating tool
    /// results, once, then by compactions.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::CompactionFailure`] when nothing is left to try.
    pub(super) async fn recover(&mut self, error: Error) -> Result<()> {
        self.listener.on(Event::Restarted);
        self.learn_limit(&error);
        if !std::mem::replace(&mut self.recovery.truncated, true) {
            let cut = self.truncate_results()?;
            if cut > 0 {
                let what = match cut {
                    1 => "a tool result was truncated".to_owned(),
                    cut => format!("{cut} tool results were truncated"),
                };
                let words = format!("the request was too long: {what}");
                self.notify(NoticeKind::Overflow, words);
                return Ok(());
            }
        }
        self.flush_first(WindowShare::Half).await;
        let refusal = error.to_string();
        let mut why = refusal.clone();
        while self.recovery.compactions < MAX_COMPACTIONS {
            self.recovery.compactions += 1;
            let attempt = self.recovery.compactions;
            match self.compact(CompactionTrigger::Overflow, attempt, None).await {
                Ok(done) if done.compacted => {
                    self.notify(
                        NoticeKind::Overflow,
                        "the request was too long: the session was compacted",
                    );
                    return Ok(());
                }
                Ok(done) => why = done.reason.unwrap_or(why),
                Err(error) if is_disk_error(error.kind()) => return Err(error),
                Err(error) => why = error.to_string(),
            }
        }
        let model = &self.session.overrides.models[self.model].card().name;
        if self.is_alone() {
            let what = "the message alone is too long for the model";
            return Err(Error::new(ErrorKind::CompactionFailure, what)
                .with("session", &self.session.key)
                .with("model", model)
                .with("refused", refusal)
                .hint("split the message, or use a model with a larger window"));
        }
        Err(Error::new(ErrorKind::CompactionFailure, "Failed to compact session after 3 attempts")
            .with("session", &self.session.key)
            .with("model", model)
            .with("last cause", why)
            .with("refused", refusal)
            .hint("start a new session with /new, or use a model with a larger window"))
    }

    /// Learns the limit from the provider's rejection, also for later turns: the limit that it
    /// names, but always less than the rejected size.
    fn learn_limit(&mut self, error: &Error) {
        let (Some(view), Some(setup)) = (&mut self.session.view, &mut self.session.setup) else {
            return;
        };
        let named = error.context().iter().find(|(key, _)| *key == "limit");
        let named = named.and_then(|(_, limit)| limit.parse().ok()).map(Tokens::saturating_from);
        let refused = view.used();
        // In a smaller window the guard would reject every request.
        let least = setup.resolved.guard.hard_min_tokens.scale(LEAST_SHARE);
        let limit = match named {
            Some(window) => window - view.ledger().reserve().min(window.scale(RESERVE_MAX_SHARE)),
            None => refused,
        };
        let limit = limit.min(refused.scale(BELOW_REFUSED)).max(least);
        *view.ledger_mut() = view.ledger().clone().with_limit(limit);
        setup.ledger = setup.ledger.clone().with_limit(limit);
        self.session.limit = Some((self.model, limit));
    }

    /// Whether the session contains only the message to answer.
    fn is_alone(&self) -> bool {
        let view = self.session.view.as_ref();
        view.is_some_and(|view| view.nodes().iter().filter(|node| node.is_live()).count() <= 1)
    }

    /// Truncates tool results in place. Returns their number.
    fn truncate_results(&mut self) -> Result<usize> {
        let Some(view) = &mut self.session.view else { return Ok(0) };
        let cut = truncate(view)?;
        let forms = view.take_projections();
        self.session.store_projections(&forms)?;
        Ok(cut)
    }
}

/// Truncates tool results: the newest to a readable size, the others to a few lines.
fn truncate(view: &mut ContextView) -> Result<usize> {
    let budget = view.ledger().budget();
    let counter = *view.ledger().counter();
    let has_result = |at: &usize| {
        let node = view.node(*at);
        node.is_live() && !node.results().is_empty()
    };
    let places: Vec<usize> = (0..view.len()).filter(has_result).collect();
    let newest = places.last().copied();
    let mut cut = 0;
    for at in places {
        let share = if Some(at) == newest { NEWEST_SHARE } else { OTHER_SHARE };
        let most = budget.scale(share).max(LEAST);
        if view.node(at).tokens() <= most {
            continue;
        }
        let before = view.node(at).tokens();
        let form = shortened(&*view.node(at).message()?, most, &counter);
        if counter.message(&form) >= before {
            continue;
        }
        view.replace(at, form, LAYER, "shortened, because the provider refused the request")?;
        cut += 1;
    }
    Ok(cut)
}
