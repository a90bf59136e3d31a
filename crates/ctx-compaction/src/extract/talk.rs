//! Notes of what the user and the agent said.

use ctx_core::{EntryId, Role};

use super::Extract;
use super::clip::{clip, width};
use super::note::Note;
use super::outcome;
use super::prose::{self, Mark, Passage, passages};
use super::signal::{Signal, is_assent};
use super::turns::{Turn, typed};
use crate::text::sentences;
use crate::{FactKind, Field};

/// The widest line, in Latin letters.
pub(super) const WIDE: usize = 320;
/// The width of what is only mentioned.
const NARROW: usize = 180;

/// Notes of all that was said.
pub(super) fn notes(job: &Extract<'_>, turns: &[Turn]) -> Vec<Note> {
    let mut out = Vec::new();
    goals(job, turns, &mut out);
    for (n, turn) in turns.iter().enumerate() {
        // What was said late is more likely to hold still.
        let age = (n + 1) as f32 / turns.len() as f32;
        let recent = 0.65 + 0.35 * age;
        let previous = n.checked_sub(1).and_then(|n| turns.get(n));
        demands(job, turn, previous, recent, &mut out);
        for at in turn.range.clone() {
            let Some(said) = job.said.get(at) else { continue };
            if said.message.role == Role::Assistant {
                let text = said.message.plain_text();
                let Some(text) = prose::by_hand(&text) else { continue };
                let voice = Voice {
                    at,
                    id: &said.id,
                    is_answer: turn.answer_at == Some(at),
                    is_last: n + 1 == turns.len(),
                    recent,
                };
                voice.notes(&text, &mut out);
            } else if said.pinned {
                out.push(pinned(job, at));
            }
        }
    }
    announced(job, turns, &mut out);
    out
}

fn pinned(job: &Extract<'_>, at: usize) -> Note {
    let said = &job.said[at];
    let text = said.message.plain_text();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Note::new(Field::Constraints, clip(&text, 2 * WIDE), &said.id, 1.0, at)
}

/// What the user asked for: the latest first, then the first one, then what lay between.
fn goals(job: &Extract<'_>, turns: &[Turn], out: &mut Vec<Note>) {
    let asks: Vec<&Turn> =
        turns.iter().filter(|turn| turn.asked_at.is_some() && !turn.is_small_talk()).collect();
    for (n, turn) in asks.iter().enumerate() {
        let Some(at) = turn.asked_at else { continue };
        let Some(said) = job.said.get(at) else { continue };
        let latest = n + 1 == asks.len();
        let in_prefix = job.turn_start.is_some_and(|start| at >= start);
        // A split turn's request is quoted in full elsewhere.
        let room = match (latest, n) {
            (true, _) if !in_prefix => 2 * WIDE,
            (false, 0) => WIDE,
            _ => NARROW,
        };
        let text = gist(&turn.ask, room, latest);
        if text.is_empty() {
            continue;
        }
        let (label, weight) = match (latest, n) {
            (true, 0) => ("", 1.2),
            (true, _) => ("Latest, superseding earlier asks: ", 1.2),
            (false, 0) => ("First: ", 0.85),
            (false, n) => {
                // What was only asked is answered below.
                let base = if Signal::of(&turn.ask).question { 0.25 } else { 0.38 };
                ("Earlier: ", base + 0.35 * (n as f32 / asks.len() as f32))
            }
        };
        // The newest stands first.
        let mut note = Note::new(Field::Goal, text, &said.id, weight, at).labelled(label);
        note.order = -note.order;
        out.push(note);
    }
}

