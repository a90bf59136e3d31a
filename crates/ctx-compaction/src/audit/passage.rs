//! Whether a passage is kept, verbatim or nearly.

use std::cell::LazyCell;

use ctx_core::text::Slice;
use ctx_text::{Gist, NormalForm, gist, normal_form, spans};

use super::sheet::{FoundFact, Sheet};

/// The percentage of a passage's content words that one line must contain; of three or fewer, all.
const ENOUGH: usize = 70;
const ALL_OF: usize = 3;

/// The length of a passage's opening in characters; it extends to the end of the last word.
const OPENING: usize = 24;

impl Sheet<'_> {
    /// Finds the line that keeps a passage.
    pub(super) fn passage(&self, passage: &str) -> Option<FoundFact> {
        let exact = self.exactly(passage).map(|line| FoundFact { line, is_exact: true });
        exact.or_else(|| self.nearly(passage).map(|line| FoundFact { line, is_exact: false }))
    }

    fn exactly(&self, passage: &str) -> Option<usize> {
        let mut wanted = String::with_capacity(passage.len());
        collapse(passage, &mut wanted);
        let wanted = wanted.trim();
        if wanted.is_empty() {
            return Some(0);
        }
        let found = memchr::memmem::find_iter(self.collapsed.as_bytes(), wanted.as_bytes());
        let at = found.take(16).find(|&at| begins_clause(self.collapsed.slice(..at)))?;
        Some(self.collapsed_starts.partition_point(|&start| start <= at).saturating_sub(1))
    }

    fn nearly(&self, passage: &str) -> Option<usize> {
        let own = gist(passage);
        let total = own.words.len();
        if total == 0 {
            return None;
        }
        let mut counts = vec![0; self.lines.len()];
        for &line in own.words.iter().filter_map(|word| self.sayers.get(word)).flatten() {
            counts[line as usize] += 1;
        }
        let enough = |count: usize| {
            if total <= ALL_OF { count == total } else { count * 100 >= total * ENOUGH }
        };
        let wanted = LazyCell::new(|| identifiers(passage));
        let opening = LazyCell::new(|| gist(opening(passage)));
        let mut close = self.lines.iter().zip(counts).enumerate();
        let found = close.find(|(_, (line, count))| {
            let says_head = || opening.shared(&line.gist) * 2 > opening.words.len();
            enough(*count)
                && agrees(&own, &line.gist)
                && wanted.iter().all(|one| line.forms.binary_search(one).is_ok())
                && (opening.words.is_empty() || says_head())
        });
        found.map(|(at, _)| at)
    }
}

/// Returns the opening words of a passage. A line that drops them says something else.
fn opening(passage: &str) -> &str {
    let from = ctx_core::text::head_chars(passage, OPENING).len();
    let rest = passage.slice(from..);
    let end = rest.find(char::is_whitespace).map_or(passage.len(), |at| from + at);
    // Chinese has no spaces between words.
    let end = if end - from > OPENING { from } else { end };
    passage.slice(..end)
}

/// Whether a line negates what the passage negates, and nothing that the passage affirms.
fn agrees(passage: &Gist, line: &Gist) -> bool {
    passage
        .words
        .iter()
        .all(|&word| if passage.negates(word) { line.negates(word) } else { !line.negates(word) })
}

fn identifiers(text: &str) -> Vec<NormalForm> {
    spans(text).iter().map(|span| normal_form(span.kind, span.text)).collect()
}

/// Whether no word before can invert the meaning: the words open a line, a clause or a quotation.
/// "do not touch it" does not keep "touch it".
fn begins_clause(before: &str) -> bool {
    let before = before.trim_end_matches([' ', '"', '\'', '`', '*', '_', '“', '「']);
    before.chars().next_back().is_none_or(|c| !c.is_alphanumeric())
}

/// Appends a line with each run of white space as one space, and a space at its end.
pub(super) fn collapse(line: &str, out: &mut String) {
    for word in line.split_whitespace() {
        out.push_str(word);
        out.push(' ');
    }
}

#[cfg(test)]
mod tests {
    use crate::find_passage;

    #[test]
    fn a_passage_is_kept_by_its_words_and_lost_with_its_negation() {
        for (passage, line, kept) in [
            ("Never touch src/main.rs.", "- Never touch  src/main.rs. [e:1]", true),
            ("Do not touch src/main.rs", "- src/main.rs must not be touched", true),
            ("Do not touch src/main.rs", "- touch src/main.rs", false),
            ("touch src/main.rs", "- do not touch src/main.rs", false),
            ("Never touch src/main.rs", "- Never touch src/lib.rs", false),
            ("Always use pnpm, never npm", "- Always use npm, never pnpm", false),
            ("Always use pnpm, never npm", "- The user always wants pnpm and never npm", true),
            ("use pnpm instead of npm", "- use npm instead of pnpm", false),
            ("不要重启生产服务", "- 用户要求不要重启生产服务", true),
            ("不要重启生产服务", "- 重启生产服务", false),
            (
                "We chose SQLite because it needs no server",
                "- Chose SQLite: it needs no server",
                true,
            ),
            (
                "We chose SQLite because it needs no server",
                "- Chose SQLite: it needs a server",
                false,
            ),
            (
                "Keep the response time under 200 ms at all times",
                "- keep response time under 200ms at all times",
                true,
            ),
            (
                "Keep the response time under 200 ms at all times",
                "- keep response time under 300ms at all times",
                false,
            ),
            (
                "Give the client three attempts of 12 lines, and log each failed attempt of the client",
                "- Give the client attempts of 12 lines and log each failed attempt",
                true,
            ),
            (
                "Give the client three attempts of 12 lines, and log each failed attempt of the client",
                "- Give the client three attempts, and log each failed attempt of the client in lines",
                false,
            ),
            (
                "Rename the fetch command, then log each failed attempt of the client to the journal",
                "- Log each failed attempt of the client to the journal",
                false,
            ),
            ("Please add dark mode to the settings page", "- dark mode was discussed", false),
        ] {
            let found = find_passage(&format!("## Goal\n{line}\n"), &[passage.to_owned()]);
            assert_eq!(found.is_some(), kept, "{passage} / {line}");
            assert!(found.is_none_or(|found| found.line == 1), "{found:?}");
        }
    }

    #[test]
    fn one_line_must_hold_it() {
        let two = "- Never touch\n- the file src/main.rs here";
        assert_eq!(find_passage(two, &["Do not touch the file src/main.rs".to_owned()]), None);
    }
}
