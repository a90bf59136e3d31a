//! Required passages: constraints, decisions, open questions, pinned text.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctx_core::text::{Slice, head_chars};
use ctx_core::{EntryId, Role};
use ctx_text::output::{Pasted, is_data, is_error, is_frame, prose_lines};
use ctx_text::{
    Gist, Marks, WordList, clip, is_assent, is_cjk, is_courtesy, is_step, marks, segments,
    sentences, weight,
};

use super::SupersededFact;
use super::ask::Ask;
use super::personal::{self, personal};
use super::speakers::Speakers;
use super::statement::Statement;
use crate::citations::citations;
use crate::{CitedMessage, FactKind, RequiredFact};

static UNSETTLED: WordList = WordList::new("open_question");

static ADVICE: WordList = WordList::new("advice.leads");

/// A passage is truncated at a clause beyond this many characters.
const LONGEST: usize = 400;
/// The maximum weight of a passage from the assistant.
const ASSISTANT: f32 = 0.5;
/// Bounds the passages of a pasted specification, whose sentences are not all constraints.
const MOST_PER_MESSAGE: usize = 40;
const MOST_SENTENCES: usize = 2_000;
/// A message of more sentences is a document: only its first statements are facts.
const DOCUMENT: usize = 60;
const STATED_IN_DOCUMENT: usize = 6;
/// The maximum number of statements and of requests in a session, the newest first.
const MOST_STATED: usize = 400;
/// A word in more binding passages does not relate two of them.
const FREQUENT: usize = 40;
/// The number of newest passages that a new one may replace.
const COMPARED: usize = 400;
/// The maximum distance, in messages, at which a value can be replaced without naming it.
const NEAR: usize = 12;
/// A sentence below this weight says something only if it gives a value.
const SHORT: usize = 12;
/// The factor on the weight of a passage that a later one contradicts.
const CONTRADICTED: f32 = 0.2;

/// A passage of prose.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub(super) kind: FactKind,
    pub(super) text: String,
    pub(super) at: usize,
    entry: EntryId,
    weight: f32,
    revokes: bool,
    /// Whether the user said it. The assistant cannot withdraw a demand of the user.
    by_user: bool,
    statement: Arc<Statement>,
    /// Its position in the session.
    order: u32,
    /// The index of the passage that replaced or withdrew it.
    gone: Option<usize>,
    /// Whether a later passage contradicts it.
    contradicted: bool,
}

/// The passages found so far, in the order of the messages.
#[derive(Debug, Default)]
pub(super) struct Passages {
    all: Vec<Passage>,
    /// For each word, the binding passages that contain it.
    sayers: HashMap<u64, Vec<usize>>,
    /// The questions in the assistant's last message, which the user's next message closes.
    asked_back: Vec<Passage>,
    /// The message being read.
    at: usize,
    entry: EntryId,
}

/// The facts of the passages.
#[derive(Debug, Default)]
pub(super) struct PassageFacts {
    pub(super) required: Vec<RequiredFact>,
    pub(super) superseded: Vec<SupersededFact>,
    /// The passages that no longer hold, each with the index of the message that ended them.
    pub(super) gone: Vec<(Passage, usize)>,
}

impl Passages {
    /// Reads a message.
    pub(super) fn read(&mut self, at: usize, one: &CitedMessage, speakers: &Speakers<'_>) {
        (self.at, self.entry) = (at, one.id.clone());
        if one.pinned {
            let text = one.message.plain_text();
            for sentence in prose(&text).take(400) {
                self.push(FactKind::Pinned, sentence, 1.0, false);
            }
            return;
        }
        if !speakers.user.is_empty() {
            self.asked_back.clear();
            self.user(&speakers.user);
        }
        if !speakers.assistant.is_empty() && one.message.role == Role::Assistant {
            self.assistant(&speakers.assistant);
        }
    }

    fn passage(&self, kind: FactKind, text: &str, weight: f32, revokes: bool) -> Passage {
        let text = clip(text, LONGEST).to_owned();
        Passage {
            kind,
            statement: Arc::new(Statement::of(&text)),
            text,
            at: self.at,
            entry: self.entry.clone(),
            weight,
            revokes,
            by_user: weight > ASSISTANT,
            order: 0,
            gone: None,
            contradicted: false,
        }
    }

