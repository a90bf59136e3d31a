//! Carrying a preset out on a view.

use std::sync::Arc;

use ctx_core::text::without_middle;
use ctx_core::{
    Block, Chars, Compacted, ContextView, Counter, Entry, EntryId, Message, Result, Role, Tokens,
};
use ctx_layers::compaction::{Extract, FileLists, PreviousSummary, Said, extract, facts};

use super::super::losses::cited;
use super::cut::Cuts;
use super::results::{clear, clear_down_to};
use super::{Ask, Checked, Input, Keep, LAYER, Policy, Preset};

const REASON: &str = "the preset's compaction";

/// Stands between kept messages of the user and the summary, so that the next compaction finds the
/// summary again.
const END_OF_KEPT: &str = "\n\n[end of the user's messages]\n\n";

/// Stands where a kept message of the user was cut.
const CUT: &str = "[... tokens truncated ...]";

/// Tool results are cleared at this share of the window at the latest: a trigger in tokens may be
/// beyond the window.
const CLEAR_BY: f64 = 0.8;

/// When a preset acts, and on what.
#[derive(Clone, Copy, Debug)]
pub(in crate::eval) struct Moment<'a> {
    /// The model's window.
    pub(in crate::eval) window: Tokens,
    /// Whether the user spoke last.
    pub(in crate::eval) new_turn: bool,
    /// All messages so far, as recorded.
    pub(in crate::eval) history: &'a [Arc<Entry>],
}

/// What a preset did.
#[derive(Debug, Default)]
pub(in crate::eval) struct Act {
    /// The summary that was put in the place of history.
    pub(in crate::eval) summary: Option<Summarised>,
    /// Whether it wanted to make room and could not.
    pub(in crate::eval) stuck: bool,
}

/// A summary, and what a model would have been asked for it.
#[derive(Debug)]
pub(in crate::eval) struct Summarised {
    /// The text; empty where the call failed.
    pub(in crate::eval) text: String,
    /// Calls.
    pub(in crate::eval) calls: u32,
    /// Tokens that one of them carries.
    pub(in crate::eval) input: Tokens,
    /// Tokens of its answer.
    pub(in crate::eval) output: Tokens,
}

/// What one compaction is to do.
struct Plan {
    first_kept: usize,
    /// Room for messages of the user, word for word.
    user_tokens: Tokens,
    ask: Ask,
}

/// Does before a request what the preset does.
pub(in crate::eval) fn act(
    preset: &Preset,
    view: &mut ContextView,
    moment: &Moment<'_>,
) -> Result<Act> {
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
        return Ok(Act::default());
    }
    if matches!(policy.keeps, Keep::UnderTrigger) {
        drop_oldest(view, policy.trigger.of(moment.window));
        return Ok(Act { stuck: view.used() > moment.window, ..Act::default() });
    }
    let first_kept = Cuts::of(view).first_kept(policy.keeps, moment.window);
    let Some(first_kept) = first_kept else { return Ok(Act { stuck: true, ..Act::default() }) };
    let user_tokens = match policy.keeps {
        Keep::UserMessages(tokens) => Tokens(tokens),
        _ => Tokens::ZERO,
    };
    let Some(ask) = policy.summary else { return Ok(Act::default()) };
    carry_out(view, moment, &Plan { first_kept, user_tokens, ask })
}

/// The oldest messages go, and with them their calls or results, until the request measures `most`.
fn drop_oldest(view: &mut ContextView, most: Tokens) {
    let mut at = 0;
    while at < view.len() && view.used() > most {
        view.drop(at, LAYER, REASON);
        at += 1;
    }
}

/// Compacts the whole view to `most` tokens, by the preset's own rule for what stays as far as that
/// allows it.
pub(in crate::eval) fn squeeze(
    preset: &Preset,
    view: &mut ContextView,
    moment: &Moment<'_>,
    most: Tokens,
) -> Result<Act> {
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
    let Some(ask) = summary else { return Ok(Act::default()) };
    let ask = Ask { tokens: ask.tokens.min(most.0 / 2), ..ask };
    let written = Tokens(ask.tokens);
    let user_tokens = match keeps {
        Keep::UserMessages(tokens) => Tokens(tokens).min((most - written).scale(0.8)),
        _ => Tokens::ZERO,
    };
    let aside = view.used() - view.total();
    let cuts = Cuts::of(view);
    let fitting = cuts.within(most - written - user_tokens - aside);
    let Some(fitting) = fitting else { return Ok(Act::default()) };
    let own = cuts.first_kept(keeps, moment.window);
    let first_kept = own.map_or(fitting, |own| own.max(fitting));
    carry_out(view, moment, &Plan { first_kept, user_tokens, ask })
}