/// The sentences of a message that say what is wanted, in order.
fn gist(text: &str, room: usize, whole: bool) -> String {
    let passages = passages(text);
    let all = passages.iter().flat_map(|p| sentences(&p.text));
    let all: Vec<&str> = all.filter(|s| !is_assent(s)).collect();
    if all.is_empty() {
        // Nothing but a paste: what it is about is its error, or its first line.
        let line =
            outcome::root_cause(text).or_else(|| text.lines().find(|l| !l.trim().is_empty()));
        return clip(line.unwrap_or_default(), room);
    }
    let wants = |s: &str| {
        let signal = Signal::of(s);
        signal.question || signal.demand
    };
    let cause =
        outcome::root_cause(text).filter(|_| all.len() > 2 && !all.iter().any(|s| wants(s)));
    if let Some(cause) = cause {
        return clip(cause, room);
    }
    let mut chosen = vec![false; all.len()];
    let mut left = room;
    let mut take = |n: usize, chosen: &mut Vec<bool>| {
        let needed = width(all[n]) + 2;
        if !chosen[n] && needed <= left {
            left -= needed;
            chosen[n] = true;
        }
    };
    // The request itself most often is a question or a demand, and it stands first or last.
    let mut order: Vec<usize> = (0..all.len()).filter(|&n| whole || wants(all[n])).collect();
    if !whole {
        order.extend([0, all.len() - 1]);
        order.extend(0..all.len());
    }
    for n in order {
        take(n, &mut chosen);
    }
    if !chosen.contains(&true) {
        let best = (0..all.len()).find(|&n| wants(all[n])).unwrap_or(0);
        return clip(all[best], room);
    }
    let mut text = String::new();
    let mut last = None;
    for (n, sentence) in all.iter().enumerate().filter(|(n, _)| chosen[*n]) {
        if last.is_some_and(|last| last + 1 != n) {
            text.push_str(" …");
        }
        if !text.is_empty() {
            // Lines of a list have no full stop.
            let open =
                text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | '`' | '"'));
            text.push_str(if open { "; " } else { " " });
        }
        text.push_str(sentence);
        last = Some(n);
    }
    text
}

fn is_strict(sentence: &str) -> bool {
    let signal = Signal::of(sentence);
    signal.strict && !signal.question && !signal.chatter
}

/// What the user demands or forbids, and what was agreed on.
fn demands(
    job: &Extract<'_>,
    turn: &Turn,
    previous: Option<&Turn>,
    recent: f32,
    out: &mut Vec<Note>,
) {
    let Some((at, said)) = turn.asked_at.and_then(|at| Some((at, job.said.get(at)?))) else {
        return;
    };
    if let Some(note) = agreement(job, turn, previous) {
        out.push(note);
    }
    if turn.is_assent {
        return;
    }
    for passage in passages(&turn.ask) {
        for sentence in sentences(&passage.text) {
            // Errors that were pasted also say what must be.
            if outcome::is_error(sentence) {
                continue;
            }
            let signal = Signal::of(sentence);
            if signal.demand && !signal.question && !signal.chatter && width(sentence) > 16 {
                let text = clip(sentence, WIDE);
                let weight = if signal.strict { 0.85 } else { 0.62 };
                out.push(Note::new(Field::Constraints, text, &said.id, weight, at));
            } else if signal.decision && !signal.question {
                let text = clip(sentence, WIDE);
                out.push(Note::new(Field::Decisions, text, &said.id, 0.8, at));
            } else if !signal.question && tells(sentence) {
                let text = clip(sentence, WIDE);
                out.push(Note::new(Field::CriticalContext, text, &said.id, 0.45 * recent, at));
            }
        }
    }
    if let Some(cause) = outcome::root_cause(&turn.ask).filter(|line| line.contains(':')) {
        let text = clip(cause, WIDE);
        out.push(Note::new(Field::CriticalContext, text, &said.id, 0.6 * recent, at));
    }
}

/// Whether a statement of the user holds something that is hard to guess again.
fn tells(sentence: &str) -> bool {
    sentence.chars().any(|c| c.is_ascii_digit())
        || sentence.contains(['`', '/', '@'])
        || ["because", "因为"].iter().any(|why| sentence.contains(why))
}

