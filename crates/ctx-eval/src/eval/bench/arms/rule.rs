//! Simple rules. Each rule reads the whole history in every round, so no message is lost earlier.

use std::collections::HashMap;
use std::time::Instant;

use ctx_core::text::clip;
use ctx_core::{Block, Chars, Tokens};

use super::super::request::Request;
use super::super::session::{Item, Speaker, tokens};
use super::{Outcome, Task};

/// The longest line of a tool-call log.
const LINE_CHARS: usize = 160;

/// The weight of a handle halves with this number of tokens since its last use.
const HALF_LIFE: f64 = 20_000.0;

/// A simple rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimpleRule {
    /// The newest text.
    Last,
    /// The first message of the user, and the newest text.
    FirstAndLast,
    /// The oldest text and the newest text, half of each.
    HeadAndTail,
    /// One line per tool call, newest first, beside the kept messages.
    ToolLog,
    /// The agent's text, newest first, beside the kept messages.
    AssistantText,
    /// The handles, by frequency and recency, beside the kept messages.
    Identifiers,
}

impl SimpleRule {
    /// All rules, in the order of the report.
    pub const ALL: [Self; 6] = [
        Self::Last,
        Self::FirstAndLast,
        Self::HeadAndTail,
        Self::ToolLog,
        Self::AssistantText,
        Self::Identifiers,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Last => "last n",
            Self::FirstAndLast => "first + last n",
            Self::HeadAndTail => "head + tail",
            Self::ToolLog => "tool-call log",
            Self::AssistantText => "assistant text",
            Self::Identifiers => "identifier list",
        }
    }

    pub(super) fn compact(self, task: &Task<'_>) -> Outcome {
        let started = Instant::now();
        let mut request = self.request(task);
        request.cut_to(task.most(), &task.counter);
        let millis = started.elapsed().as_secs_f64() * 1_000.0;
        Outcome { request, millis, ..Outcome::default() }
    }

    fn request(self, task: &Task<'_>) -> Request {
        let (all, most) = (task.history, task.most());
        match self {
            Self::Last => Request::of_summary(String::new(), all),
            Self::FirstAndLast => {
                let first = all.iter().find(|item| item.speaker == Speaker::User);
                let first = first.map_or("", |item| &item.text);
                with_newest(task, ctx_core::text::head(first, task.chars(most.scale(0.5))))
            }
            Self::HeadAndTail => {
                let half = most.scale(0.5);
                let mut sum = Tokens::ZERO;
                let oldest = all.iter().take_while(|item| {
                    let is_within = sum < half;
                    sum += item.tokens;
                    is_within
                });
                let text: String = oldest.map(|item| item.text.as_str()).collect();
                with_newest(task, ctx_core::text::head(&text, task.chars(half)))
            }
            Self::ToolLog => {
                newest_lines(task, |item| item.message.tool_calls().map(line).collect())
            }
            Self::AssistantText => newest_lines(task, |item| match item.speaker {
                Speaker::Agent => texts(item),
                _ => Vec::new(),
            }),
            Self::Identifiers => identifiers(task),
        }
    }
}

impl Task<'_> {
    fn chars(&self, most: Tokens) -> Chars {
        self.counter.most_chars(most)
    }
}

/// Returns the beginning, and the newest text up to the size of the request.
fn with_newest(task: &Task<'_>, beginning: &str) -> Request {
    let mut newest = Request::of_summary(String::new(), task.history);
    newest.cut_to(task.most() - task.counter.text(beginning), &task.counter);
    newest.after(beginning.to_owned())
}

/// Returns the newest lines that fit beside the kept messages.
fn newest_lines(task: &Task<'_>, lines: impl Fn(&Item) -> Vec<String>) -> Request {
    let (kept, most) = task.kept();
    let old = &task.history[..task.history.len() - kept.len()];
    let lines: Vec<String> = old.iter().flat_map(|item| lines(item)).collect();
    let log = lines.join("\n");
    let newest = ctx_core::text::tail(&log, task.chars(most));
    Request::of_summary(newest.to_owned(), kept)
}

fn line(call: &ctx_core::ToolCall) -> String {
    clip(&format!("{} {}", call.name, call.arguments.as_str()), LINE_CHARS)
}

fn texts(item: &Item) -> Vec<String> {
    let blocks = item.message.blocks.iter();
    let texts = blocks.filter_map(|block| match block {
        Block::Text { text } => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

fn identifiers(task: &Task<'_>) -> Request {
    let (kept, most) = task.kept();
    let mut age = tokens(task.history).0;
    let mut scores: HashMap<u32, (f64, u32)> = HashMap::new();
    for item in task.history {
        age -= item.tokens.0.min(age);
        for &handle in &item.said {
            let score = scores.entry(handle).or_default();
            *score = (score.0 + 1.0, age);
        }
    }
    let worth = |(count, age): (f64, u32)| count * 0.5_f64.powf(f64::from(age) / HALF_LIFE);
    let mut ranked: Vec<(u32, f64)> = scores.into_iter().map(|(id, it)| (id, worth(it))).collect();
    ranked.sort_by(|one, two| two.1.total_cmp(&one.1).then(one.0.cmp(&two.0)));
    let names = ranked.iter().filter_map(|(id, _)| Some(task.ids.get(*id)?.text.as_str()));
    let list = names.collect::<Vec<_>>().join("\n");
    let list = ctx_core::text::head(&list, task.chars(most)).to_owned();
    Request::of_summary(list, kept)
}