    fn push(&mut self, kind: FactKind, text: &str, weight: f32, revokes: bool) {
        let mut passage = self.passage(kind, text, weight, revokes);
        passage.order = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.relate(&mut passage);
        if is_binding(passage.kind) {
            for &word in &passage.statement.gist.words {
                self.sayers.entry(word).or_default().push(self.all.len());
            }
        }
        self.all.push(passage);
    }

    /// Marks the earlier passages that a new one withdraws, replaces or contradicts.
    fn relate(&mut self, new: &mut Passage) {
        let later = self.all.len();
        let mut gone = Vec::new();
        if is_binding(new.kind) {
            let own = &new.statement.gist;
            let mut shared: HashMap<usize, usize> = HashMap::new();
            let sayers = own.words.iter().filter_map(|word| self.sayers.get(word));
            // A frequent word does not relate two passages.
            for &place in sayers.filter(|places| places.len() <= FREQUENT).flatten() {
                *shared.entry(place).or_default() += 1;
            }
            let mut raises = false;
            for (place, count) in shared {
                let Some(old) = self.all.get_mut(place).filter(|old| old.at < new.at) else {
                    continue;
                };
                if !new.by_user && old.kind != FactKind::Decision {
                    continue;
                }
                let relation = Reversal::of(new, old, count);
                raises |= relation != Reversal::None && old.kind != FactKind::Decision;
                match relation {
                    Reversal::None => {}
                    Reversal::Withdrawn => gone.push(place),
                    Reversal::Contradicted => old.contradicted = true,
                }
            }
            // The replacement of a demand is a demand: "forget npm, switch to pnpm".
            if raises && new.kind == FactKind::Decision {
                new.kind = FactKind::Constraint;
            }
        }
        let replaced = self.all.iter().enumerate().rev().take(COMPARED).filter(|(_, old)| {
            old.at < new.at
                && (new.by_user || !old.by_user)
                && may_be_replaced(old.kind)
                && may_be_replaced(new.kind)
                && new.statement.replaces(&old.statement)
        });
        gone.extend(replaced.map(|(place, _)| place));
        gone.extend(self.renewed(new));
        for place in gone {
            self.all[place].gone.get_or_insert(later);
        }
    }

    /// Completes a statement that only gives a new value ("now 9090") by the one it refers to, and
    /// returns the place of that one.
    fn renewed(&self, new: &mut Passage) -> Option<usize> {
        if !new.statement.only_renews() {
            return None;
        }
        let near = self.all.iter().enumerate().rev().filter(|(_, old)| old.at < new.at);
        let mut near = near.take_while(|(_, old)| new.at - old.at <= NEAR);
        let (place, text) = near.find_map(|(place, old)| {
            let (value, was) = new.statement.renews(&old.statement)?;
            let at = old.text.rfind(was)?;
            let (head, tail) = (old.text.slice(..at), old.text.slice(at + was.len()..));
            Some((place, format!("{head}{value}{tail} (was {was})")))
        })?;
        new.kind = self.all[place].kind;
        new.text = text;
        Some(place)
    }

    fn user(&mut self, words: &str) {
        let sentences: Vec<&str> = prose(words).take(MOST_SENTENCES).collect();
        let is_document = sentences.len() > DOCUMENT;
        let (mut found, mut stated) = (0, 0);
        for sentence in sentences {
            if found >= MOST_PER_MESSAGE {
                break;
            }
            let Some((kind, weight, revokes)) = classified(sentence) else { continue };
            if matches!(kind, FactKind::Statement | FactKind::Request) {
                stated += 1;
                if is_document && stated > STATED_IN_DOCUMENT {
                    continue;
                }
            }
            found += 1;
            self.push(kind, sentence, weight, revokes);
        }
    }

