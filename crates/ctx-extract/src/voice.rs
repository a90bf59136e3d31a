//! What the agent reported, found, decided and planned.

use ctx_core::EntryId;

use super::note::{Note, QUESTION, is_work};
use super::prose::{Mark, Passage, field_of, passages};
use super::talk::WIDE;
use crate::Field;
use ctx_facts::chooses;
use ctx_text::{Signal, WordList, clip_to_width, collapsed, sentences, width};

/// A sentence of an agent below this width has to name something.
const SHORT: usize = 52;

/// A message of the agent.
pub(super) struct Voice<'a> {
    pub(super) at: usize,
    pub(super) id: &'a EntryId,
    /// Whether it is the last of its turn, which reports the results.
    pub(super) is_answer: bool,
    /// The number of turns after its own.
    pub(super) turns_since: u32,
    pub(super) recent: f32,
    /// Whether tools were called in the session.
    pub(super) works: bool,
}

impl Voice<'_> {
    pub(super) fn notes(&self, text: &str, out: &mut Vec<Note>) {
        let passages = passages(text);
        // The first lines of a message carry most.
        let mut fade = 1.0f32;
        let mut first = true;
        let mut n = 0;
        while let Some(passage) = passages.get(n) {
            let group = passages[n..].iter().take_while(|p| same_list(passage, p)).count().max(1);
            let list = &passages[n..n + group];
            n += group;
            let before = out.len();
            if self.turns_since > 0 && offers(list, passages.get(n)) {
                continue;
            }
            match passage.mark {
                Mark::Box { .. } => list.iter().for_each(|p| self.boxed(p, fade, out)),
                Mark::Item => self.list(list, fade, out),
                Mark::Plain => {
                    for sentence in list.iter().flat_map(|p| sentences(p.text)) {
                        self.sentence(sentence, passage.under, first, fade, out);
                        first = false;
                    }
                }
            }
            let taken = i32::try_from(out.len() - before).unwrap_or(99).min(99);
            fade *= 0.93f32.powi(taken);
        }
    }

    fn push(&self, field: Field, text: &str, weight: f32, out: &mut Vec<Note>) {
        let text = clip_to_width(text, WIDE);
        if !text.is_empty() {
            out.push(Note::new(field, text, self.id, weight * self.recent, self.at));
        }
    }

    /// Whether a sentence reports finished work of the agent: descriptions and explanations are full
    /// of such words as well.
    fn reports(&self, signal: Signal, sentence: &str) -> bool {
        static CAVEATS: WordList = WordList::new("report_caveats");
        let lower = sentence.to_lowercase();
        let begins = self.works && signal.done_first && !signal.finding;
        signal.done
            && !signal.marks.tentative
            && (begins || is_own_work(sentence))
            && !CAVEATS.is_in(&lower)
    }

    /// Returns the field for a sentence.
    fn field(&self, signal: Signal, sentence: &str) -> Option<Field> {
        if signal.put_off {
            Some(Field::NextSteps)
        } else if signal.blocked {
            Some(Field::Blocked)
        } else if decides(signal, sentence) {
            Some(Field::Decisions)
        } else if self.reports(signal, sentence) {
            Some(Field::Done)
        } else if signal.next {
            Some(Field::NextSteps)
        } else if signal.finding || signal.decision || signal.done {
            Some(Field::CriticalContext)
        } else {
            None
        }
    }

    fn boxed(&self, passage: &Passage<'_>, fade: f32, out: &mut Vec<Note>) {
        let Mark::Box { checked } = passage.mark else { return };
        let (field, weight) = match checked {
            true => (Field::Done, 0.5),
            false => (Field::NextSteps, 0.55 * self.freshness()),
        };
        self.push(field, passage.text, weight * fade, out);
    }

    /// Returns the weight factor for old plans: a step planned some turns ago is done or forgotten.
    fn freshness(&self) -> f32 {
        0.8f32.powi(i32::try_from(self.turns_since).unwrap_or(i32::MAX))
    }

    fn list(&self, list: &[Passage<'_>], fade: f32, out: &mut Vec<Note>) {
        let Some(first) = list.first() else { return };
        if let Some(field) = first.under {
            let fresh = if field == Field::NextSteps { self.freshness() } else { 1.0 };
            let weight = if self.is_answer { 0.55 } else { 0.3 };
            for (n, item) in list.iter().enumerate() {
                let signal = Signal::of(item.text);
                if is_prose(item.text) && (signal.question || !signal.chatter) {
                    let fade = fade * 0.97f32.powi(i32::try_from(n).unwrap_or(99).min(99));
                    self.push(field, item.text, weight * fade * fresh, out);
                }
            }
            return;
        }
        let lead = first.last_of_lead();
        let signal = Signal::of(lead);
        let field = if let Some(field) = field_of(lead) {
            field
        } else if signal.next {
            Field::NextSteps
        } else if self.reports(signal, lead) {
            Field::Done
        } else if decides(signal, lead) {
            Field::Decisions
        } else {
            Field::CriticalContext
        };
        let base: f32 = match self.is_answer {
            _ if signal.announces => return,
            true => 0.42,
            false if signal.finding || signal.decision => 0.3,
            false => return,
        };
        // Items with content of their own stand alone; the others need their lead.
        let mut rest = Vec::new();
        for item in list.iter().take(30) {
            let own = Signal::of(item.text);
            match self.field(own, item.text).filter(|_| !own.chatter && !own.question) {
                Some(field) if width(item.text) > 30 && (is_work(field) || lead.is_empty()) => {
                    self.push(field, item.text, base * fade, out);
                }
                _ => rest.push(item),
            }
        }
        if rest.is_empty() || (lead.is_empty() && rest.iter().all(|i| width(i.text) < 40)) {
            return;
        }
        let words = rest.iter().map(|item| clip_to_width(item.text, 100));
        let words: Vec<String> = words
            .map(|words| words.trim_end_matches([';', '.', ':', '…', ' ']).to_owned())
            .collect();
        let colon = if lead.is_empty() || lead.ends_with([':', '：']) { "" } else { ":" };
        let text = format!("{lead}{colon} {}", words.join("; "));
        let text = clip_to_width(text.trim(), WIDE + WIDE / 2);
        out.push(Note::new(field, text, self.id, base * fade * self.recent, self.at));
    }

    fn sentence(
        &self,
        sentence: &str,
        under: Option<Field>,
        first: bool,
        fade: f32,
        out: &mut Vec<Note>,
    ) {
        let sentence = &collapsed(sentence);
        let signal = Signal::of(sentence);
        if signal.question {
            // Questions of earlier turns were answered or dropped.
            if self.is_answer && self.turns_since == 0 {
                self.push(Field::NextSteps, sentence, 0.65, out);
                if let Some(note) = out.last_mut() {
                    note.label = QUESTION;
                }
            }
            return;
        }
        // A sentence in lower case is the rest of one.
        let is_part = sentence.starts_with(|c: char| c.is_ascii_lowercase() || c == '.');
        if signal.chatter || is_part || width(sentence) < 16 || !is_prose(sentence) {
            return;
        }
        if signal.put_off && under.is_none() {
            // Postponed work stays open until it is reported done, however old it is.
            let weight = if self.is_answer { 0.62 } else { 0.45 };
            self.push(Field::NextSteps, sentence, weight / self.recent, out);
            return;
        }
        let own = under.or_else(|| self.field(signal, sentence));
        if self.works
            && own.is_none_or(|own| own == Field::CriticalContext)
            && !signal.causes
            && names_nothing(sentence)
        {
            return;
        }
        let weight = match (own, self.is_answer) {
            (Some(Field::NextSteps), true) => 0.5 * self.freshness(),
            (Some(Field::NextSteps), false) => 0.2 * self.freshness(),
            (Some(Field::Blocked), answer) => (if answer { 0.6 } else { 0.35 }) * self.freshness(),
            (Some(Field::Decisions), true) => 0.6,
            (Some(Field::Decisions), false) => 0.45,
            (Some(Field::Done), true) => 0.6,
            (Some(Field::Done), false) => 0.4,
            (Some(_), true) => 0.48,
            (Some(_), false) => 0.33,
            (None, true) if first => 0.42,
            (None, true) => 0.25,
            (None, false) => return,
        };
        let weight = if signal.causes { weight + 0.2 } else { weight };
        let field = own.unwrap_or(Field::CriticalContext);
        self.push(field, sentence, weight * fade, out);
    }
}

