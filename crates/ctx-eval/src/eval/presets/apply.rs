//! Applies a preset to a view.

use std::sync::Arc;

use ctx_core::{
    Block, Chars, Compacted, ContextView, Counter, Entry, EntryId, Message, Result, Role, Tokens,
};
use ctx_extract::{ExtractInput, extract};
use ctx_facts::{CitedMessage, FactLedger, PreviousSummary};

use super::super::losses::cited;
use super::super::recorded::previous_summary;
use super::cut::CutPoints;
use super::results::{clear, clear_down_to};
use super::{Ask, Checked, Input, Keep, LAYER, Policy, Preset};

const REASON: &str = "the preset's compaction";

/// Separates kept messages of the user from the summary, so that the next compaction finds the
/// summary again.
const END_OF_KEPT: &str = "\n\n[end of the user's messages]\n\n";

/// Marks where a kept message of the user was truncated.
const CUT: &str = "[... tokens truncated ...]";

/// Tool results are cleared at this share of the window at the latest, because a trigger in tokens
/// may exceed the window.
const CLEAR_BY: f64 = 0.8;

/// The state in which a preset acts.
#[derive(Clone, Copy, Debug)]
pub(in crate::eval) struct PresetContext<'a> {
    /// The model's window.
    pub(in crate::eval) window: Tokens,
    /// Whether the last message is the user's.
    pub(in crate::eval) new_turn: bool,
    /// All messages so far, as recorded.
    pub(in crate::eval) history: &'a [Arc<Entry>],
}

/// The result of a preset.
#[derive(Debug, Default)]
pub(in crate::eval) struct PresetOutcome {
    /// The summary that replaced history.
    pub(in crate::eval) summary: Option<PresetSummary>,
    /// Whether it had to free tokens and could not.
    pub(in crate::eval) stuck: bool,
}

/// A summary, and the model calls that it would have needed.
#[derive(Debug)]
pub(in crate::eval) struct PresetSummary {
    /// The text; empty if the call failed.
    pub(in crate::eval) text: String,
    /// The number of calls.
    pub(in crate::eval) calls: u32,
    /// The input tokens of one call.
    pub(in crate::eval) input: Tokens,
    /// The tokens of its answer.
    pub(in crate::eval) output: Tokens,
}

/// The plan of one compaction.
struct PresetPlan {
    first_kept: usize,
    /// The budget for verbatim messages of the user.
    user_tokens: Tokens,
    ask: Ask,
}

/// Applies the preset before a request.
pub(in crate::eval) fn act(
    preset: &Preset,
    view: &mut ContextView,
    moment: &PresetContext<'_>,
) -> Result<PresetOutcome> {
    let policy = preset.policy;
    if let Some(clears) = policy.clears {
        let trigger = clears.trigger.of(moment.window).min(moment.window.scale(CLEAR_BY));
        if view.used() > trigger {
            clear(view, clears)?;
        }
    }
    let looks = policy.checked == Checked::EveryRequest || moment.new_turn;
    let due = looks && view.used() > policy.trigger.of(moment.window);
    let refused = policy.recovers && view.used() > moment.window;
    if !due && !refused {
        return Ok(PresetOutcome::default());
    }
    if matches!(policy.keeps, Keep::UnderTrigger) {
        drop_oldest(view, policy.trigger.of(moment.window));
        return Ok(PresetOutcome {
            stuck: view.used() > moment.window,
            ..PresetOutcome::default()
        });
    }
    let first_kept = CutPoints::of(view).first_kept(policy.keeps, moment.window);
    let Some(first_kept) = first_kept else {
        return Ok(PresetOutcome { stuck: true, ..PresetOutcome::default() });
    };
    let user_tokens = match policy.keeps {
        Keep::UserMessages(tokens) => Tokens(tokens),
        _ => Tokens::ZERO,
    };
    let Some(ask) = policy.summary else { return Ok(PresetOutcome::default()) };
    carry_out(view, moment, &PresetPlan { first_kept, user_tokens, ask })
}

/// Drops the oldest messages, together with their calls or results, until the request has at most
/// `most` tokens.
fn drop_oldest(view: &mut ContextView, most: Tokens) {
    let mut at = 0;
    while at < view.len() && view.used() > most {
        view.drop(at, LAYER, REASON);
        at += 1;
    }
}

/// Compacts the whole view to `most` tokens. Keeps messages by the preset's own rule as far as
/// possible.
pub(in crate::eval) fn squeeze(
    preset: &Preset,
    view: &mut ContextView,
    moment: &PresetContext<'_>,
    most: Tokens,
) -> Result<PresetOutcome> {
    let Policy { clears, keeps, summary, .. } = preset.policy;
    if let Some(clears) = clears {
        match summary {
            Some(_) => clear(view, clears)?,
            None => clear_down_to(view, clears, most)?,
        };
    }
    if matches!(keeps, Keep::UnderTrigger) {
        drop_oldest(view, most);
    }
    let Some(ask) = summary else { return Ok(PresetOutcome::default()) };
    let ask = Ask { tokens: ask.tokens.min(most.0 / 2), ..ask };
    let written = Tokens(ask.tokens);
    let user_tokens = match keeps {
        Keep::UserMessages(tokens) => Tokens(tokens).min((most - written).scale(0.8)),
        _ => Tokens::ZERO,
    };
    let aside = view.used() - view.total();
    let cuts = CutPoints::of(view);
    let fitting = cuts.within(most - written - user_tokens - aside);
    let Some(fitting) = fitting else { return Ok(PresetOutcome::default()) };
    let own = cuts.first_kept(keeps, moment.window);
    let first_kept = own.map_or(fitting, |own| own.max(fitting));
    carry_out(view, moment, &PresetPlan { first_kept, user_tokens, ask })
}