/// A short answer of the user to what the agent asked: the question, the option, the answer.
fn agreement(job: &Extract<'_>, turn: &Turn, previous: Option<&Turn>) -> Option<Note> {
    let at = turn.asked_at?;
    let answer = job.said.get(at)?;
    let asked_at = previous?.answer_at?;
    let asked = job.said.get(asked_at)?;
    let reply = turn.ask.split_whitespace().collect::<Vec<_>>().join(" ");
    let picks = picks(&reply);
    if width(&reply) > 600 || !(turn.is_assent || !picks.is_empty() || starts_agreeing(&reply)) {
        return None;
    }
    let text = asked.message.plain_text();
    let passages = passages(&text);
    let lines = text.lines().rev().flat_map(|line| sentences(line.trim()));
    let question = lines.take(60).find(|s| Signal::of(s).question);
    let mut options: Vec<&Passage<'_>> =
        passages.iter().filter(|p| picks.iter().any(|pick| is_option(p, pick))).collect();
    if options.is_empty() {
        // `Would you like me to:` and a list.
        let open = question.filter(|question| question.ends_with([':', '：']));
        options = passages.iter().filter(|p| open.is_some() && p.lead == open).collect();
    }
    if question.is_none() && options.is_empty() {
        return None;
    }
    let mut words = clip(question.unwrap_or_default(), NARROW);
    for option in options.iter().take(4) {
        if !words.is_empty() {
            words.push_str(if words.ends_with([':', '：']) { " " } else { " / " });
        }
        words.push_str(&clip(&option.text, 120));
    }
    words.push_str(" → user: ");
    words.push_str(&clip(&reply, WIDE));
    let weight = if turn.is_assent { 0.6 } else { 0.9 };
    let mut note = Note::new(Field::Decisions, words, &answer.id, weight, at);
    note.cites.insert(0, asked.id.clone());
    Some(note)
}

/// Names of options that a reply begins with: `A.`, `1`, `#1`, `Implement 1,2 and 3`, `I think B`.
fn picks(reply: &str) -> Vec<String> {
    const BEFORE: &[&str] = &[
        "i",
        "think",
        "option",
        "options",
        "go",
        "with",
        "let's",
        "lets",
        "yes",
        "and",
        "do",
        "just",
        "the",
        "implement",
        "for",
        "take",
        "pick",
        "choose",
        "use",
        "prefer",
        "选",
        "方案",
        "选项",
    ];
    let head: String = reply.chars().take(60).collect();
    let mut out = Vec::new();
    let parts =
        head.split(|c: char| c.is_whitespace() || matches!(c, ',' | '，' | '、' | '。' | '：'));
    for (n, word) in parts.enumerate() {
        let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
        let letter = bare.len() == 1 && bare.chars().all(|c| ('A'..='F').contains(&c));
        let number = !bare.is_empty() && bare.len() < 3 && bare.chars().all(|c| c.is_ascii_digit());
        // `A` is also a word.
        if number || (letter && (bare != "A" || word != "A" || n > 0 || head.trim().len() == 1)) {
            out.push(bare.to_owned());
        } else if !bare.is_empty() && !BEFORE.contains(&bare.to_lowercase().as_str()) {
            break;
        }
    }
    out
}

