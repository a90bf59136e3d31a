//! What is done when a provider refuses a request as too long.

use ctx_core::{
    CompactionTrigger, ContextView, Error, ErrorKind, RESERVE_MAX_SHARE, Result, Tokens, shortened,
};

use super::compact::Room;
use super::{Turn, is_of_the_disk};
use crate::runtime::{Event, NoticeKind};

/// How often a session is compacted to get one turn through. (OpenClaw.)
const MOST_COMPACTIONS: u32 = 3;

/// The name of the edits in manifests.
const LAYER: &str = "overflow";

/// What one tool result may take: the newest, and any other, as shares of the messages' budget.
const NEWEST_SHARE: f64 = 0.25;
const OTHER_SHARE: f64 = 0.02;
const LEAST: Tokens = Tokens(128);

/// What a request may measure after one was refused, as a share of that; and at least, of the smallest
/// window that the guard lets pass.
const BELOW_REFUSED: f64 = 0.9;
const LEAST_SHARE: f64 = 0.76;

/// How far recovery has come in a turn.
#[derive(Debug, Default)]
pub(super) struct Recovery {
    truncated: bool,
    compactions: u32,
}

impl Turn<'_> {
    /// Makes the session smaller after the provider refused the request: tool results first, once,
    /// then by compactions.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::CompactionFailure`] when nothing is left to try.
    pub(super) async fn recover(&mut self, error: Error) -> Result<()> {
        self.listener.on(Event::Restarted);
        self.learn(&error);
        if !std::mem::replace(&mut self.recovery.truncated, true) {
            let cut = self.truncate_results()?;
            if cut > 0 {
                let what = match cut {
                    1 => "a tool result was shortened".to_owned(),
                    cut => format!("{cut} tool results were shortened"),
                };
                let words = format!("the request was too long: {what}");
                self.say(NoticeKind::Overflow, words);
                return Ok(());
            }
        }
        self.flush_first(Room::Half).await;
        let said = error.to_string();
        let mut why = said.clone();
        while self.recovery.compactions < MOST_COMPACTIONS {
            self.recovery.compactions += 1;
            let attempt = self.recovery.compactions;
            match self.compact(CompactionTrigger::Overflow, attempt, None).await {
                Ok(done) if done.compacted => {
                    self.say(
                        NoticeKind::Overflow,
                        "the request was too long: the session was compacted",
                    );
                    return Ok(());
                }
                Ok(done) => why = done.reason.unwrap_or(why),
                Err(error) if is_of_the_disk(error.kind()) => return Err(error),
                Err(error) => why = error.to_string(),
            }
        }
        let model = &self.session.own.models[self.model].card().name;
        if self.is_alone() {
            let what = "the message alone is too long for the model";
            return Err(Error::new(ErrorKind::CompactionFailure, what)
                .with("session", &self.session.key)
                .with("model", model)
                .with("refused", said)
                .hint("say it in parts, or take a model with a larger window"));
        }
        Err(Error::new(ErrorKind::CompactionFailure, "Failed to compact session after 3 attempts")
            .with("session", &self.session.key)
            .with("model", model)
            .with("last cause", why)
            .with("refused", said)
            .hint("begin another session with /new, or take a model with a larger window"))
    }

    /// Takes the limit from the provider's refusal, for the turns to come as well: the one that it
    /// names, else less than what it refused.
    fn learn(&mut self, error: &Error) {
        let (Some(view), Some(setting)) = (&mut self.session.view, &mut self.session.setting)
        else {
            return;
        };
        let named = error.context().iter().find(|(key, _)| *key == "limit");
        let named = named.and_then(|(_, limit)| limit.parse().ok()).map(Tokens::saturating_from);
        let refused = view.used();
        // In a smaller window the guard would have nobody asked at all.
        let least = setting.resolved.guard.hard_min_tokens.scale(LEAST_SHARE);
        let limit = match named {
            Some(window) => window - view.ledger().reserve().min(window.scale(RESERVE_MAX_SHARE)),
            None => refused,
        };
        let limit = limit.min(refused.scale(BELOW_REFUSED)).max(least);
        *view.ledger_mut() = view.ledger().clone().with_limit(limit);
        setting.ledger = setting.ledger.clone().with_limit(limit);
        self.session.limit = Some((self.model, limit));
    }

    /// Whether the session holds nothing but the message that is to be answered.
    fn is_alone(&self) -> bool {
        let view = self.session.view.as_ref();
        view.is_some_and(|view| view.nodes().iter().filter(|node| node.is_live()).count() <= 1)
    }

    /// Shortens tool results where they stand. How many.
    fn truncate_results(&mut self) -> Result<usize> {
        let Some(view) = &mut self.session.view else { return Ok(0) };
        let cut = truncate(view)?;
        let forms = view.take_projections();
        self.session.keep_forms(&forms)?;
        Ok(cut)
    }
}

/// Shortens tool results: the newest to what can still be read, the others to a few lines.
fn truncate(view: &mut ContextView) -> Result<usize> {
    let budget = view.ledger().budget();
    let counter = *view.ledger().counter();
    let holds_result = |at: &usize| {
        let node = view.node(*at);
        node.is_live() && !node.results().is_empty()
    };
    let places: Vec<usize> = (0..view.len()).filter(holds_result).collect();
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
