//! Required passages: constraints, decisions, open questions, pinned text.

use ctx_core::text::Slice;
use ctx_text::WordList;
use std::collections::HashMap;

use ctx_core::Role;

use super::ask::Ask;
use super::personal::{self, personal};
use super::reversal::lower_reversed;
use super::voices::Voice;
use crate::citations::citations;
use crate::{CitedMessage, FactKind, RequiredFact};
use ctx_text::output::Pasted;
use ctx_text::output::{is_data, prose_lines};
use ctx_text::{Marks, clip, marks, segments, sentences};

static UNSETTLED: WordList = WordList::new("open_question");

static ADVICE: WordList = WordList::new("advice.leads");

/// A passage is truncated at a clause beyond this many characters.
const LONGEST: usize = 400;
/// The maximum weight of a passage from the assistant.
const ASSISTANT: f32 = 0.5;
/// Bounds the passages of a pasted specification, whose sentences are not all constraints.
const MOST_PER_MESSAGE: usize = 40;

/// A passage of prose.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub(super) kind: FactKind,
    pub(super) text: String,
    pub(super) at: usize,
    pub(super) weight: f32,
    pub(super) revokes: bool,
    /// Whether the user said it. The assistant cannot withdraw a demand of the user.
    pub(super) by_user: bool,
}

/// The passages found so far, in the order of the messages.
#[derive(Debug, Default)]
pub(super) struct Passages {
    all: Vec<Passage>,
    /// The questions in the assistant's last message, which the user's next message closes.
    asked_back: Vec<Passage>,
    /// Whether the assistant works with tools, and is not a person in a chat.
    works: bool,
}

impl Passages {
    /// Creates an empty collection; `works` says whether any tool is called.
    pub(super) fn new(works: bool) -> Self {
        Self { works, ..Self::default() }
    }

    /// Reads a message.
    pub(super) fn read(&mut self, at: usize, one: &CitedMessage, voice: &Voice<'_>) {
        if one.pinned {
            let text = one.message.plain_text();
            for sentence in prose(&text).take(400) {
                self.push(FactKind::Pinned, sentence, at, 1.0, false);
            }
            return;
        }
        if !voice.user.is_empty() {
            self.asked_back.clear();
            self.user(at, &voice.user);
        }
        if !voice.assistant.is_empty() && one.message.role == Role::Assistant {
            self.assistant(at, &voice.assistant);
        }
    }

    fn push(&mut self, kind: FactKind, text: &str, at: usize, weight: f32, revokes: bool) {
        let text = clip(text, LONGEST).to_owned();
        self.all.push(Passage { kind, text, at, weight, revokes, by_user: weight > ASSISTANT });
    }

    fn user(&mut self, at: usize, words: &str) {
        let mut found = 0;
        for sentence in prose(words) {
            if found >= MOST_PER_MESSAGE {
                break;
            }
            let marks = marks(sentence);
            let asks = sentence.trim_end().ends_with(['?', '？']);
            let own = || personal(sentence);
            let (kind, weight) = match marks {
                Marks { standing: true, .. } if demands(&marks, sentence) => {
                    (FactKind::Pinned, 0.9)
                }
                // "We only do that here, no?" demands nothing; "can you not touch it?" does.
                Marks { question: true, .. } if asks && !(marks.constraint && marks.request) => {
                    continue;
                }
                Marks { constraint: true, .. } => (FactKind::Constraint, 0.7),
                _ if own().is_some() => (FactKind::Personal, own().unwrap_or_default()),
                Marks { decision: true, .. } | Marks { contrast: true, .. } => {
                    (FactKind::Decision, 0.6)
                }
                Marks { revokes: true, .. } => (FactKind::Constraint, 0.6),
                Marks { question: true, .. } => (FactKind::Question, 0.6),
                _ => continue,
            };
            found += 1;
            self.push(kind, sentence, at, weight, marks.revokes);
        }
    }

    fn assistant(&mut self, at: usize, words: &str) {
        self.asked_back.clear();
        let mut found = 0;
        for sentence in prose(words) {
            let marks = marks(sentence);
            let length = sentence.chars().count();
            if !(8..=600).contains(&length) || found >= MOST_PER_MESSAGE / 2 {
                continue;
            }
            let weight = if has_reason(sentence) { ASSISTANT } else { 0.4 };
            if sentence.ends_with(['?', '？']) {
                let text = clip(sentence, LONGEST).to_owned();
                let kind = FactKind::Question;
                self.asked_back.push(Passage {
                    kind,
                    text,
                    at,
                    weight,
                    revokes: false,
                    by_user: false,
                });
            } else if marks.question && is_open(sentence) {
                found += 1;
                self.push(FactKind::Question, sentence, at, weight, false);
            } else if !is_advice(sentence)
                && (marks.decision || (marks.contrast && chooses(sentence)))
            {
                found += 1;
                self.push(FactKind::Decision, sentence, at, weight, false);
            } else if !self.works
                && let Some(weight) = personal(sentence)
            {
                found += 1;
                self.push(FactKind::Personal, sentence, at, weight.min(ASSISTANT), false);
            }
        }
    }

    /// Adds the open requests.
    pub(super) fn ask(&mut self, asks: Vec<Ask>) {
        for ask in asks {
            let constraint = |text: &str| {
                self.all.iter().any(|p| {
                    p.at == ask.at
                        && matches!(p.kind, FactKind::Constraint | FactKind::Pinned)
                        && p.text == text
                })
            };
            let (plain, demands): (Vec<_>, Vec<_>) =
                ask.sentences.into_iter().partition(|sentence| !constraint(sentence));
            // A demand counts as the request only without another one.
            let asked =
                if plain.is_empty() { demands.into_iter().take(1).collect() } else { plain };
            for text in asked {
                self.push(FactKind::Ask, &text, ask.at, 0.8, false);
            }
        }
    }

