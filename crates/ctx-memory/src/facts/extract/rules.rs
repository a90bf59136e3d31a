//! Extracts facts by rules, in English and Chinese: no model, no network.

use ctx_text::WordList;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use ctx_core::{Result, Role};

use super::clauses::{clauses, sentences};
use super::exclude::{is_excluded, is_injected, is_pointing};
use super::lines::{Line, Mark, prose};
use super::table::{By, Needs, candidates};
use super::tidy::{bare, names_code, tidy};
use super::{Extraction, Extractor, SourceMessage};
use crate::facts::words::word_set;
use crate::facts::{Fact, FactCandidate, FactKind};

static CONDITIONS: WordList = WordList::new("clause.conditions");

/// Whether a text holds a secret.
pub type IsSecret = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// The maximum number of facts per message.
const PER_MESSAGE: usize = 8;

/// The number of characters read from one message.
const MESSAGE_MAX: u32 = 200_000;

/// A longer clause does not state a single fact.
const CLAUSE_MAX: usize = 400;

/// Finds facts by rules. Precision comes before recall: doubt, questions, short-term plans, code,
/// output, advice and text with a secret are skipped.
#[derive(Clone)]
pub struct Rules {
    is_secret: IsSecret,
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules").finish_non_exhaustive()
    }
}

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
        let by = match said.role {
            Role::User => By::User,
            Role::Assistant => By::Assistant,
            // Named speakers, as in a conversation among people.
            Role::Other(_) => By::User,
            _ => return Vec::new(),
        };
        let text = ctx_core::text::head(said.text, ctx_core::Chars(MESSAGE_MAX));
        if is_injected(text) {
            return Vec::new();
        }
        let mut out = Vec::new();
        for line in prose(text) {
            if out.len() >= PER_MESSAGE {
                break;
            }
            for (kind, content, context) in in_line(&line, by) {
                if (self.is_secret)(&content) || (self.is_secret)(&context) {
                    continue;
                }
                let candidate = FactCandidate {
                    kind,
                    content,
                    context,
                    timestamp: said.timestamp,
                    source_entry_ids: vec![said.entry.to_owned()],
                    session_id: said.session.to_owned(),
                };
                out.extend(candidate.bounded());
            }
        }
        out.truncate(PER_MESSAGE);
        out
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

/// Returns the facts of one line: kind, content and context.
fn in_line(line: &Line<'_>, by: By) -> Vec<(FactKind, String, String)> {
    let mut out = Vec::new();
    if let Mark::Open | Mark::Done = line.mark {
        let state = if line.mark == Mark::Open { "TODO: " } else { "Done: " };
        let content = format!("{state}{}", tidy(line.text));
        if worth_keeping(&content) && !is_excluded(line.text) {
            out.push((FactKind::TaskState, content, line.under.to_owned()));
        }
        return out;
    }
    for sentence in sentences(line.text) {
        // "If you ..., set the port to 80" is not a statement about the present.
        let parts = clauses(sentence);
        for clause in parts.iter().filter(|clause| !clause.asks && clause.text.len() <= CLAUSE_MAX)
        {
            let flat = clause.text.replace('’', "'").replace("**", "");
            let Some((kind, content)) = classify(&flat, by) else { continue };
            if is_excluded(&flat) || parts.first().is_some_and(|first| is_condition(first.text)) {
                continue;
            }
            let around = if sentence.len() > content.len() + 12 { sentence } else { line.under };
            out.push((kind, content, around.replace("**", "")));
        }
    }
    out
}

fn is_condition(clause: &str) -> bool {
    let lower: String = clause.chars().take(12).flat_map(char::to_lowercase).collect();
    CONDITIONS.iter().any(|word| lower.starts_with(word))
}

/// Returns the kind and content found by the first matching rule.
fn classify(clause: &str, by: By) -> Option<(FactKind, String)> {
    for rule in candidates(clause) {
        if (rule.by != By::All && rule.by != by) || !has(rule.needs, clause) {
            continue;
        }
        // `Label: what it does` is how a model explains, not what it did.
        if by == By::Assistant && rule.kind != FactKind::Issue && is_labelled(clause) {
            continue;
        }
        let Some(x) = rule.pattern.captures(clause).and_then(|found| found.name("x")) else {
            continue;
        };
        let text = x.as_str();
        let told = bare(text);
        let content =
            if rule.prefix.is_empty() { tidy(text) } else { format!("{}{told}", rule.prefix) };
        // The state of "task 1" says nothing without a list of tasks.
        let least = if rule.kind == FactKind::TaskState { 3 } else { 2 };
        let says = word_set(&told).iter().filter(|word| !is_number(word)).count() >= least
            || told.contains(|c: char| !c.is_ascii() && c.is_alphabetic())
            || rule.kind == FactKind::Decision && !is_pointing(&told);
        if has(rule.needs, text) && says && !is_pointing(&told) && worth_keeping(&content) {
            return Some((rule.kind, content));
        }
    }
    None
}

fn has(needs: Needs, text: &str) -> bool {
    let number = || text.contains(|c: char| c.is_ascii_digit());
    match needs {
        Needs::Nothing => true,
        Needs::Code => names_code(text),
        Needs::Number => number(),
        Needs::Value => number() || names_code(text),
    }
}

/// Whether a clause begins with a label of its own.
fn is_labelled(clause: &str) -> bool {
    clause.split_once(": ").is_some_and(|(label, _)| {
        label.len() < 48
            && !["todo", "decision", "fixed", "done"]
                .iter()
                .any(|word| label.eq_ignore_ascii_case(word))
    })
}

fn is_number(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_digit())
}

/// Whether a fact is meaningful on its own.
fn worth_keeping(content: &str) -> bool {
    let chars = content.chars().count();
    let cjk = content.chars().any(|c| !c.is_ascii() && c.is_alphabetic());
    let words = word_set(content).len();
    (chars >= 12 || cjk && chars >= 5)
        && chars <= 220
        && words >= 2
        && !is_pointing(content)
        && !content.ends_with([':', '：', '?', '？'])
        && content.matches('`').count().is_multiple_of(2)
}