fn starts_agreeing(reply: &str) -> bool {
    const STARTS: &[&str] = &[
        "yes",
        "yeah",
        "yep",
        "no",
        "nope",
        "ok",
        "sure",
        "let's",
        "lets",
        "go with",
        "both",
        "neither",
        "i think",
        "i'd go",
        "i prefer",
        "fine",
        "it's fine",
        "agreed",
        "intentional",
        "keep",
        "好",
        "可以",
        "不",
        "就",
        "用",
        "选",
        "行",
        "同意",
        "是",
    ];
    let lower = reply.chars().take(40).collect::<String>().to_lowercase();
    STARTS.iter().any(|start| {
        lower.strip_prefix(start).is_some_and(|rest| {
            !start.is_ascii() || !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    })
}

/// Whether a passage is the option of that name.
fn is_option(passage: &Passage<'_>, pick: &str) -> bool {
    let words = passage.text.trim_start_matches(['*', '(', '#', ' ']);
    let named = words.strip_prefix("Option ").unwrap_or(words);
    let after = named.strip_prefix(pick);
    after.is_some_and(|rest| rest.starts_with(['.', ')', ':', '*'])) || passage.number == Some(pick)
}

/// A message of the agent.
struct Voice<'a> {
    at: usize,
    id: &'a EntryId,
    /// Whether it is the last of its turn: what was found and done is told there.
    is_answer: bool,
    /// Whether its turn is the last.
    is_last: bool,
    recent: f32,
}

impl Voice<'_> {
    fn notes(&self, text: &str, out: &mut Vec<Note>) {
        let passages = passages(text);
        // The first lines of a message say most.
        let mut fade = 1.0f32;
        let mut first = true;
        let mut n = 0;
        while let Some(passage) = passages.get(n) {
            let group = passages[n..].iter().take_while(|p| same_list(passage, p)).count().max(1);
            let list = &passages[n..n + group];
            n += group;
            let before = out.len();
            match passage.mark {
                Mark::Box { .. } => list.iter().for_each(|p| self.boxed(p, fade, out)),
                Mark::Item => self.list(list, fade, out),
                Mark::Plain => {
                    for sentence in sentences(&passage.text) {
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
        let text = clip(text, WIDE);
        if !text.is_empty() {
            let weight = weight * self.recent * substance(&text);
            out.push(Note::new(field, text, self.id, weight, self.at));
        }
    }

    fn boxed(&self, passage: &Passage<'_>, fade: f32, out: &mut Vec<Note>) {
        let Mark::Box { checked } = passage.mark else { return };
        let (field, weight) =
            if checked { (Field::Done, 0.5) } else { (Field::NextSteps, 0.55 * self.freshness()) };
        self.push(field, &passage.text, weight * fade, out);
    }

    /// Plans grow old: what was to be done next some turns ago is done or forgotten.
    fn freshness(&self) -> f32 {
        if self.is_last { 1.0 } else { 0.4 * self.recent }
    }

    fn list(&self, list: &[Passage<'_>], fade: f32, out: &mut Vec<Note>) {
        let Some(first) = list.first() else { return };
        if let Some(field) = first.under {
            let fresh = if field == Field::NextSteps { self.freshness() } else { 1.0 };
            let weight = if self.is_answer { 0.55 } else { 0.3 };
            for (n, item) in list.iter().enumerate() {
                let signal = Signal::of(&item.text);
                if signal.question || !signal.chatter {
                    let fade = fade * 0.97f32.powi(i32::try_from(n).unwrap_or(99).min(99));
                    self.push(field, &item.text, weight * fade * fresh, out);
                }
            }
            return;
        }
        let lead = first.lead.unwrap_or_default();
        let signal = Signal::of(lead);
        let field = if signal.next || signal.announces {
            Field::NextSteps
        } else if signal.done {
            Field::Done
        } else if signal.decision {
            Field::Decisions
        } else {
            Field::CriticalContext
        };
        let base: f32 = match (self.is_answer, signal.announces) {
            (true, false) => 0.42,
            (true, true) => 0.3 * self.freshness(),
            (false, _) if signal.finding || signal.decision => 0.3,
            (false, _) => return,
        };
        // Items that say something of their own stand alone; the others need their lead.
        let mut rest = Vec::new();
        for item in list.iter().take(30) {
            let own = Signal::of(&item.text);
            match own.field().filter(|_| !own.chatter && !own.question) {
                Some(field) if width(&item.text) > 30 => {
                    self.push(field, &item.text, base * fade, out);
                }
                _ => rest.push(item),
            }
        }
        if rest.is_empty() || (lead.is_empty() && rest.iter().all(|i| width(&i.text) < 40)) {
            return;
        }
        let list = rest;
        let mut text = lead.to_owned();
        if !text.is_empty() && !text.ends_with([':', '：']) {
            text.push(':');
        }
        let room = WIDE + WIDE / 2;
        for item in list {
            let words = clip(&item.text, 100);
            if width(&text) + width(&words) > room {
                text.push_str(" …");
                break;
            }
            if !words.is_empty() {
                text.push_str(match text.chars().last() {
                    None => "",
                    Some(':' | '：') => " ",
                    Some(_) => "; ",
                });
                text.push_str(words.trim_end_matches([';', '.', '…', ' ']));
            }
        }
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
        let signal = Signal::of(sentence);
        if signal.question {
            // Questions of the past were answered or dropped.
            if self.is_answer && self.is_last {
                self.push(Field::NextSteps, sentence, 0.65, out);
                if let Some(note) = out.last_mut() {
                    note.label = "Open question: ";
                }
            }
            return;
        }
        if signal.chatter || width(sentence) < 16 {
            return;
        }
        let own = under.or_else(|| signal.field());
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
        let strong = ["root cause", "根因", "根本原因", "turns out"]
            .iter()
            .any(|w| sentence.to_lowercase().contains(w));
        let weight = if strong { weight + 0.2 } else { weight };
        let field = own.unwrap_or(Field::CriticalContext);
        self.push(field, sentence, weight * fade, out);
    }
}

impl Signal {
    /// The field that fits a sentence of the agent.
    fn field(self) -> Option<Field> {
        if self.blocked {
            Some(Field::Blocked)
        } else if self.decision {
            Some(Field::Decisions)
        } else if self.done {
            Some(Field::Done)
        } else if self.next {
            Some(Field::NextSteps)
        } else if self.finding {
            Some(Field::CriticalContext)
        } else {
            None
        }
    }
}

/// How much a sentence can be built on: names, numbers and code say more than words.
fn substance(text: &str) -> f32 {
    let named = text.contains(['`', '/', '_', '"', '“', '「']);
    let counted = text.chars().any(|c| c.is_ascii_digit());
    match (named || counted, width(text)) {
        (true, _) => 1.0,
        (false, 0..40) => 0.6,
        (false, _) => 0.8,
    }
}

fn same_list(first: &Passage<'_>, other: &Passage<'_>) -> bool {
    let is_box = |p: &Passage<'_>| matches!(p.mark, Mark::Box { .. });
    first.mark != Mark::Plain
        && other.mark != Mark::Plain
        && is_box(first) == is_box(other)
        && first.lead == other.lead
        && first.under == other.under
}

/// What the agent said it was about to do when the history ends in the middle of its work.
fn announced(job: &Extract<'_>, turns: &[Turn], out: &mut Vec<Note>) {
    let Some(turn) = turns.last() else { return };
    let (Some(at), Some(last)) = (turn.answer_at, turn.range.clone().last()) else {
        // Asked, and not a word of an answer: that is the next thing to do.
        if let Some((at, said)) = turn.asked_at.and_then(|at| Some((at, job.said.get(at)?)))
            && !turn.is_assent
        {
            let text = gist(&turn.ask, WIDE, false);
            if !text.is_empty() {
                out.push(Note::new(Field::NextSteps, text, &said.id, 0.9, at).labelled("Asked: "));
            }
        }
        return;
    };
    let ends_at_work = job.said.get(last).is_some_and(|said| {
        said.message.role != Role::Assistant || said.message.tool_calls().next().is_some()
    });
    let Some(said) = job.said.get(at).filter(|_| ends_at_work) else { return };
    let text = said.message.plain_text();
    let passages = passages(&text);
    let sentence =
        passages.iter().flat_map(|p| sentences(&p.text)).rfind(|s| Signal::of(s).announces);
    // A line that ends in a colon leads to a call; it is no passage of its own.
    let lead = || text.lines().rev().map(str::trim).find(|line| line.ends_with([':', '：']));
    if let Some(words) = sentence.or_else(lead) {
        let words = clip(words.trim_end_matches([':', '：']), WIDE);
        if !words.is_empty() {
            out.push(Note::new(Field::InProgress, words, &said.id, 0.8, at));
        }
    }
}

/// Passages that must be kept.
pub(super) fn of_facts(job: &Extract<'_>) -> Vec<Note> {
    let place = |id: &EntryId| job.said.iter().position(|said| said.id == *id);
    let passages = job.facts.iter().filter(|fact| fact.kind.is_passage());
    // The weightiest come first, and finding a place is a walk over the history.
    let notes = passages.take(200).filter_map(|fact| {
        let (field, label, weight) = match fact.kind {
            FactKind::Pinned => (Field::Constraints, "", 1.0),
            FactKind::Constraint => (Field::Constraints, "", 0.8),
            FactKind::Decision => (Field::Decisions, "", 0.6),
            FactKind::Ask => (Field::NextSteps, "Asked: ", 0.8),
            _ => (Field::CriticalContext, "Open question: ", 0.5),
        };
        let at = place(&fact.entry)?;
        let text = fact.text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = clip(&text, 2 * WIDE);
        let weight = weight + 0.15 * fact.weight.clamp(0.0, 1.0);
        (!text.is_empty()).then(|| Note::new(field, text, &fact.entry, weight, at).labelled(label))
    });
    notes.collect()
}

/// What the user typed in a split turn, newest last: entry and text.
pub(super) fn requests(job: &Extract<'_>) -> Vec<(EntryId, String)> {
    let prefix = job.turn_start.and_then(|start| job.said.get(start..)).unwrap_or_default();
    let typed = prefix.iter().filter_map(|said| Some((said.id.clone(), typed(&said.message)?)));
    typed.filter(|(_, text)| prose::by_hand(text).is_some()).collect()
}
