//! The user's answers to questions of the agent.

use ctx_core::EntryId;

use super::ExtractInput;
use super::note::Note;
use super::prose::{Mark, Passage, name_of, passages};
use super::talk::{NARROW, WIDE};
use super::turns::Turn;
use crate::Field;
use ctx_text::{Signal, WordList, clip_to_width, sentences, width};

/// Words of questions that propose something: "should i", "would you like".
static PROPOSALS: WordList = WordList::new("assent.proposals");

/// What stands between a question and the answer of the user.
pub(super) const ANSWER: &str = " → user: ";

/// Builds a note from a short answer of the user to the agent: the question, the option, and the
/// answer.
pub(super) fn agreement(
    job: &ExtractInput<'_>,
    turn: &Turn,
    previous: Option<&Turn>,
) -> Option<Note> {
    let at = turn.asked_at?;
    let answer = job.messages.get(at).filter(|answer| !is_superseded(job, &answer.id))?;
    let asked = job.messages.get(previous?.answer_at?)?;
    let reply = turn.ask.split_whitespace().collect::<Vec<_>>().join(" ");
    let picks = picks(&reply);
    if width(&reply) > WIDE || !(turn.is_assent || !picks.is_empty() || starts_agreeing(&reply)) {
        return None;
    }
    let text = asked.message.plain_text();
    let passages = passages(&text);
    let lines = text.lines().rev().flat_map(|line| sentences(line.trim()));
    let question = lines.take(60).find(|s| Signal::of(s).question);
    let mut options = chosen(&text, &passages, &picks);
    if options.is_empty() {
        // A question such as `Would you like me to:`, followed by a list.
        let open = question.filter(|question| question.ends_with([':', '：']));
        let listed = passages.iter().filter(|p| open.is_some() && p.lead == open);
        options = listed.map(|p| p.text).collect();
    }
    if question.is_none() && options.is_empty() {
        return None;
    }
    let has_options = !options.is_empty();
    let lower = question.unwrap_or_default().to_lowercase();
    let proposes = PROPOSALS.iter().any(|words| lower.contains(words));
    let mut words = clip_to_width(question.unwrap_or_default(), NARROW);
    for option in options.into_iter().take(4) {
        if !words.is_empty() {
            words.push_str(if words.ends_with([':', '：']) { " " } else { " / " });
        }
        words.push_str(&clip_to_width(option.trim_matches(['|', ' ']), 120));
    }
    words.push_str(ANSWER);
    words.push_str(&reply);
    let weight = if turn.is_assent { 0.6 } else { 0.9 };
    // "Do you know if it ran? yes" decides nothing.
    let field = if has_options || proposes { Field::Decisions } else { Field::CriticalContext };
    let mut note = Note::new(field, words, &answer.id, weight, at);
    note.cites.insert(0, asked.id.clone());
    Some(note)
}

/// Whether a later statement replaced or withdrew something in a message.
pub(super) fn is_superseded(job: &ExtractInput<'_>, id: &EntryId) -> bool {
    job.facts.superseded.iter().any(|old| old.fact.entry == *id)
}

/// Returns the options that were picked: by name, else by position.
fn chosen<'t>(text: &'t str, passages: &'t [Passage<'_>], picks: &[String]) -> Vec<&'t str> {
    let listed = passages.iter().filter_map(|passage| {
        let number = passage.number.map(str::to_owned);
        let name = number.or_else(|| name_of(passage.text));
        (name.is_some() || passage.mark == Mark::Item).then_some((name, passage.text))
    });
    let rows = text.lines().filter(|line| line.starts_with('|'));
    let rows = rows.filter_map(|row| Some((Some(name_of(row)?), row)));
    let options: Vec<(Option<String>, &str)> = listed.chain(rows).collect();
    let find = |pick: &String| {
        let named = options.iter().find(|(name, _)| name.as_ref() == Some(pick));
        let nth = || options.get(pick.parse::<usize>().ok()?.checked_sub(1)?);
        named.or_else(nth).map(|(_, option)| *option)
    };
    picks.iter().filter_map(find).collect()
}

/// Returns options named at a reply's start: `A.`, `1`, `#1`, `Implement 1,2 and 3`, `I think B`.
pub(super) fn picks(reply: &str) -> Vec<String> {
    static BEFORE: WordList = WordList::new("assent.before_option");
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
    static STARTS: WordList = WordList::new("assent.starts");
    let lower = reply.chars().take(40).collect::<String>().to_lowercase();
    STARTS.iter().any(|start| {
        lower.strip_prefix(start).is_some_and(|rest| {
            !start.is_ascii() || !rest.starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    })
}
