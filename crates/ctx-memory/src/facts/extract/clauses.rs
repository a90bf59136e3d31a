//! Splits text into sentences, and sentences into clauses that state or ask.

use ctx_core::text::Slice;
use ctx_text::WordList;

/// A clause of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Clause<'a> {
    pub(super) text: &'a str,
    /// Whether it asks.
    pub(super) asks: bool,
}

/// Splits a line into sentences.
pub(super) fn sentences(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let (mut start, mut word, mut ticks) = (0, 0, false);
    let mut chars = line.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|&(_, c)| c);
        let end = at + c.len_utf8();
        if c == '`' {
            ticks = !ticks;
        }
        if c.is_whitespace() {
            word = end;
        }
        let ends = match c {
            '。' | '！' | '？' | '；' => true,
            '.' | '!' | '?' => {
                let closed = next.is_none_or(|c| c.is_whitespace() || matches!(c, '*' | '"' | ')'));
                closed && !(c == '.' && is_short(line.slice(word..at)))
            }
            _ => false,
        };
        if ends && !ticks {
            out.extend(line.get(start..end));
            start = end;
        }
    }
    out.extend(line.get(start..));
    out.into_iter()
        .map(|piece| piece.trim_start_matches(['*', '"', ')', ' ']).trim())
        .filter(|piece| piece.chars().any(char::is_alphanumeric))
        .collect()
}

/// `e.g.`, `vs.`, initials.
fn is_short(word: &str) -> bool {
    let word = word.trim_start_matches(['(', '"', '*']);
    word.chars().count() <= 1 || ABBREVIATIONS.contains(&word.to_ascii_lowercase().as_str())
}

static ABBREVIATIONS: WordList = WordList::new("clause.abbreviations");

/// Words that start a new clause after a comma.
static OPENERS: WordList = WordList::new("clause.openers");

/// Words that start a question.
static ASKS: WordList = WordList::new("clause.asks");

/// Splits a sentence into clauses, after commas, semicolons and dashes where a new clause starts.
pub(super) fn clauses(sentence: &str) -> Vec<Clause<'_>> {
    let mut cuts = vec![0];
    let mut ticks = false;
    let mut depth = 0i32;
    for (at, c) in sentence.char_indices() {
        match c {
            '`' => ticks = !ticks,
            '(' => depth += 1,
            ')' => depth -= i32::from(depth > 0),
            ',' | ';' | '—' | '–' | '-' | '，' if !ticks && depth == 0 => {
                let rest = sentence.slice(at + c.len_utf8()..);
                let spaced = rest.starts_with(' ');
                let dash =
                    c == '-' && !(spaced && sentence.get(..at).is_some_and(|s| s.ends_with(' ')));
                if (c == '，' && !gives_reason(rest)) || (spaced && !dash && opens(rest)) {
                    cuts.push(at + c.len_utf8());
                }
            }
            _ => {}
        }
    }
    cuts.push(sentence.len());
    let is_question = sentence.trim_end_matches(['*', '"', ')', ' ']).ends_with(['?', '？']);
    let last = cuts.len() - 2;
    let mut asking = false;
    cuts.windows(2)
        .enumerate()
        .filter_map(|(n, cut)| {
            let text = sentence.get(*cut.first()?..*cut.last()?)?;
            let text = text.trim().trim_end_matches([',', ';', '—', '–', '，']).trim_end();
            let text = text.strip_suffix(" -").unwrap_or(text);
            let first = first_word(without_joint(text));
            asking |= is_question && (n == last || ASKS.contains(&first.as_str()));
            Some(Clause { text: without_joint(text), asks: asking })
        })
        .filter(|clause| !clause.text.is_empty())
        .collect()
}

/// Whether the rest is a reason, which stays with its clause.
fn gives_reason(rest: &str) -> bool {
    static REASONS: WordList = WordList::new("clause.reasons");
    REASONS.iter().any(|word| rest.starts_with(word))
}

fn opens(rest: &str) -> bool {
    OPENERS.contains(&first_word(without_joint(rest.trim_start())).as_str())
}

/// Removes the conjunction at the beginning of a clause.
fn without_joint(clause: &str) -> &str {
    static CONJUNCTIONS: WordList = WordList::new("clause.conjunctions");
    CONJUNCTIONS.iter().fold(clause.trim(), |clause, joint| match clause.get(..joint.len()) {
        Some(start) if start.eq_ignore_ascii_case(joint) => {
            clause.get(joint.len()..).unwrap_or(clause).trim_start()
        }
        _ => clause,
    })
}

fn first_word(text: &str) -> String {
    let word = text.split(|c: char| c.is_whitespace() || c == ',').next().unwrap_or_default();
    word.chars()
        .take(12)
        .flat_map(char::to_lowercase)
        .map(|c| if c == '’' { '\'' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_keep_versions_paths_and_abbreviations() {
        assert_eq!(
            sentences("We use Flask 2.3.1 in src/app.py, e.g. for login. It runs! 端口是80。好。"),
            ["We use Flask 2.3.1 in src/app.py, e.g. for login.", "It runs!", "端口是80。", "好。"]
        );
    }

    #[test]
    fn what_is_stated_is_told_from_what_is_asked() {
        let sentence = "I've chosen SQLite as the database, and I want port 5000, can you help, \
                        like with tests?";
        let found: Vec<_> = clauses(sentence).into_iter().map(|c| (c.text, c.asks)).collect();
        assert_eq!(
            found,
            [
                ("I've chosen SQLite as the database", false),
                ("I want port 5000", false),
                ("can you help", true),
                ("like with tests?", true),
            ]
        );
        assert!(clauses("Should we use Redis, or Memcached?")[0].asks);
        assert_eq!(clauses("We use Redis, Kafka and Flink.").len(), 1);
    }
}
