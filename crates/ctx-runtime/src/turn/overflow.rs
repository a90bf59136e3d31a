//! What is done when a provider refuses a request as too long.

use ctx_core::{CompactionTrigger, ContextView, Error, ErrorKind, Result, Tokens, shortened};

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
