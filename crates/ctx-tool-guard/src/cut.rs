//! Cutting a text to a cap, notice included.

use ctx_core::text::{head, tail};
use ctx_core::{Chars, Counter, Tokens};

use crate::limits::Single;
use crate::notice::MIDDLE_CONTENT_OMITTED_NOTICE;

/// The end gets this share of what is shown, where it matters, but not more than
/// [`TAIL_MAX`].
const TAIL_SHARE_PERCENT: u32 = 30;
const TAIL_MAX: u32 = 4_000;

/// How far from the end to look for what makes it matter.
const LOOK_AT: Chars = Chars(2_000);

/// Words that make an end worth keeping: how it failed, or what came out.
const TELLING: &[&str] = &[
    "error",
    "exception",
    "fail",
    "fatal",
    "panic",
    "traceback",
    "exit code",
    "exit status",
    "errno",
    "total",
    "summary",
    "result",
    "complete",
    "finished",
    "done",
    "passed",
];

/// Which parts of a text are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    Beginning,
    BothEnds,
}

/// Whether the end of a tool's output matters: it tells of an error, it closes JSON, or it sums up.
pub(crate) fn shown_of(text: &str, is_error: bool) -> Shown {
    let end = tail(text, LOOK_AT);
    let closes_json = end.trim_end().ends_with(['}', ']']);
    let tells = || {
        let end = end.to_ascii_lowercase();
        TELLING.iter().any(|word| end.contains(word))
    };
    if is_error || closes_json || tells() { Shown::BothEnds } else { Shown::Beginning }
}

/// Cuts `text` so that what is shown of it, `suffix` included, is inside `cap`. The suffix comes on
/// a line of its own at the end; where nothing else fits, it is all there is.
pub(crate) fn cut(
    text: &str,
    cap: Single,
    shown: Shown,
    suffix: &str,
    counter: &Counter,
) -> String {
    let mut room = cap.chars.0.min(Chars::of(text).0).saturating_sub(Chars::of(suffix).0 + 1);
    let mut least_step = 64;
    while room > 0 {
        let form = assemble(text, room, shown, suffix);
        let tokens = counter.text(&form);
        if tokens <= cap.tokens {
            return form;
        }
        // The next guess goes by the text's own density, and soon down by an eighth at least, so
        // that the work is a geometric series whatever the text.
        let over = (tokens - cap.tokens).get();
        let by_density = (over * u64::from(Chars::of(&form).0)).div_ceil(tokens.get().max(1));
        let step = u32::try_from(by_density).unwrap_or(u32::MAX).max(room.div_ceil(least_step));
        room = room.saturating_sub(step);
        least_step = (least_step / 2).max(8);
    }
    suffix.to_owned()
}

fn assemble(text: &str, room: u32, shown: Shown, suffix: &str) -> String {
    let last = match shown {
        Shown::Beginning => 0,
        Shown::BothEnds => (room / 100 * TAIL_SHARE_PERCENT).min(TAIL_MAX),
    };
    let between = Chars::of(MIDDLE_CONTENT_OMITTED_NOTICE).0 + 2;
    match room.checked_sub(last + between) {
        Some(first) if last > 0 && first > 0 => {
            let first = snap_end(head(text, Chars(first)));
            let last = snap_start(tail(text, Chars(last)));
            format!("{first}\n{MIDDLE_CONTENT_OMITTED_NOTICE}\n{last}\n{suffix}")
        }
        _ => format!("{}\n{suffix}", snap_end(head(text, Chars(room)))),
    }
}

/// Moves the end of a piece back to a line break in its last fifth.
fn snap_end(piece: &str) -> &str {
    match piece.rfind('\n') {
        Some(at) if at > 0 && piece.len() - at <= near(piece) => &piece[..at],
        _ => piece,
    }
}

/// Moves the start of a piece to behind a line break in its first fifth.
fn snap_start(piece: &str) -> &str {
    match piece.find('\n') {
        Some(at) if at < near(piece) => &piece[at + 1..],
        _ => piece,
    }
}

fn near(piece: &str) -> usize {
    piece.len() / 5
}

/// A cap on text alone.
pub(crate) fn chars_only(chars: Chars) -> Single {
    Single { chars, tokens: Tokens(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use ctx_core::CounterKind;

    use super::*;

    #[test]
    fn the_end_matters_when_it_tells_closes_or_sums_up() {
        let filler = "x ".repeat(4_000);
        assert_eq!(shown_of(&filler, false), Shown::Beginning);
        assert_eq!(shown_of(&filler, true), Shown::BothEnds);
        for end in ["Error: no such file", "  ]}\n", "test result: 3 passed", "EXIT CODE 1"] {
            assert_eq!(shown_of(&format!("{filler}{end}"), false), Shown::BothEnds, "{end}");
        }
        assert_eq!(shown_of(&format!("error{filler}"), false), Shown::Beginning);
    }

    #[test]
    fn both_ends_are_shown_with_at_most_4000_characters_of_the_last() {
        let text = format!("{}{}", "a".repeat(90_000), "z".repeat(90_000));
        let form =
            cut(&text, chars_only(Chars(64_000)), Shown::BothEnds, "[cut]", &Counter::default());
        assert_eq!(form.matches('z').count(), 4_000);
        assert_eq!(Chars::of(&form), Chars(64_000));
        assert!(form.starts_with('a') && form.ends_with("z\n[cut]"));
    }

    #[test]
    fn a_dense_text_is_held_to_its_tokens() {
        let counter = Counter::new(CounterKind::Cjk);
        let text = format!("{}{}", "a".repeat(50_000), "窗".repeat(50_000));
        let cap = Single { chars: Chars(16_000), tokens: Tokens(1_000) };
        for shown in [Shown::Beginning, Shown::BothEnds] {
            let form = cut(&text, cap, shown, "[cut]", &counter);
            assert!(counter.text(&form) <= Tokens(1_000) && form.ends_with("\n[cut]"));
            assert!(counter.text(&form) > Tokens(500), "{}", counter.text(&form));
        }
    }

    #[test]
    fn cuts_are_at_line_breaks_where_one_is_near() {
        let text = "0123456789\n".repeat(200);
        let form =
            cut(&text, chars_only(Chars(500)), Shown::Beginning, "[cut]", &Counter::default());
        assert!(form.ends_with("0123456789\n[cut]"), "{form}");
    }
}
