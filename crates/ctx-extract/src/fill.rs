//! Fills the budget with the notes of highest weight.

use std::collections::{HashMap, HashSet};

use ctx_core::{Counter, EntryId, Tokens};

use super::ExtractInput;
use super::agreement::ANSWER;
use super::note::{FIRST, LATEST, NAMES, Note, drop_all, is_work, normal, without_marks};
use super::talk::requests;
use super::turns::Turn;
use crate::{Field, StructuredSummary, SummaryLine, TurnPrefix};
use ctx_text::{Gist, clip_to_width, collapsed, gist, is_assent, sentences};

/// The guaranteed share of each field, in hundredths of the budget; others may use what is left.
const SHARES: [(Field, u32); 8] = [
    (Field::Goal, 18),
    (Field::Constraints, 16),
    (Field::InProgress, 5),
    (Field::Blocked, 5),
    (Field::NextSteps, 8),
    (Field::Decisions, 14),
    (Field::Done, 16),
    (Field::CriticalContext, 16),
];

/// The maximum share of a split turn's part, in hundredths, and of its quoted request within that.
const TURN_SHARE: u32 = 50;
const REQUEST_SHARE: u32 = 60;

/// The maximum share of the user's words in a session with tools, in hundredths. More is only used if
/// nothing else needs it.
const USER_SHARE: u32 = 90;

/// The share of names that may be needed next, in hundredths of the budget; three times as much if it is
/// left.
const NAMES_SHARE: u32 = 10;

/// A line of fewer letters and digits may be a part of another one.
const LEAST_COMPARED: usize = 12;

/// Notes below this weight are dropped even if they fit: they would only distract.
const LEAST: f32 = 0.2;

/// Notes below this weight leave a share of the budget, in hundredths, to facts and names.
const LIGHT: f32 = 0.45;
const LEFT_BY_LIGHT: u32 = 40;

pub(super) fn fill(job: &ExtractInput<'_>, turns: &[Turn], mut notes: Vec<Note>) -> String {
    let turn = turn_prefix(job);
    let taken = turn.as_ref().map_or(Tokens::ZERO, |turn| turn.1);
    let names = if job.facts.names.is_empty() { 0 } else { NAMES_SHARE };
    let budget = job.budget - taken - percent(job.budget, names);
    let room = Room {
        counter: job.counter,
        left: budget,
        budget,
        opened: HashSet::new(),
        chosen: Vec::new(),
    };
    let prefix_at = job.turn_start.and_then(|start| i64::try_from(start).ok());
    if let Some((turn, _)) = &turn {
        let request = normal(&turn.original_request.join("\n"));
        let goals = notes.iter().filter(|note| note.field == Field::Goal).count();
        let asked: HashSet<EntryId> = requests(job).into_iter().map(|(id, _)| id).collect();
        notes.retain(|note| {
            let is_asked = note.cites.last().is_some_and(|id| asked.contains(id));
            let is_goal = note.label == LATEST && goals > 1;
            !(is_asked && (is_goal || in_prefix(note, prefix_at)) && is_quoted(note, &request))
        });
    }
    let mut chosen = without_repetitions(room.choose(notes));
    loop {
        let mut summary = assemble(&chosen, turn.as_ref().map(|turn| &turn.0), prefix_at);
        let text = summary.render();
        if job.counter.text(&text) <= job.budget {
            if text.is_empty() {
                return goal_alone(job, turns);
            }
            let left = job.budget - job.counter.text(&text);
            return match names_line(job, &text, left) {
                Some(line) => {
                    summary.lines_mut(Field::CriticalContext).push(line);
                    summary.render()
                }
                None => text,
            };
        }
        // The sum of the parts is nearly always an upper bound; if not, the lightest note is
        // dropped.
        let least = chosen.iter().enumerate().min_by(|a, b| a.1.weight.total_cmp(&b.1.weight));
        let Some((at, _)) = least else { return goal_alone(job, turns) };
        chosen.remove(at);
    }
}

