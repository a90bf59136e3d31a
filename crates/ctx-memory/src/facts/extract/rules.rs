//! Extracts facts by rules, in English and Chinese: no model, no network.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use ctx_core::text::head;
use ctx_core::{Chars, Result, Role};
use ctx_text::output::is_frame;
use ctx_text::{marks, read, without_injected};

use super::clauses::stating_clauses;
use super::kind::{kind_of, worth_keeping};
use super::tidy::tidy;
use super::{Extraction, Extractor, SourceMessage};
use crate::facts::{Fact, FactCandidate, FactKind};

/// Whether a text holds a secret.
pub type IsSecret = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The maximum number of facts per message.
const PER_MESSAGE: usize = 8;

/// The number of characters read from one message.
const MESSAGE_MAX: Chars = Chars(200_000);

/// A longer line was not typed by a person.
const LINE_MAX: usize = 4_000;

/// The prefix of an item of a task list that is done.
const DONE_TASK: &str = "Done: ";

/// The maximum number of items in a task list without a finished task.
const PROPOSED: usize = 3;

/// A longer clause does not state a single fact.
const CLAUSE_MAX: usize = 400;

/// Finds facts by rules. Precision comes before recall: doubt, questions, short-term plans, code,
/// output, advice and text with a secret are skipped.
#[derive(Clone)]
pub struct Rules {
    is_secret: IsSecret,
}

ctx_core::partial_debug!(Rules, it);

impl Rules {
    /// Rules that skip texts for which `is_secret` returns true.
    #[must_use]
    pub(crate) fn new(is_secret: IsSecret) -> Self {
        Self { is_secret }
    }

    /// Returns the facts in these messages, in order, without duplicates.
    #[must_use]
    pub fn find(&self, said: &[SourceMessage<'_>]) -> Vec<FactCandidate> {
        let mut seen = HashSet::new();
        let mut out = Vec::new();
        for one in said {
            let found = self.in_message(one).into_iter();
            out.extend(found.filter(|c| seen.insert((c.session_id.clone(), c.content.clone()))));
        }
        out
    }

    fn in_message(&self, said: &SourceMessage<'_>) -> Vec<FactCandidate> {
        if !matches!(said.role, Role::User | Role::Assistant | Role::Other(_)) {
            return Vec::new();
        }
        let text = without_injected(head(said.text, MESSAGE_MAX));
        let facts = stated(&text, said.role).into_iter();
        let facts = facts.filter(|(_, content, context)| {
            !(self.is_secret)(content) && !(self.is_secret)(context)
        });
        let candidates = facts.filter_map(|(kind, content, context)| {
            let candidate = FactCandidate {
                kind,
                content,
                context,
                timestamp: said.timestamp,
                source_entry_ids: vec![said.entry.to_owned()],
                session_id: said.session.to_owned(),
            };
            candidate.bounded()
        });
        candidates.take(PER_MESSAGE).collect()
    }
}

impl Default for Rules {
    /// Rules that skip what the [built-in redactor](ctx_redact::Redactor) would redact.
    fn default() -> Self {
        Self::new(Arc::new(|text| ctx_redact::Redactor::builtin().redact(text).found > 0))
    }
}

#[async_trait]
impl Extractor for Rules {
    async fn extract(&self, said: &[SourceMessage<'_>], _known: &[Fact]) -> Result<Extraction> {
        Ok(Extraction { candidates: self.find(said), ..Extraction::default() })
    }
}

/// Returns the facts of a text: kind, content and context.
fn stated(text: &str, role: &Role) -> Vec<(FactKind, String, String)> {
    let mut out = Vec::new();
    let (mut own, mut is_begun) = (String::new(), false);
    let blocks = read(text).blocks.into_iter().filter(|block| block.fenced.is_none());
    for line in blocks.flat_map(|block| block.text.lines()) {
        if let Some((state, task)) = task(line) {
            let content = format!("{state}{}", tidy(task));
            is_begun |= state == DONE_TASK;
            if worth_keeping(&content) && !marks(task).tentative {
                out.push((FactKind::TaskState, content, String::new()));
            }
        } else if line.len() <= LINE_MAX && !is_frame(line) && !is_not_prose(line) {
            own.push_str(line);
            own.push('\n');
        }
    }
    // A long list without a finished task is a proposal.
    if !is_begun && out.len() > PROPOSED {
        out.clear();
    }
    for sentence in read(&own).sentences().iter().map(|sentence| sentence.text) {
        for clause in stating_clauses(sentence).into_iter().filter(|c| c.len() <= CLAUSE_MAX) {
            let content = tidy(clause);
            let kind = kind_of(clause, &content, role).filter(|_| worth_keeping(&content));
            let Some(kind) = kind else { continue };
            let has_more = sentence.len() > content.len() + 12;
            out.push((kind, content, if has_more { sentence.to_owned() } else { String::new() }));
        }
    }
    out
}

/// Whether a line is a quotation, a row of a table, a heading or code.
fn is_not_prose(line: &str) -> bool {
    let bare = line.trim();
    bare.starts_with(['>', '|', '#', '@', '+', '$']) || bare.ends_with([';', '{', '}', '\\', '='])
}

/// Returns the state and the words of an item of a task list.
fn task(line: &str) -> Option<(&'static str, &str)> {
    let item = line.trim().trim_start_matches(['-', '*', '+', '•', ' ']);
    let marked = |marks: [&str; 3]| marks.iter().find_map(|mark| item.strip_prefix(mark));
    let open = marked(["[ ]", "⬜", "☐"]).map(|words| ("TODO: ", words));
    open.or_else(|| Some((DONE_TASK, marked(["[x]", "[X]", "✅"])?)))
}
