//! Each promised shape occurs among many seeds; the same seed always gives the same transcript.

use std::collections::BTreeSet;

use ctx_core::{Block, Counter, CounterKind, Role, check_pairs};

use super::*;

fn tokens(transcript: &Transcript) -> u64 {
    let counter = Counter::new(CounterKind::Chars4);
    transcript.messages.iter().map(|message| counter.message(message).get()).sum()
}

fn features(transcript: &Transcript) -> BTreeSet<&'static str> {
    let messages = &transcript.messages;
    let mut found = BTreeSet::new();
    let mut add = |name, holds: bool| {
        if holds {
            found.insert(name);
        }
    };
    let calls: Vec<_> = messages.iter().flat_map(Message::tool_calls).map(|c| &c.id).collect();
    let results: Vec<_> = messages.iter().flat_map(Message::tool_results).collect();
    let answered: BTreeSet<_> = results.iter().map(|r| &r.call_id).collect();
    let distinct: BTreeSet<_> = calls.iter().collect();
    let text = format!("{:?}", messages.iter().map(Message::plain_text).collect::<Vec<_>>());
    add("parallel calls", messages.iter().any(|m| m.tool_calls().count() > 1));
    add("ids that come again", distinct.len() < calls.len());
    add("missing result", distinct.iter().any(|id| !answered.contains(**id)));
    add("orphan", results.iter().any(|r| r.call_id.starts_with("call_of_nobody")));
    add("second result", answered.len() < results.len() && distinct.len() == calls.len());
    add("failed tool", results.iter().any(|r| r.is_error));
    add("empty result", results.iter().any(|r| r.content.is_empty()));
    add("giant result", results.iter().any(|r| r.chars() > 100_000));
    add("pinned", !transcript.pinned.is_empty());
    add("injection", text.contains("Ignore all previous instructions"));
    add("chinese", text.contains('的'));
    add("constraint", text.contains("Never push"));
    add("aborted", messages.iter().any(|m| m.meta.stop_reason.as_deref() == Some("aborted")));
    add("usage", messages.iter().any(|m| m.meta.usage.is_some()));
    add("no times", messages.iter().all(|m| m.meta.timestamp.is_none()));
    add("ends with an ask", messages.last().is_some_and(|m| m.role == Role::User));
    add("ends in calls", messages.last().is_some_and(|m| m.tool_calls().next().is_some()));
    let monologue = messages
        .windows(3)
        .any(|three| three.iter().all(|m| m.role == Role::Assistant && m.plain_text().len() > 200));
    add("monologue", monologue);
    for message in messages {
        let name = match message.role {
            Role::System => "system",
            Role::BashExecution => "bash",
            Role::Custom => "custom",
            Role::CompactionSummary => "compaction summary",
            Role::BranchSummary => "branch summary",
            Role::Other(_) => "unknown role",
            _ => continue,
        };
        found.insert(name);
    }
    for block in messages.iter().flat_map(|message| &message.blocks) {
        let name = match block {
            Block::Thinking { .. } => "thinking",
            Block::Image(_) => "image",
            Block::Opaque { .. } => "unknown block",
            Block::ToolResult(_) => continue,
            Block::Bash(run) if run.exclude_from_context => "excluded command",
            _ => continue,
        };
        found.insert(name);
    }
    found
}

