//! The layer.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use ctx_core::text::tail;
use ctx_core::{
    Block, Chars, ContextView, Layer, Message, NodeState, Prepared, Result, Role, ToolResult,
    TurnContext, Views,
};

use crate::config::LAYER;
use crate::index::Index;
use crate::line::{Line, Run, looks_pointed, pointer};
use crate::{Config, Mode};

const REASON: &str = "lines that stand in an earlier result of the request";

/// The last characters of a call's arguments, which a pointer shows.
const SHOWN_ARGUMENTS: Chars = Chars(48);

/// Replaces repeated lines of tool results with pointers to an earlier result.
///
/// # Notes
///
/// A result is decided when it is sent first, and once more where the cache breaks anyway: at and
/// after the first message that differs from the last request. A
/// pointer leads to lines that stand in full, never to another pointer.
///
/// # Default
///
/// Off. See [`Config`].
#[derive(Debug)]
pub struct Dedup {
    config: Config,
    indexes: Mutex<Views<Index>>,
}

impl Dedup {
    /// The layer's name.
    pub const ID: &'static str = LAYER;

    /// Creates a layer with the given settings.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, indexes: Mutex::default() }
    }

    /// Returns the settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the end of the messages that may change.
    fn end(&self, view: &ContextView) -> usize {
        let Some(skip) = self.config.keep_last_assistants.checked_sub(1) else { return view.len() };
        let mut assistants = (0..view.len())
            .rev()
            .filter(|&at| view.node(at).is_live() && view.node(at).role() == &Role::Assistant);
        assistants.nth(skip as usize).unwrap_or(0)
    }

    /// Replaces the repeated lines of a message.
    fn point(&self, view: &mut ContextView, index: &Index, at: usize) -> Result<()> {
        let node = view.node(at);
        let before = node.tokens();
        let mut targets = Vec::new();
        let message = node.message()?;
        let form = message.with_results(|_, result| {
            let text = only_text(result).filter(|text| !looks_pointed(text))?;
            let runs =
                index.runs(view, at, &Line::all(&text, &index.hasher), self.config.min_chars.0);
            targets.extend(runs.iter().map(|run| run.at));
            (!runs.is_empty()).then(|| vec![Block::text(pointed(view, &text, &runs))])
        });
        let Some(form) = form.filter(|form| view.ledger().count(form) < before) else {
            return Ok(());
        };
        targets.sort_unstable();
        targets.dedup();
        view.replace_with_pointers(at, form, &targets, Self::ID, REASON)
    }
}

impl Layer for Dedup {
    fn id(&self) -> &'static str {
        Self::ID
    }

    fn apply(&self, view: &mut ContextView, _: Option<Prepared>, _: &TurnContext) -> Result<()> {
        if self.config.mode == Mode::Off {
            return Ok(());
        }
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut from, end) = (view.changed_from(), self.end(view));
        let index = indexes.of_or(view, |_| {
            from = 0;
            Index::default()
        });
        // It is not known what another process sent.
        let is_unknown = self.config.keep_last_assistants > 0 && view.fresh_from() == 0;
        let changed = if is_unknown { view.len() } else { view.changed_from() };
        if changed < view.fresh_from() {
            index.cut(view, changed);
        }
        for at in from..view.len() {
            let node = view.node(at);
            // As recorded, so that another process indexes the same results.
            let most_chars = view.ledger().counter().most_chars(node.source_tokens);
            let may_repeat = most_chars >= self.config.min_chars;
            if !may_repeat || node.results().is_empty() || !view.is_target(at, Self::ID) {
                continue;
            }
            let is_recorded = node.state() == NodeState::Kept;
            if is_recorded && (changed..end).contains(&at) {
                self.point(view, index, at)?;
            }
            let node = view.node(at);
            for result in node.message()?.tool_results() {
                let imitates =
                    |text: &Cow<'_, str>| node.state() == NodeState::Kept && looks_pointed(text);
                if let Some(text) = only_text(result).filter(|text| !imitates(text)) {
                    let lines = Line::all(&text, &index.hasher);
                    index.add(node.handle(), result.call_id.clone(), lines);
                }
            }
        }
        Ok(())
    }
}

/// Returns the text of a result that contains nothing else.
fn only_text(result: &ToolResult) -> Option<Cow<'_, str>> {
    let is_text = |block: &Block| matches!(block, Block::Text { .. });
    result.content.iter().all(is_text).then(|| result.plain_text())
}

/// Returns a text with pointers in the place of the runs.
fn pointed(view: &ContextView, text: &str, runs: &[Run]) -> String {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut from = 0;
    let mut form: Vec<Cow<'_, str>> = Vec::new();
    for run in runs {
        form.extend(lines[from..run.lines.start].iter().map(|&line| line.into()));
        from = run.lines.end;
        let what = call_of(view, run);
        form.push(pointer(run, &what).into());
    }
    form.extend(lines[from..].iter().map(|&line| line.into()));
    form.join("\n")
}

/// Returns the tool and the arguments of the call whose result has the lines.
fn call_of(view: &ContextView, run: &Run) -> String {
    let messages = view.group_at(run.at).into_iter().filter_map(|at| view.node(at).message().ok());
    let call = |message: &Message| {
        let call = message.tool_calls().find(|call| call.id == run.call)?;
        let arguments = call.arguments.as_str().split_whitespace().collect::<Vec<_>>().join(" ");
        let shown = tail(&arguments, SHOWN_ARGUMENTS);
        let dots = if shown.len() < arguments.len() { "…" } else { "" };
        Some(format!("{} {dots}{shown}", call.name))
    };
    messages.filter_map(|message| call(&message)).next().unwrap_or_default()
}
