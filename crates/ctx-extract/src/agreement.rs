//! The user's answers to questions of the agent.

use super::ExtractInput;
use super::note::Note;
use super::prose::{Mark, Passage, passages};
use super::talk::{NARROW, WIDE};
use super::turns::Turn;
use crate::Field;
use ctx_facts::CitedMessage;
use ctx_text::Signal;
use ctx_text::WordList;
use ctx_text::sentences;
use ctx_text::{clip_to_width, width};

/// Builds a note from a short answer of the user to the agent: the question, the option, and the
/// answer.
pub(super) fn agreement(
    job: &ExtractInput<'_>,
    turn: &Turn,
    previous: Option<&Turn>,
) -> Option<Note> {
    let at = turn.asked_at?;
    let answer = job.messages.get(at)?;
    let asked_at = previous?.answer_at?;
    let asked = job.messages.get(asked_at)?;
    let reply = turn.ask.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut picks = picks(&reply);
    if picks.is_empty() {
        picks.extend(ordinal(&reply));
    }
    if width(&reply) > 600 || !(turn.is_assent || !picks.is_empty() || starts_agreeing(&reply)) {
        return None;
    }
    let text = asked.message.plain_text();
    let passages = passages(&text);
    let lines = text.lines().rev().flat_map(|line| sentences(line.trim()));
    let question = lines.take(60).find(|s| Signal::of(s).question);
    let mut options: Vec<&Passage<'_>> =
        passages.iter().filter(|p| picks.iter().any(|pick| is_option(p, pick))).collect();
    if options.is_empty() && !picks.is_empty() {
        if let Some(row) = picks.iter().find_map(|pick| table_row(&text, pick)) {
            return Some(note(question, &[row.as_str()], &reply, turn, at, asked, answer));
        }
        let listed: Vec<&Passage<'_>> = passages.iter().filter(|p| p.mark == Mark::Item).collect();
        let nth =
            picks.iter().filter_map(|pick| listed.get(pick.parse::<usize>().ok()?.checked_sub(1)?));
        options = nth.copied().collect();
    }
    if options.is_empty() {
        // A question such as `Would you like me to:`, followed by a list.
        let open = question.filter(|question| question.ends_with([':', '：']));
        options = passages.iter().filter(|p| open.is_some() && p.lead == open).collect();
    }
    if question.is_none() && options.is_empty() {
        return None;
    }
    let options: Vec<&str> = options.iter().take(4).map(|option| &*option.text).collect();
    Some(note(question, &options, &reply, turn, at, asked, answer))
}

fn note(
    question: Option<&str>,
    options: &[&str],
    reply: &str,
    turn: &Turn,
    at: usize,
    asked: &CitedMessage,
    answer: &CitedMessage,
) -> Note {
    let mut words = clip_to_width(question.unwrap_or_default(), NARROW);
    for option in options {
        if !words.is_empty() {
            words.push_str(if words.ends_with([':', '：']) { " " } else { " / " });
        }
        words.push_str(&clip_to_width(option, 120));
    }
    words.push_str(" → user: ");
    words.push_str(&clip_to_width(reply, WIDE));
    let weight = if turn.is_assent { 0.6 } else { 0.9 };
    let mut note = Note::new(Field::Decisions, words, &answer.id, weight, at);
    note.cites.insert(0, asked.id.clone());
    note
}

/// Finds the row of a Markdown table that `pick` names: by its first cell, else by its position.
fn table_row(text: &str, pick: &str) -> Option<String> {
    let rows = text.lines().map(str::trim).filter(|line| line.starts_with('|')).take(60);
    let rows: Vec<Vec<&str>> = rows
        .map(|row| {
            row.trim_matches('|').split('|').map(|cell| cell.trim().trim_matches('*')).collect()
        })
        .collect();
    let rule = rows
        .iter()
        .position(|row| row.iter().all(|cell| cell.chars().all(|c| matches!(c, '-' | ':'))))?;
    let rows = rows.get(rule + 1..)?;
    let named = rows.iter().find(|row| {
        let name = row.first().copied().unwrap_or_default();
        let name = ["Option ", "option ", "方案", "选项"]
            .iter()
            .find_map(|lead| name.strip_prefix(lead))
            .unwrap_or(name);
        let rest = name.trim().strip_prefix(pick);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ')', ':', ' ']))
    });
    let place = || rows.get(pick.parse::<usize>().ok()?.checked_sub(1)?);
    Some(named.or_else(place)?.join(" | "))
}

/// Parses the number or letter of an option in "The second one", "第二个", "方案2", "选B".
fn ordinal(reply: &str) -> Option<String> {
    static ORDINALS: WordList = WordList::new("assent.ordinals");
    static BEFORE: WordList = WordList::new("assent.before_ordinal");
    let head: String = reply.chars().take(40).collect::<String>().to_lowercase();
    let mut words = head.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let word = words.find(|word| !BEFORE.contains(word));
    let english = word.and_then(|word| {
        ORDINALS.iter().position(|names| names.split(' ').any(|name| name == word))
    });
    // "First, fix the tests" begins a list of tasks.
    let next = words.next();
    let english = english
        .filter(|_| next.is_none_or(|next| matches!(next, "one" | "option" | "please" | "is")));
    if let Some(place) = english {
        return Some((place + 1).to_string());
    }
    let (_, rest) = ["第", "方案", "选项", "选"]
        .iter()
        .find_map(|lead| head.split_once(lead))
        .filter(|(before, _)| before.chars().count() < 6)?;
    let c = rest.chars().next()?;
    let number = "一二三四五六".chars().position(|n| n == c).map(|n| (n + 1).to_string());
    number.or_else(|| c.is_ascii_alphanumeric().then(|| c.to_ascii_uppercase().to_string()))
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

/// Whether a passage is the option with this name.
fn is_option(passage: &Passage<'_>, pick: &str) -> bool {
    let words = passage.text.trim_start_matches(['*', '(', '#', ' ']);
    let named = words.strip_prefix("Option ").unwrap_or(words);
    let after = named.strip_prefix(pick);
    after.is_some_and(|rest| rest.starts_with(['.', ')', ':', '*'])) || passage.number == Some(pick)
}
