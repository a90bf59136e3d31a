//! Truncates a text to a cap, notice included.

use ctx_core::text::{head, tail};
use ctx_core::{Chars, Counter, Tokens};
use ctx_text::WordList;

use crate::limits::ResultLimit;
use crate::notice::MIDDLE_CONTENT_OMITTED_NOTICE;

/// The share of the shown text that comes from the end, where the end matters; at most
/// [`TAIL_MAX`].
const TAIL_SHARE_PERCENT: u32 = 30;
const TAIL_MAX: u32 = 4_000;

/// The length of the end that is searched for errors, closing JSON and summaries.
const LOOK_AT: Chars = Chars(2_000);

/// Words that make an end worth keeping: failures and results.
static TELLING: WordList = WordList::new("output.telling");

/// Which parts of a text are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptParts {
    Beginning,
    BothEnds,
}

/// Decides whether the end of an output matters: it reports an error, closes JSON, or summarises.
pub(crate) fn kept_parts(text: &str, is_error: bool) -> KeptParts {
    let end = tail(text, LOOK_AT);
    let closes_json = end.trim_end().ends_with(['}', ']']);
    let tells = || {
        let end = end.to_ascii_lowercase();
        TELLING.is_in(&end)
    };
    if is_error || closes_json || tells() { KeptParts::BothEnds } else { KeptParts::Beginning }
}

/// Truncates `text` so that it fits `cap` together with `suffix`. The suffix is a separate line at
/// the end; if nothing else fits, it is the whole text.
pub(crate) fn cut(
    text: &str,
    cap: ResultLimit,
    shown: KeptParts,
    suffix: &str,
    counter: &Counter,
) -> String {
    let mut budget = cap.chars.0.min(Chars::of(text).0).saturating_sub(Chars::of(suffix).0 + 1);
    let mut least_step = 64;
    while budget > 0 {
        let form = assemble(text, budget, shown, suffix);
        let tokens = counter.text(&form);
        if tokens <= cap.tokens {
            return form;
        }
        // The next guess uses the text's own density and shrinks by at least an eighth, so that the
        // work is a geometric series for any text.
        let over = (tokens - cap.tokens).get();
        let by_density = (over * u64::from(Chars::of(&form).0)).div_ceil(tokens.get().max(1));
        let step = u32::try_from(by_density).unwrap_or(u32::MAX).max(budget.div_ceil(least_step));
        budget = budget.saturating_sub(step);
        least_step = (least_step / 2).max(8);
    }
    suffix.to_owned()
}

fn assemble(text: &str, budget: u32, shown: KeptParts, suffix: &str) -> String {
    let last = match shown {
        KeptParts::Beginning => 0,
        KeptParts::BothEnds => (budget / 100 * TAIL_SHARE_PERCENT).min(TAIL_MAX),
    };
    let between = Chars::of(MIDDLE_CONTENT_OMITTED_NOTICE).0 + 2;
    match budget.checked_sub(last + between) {
        Some(first) if last > 0 && first > 0 => {
            let first = snap_end(head(text, Chars(first)));
            let last = snap_start(tail(text, Chars(last)));
            format!("{first}\n{MIDDLE_CONTENT_OMITTED_NOTICE}\n{last}\n{suffix}")
        }
        _ => format!("{}\n{suffix}", snap_end(head(text, Chars(budget)))),
    }
}

/// Moves the end of a fragment back to a line break in its last fifth.
fn snap_end(piece: &str) -> &str {
    match piece.rfind('\n') {
        Some(at) if at > 0 && piece.len() - at <= near(piece) => &piece[..at],
        _ => piece,
    }
}

/// Moves the start of a fragment to after a line break in its first fifth.
fn snap_start(piece: &str) -> &str {
    match piece.find('\n') {
        Some(at) if at < near(piece) => &piece[at + 1..],
        _ => piece,
    }
}

fn near(piece: &str) -> usize {
    piece.len() / 5
}

/// Returns a cap on characters alone.
pub(crate) fn chars_only(chars: Chars) -> ResultLimit {
    ResultLimit { chars, tokens: Tokens(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use ctx_core::CounterKind;

    use super::*;

    #[test]
    fn the_end_matters_if_it_reports_an_error_closes_json_or_summarises() {
        let filler = "x ".repeat(4_000);
        assert_eq!(kept_parts(&filler, false), KeptParts::Beginning);
        assert_eq!(kept_parts(&filler, true), KeptParts::BothEnds);
        for end in ["Error: no such file", "  ]}\n", "test result: 3 passed", "EXIT CODE 1"] {
            assert_eq!(kept_parts(&format!("{filler}{end}"), false), KeptParts::BothEnds, "{end}");
        }
        assert_eq!(kept_parts(&format!("error{filler}"), false), KeptParts::Beginning);
    }

    #[test]
    fn both_ends_are_shown_with_at_most_4000_characters_of_the_last() {
        let text = format!("{}{}", "a".repeat(90_000), "z".repeat(90_000));
        let form = cut(
            &text,
            chars_only(Chars(64_000)),
            KeptParts::BothEnds,
            "[cut]",
            &Counter::default(),
        );
        assert_eq!(form.matches('z').count(), 4_000);
        assert_eq!(Chars::of(&form), Chars(64_000));
        assert!(form.starts_with('a') && form.ends_with("z\n[cut]"));
    }

    #[test]
    fn a_dense_text_is_held_to_its_tokens() {
        let counter = Counter::new(CounterKind::Cjk);
        let text = format!("{}{}", "a".repeat(50_000), "窗".repeat(50_000));
        let cap = ResultLimit { chars: Chars(16_000), tokens: Tokens(1_000) };
        for shown in [KeptParts::Beginning, KeptParts::BothEnds] {
            let form = cut(&text, cap, shown, "[cut]", &counter);
            assert!(counter.text(&form) <= Tokens(1_000) && form.ends_with("\n[cut]"));
            assert!(counter.text(&form) > Tokens(500), "{}", counter.text(&form));
        }
    }

    #[test]
    fn cuts_are_at_line_breaks_where_one_is_near() {
        let text = "0123456789\n".repeat(200);
        let form =
            cut(&text, chars_only(Chars(500)), KeptParts::Beginning, "[cut]", &Counter::default());
        assert!(form.ends_with("0123456789\n[cut]"), "{form}");
    }
}