/// Removes lines that are a part of another one, and reports whose words are nearly all in another one.
/// The user's words stay; a line of the agent that says little more than they do goes.
fn without_repetitions(mut notes: Vec<Note>) -> Vec<Note> {
    let read: Vec<(String, Gist)> =
        notes.iter().map(|note| (normal(&note.text), gist(&note.text))).collect();
    let covers = |other: usize, at: usize| {
        let ((longer, theirs), (text, own)) = (&read[other], &read[at]);
        let stays = |a: usize, b: usize| a > b || a == b && other < at;
        let by_user = |n: usize| notes[n].is_user;
        let is_quoted = by_user(at) && !by_user(other);
        let may_be_part = text.len() >= LEAST_COMPARED && stays(longer.len(), text.len());
        let may_echo = longer.len() >= LEAST_COMPARED && longer.len() * 2 >= text.len();
        let is_echo = || by_user(other) && !by_user(at) && text.contains(longer);
        let are_reports = [other, at].iter().all(|&n| notes[n].field == Field::Done);
        may_be_part && !is_quoted && longer.contains(text)
            || may_echo && is_echo()
            || are_reports
                && own.words.len() >= 4
                && stays(theirs.words.len(), own.words.len())
                && own.shared(theirs) * 4 >= own.words.len() * 3
    };
    let repeats = |at: &usize| {
        notes[*at].field != Field::Goal && (0..notes.len()).any(|other| covers(other, *at))
    };
    let gone: HashSet<usize> = (0..notes.len()).filter(repeats).collect();
    drop_all(&mut notes, &gone);
    notes
}

/// Returns a line of names that may be needed next and that the summary does not contain.
fn names_line(job: &ExtractInput<'_>, text: &str, left: Tokens) -> Option<SummaryLine> {
    let most = percent(job.budget, 3 * NAMES_SHARE);
    // The heading may be new.
    let room = left.min(most).0.checked_sub(job.counter.text("\n\n## Critical Context\n- ").0)?;
    let mut line = NAMES.to_owned();
    for name in job.facts.names.iter().filter(|name| !text.contains(name.as_str())) {
        let next = format!("{line}{}`{name}`", if line.len() > NAMES.len() { ", " } else { "" });
        if job.counter.text(&next).0 > room {
            break;
        }
        line = next;
    }
    (line.len() > NAMES.len()).then(|| SummaryLine { text: line, cites: Vec::new() })
}

/// Removes duplicates: the line of higher weight stays and cites the newest entry. Of a task in several
/// states, the newest one stays.
pub(super) fn distinct(mut notes: Vec<Note>) -> Vec<Note> {
    for (place, note) in notes.iter_mut().enumerate() {
        note.place = place;
    }
    notes.sort_by(|a, b| b.weight.total_cmp(&a.weight).then(b.order.cmp(&a.order)));
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut out: Vec<Note> = Vec::with_capacity(notes.len());
    for mut note in notes {
        if note.weight < LEAST {
            break;
        }
        note.text = clean(&note);
        let words = normal(&note.text);
        if words.is_empty() {
            continue;
        }
        let next = out.len();
        let at = *seen.entry(words).or_insert(next);
        match out.get_mut(at) {
            None => out.push(note),
            Some(kept) if note.field != kept.field => {
                let both_work = is_work(note.field) && is_work(kept.field);
                if both_work && note.order > kept.order {
                    *kept = note;
                }
            }
            Some(kept) if note.order > kept.order && kept.cites.len() == 1 => {
                kept.cites.truncate(0);
                kept.cites.extend(note.cites);
            }
            Some(_) => {}
        }
    }
    out
}

/// Removes control characters, and all that could pass for a citation or for the summary's own
/// frame.
fn clean(note: &Note) -> String {
    let text = without_marks(&note.text).replace('\t', " ");
    text.chars().filter(|c| !c.is_control() || *c == '\n').collect::<String>().trim().to_owned()
}

struct Room<'a> {
    counter: &'a Counter,
    left: Tokens,
    budget: Tokens,
    opened: HashSet<Field>,
    chosen: Vec<Note>,
}