/// Whether a sentence makes a choice, unlike a recommendation or a description of the code.
pub(super) fn decides(signal: Signal, sentence: &str) -> bool {
    let marks = signal.marks;
    signal.decision && marks.decision && !marks.tentative && chooses(sentence)
}

/// Whether a sentence reports the speaker's own work: "I added", "Removed the cache", "已修复".
fn is_own_work(sentence: &str) -> bool {
    static OBJECTS: WordList = WordList::new("report_objects");
    let lower = sentence.chars().take(80).collect::<String>().to_lowercase().replace('’', "'");
    let bare = lower.trim_start_matches(|c: char| !c.is_alphanumeric());
    if bare.starts_with(['我', '已']) {
        return true;
    }
    let mut words = bare.split_whitespace();
    let first = words.next().unwrap_or_default();
    let object = words.next().unwrap_or_default();
    let own = matches!(first, "i" | "i've" | "we" | "we've");
    // "Updated the recipe" is a report, "Updated recipes use less" is not.
    let acts = !OBJECTS.contains(first) && (object.starts_with('`') || OBJECTS.contains(object));
    // "`a.rs` moved to `src/`."
    let of_named = sentence.strip_prefix('`').and_then(|rest| rest.split_once("` "));
    own || first.ends_with(':')
        || acts
        || of_named.is_some_and(|(_, rest)| Signal::of(rest).done_first)
}