fn carry_out(
    view: &mut ContextView,
    moment: &PresetContext<'_>,
    plan: &PresetPlan,
) -> Result<PresetOutcome> {
    let before = view.used();
    let gone: Vec<usize> = (0..plan.first_kept)
        .filter(|&at| view.node(at).is_live() && !view.is_protected(at))
        .collect();
    if gone.is_empty() {
        return Ok(PresetOutcome { stuck: before > moment.window, ..PresetOutcome::default() });
    }
    let ask = plan.ask;
    let said = read(view, &gone)?;
    let previous = previous(view)?;
    let counter = *view.ledger().counter();
    let removed: Tokens = gone.iter().map(|&at| view.node(at).tokens()).sum();
    let input = input_of(&said, ask.input, &counter, moment.window - Tokens(ask.tokens))
        + previous.as_ref().map_or(Tokens::ZERO, |p| p.tokens);
    let mut made =
        PresetSummary { text: String::new(), calls: ask.calls, input, output: Tokens::ZERO };
    if input > moment.window {
        return Ok(PresetOutcome { summary: Some(made), stuck: true });
    }
    let budget = Tokens(ask.tokens).min(removed.scale(0.25));
    let written = extract(&ExtractInput {
        state: None,
        messages: &said,
        facts: &FactLedger::of(&said).facts(),
        previous: previous.as_ref(),
        turn_start: None,
        focus: None,
        budget,
        counter: &counter,
    });
    made.output = counter.text(&written);
    made.text = match plan.user_tokens {
        Tokens::ZERO => written,
        most => with_user_messages(view, moment, most, &written)?,
    };
    let compacted = Compacted {
        summary: made.text.clone(),
        first_kept_entry_id: view.node(plan.first_kept).entry().id().clone(),
        tokens_before: before,
        tokens_after: None,
        details: None,
        staying: Vec::new(),
        projections: Vec::new(),
    };
    let id: EntryId = format!("preset-{}", moment.history.len()).into();
    view.compact(compacted, id, LAYER, REASON)?;
    Ok(PresetOutcome { summary: Some(made), stuck: view.used() >= before })
}

/// Returns the messages for the summariser, in the form in which they were last sent.
fn read(view: &ContextView, positions: &[usize]) -> Result<Vec<CitedMessage>> {
    let nodes = positions.iter().map(|&at| view.node(at));
    let told = nodes.filter(|node| *node.role() != Role::CompactionSummary);
    told.map(|node| {
        Ok(CitedMessage { id: cited(node.entry().id()), message: node.message()?, pinned: false })
    })
    .collect()
}

/// Returns the summary in the view.
fn previous(view: &ContextView) -> Result<Option<PreviousSummary>> {
    let mut live = view.nodes().iter().filter(|node| node.is_live());
    let Some(node) = live.find(|node| *node.role() == Role::CompactionSummary) else {
        return Ok(None);
    };
    let text = node.message()?.plain_text();
    let text = text.rsplit_once(END_OF_KEPT).map_or(text.as_str(), |(_, summary)| summary);
    Ok(Some(previous_summary(text, view.ledger().counter())))
}

/// Returns the input tokens of a summary call.
fn input_of(said: &[CitedMessage], input: Input, counter: &Counter, room: Tokens) -> Tokens {
    match input {
        Input::All { results } => {
            said.iter().map(|said| tokens_cut(&said.message, results, counter)).sum()
        }
        Input::Fitted => {
            said.iter().map(|said| counter.message(&said.message)).sum::<Tokens>().min(room)
        }
    }
}

/// Returns the tokens of a message whose results are truncated to this many characters.
fn tokens_cut(message: &Message, results: u32, counter: &Counter) -> Tokens {
    let over = message.tool_results().map(|result| {
        let text = result.plain_text();
        counter.text(&text) - counter.text(ctx_core::text::head(&text, Chars(results)))
    });
    counter.message(message) - over.sum::<Tokens>()
}

/// Returns the user's messages up to `most` tokens, newest first, then the summary. The newest user
/// message is in the view by itself.
fn with_user_messages(
    view: &ContextView,
    moment: &PresetContext<'_>,
    most: Tokens,
    summary: &str,
) -> Result<String> {
    let counter = view.ledger().counter();
    let mut left = most;
    let mut kept = Vec::new();
    let mut in_view = true;
    for entry in moment.history.iter().rev() {
        let facts = entry.outline()?;
        let is_user = facts.role == Role::User && facts.has_content;
        if !is_user || std::mem::take(&mut in_view) {
            continue;
        }
        let message = entry.message()?;
        let texts = message.blocks.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let text = texts.collect::<Vec<_>>().join("\n");
        let size = counter.text(&text);
        if size > left {
            kept.push(counter.truncate_middle(&text, CUT, left));
            break;
        }
        left -= size;
        kept.push(text);
    }
    kept.reverse();
    Ok(format!("{}{END_OF_KEPT}{summary}", kept.join("\n\n")))
}