impl Room<'_> {
    /// Chooses the notes that fit.
    fn choose(mut self, notes: Vec<Note>) -> Vec<Note> {
        let mut waiting: Vec<Option<Note>> = notes.into_iter().map(Some).collect();
        // The latest goal comes first, however small the budget.
        let goal = waiting.iter().position(|n| n.as_ref().is_some_and(|n| n.field == Field::Goal));
        if let Some(note) = goal.and_then(|at| waiting.get_mut(at)).and_then(Option::take) {
            for max in [usize::MAX, 320, 200, 120, 80, 50, 30, 16] {
                let shorter = Note { text: clip_to_width(&note.text, max), ..note.clone() };
                let small = self.cost(&shorter).0 <= self.budget.0 / 3 || max <= 120;
                if small && !shorter.text.is_empty() && self.take(shorter, self.left).is_ok() {
                    break;
                }
            }
        }
        self.take_all(&mut waiting, USER_SHARE, |note| note.is_user);
        for (field, share) in SHARES {
            self.take_all(&mut waiting, share, |n| n.field == field && n.weight >= LIGHT);
        }
        let spared = percent(self.budget, LEFT_BY_LIGHT);
        for note in waiting.into_iter().flatten() {
            let most = if note.weight < LIGHT { self.left - spared } else { self.left };
            // Notes that do not fit are dropped.
            let _ = self.take(note, most);
        }
        self.chosen
    }

    /// Adds the wanted notes, as far as they fit into a share of the budget.
    fn take_all(
        &mut self,
        waiting: &mut [Option<Note>],
        share: u32,
        wanted: impl Fn(&Note) -> bool,
    ) {
        let mut left = percent(self.budget, share);
        for slot in waiting {
            let Some(note) = slot.take_if(|note| wanted(note)) else { continue };
            match self.take(note, left) {
                Ok(cost) => left -= cost,
                Err(note) => *slot = Some(note),
            }
        }
    }

    /// Adds a note that costs at most `most`, and returns its cost. A note that does not fit is
    /// returned.
    fn take(&mut self, note: Note, most: Tokens) -> Result<Tokens, Note> {
        let cost = self.cost(&note);
        if cost > most || cost > self.left {
            return Err(note);
        }
        self.left -= cost;
        self.opened.insert(note.field);
        self.chosen.push(note);
        Ok(cost)
    }

    /// Returns the tokens of a line, with its heading if it is the first under it.
    fn cost(&self, note: &Note) -> Tokens {
        let line = self.counter.text(&format!("- [x] {}\n", line(note)));
        let heading = match self.opened.contains(&note.field) {
            true => Tokens::ZERO,
            false => self.counter.text("\n\n## Constraints & Preferences\n\n### D\n"),
        };
        line + heading
    }
}

fn percent(tokens: Tokens, share: u32) -> Tokens {
    Tokens::saturating_from(tokens.get() * u64::from(share) / 100)
}

fn line(note: &Note) -> SummaryLine {
    let mut cites: Vec<EntryId> = Vec::new();
    for cite in &note.cites {
        if !cites.contains(cite) && cites.len() < 4 {
            cites.push(cite.clone());
        }
    }
    SummaryLine { text: format!("{}{}", note.label, note.text), cites }
}

/// Arranges the chosen notes in reading order, those of a split turn in its own part.
fn assemble(
    chosen: &[Note],
    turn: Option<&TurnPrefix>,
    prefix_at: Option<i64>,
) -> StructuredSummary {
    let mut notes: Vec<&Note> = chosen.iter().collect();
    // The newest goal comes first, and the session's first goal last.
    let rank = |note: &Note| match note.field {
        Field::Goal => note.label == FIRST,
        _ => !note.focused,
    };
    notes.sort_by_key(|note| (rank(note), note.order, note.place));
    let mut summary = StructuredSummary::default();
    let mut prefix = turn.cloned().unwrap_or_default();
    for note in notes {
        let in_prefix = turn.is_some() && in_prefix(note, prefix_at);
        match note.field {
            Field::Done if in_prefix => prefix.early_progress.push(line(note)),
            Field::CriticalContext if in_prefix => prefix.context_for_suffix.push(line(note)),
            field => summary.lines_mut(field).push(line(note)),
        }
    }
    summary.turn = turn.map(|_| prefix);
    summary
}

/// Whether a note belongs to the split turn.
fn in_prefix(note: &Note, prefix_at: Option<i64>) -> bool {
    prefix_at.is_some_and(|at| note.order >= at && note.order < i64::MAX / 8)
}

/// Whether the quoted request of a split turn already contains the note. "Yes" needs its question.
fn is_quoted(note: &Note, request: &str) -> bool {
    let text = note.text.split_once(ANSWER).map_or(&*note.text, |(_, answer)| answer);
    !matches!(note.field, Field::Constraints | Field::Done)
        && !is_assent(text)
        && sentences(text).iter().all(|sentence| request.contains(&normal(sentence)))
}