/// Whether a list offers options: a question leads to it, or follows its numbered items.
fn offers(list: &[Passage<'_>], next: Option<&Passage<'_>>) -> bool {
    static OPTIONS: WordList = WordList::new("assent.options");
    let Some(first) = list.first().filter(|first| first.is_listed()) else { return false };
    let lead = first.last_of_lead().to_lowercase();
    let asks = |text: &str| Signal::of(text).question;
    let follows = || {
        let next = next.filter(|next| next.mark == Mark::Plain);
        next.and_then(|next| sentences(next.text).last().map(|last| asks(last))) == Some(true)
    };
    asks(&lead)
        || OPTIONS.begins(&lead)
        || (first.number.is_some() || first.mark == Mark::Plain) && follows()
}

/// Whether there are words besides code and a bold label: "**Location:** `a.rs`".
fn is_prose(text: &str) -> bool {
    let label = text.strip_prefix("**").and_then(|text| text.split_once(":**"));
    let words = label.map_or(text, |(_, words)| words);
    words.split('`').step_by(2).any(|part| part.contains(char::is_alphanumeric))
}

/// Whether a short sentence of an agent names nothing: "The issue is becoming clearer."
fn names_nothing(sentence: &str) -> bool {
    sentence.is_ascii()
        && width(sentence) < SHORT
        && !sentence.contains(['`', '/', '_', '"'])
        && !sentence.contains(|c: char| c.is_ascii_digit())
}

fn same_list(first: &Passage<'_>, other: &Passage<'_>) -> bool {
    let is_box = |p: &Passage<'_>| matches!(p.mark, Mark::Box { .. });
    first.is_listed()
        && other.is_listed()
        && is_box(first) == is_box(other)
        && first.lead == other.lead
        && first.under == other.under
}