    fn assistant(&mut self, words: &str) {
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
                let asked = self.passage(FactKind::Question, sentence, weight, false);
                self.asked_back.push(asked);
            } else if marks.question && is_open(sentence) {
                found += 1;
                self.push(FactKind::Question, sentence, weight, false);
            } else if !is_advice(sentence)
                && (marks.decision || (marks.contrast && chooses(sentence)))
            {
                found += 1;
                self.push(FactKind::Decision, sentence, weight, false);
            } else if let Some(weight) = personal(sentence) {
                found += 1;
                self.push(FactKind::Personal, sentence, weight.min(ASSISTANT), false);
            }
        }
    }

    /// Returns the facts without duplicates. `works` says whether the assistant calls tools, and is
    /// not a person in a chat.
    pub(super) fn facts(&self, messages: usize, works: bool, asks: &[Ask]) -> PassageFacts {
        let all = self.all.iter().chain(&self.asked_back);
        let all = all.filter(|p| p.kind != FactKind::Personal || p.by_user || !works);
        let asked = self.open_requests(asks);
        let mut out = PassageFacts::default();
        let mut places: HashMap<(FactKind, String), usize> = HashMap::new();
        let ended: HashSet<(usize, &str)> = self
            .all
            .iter()
            .filter(|passage| passage.gone.is_some())
            .map(|passage| (passage.at, &*passage.text))
            .collect();
        let asked = asked.iter().filter(|asked| !ended.contains(&(asked.at, &*asked.text)));
        for passage in all.chain(asked) {
            let Some(fact) = passage.fact(messages) else { continue };
            if let Some(by) = passage.gone.and_then(|by| self.all.get(by)) {
                out.gone.push((passage.clone(), by.at));
                out.superseded.push(SupersededFact { fact, by: plain(&by.text) });
                continue;
            }
            let key = (passage.kind, fact.text.to_lowercase());
            match places.get(&key).and_then(|&place| out.required.get_mut(place)) {
                Some(known) => {
                    known.entry = fact.entry;
                    known.weight = known.weight.max(fact.weight);
                }
                None => {
                    places.insert(key, out.required.len());
                    out.required.push(fact);
                }
            }
        }
        for (kind, most) in [
            (FactKind::Personal, personal::MOST),
            (FactKind::Statement, MOST_STATED),
            (FactKind::Request, MOST_STATED),
        ] {
            fewer(&mut out.required, kind, most);
        }
        out
    }

    /// Returns the open requests as passages. A demand counts as the request only without another
    /// one.
    fn open_requests(&self, asks: &[Ask]) -> Vec<Passage> {
        let mut out = Vec::new();
        for ask in asks {
            let is_demand = |text: &str| {
                self.all.iter().any(|p| {
                    p.at == ask.at
                        && matches!(p.kind, FactKind::Constraint | FactKind::Pinned)
                        && p.text == text
                })
            };
            let (plain, demands): (Vec<_>, Vec<_>) =
                ask.sentences.iter().partition(|sentence| !is_demand(sentence));
            let asked =
                if plain.is_empty() { demands.into_iter().take(1).collect() } else { plain };
            out.extend(asked.into_iter().map(|text| Passage {
                at: ask.at,
                entry: ask.entry.clone(),
                ..self.passage(FactKind::Ask, text, 0.8, false)
            }));
        }
        out
    }
}

impl Passage {
    fn fact(&self, messages: usize) -> Option<RequiredFact> {
        let late = 0.2 * (self.at + 1) as f32 / messages.max(1) as f32;
        let weight = if self.contradicted { self.weight * CONTRADICTED } else { self.weight };
        let text = plain(&self.text);
        text.contains(char::is_alphanumeric).then(|| RequiredFact {
            kind: self.kind,
            text,
            entry: self.entry.clone(),
            weight: (weight + late).min(1.0),
            by_user: self.by_user,
            order: self.order,
        })
    }
}

/// How a later passage changes an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reversal {
    None,
    /// It withdraws the earlier one.
    Withdrawn,
    /// It denies what the earlier one affirms, or withdraws a part of it.
    Contradicted,
}

impl Reversal {
    /// Compares two passages that share `count` words.
    fn of(new: &Passage, old: &Passage, count: usize) -> Self {
        let (own, gist) = (&new.statement.gist, &old.statement.gist);
        let close = count * 2 >= gist.words.len().min(own.words.len());
        let flips = own.words.iter().any(|&w| gist.says(w) && own.negates(w) != gist.negates(w));
        let takes_back = new.revokes || flips && new.statement.is_news();
        if takes_back && new.by_user && covers(own, gist) {
            Self::Withdrawn
        } else if close && (new.revokes || flips) {
            Self::Contradicted
        } else {
            Self::None
        }
    }
}