/// Returns the quoted request of a split turn, and its tokens.
fn turn_prefix(job: &ExtractInput<'_>) -> Option<(TurnPrefix, Tokens)> {
    job.turn_start.filter(|&start| start < job.messages.len())?;
    let heading = job.counter.text("No prior history.")
        + job.counter.text(crate::TURN_CONTEXT_HEADING)
        + job
            .counter
            .text("## Original Request\n\n\n## Early Progress\n\n\n## Context for Suffix\n");
    let share = percent(job.budget, TURN_SHARE);
    let quote = percent(share, REQUEST_SHARE);
    if heading + Tokens(16) > share {
        return None;
    }
    let mut left = quote - heading;
    let mut parts: Vec<Vec<String>> = Vec::new();
    // The newest message matters most.
    for (id, text) in requests(job).into_iter().rev() {
        let lines = quoted(&text, &id, left, job.counter);
        if lines.is_empty() {
            break;
        }
        left -= lines.iter().map(|line| job.counter.text(&format!("> {line}\n"))).sum();
        parts.push(lines);
    }
    parts.reverse();
    let original_request = parts.join(&String::new());
    let turn = TurnPrefix { original_request, ..TurnPrefix::default() };
    Some((turn, heading + (quote - heading - left)))
}

/// Quotes a text as far as it fits: if not whole, two thirds of the budget are its beginning.
fn quoted(text: &str, id: &EntryId, room: Tokens, counter: &Counter) -> Vec<String> {
    let cite = format!(" [e:{id}]");
    let clean = without_marks(text).replace(|c: char| c.is_control() && !"\t\n".contains(c), "");
    let quote = format!("> {}", clean.trim_end().replace('\n', "\n> "));
    let room = room - counter.text(&cite);
    let cut = counter.truncate_middle_words(&quote, "> …", room);
    let lines =
        cut.lines().map(|line| line.strip_prefix('>').unwrap_or(line).trim_start_matches(' '));
    let mut lines: Vec<String> = lines.map(str::to_owned).collect();
    if let Some(last) = lines.last_mut() {
        last.push_str(&cite);
    }
    lines
}

/// For a budget that does not even fit a heading: the beginning of the latest request.
fn goal_alone(job: &ExtractInput<'_>, turns: &[Turn]) -> String {
    let latest = turns.iter().rev().find(|turn| turn.asked_at.is_some() && !turn.is_assent);
    let ask = latest.or_else(|| turns.iter().rev().find(|turn| turn.asked_at.is_some()));
    let ask = ask.map(|turn| collapsed(&turn.ask));
    let previous = || job.previous.map(|previous| collapsed(&previous.text));
    let text = without_marks(&ask.or_else(previous).unwrap_or_default());
    let widths = (0..12).map(|n| (job.budget.0 as usize).saturating_mul(4).min(600) >> n);
    let cuts = widths.map(|width| clip_to_width(&text, width));
    cuts.into_iter().find(|cut| job.counter.text(cut) <= job.budget).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_task_in_several_states_the_newest_stays() {
        let task =
            |field, at| Note::new(field, "Run tests and lint".to_owned(), &"1".into(), 0.6, at);
        let notes = vec![task(Field::Done, 3), task(Field::NextSteps, 9), task(Field::Goal, 1)];
        let left: Vec<Field> = distinct(notes).into_iter().map(|note| note.field).collect();
        assert_eq!(left, [Field::NextSteps]);
    }

    #[test]
    fn the_words_of_the_user_stay_and_their_echo_goes() {
        let note = |text: &str, is_user| {
            let note = Note::new(Field::CriticalContext, text.to_owned(), &"1".into(), 0.6, 1);
            Note { is_user, ..note }
        };
        let echo = "Noted: my cat is called Ada";
        let notes = vec![note(echo, false), note("my cat is called Ada", true)];
        let left = without_repetitions(notes);
        assert_eq!(
            left.iter().map(|note| &*note.text).collect::<Vec<_>>(),
            ["my cat is called Ada"]
        );
        let about = "As my cat is called Ada, the fixture of the test is called Babbage instead.";
        let notes = vec![note(about, false), note("my cat is called Ada", true)];
        assert_eq!(without_repetitions(notes).len(), 2);
    }
}