    /// Returns the facts without duplicates, by weight.
    pub(super) fn into_facts(mut self, said: &[CitedMessage]) -> Vec<RequiredFact> {
        self.all.append(&mut self.asked_back);
        lower_reversed(&mut self.all);
        let last = said.len().max(1) as f32;
        let mut places: HashMap<(FactKind, String), usize> = HashMap::new();
        let mut facts: Vec<RequiredFact> = Vec::new();
        for passage in self.all {
            let Some(one) = said.get(passage.at) else { continue };
            let weight = (passage.weight + 0.2 * (passage.at + 1) as f32 / last).min(1.0);
            let text = plain(&passage.text);
            if !text.contains(char::is_alphanumeric) {
                continue;
            }
            let key = (passage.kind, text.to_lowercase());
            match places.get(&key).and_then(|&place| facts.get_mut(place)) {
                Some(fact) => {
                    fact.entry = one.id.clone();
                    fact.weight = fact.weight.max(weight);
                }
                None => {
                    places.insert(key, facts.len());
                    let (kind, entry) = (passage.kind, one.id.clone());
                    facts.push(RequiredFact { kind, text, entry, weight });
                }
            }
        }
        fewer_personal(&mut facts);
        facts
    }
}

/// Limits the personal facts to those of highest weight.
fn fewer_personal(facts: &mut Vec<RequiredFact>) {
    let personal = facts.iter().filter(|fact| fact.kind == FactKind::Personal);
    let mut weights: Vec<f32> = personal.map(|fact| fact.weight).collect();
    if weights.len() <= personal::MOST {
        return;
    }
    weights.sort_unstable_by(|a, b| b.total_cmp(a));
    let least = weights.get(personal::MOST).copied().unwrap_or_default();
    facts.retain(|fact| fact.kind != FactKind::Personal || fact.weight > least);
}

/// Collapses white space, and removes what looks like a citation, which would be one in a summary.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for cited in citations(text) {
        out.push_str(text.slice(at..cited.range.start));
        at = cited.range.end;
    }
    out.push_str(text.slice(at..));
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the sentences of a text's prose, without code, listings and logs.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let prose = segments(text).into_iter().filter(|segment| !segment.is_code);
    let prose = prose.filter_map(|segment| text.get(segment.range));
    let parts = prose.flat_map(prose_lines).flat_map(without_data);
    parts.flat_map(sentences).filter(|sentence| is_language(sentence))
}

/// Returns the parts of a text between its lines of data.
fn without_data(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut at) = (0, 0);
    let mut pasted = Pasted::default();
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if pasted.holds(line) || is_data(line) {
            out.extend(text.get(start..at));
            start = end;
        }
        at = end;
    }
    out.extend(text.get(start..));
    out
}

/// Whether a sentence consists mostly of letters: not a line of a log, a table or code.
fn is_language(sentence: &str) -> bool {
    let (mut letters, mut all) = (0usize, 0usize);
    for c in sentence.chars().take(LONGEST) {
        if !c.is_whitespace() {
            all += 1;
            letters += usize::from(c.is_alphabetic());
        }
    }
    all >= 3
        && letters * 10 >= all * 6
        && !sentence.starts_with(['{', '}', '|', '<', '$'])
        && !sentence.contains("\\n")
}

/// Whether a general statement is a demand, unlike "it crashes every time".
fn demands(marks: &Marks, sentence: &str) -> bool {
    let lower = sentence.to_ascii_lowercase();
    let ahead =
        ["from now on", "going forward", "for the rest of"].iter().any(|w| lower.contains(w));
    marks.constraint || marks.request || ahead
}

fn has_reason(sentence: &str) -> bool {
    let lower = sentence.to_ascii_lowercase();
    [
        "because", "since ", "so that", "due to", "as it ", "to avoid", "因为", "由于", "为了",
        "以便", "避免",
    ]
    .iter()
    .any(|word| lower.contains(word))
}

/// Whether a sentence of the assistant explains how to decide, without deciding: "Choose X if",
/// "Steps before making a decision:".
fn is_advice(sentence: &str) -> bool {
    let bare = sentence.trim_start_matches(['*', '_', '`', ' ']);
    let first = bare.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    sentence.trim_end().ends_with([':', '：'])
        || ADVICE.contains(&first)
        || sentence.split_whitespace().count() <= 3 && sentence.is_ascii()
        || sentence.to_ascii_lowercase().contains("decision")
            && !sentence.to_ascii_lowercase().contains("decision:")
}

/// Whether "X instead of Y" is a choice, and not a description of the code.
fn chooses(sentence: &str) -> bool {
    let lower = sentence.to_ascii_lowercase();
    has_reason(sentence)
        || ["we ", "i'll ", "let's ", "i will ", "i used ", "use ", "using ", "我们", "使用", "改"]
            .iter()
            .any(|word| lower.starts_with(word) || lower.contains(&format!(" {word}")))
}

/// Whether a sentence that is not a question says that something is open.
fn is_open(sentence: &str) -> bool {
    let lower = sentence.to_ascii_lowercase();
    UNSETTLED.iter().any(|word| lower.contains(word))
}