/// Whether at least half of the old words occur in the later statement.
fn covers(later: &Gist, old: &Gist) -> bool {
    let shared = later.words.iter().filter(|&&word| old.says(word)).count();
    let enough = shared * 2 >= old.words.len();
    shared > 0 && (enough || (shared > 1 && shared * 2 + 1 >= old.words.len()))
}

/// Classifies a sentence of the user: its kind, its weight, and whether it withdraws something.
fn classified(sentence: &str) -> Option<(FactKind, f32, bool)> {
    let marks = marks(sentence);
    let asks = sentence.trim_end().ends_with(['?', '？']);
    let (kind, weight) = match marks {
        Marks { standing: true, .. } if demands(&marks, sentence) => (FactKind::Pinned, 0.9),
        // "We only do that here, no?" demands nothing; "can you not touch it?" does.
        Marks { question: true, .. } if asks && !(marks.constraint && marks.request) => {
            (FactKind::Request, 0.52)
        }
        Marks { constraint: true, .. } => (FactKind::Constraint, 0.7),
        _ if personal(sentence).is_some() => {
            (FactKind::Personal, personal(sentence).unwrap_or_default().max(ASSISTANT + 0.01))
        }
        Marks { decision: true, .. } | Marks { contrast: true, .. } => (FactKind::Decision, 0.6),
        Marks { revokes: true, .. } => (FactKind::Constraint, 0.6),
        Marks { question: true, .. } => (FactKind::Question, 0.6),
        _ if gives_a_value(sentence) => (FactKind::Statement, 0.55),
        _ if says_little(sentence) => return None,
        _ if states(sentence, &marks) => (FactKind::Statement, 0.55),
        _ => (FactKind::Request, 0.55),
    };
    Some((kind, weight, marks.revokes))
}

static SUBJECTS: WordList = WordList::new("statement.subjects");

/// Whether a sentence says how something is, and asks for nothing.
fn states(sentence: &str, marks: &Marks) -> bool {
    let lower = head_chars(sentence, 24).to_lowercase();
    let first = lower.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let has_subject = SUBJECTS.contains(&first)
        || SUBJECTS.iter().any(|word| !word.is_ascii() && lower.starts_with(word));
    let is_request = marks.request && !first.is_empty() && !has_subject || is_step(sentence);
    !is_request && (has_subject && !marks.request || Statement::of(sentence).is_copular())
}

/// Whether a sentence, however short, says that something has a value: "端口是 8080".
fn gives_a_value(sentence: &str) -> bool {
    let is_short = weight(sentence) < SHORT;
    is_short && {
        let statement = Statement::of(sentence);
        statement.is_copular() && statement.has_value()
    }
}

/// Whether a sentence is too short to ask for something, or was printed by a program.
fn says_little(sentence: &str) -> bool {
    weight(sentence) < SHORT
        || is_courtesy(sentence)
        || is_assent(sentence)
        || is_frame(sentence)
        || is_error(sentence)
        || sentence.starts_with("-->")
}

/// Kinds whose passages hold until they are withdrawn.
fn is_binding(kind: FactKind) -> bool {
    matches!(kind, FactKind::Pinned | FactKind::Constraint | FactKind::Decision)
}

/// Kinds whose passages give a thing a value.
fn may_be_replaced(kind: FactKind) -> bool {
    is_binding(kind) || matches!(kind, FactKind::Statement | FactKind::Personal | FactKind::Request)
}

/// Limits the facts of a kind to those of highest weight.
fn fewer(facts: &mut Vec<RequiredFact>, kind: FactKind, most: usize) {
    let own = facts.iter().filter(|fact| fact.kind == kind);
    let mut weights: Vec<f32> = own.map(|fact| fact.weight).collect();
    if weights.len() <= most {
        return;
    }
    weights.sort_unstable_by(|a, b| b.total_cmp(a));
    let least = weights.get(most).copied().unwrap_or_default();
    facts.retain(|fact| fact.kind != kind || fact.weight > least);
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
            // A Chinese character says as much as two letters.
            letters += usize::from(c.is_alphabetic()) + usize::from(is_cjk(c));
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
