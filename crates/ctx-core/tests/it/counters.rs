//! Counters on text designed to be slow to count or to be counted wrong.

use std::time::{Duration, Instant};

use ctx_core::{Block, Chars, ContentHash, Counter, CounterKind, Message, Role, Tokens};
use proptest::prelude::*;

use crate::session::{call, config, message, result, text};

/// Returns texts of 64 KB for which a naive merge table takes quadratic time.
fn pathological() -> Vec<(&'static str, String)> {
    let much = |unit: &str| unit.repeat((1 << 16) / unit.len());
    vec![
        ("one letter", much("a")),
        ("capitals", much("A")),
        ("spaces", much(" ")),
        ("line breaks", much("\n")),
        ("tabs", much("\t")),
        ("spaces before a letter", much(" ") + "a"),
        ("digits", much("7")),
        ("dashes", much("-")),
        ("emoji", much("😀")),
        ("joined emoji", much("👩‍👩‍👧‍👦")),
        ("combining marks", much("e\u{301}\u{301}\u{301}")),
        ("Chinese", much("字")),
        ("Thai", much("กำลัง")),
        ("apostrophes", much("'s")),
        ("nulls", much("\0")),
        ("base64", much("QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo0")),
        ("right to left", much("\u{202e}שלום ")),
    ]
}

#[test]
fn no_text_takes_long_to_count() {
    for &kind in CounterKind::ALL {
        let counter = Counter::new(kind);
        for (name, text) in pathological() {
            let start = Instant::now();
            let tokens = counter.text(&text);
            assert!(tokens > Tokens::ZERO && tokens.get() <= text.len() as u64);
            let cut = counter.truncate_middle(&text, "[cut]", Tokens(2_000));
            assert!(counter.text(&cut) <= Tokens(2_000), "{kind}, {name}");
            assert!(
                start.elapsed() < Duration::from_secs(20),
                "{kind}, {name}: {:?}",
                start.elapsed()
            );
        }
    }
}

/// Stored forms are keyed by this hash: if it changed, every stored form would be lost.
#[test]
fn content_hashes_never_change() {
    let message = Message::new(
        Role::Assistant,
        vec![Block::text("é"), call("c1", "{}"), result("c1", vec![Block::text("ok")])],
    );
    assert_eq!(ContentHash::of(&message).to_string(), "ce222bbf1b5dd4838e0d169d343e6be0");
    assert_eq!(
        ContentHash::of(&Message::text(Role::User, "hello")).to_string(),
        "629c81816e09de5696365a7eab543e11"
    );
}

proptest! {
    #![proptest_config(config(32))]

    #[test]
    fn a_cut_text_fits_and_is_made_of_both_ends(text in text(), max in 0..3_000u32) {
        for &kind in CounterKind::ALL {
            let counter = Counter::new(kind);
            let cut = counter.truncate_middle(&text, "[cut]", Tokens(max));
            prop_assert!(counter.text(&cut) <= Tokens(max));
            match cut.split_once("\n[cut]\n") {
                Some((start, end)) => prop_assert!(text.starts_with(start) && text.ends_with(end)),
                None => prop_assert!(text.starts_with(&cut)),
            }
            prop_assert_eq!(counter.truncate_middle(&cut, "[cut]", Tokens(max)), cut);
        }
    }

    #[test]
    fn characters_are_counted_as_javascript_counts(text in text()) {
        prop_assert_eq!(Chars::of(&text).0 as usize, text.encode_utf16().count());
        let json = serde_json::to_string(&text).unwrap();
        let printed = ctx_core::RawJson::from_text(&*json).stringified_chars();
        prop_assert_eq!(printed as usize, json.encode_utf16().count());
    }

    #[test]
    fn a_longer_message_never_has_fewer_tokens(message in message()) {
        for &kind in CounterKind::ALL {
            let counter = Counter::new(kind);
            let mut part = message.clone();
            while part.blocks.pop().is_some() {
                prop_assert!(counter.message(&part) <= counter.message(&message));
            }
        }
    }

    #[test]
    fn a_message_survives_json(message in message()) {
        let json = serde_json::to_string(&message).unwrap();
        prop_assert_eq!(serde_json::from_str::<Message>(&json).unwrap(), message);
    }
}