#[test]
fn every_shape_occurs_within_some_hundred_seeds() {
    let mut found = BTreeSet::new();
    for seed in 0..400 {
        found.extend(features(&RandomTranscript::seeded(seed).generate()));
    }
    let late = (0..400).any(|seed| {
        let messages = RandomTranscript::seeded(seed).generate().messages;
        check_pairs(&messages).is_err_and(|why| why.contains("user message is between"))
    });
    assert!(late, "no result comes after the next question");
    let promised = [
        "aborted",
        "bash",
        "branch summary",
        "chinese",
        "compaction summary",
        "constraint",
        "custom",
        "empty result",
        "ends in calls",
        "ends with an ask",
        "excluded command",
        "failed tool",
        "giant result",
        "ids that come again",
        "image",
        "injection",
        "missing result",
        "monologue",
        "no times",
        "orphan",
        "parallel calls",
        "pinned",
        "second result",
        "system",
        "thinking",
        "unknown block",
        "unknown role",
        "usage",
    ];
    let missing: Vec<_> = promised.iter().filter(|name| !found.contains(*name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn the_same_seed_gives_the_same_transcript_and_another_seed_another() {
    for seed in [0, 1, 77, u64::MAX] {
        let of = |seed: u64| RandomTranscript::seeded(seed).generate();
        assert_eq!(of(seed), of(seed));
        assert_ne!(of(seed), of(seed.wrapping_add(1)));
    }
    // Seeds are quoted in bug reports: their transcripts must not change unnoticed.
    let first = RandomTranscript::seeded(1).tokens(Tokens(500)).generate();
    let asks = first.messages.iter().filter(|message| message.role == Role::User);
    let texts: Vec<_> = asks.map(Message::plain_text).collect();
    let expected = [
        "can you rename the module in C:\\Users\\kim\\project\\main.cpp?",
        "请看一下 /etc/nginx/sites-enabled/api.conf 为什么报错",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn sizes_match_the_request_or_range_from_tiny_to_huge() {
    for (seed, wanted) in [(1, 100), (2, 4_000), (3, 50_000), (4, 200_000)] {
        let made = tokens(&RandomTranscript::seeded(seed).tokens(Tokens(wanted)).generate());
        let wanted = u64::from(wanted);
        assert!(made > wanted / 4 && made < wanted * 2 + 8_000, "{wanted}: {made}");
    }
    let drawn: Vec<_> =
        (0..300).map(|seed| tokens(&RandomTranscript::seeded(seed).generate())).collect();
    assert!(drawn.iter().any(|n| *n < 500) && drawn.iter().any(|n| *n > 60_000), "{drawn:?}");
    let mean = drawn.iter().sum::<u64>() / 300;
    assert!(mean < 20_000, "ten thousand of them would take long: {mean}");
}

#[test]
fn a_well_formed_transcript_pairs_all_calls_but_the_last() {
    for seed in 0..300 {
        let mut messages = RandomTranscript::seeded(seed).well_formed().generate().messages;
        for call in messages.iter().flat_map(Message::tool_calls) {
            let parsed = serde_json::from_str::<serde_json::Value>(call.arguments.as_str());
            assert!(parsed.is_ok_and(|value| value.is_object()), "seed {seed} {call:?}");
        }
        let open = check_pairs(&messages).is_err();
        if open && let Some(last) = messages.iter().rposition(|m| m.tool_calls().next().is_some()) {
            let only_results =
                messages.iter().skip(last + 1).all(|m| m.tool_results().next().is_some());
            assert!(only_results, "seed {seed}");
            messages.truncate(last);
        }
        assert_eq!(check_pairs(&messages), Ok(()), "seed {seed}");
    }
}

#[test]
fn a_view_accepts_and_finishes_every_transcript() {
    for seed in 0..200 {
        let transcript = RandomTranscript::seeded(seed).generate();
        let counter = Counter::new(CounterKind::Chars4);
        let ledger = TokenLedger::new(counter, Tokens(16_000), Tokens(2_000));
        let mut view = transcript.view(ledger).unwrap();
        let entries = transcript.entries();
        for node in view.nodes().iter().filter(|node| node.is_live()) {
            let at = entries.iter().position(|entry| entry.id() == node.entry().id()).unwrap();
            let always = matches!(node.role(), Role::System | Role::CompactionSummary);
            let pinned = always || transcript.pinned.contains(&at);
            assert_eq!(node.pinned, pinned, "seed {seed} message {at}");
        }
        view.finish().unwrap();
        let messages = view.messages().unwrap();
        assert_eq!(check_pairs(messages.iter().map(|m| &**m)), Ok(()), "seed {seed}");
    }
}
