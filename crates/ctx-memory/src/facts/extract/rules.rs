//! Facts by rules, in English and Chinese: no model, no network.

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
use super::{Extracted, Extractor, Said};
use crate::facts::words::word_set;
use crate::facts::{Candidate, Fact, FactKind};

/// Tells whether a text holds a secret.
pub type IsSecret = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// At most so many facts of one message.
const PER_MESSAGE: usize = 8;

/// So much of one message is read.
const MESSAGE_MAX: u32 = 200_000;

/// A longer clause is no statement of one fact.
const CLAUSE_MAX: usize = 400;

/// Finds facts by rules. Precision comes before recall: doubt, questions, plans for the next
/// minute, code, output, advice and what holds a secret are left out.
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
    /// Rules that leave out what `is_secret`.
    #[must_use]
    pub fn new(is_secret: IsSecret) -> Self {
        Self { is_secret }
    }

    /// The facts in these messages, in their order. Each is found once.
    #[must_use]
    pub fn find(&self, said: &[Said<'_>]) -> Vec<Candidate> {
        let mut seen = HashSet::new();
        let mut out = Vec::new();
        for one in said {
            let found = self.in_message(one).into_iter();
            out.extend(found.filter(|c| seen.insert((c.session_id.clone(), c.content.clone()))));
        }
        out
    }

    fn in_message(&self, said: &Said<'_>) -> Vec<Candidate> {
        let by = match said.role {
            Role::User => By::User,
            Role::Assistant => By::Assistant,
            // Speakers by name, as in a conversation among people.
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
                let candidate = Candidate {
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
    /// Rules that leave out whatever the [built-in redactor](crate::Redactor) would take out.
    fn default() -> Self {
        Self::new(Arc::new(|text| crate::Redactor::builtin().redact(text).found > 0))
    }
}

#[async_trait]
impl Extractor for Rules {
    async fn extract(&self, said: &[Said<'_>], _known: &[Fact]) -> Result<Extracted> {
        Ok(Extracted { candidates: self.find(said), ..Extracted::default() })
    }
}

/// The facts of one line: what they are, the fact, what was said around it.
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
        // "If you ..., set the port to 80" holds of nothing in particular.
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
    [
        "if ",
        "when ",
        "unless ",
        "once ",
        "suppose",
        "for example",
        "for instance",
        "如果",
        "当",
        "例如",
        "比如",
    ]
    .iter()
    .any(|word| lower.starts_with(word))
}

/// The first rule that fits, and the fact it sees.
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
        // How far the work on "task 1" is says nothing without a list of tasks.
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

/// Whether a clause begins with a heading of its own.
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

/// Whether a fact says enough to stand alone.
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