fn carry_out(view: &mut ContextView, moment: &Moment<'_>, plan: &Plan) -> Result<Act> {
    let before = view.used();
    let gone: Vec<usize> = (0..plan.first_kept)
        .filter(|&at| view.node(at).is_live() && !view.is_protected(at))
        .collect();
    if gone.is_empty() {
        return Ok(Act { stuck: before > moment.window, ..Act::default() });
    }
    let ask = plan.ask;
    let said = read(view, &gone)?;
    let previous = previous(view)?;
    let counter = *view.ledger().counter();
    let removed: Tokens = gone.iter().map(|&at| view.node(at).tokens()).sum();
    let input = input_of(&said, ask.input, &counter, moment.window - Tokens(ask.tokens))
        + previous.as_ref().map_or(Tokens::ZERO, |p| p.tokens);
    let mut made =
        Summarised { text: String::new(), calls: ask.calls, input, output: Tokens::ZERO };
    if input > moment.window {
        return Ok(Act { summary: Some(made), stuck: true });
    }
    let budget = Tokens(ask.tokens).min(removed.scale(0.25));
    let written = extract(&Extract {
        said: &said,
        facts: &facts(&said),
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
    Ok(Act { summary: Some(made), stuck: view.used() >= before })
}

/// The messages as the summariser gets them: in the form in which they were last sent.
fn read(view: &ContextView, positions: &[usize]) -> Result<Vec<Said>> {
    let nodes = positions.iter().map(|&at| view.node(at));
    let told = nodes.filter(|node| *node.role() != Role::CompactionSummary);
    told.map(|node| {
        Ok(Said { id: cited(node.entry().id()), message: node.message()?, pinned: false })
    })
    .collect()
}

/// The summary that stands in the view.
fn previous(view: &ContextView) -> Result<Option<PreviousSummary>> {
    let mut live = view.nodes().iter().filter(|node| node.is_live());
    let Some(node) = live.find(|node| *node.role() == Role::CompactionSummary) else {
        return Ok(None);
    };
    let text = node.message()?.plain_text();
    let text = text.rsplit_once(END_OF_KEPT).map_or(text.as_str(), |(_, summary)| summary);
    Ok(Some(PreviousSummary {
        files: FileLists::in_summary(text),
        entry: None,
        tokens: view.ledger().counter().text(text),
        text: text.to_owned(),
    }))
}

/// Tokens that a summary call would carry.
fn input_of(said: &[Said], input: Input, counter: &Counter, room: Tokens) -> Tokens {
    let whole = |cut: Option<u32>| {
        said.iter().map(|said| tokens_cut(&said.message, cut, counter)).sum::<Tokens>()
    };
    match input {
        Input::All { results } => whole(results),
        Input::Fitted => whole(None).min(room),
    }
}

fn tokens_cut(message: &Message, results: Option<u32>, counter: &Counter) -> Tokens {
    let all = counter.message(message);
    let Some(most) = results else { return all };
    let over = message.tool_results().map(|result| {
        let text = result.plain_text();
        counter.text(&text) - counter.text(ctx_core::text::head(&text, Chars(most)))
    });
    all - over.sum::<Tokens>()
}

/// The user's messages up to `most` tokens, newest first, then the summary. The newest one of all is
/// in the view by itself.
fn with_user_messages(
    view: &ContextView,
    moment: &Moment<'_>,
    most: Tokens,
    summary: &str,
) -> Result<String> {
    let counter = view.ledger().counter();
    let mut left = most;
    let mut kept = Vec::new();
    let mut in_view = true;
    for entry in moment.history.iter().rev() {
        let facts = entry.facts()?;
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
            kept.push(without_middle(&text, CUT, left, counter));
            break;
        }
        left -= size;
        kept.push(text);
    }
    kept.reverse();
    Ok(format!("{}{END_OF_KEPT}{summary}", kept.join("\n\n")))
}
