//! Cuts of a history, by example.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::config_of;
use ctx_compaction::{
    ByWindow, CompactionPlan, Config, History, KeepMessages, PlanLimits, PlanOutcome, plan,
};
use ctx_core::{
    BashRun, Block, CONTEXT_LIMIT_TRUNCATION_NOTICE, ContextView, Counter, Entry, ErrorKind,
    Message, RawJson, Role, TokenLedger, Tokens, ToolCall,
};

/// A session in short form: a letter and a size in tokens for each message. `u`ser, `a`ssistant,
/// `b`ash, `s`ummary; `c` is a tool call, `r` the result of the oldest call without one.
fn view(session: &str, window: u32) -> ContextView {
    let ledger = TokenLedger::new(Counter::default(), Tokens(window), Tokens(window / 4));
    let mut view = ContextView::new(ledger);
    let (mut called, mut answered) = (0, 0);
    for (n, word) in session.split_whitespace().enumerate() {
        let (kind, size) = word.split_at(1);
        let text = "word".repeat(size.parse().unwrap_or(1));
        let message = match kind {
            "u" => Message::text(Role::User, text),
            "a" => Message::text(Role::Assistant, text),
            "s" => Message::text(Role::CompactionSummary, text),
            "b" => {
                let run = BashRun { output: text, ..BashRun::default() };
                Message::new(Role::BashExecution, vec![Block::Bash(run)])
            }
            "c" => {
                called += 1;
                let call = ToolCall::new(called.to_string(), "read", RawJson::from_text("{}"));
                Message::new(Role::Assistant, vec![Block::ToolCall(call)])
            }
            "r" => {
                answered += 1;
                Message::tool_result(answered.to_string(), text)
            }
            other => panic!("what is {other}?"),
        };
        view.append(Arc::new(Entry::in_memory(format!("{n:08x}"), message))).unwrap();
    }
    view
}

fn planned(session: &str, window: u32, config: &Config, limits: PlanLimits) -> PlanOutcome {
    plan(&History::of(&view(session, window)).unwrap(), config, limits).unwrap()
}

/// The plan in short form, or the reason why there is none.
fn cut(session: &str, window: u32, config: &Config, limits: PlanLimits) -> String {
    match planned(session, window, config, limits) {
        PlanOutcome::Nothing(reason) => reason,
        PlanOutcome::Compact(plan) => short(&plan),
    }
}

fn short(plan: &CompactionPlan) -> String {
    let mut text = format!("cut {}, kept {}", plan.cut, plan.kept_tokens);
    if plan.split_turn {
        text.push_str(", split");
    }
    if let Some(start) = plan.turn_start {
        write!(text, " from {start}").unwrap();
    }
    for shortened in &plan.shortened {
        write!(text, ", {} shortened", shortened.at).unwrap();
    }
    text
}

fn keep(tokens: u32) -> Config {
    Config { keep_recent_tokens: tokens, ..Config::default() }
}

fn force() -> PlanLimits {
    PlanLimits { force: true, ..PlanLimits::default() }
}

#[test]
fn history_is_kept_by_tokens() {
    let talk = "u100 a400 u100 a400 u100 a400 u100 a400";
    let work = "u100 c r900 c r900 c r900 a50";
    for (session, tokens, expected) in [
        (talk, 500, "cut 6, kept 500"),
        (talk, 450, "cut 6, kept 500"),
        (talk, 400, "cut 7, kept 400, split from 6"),
        (talk, 0, "cut 7, kept 400, split from 6"),
        // 900 is reached inside a result, so the cut moves to the next message.
        (work, 900, "cut 7, kept 50, split from 0"),
        (work, 951, "cut 5, kept 952, split from 0"),
        (work, 953, "cut 5, kept 952, split from 0"),
        // A command of the user begins a turn, and a cut before it counts as a split, as in pi.
        ("u100 a400 b400", 400, "cut 2, kept 400, split"),
        (talk, 20_000, "all 8 messages (2000 tokens) fit and are kept"),
    ] {
        assert_eq!(
            cut(session, 64_000, &keep(tokens), PlanLimits::default()),
            expected,
            "{tokens}"
        );
    }
}

#[test]
fn history_is_kept_by_turns() {
    let session = "u100 a400 u100 a400 u100 c r400 a400 u100 a400";
    for (turns, expected) in [
        (0, "cut 9, kept 400, split from 8"),
        (1, "cut 8, kept 500"),
        (2, "cut 4, kept 1402"),
        (4, "all 10 messages (2402 tokens) fit and are kept"),
    ] {
        let config = Config { keep_recent_turns: Some(turns), ..Config::default() };
        assert_eq!(cut(session, 64_000, &config, PlanLimits::default()), expected, "{turns}");
    }
    // Of 8,000 tokens, 40 % of 6,000 may be kept.
    let session = "u100 a1000 u100 a1000 u100 a1000";
    let config = Config { keep_recent_turns: Some(2), ..Config::default() };
    assert_eq!(cut(session, 8_000, &config, PlanLimits::default()), "cut 2, kept 2200");
    let config = Config { keep_recent_turns: Some(3), ..Config::default() };
    assert_eq!(cut(session, 8_000, &config, PlanLimits::default()), "cut 2, kept 2200");
}

#[test]
fn history_is_kept_by_count() {
    let session = "u100 a100 u100 c c r100 r100 a100";
    let count = |keep| Config { keep_recent_messages: Some(keep), ..Config::default() };
    for (messages, expected) in [
        (KeepMessages::Count(1), "cut 7, kept 100, split from 2"),
        // The positions for three and four are between calls and results.
        (KeepMessages::Count(3), "cut 7, kept 100, split from 2"),
        (KeepMessages::Count(4), "cut 7, kept 100, split from 2"),
        (KeepMessages::Table(ByWindow::ByWindow), "cut 3, kept 304, split from 2"),
    ] {
        assert_eq!(cut(session, 16_000, &count(messages), PlanLimits::default()), expected);
    }
    let config = count(KeepMessages::Table(ByWindow::ByWindow));
    let expected = "all 8 messages (604 tokens) fit and are kept";
    assert_eq!(cut(session, 32_000, &config, PlanLimits::default()), expected);
}

#[test]
fn a_tail_of_results_that_is_too_large_is_shortened_and_the_cut_stays_before_it() {
    let sessions = [
        ("u100 a4000 u100 c r9000", "cut 3, kept 4800 split from 2, 4 shortened"),
        ("u100 a4000 u100 c r4000 c r9000", "cut 5, kept 4800 split from 2, 6 shortened"),
        (
            "u9000 a10 u10 c c r3000 r6000",
            "cut 3, kept 4800 split from 2, 5 shortened, 6 shortened",
        ),
    ];
    for (session, expected) in sessions {
        let PlanOutcome::Compact(plan) =
            planned(session, 16_000, &keep(20_000), PlanLimits::default())
        else {
            panic!("{session}: nothing planned");
        };
        let found = short(&plan).replace(", split", " split");
        // Texts are truncated at characters, so a token or two may be left.
        let (kept, _) = (plan.kept_tokens, plan.summary_budget);
        assert!(kept <= Tokens(4_800) && kept > Tokens(4_780), "{session}: {kept}");
        assert_eq!(found.replace(&kept.to_string(), "4800"), expected);
        for shortened in &plan.shortened {
            let text = shortened.form.tool_results().next().unwrap().plain_text().into_owned();
            assert!(text.contains(CONTEXT_LIMIT_TRUNCATION_NOTICE));
        }
    }
}

#[test]
fn a_call_and_a_result_that_came_late_are_not_parted() {
    let session = "u2000 c a100 u100 a100 r100 a100";
    assert_eq!(
        cut(session, 64_000, &keep(150), PlanLimits::default()),
        "cut 6, kept 100, split from 3"
    );
    assert_eq!(
        cut(session, 64_000, &keep(100), PlanLimits::default()),
        "cut 6, kept 100, split from 3"
    );
    let session = "u2000 c a100 u100 a100 r100";
    assert_eq!(
        cut(session, 64_000, &keep(150), PlanLimits::default()),
        "cut 1, kept 402, split from 0"
    );
}

#[test]
fn copaw_cuts_before_users_or_not_at_all() {
    let copaw = |tokens| Config { keep_recent_tokens: tokens, ..config_of("copaw") };
    let talk = "u100 a400 u100 c r800 a400 u100 a400";
    let one_turn = "u100 c r800 c r800 c r800";
    let no_cut = "every cut would separate a user message from its answer";
    for (session, window, tokens, limits, expected) in [
        (talk, 64_000, 500, PlanLimits::default(), "cut 6, kept 500"),
        (talk, 64_000, 600, PlanLimits::default(), "cut 6, kept 500"),
        // No user message follows the requested position, so an earlier one is used.
        (talk, 64_000, 100, PlanLimits::default(), "cut 6, kept 500"),
        (one_turn, 64_000, 500, PlanLimits::default(), no_cut),
        (one_turn, 64_000, 500, force(), "cut 5, kept 802, split from 0"),
        // It does not fit, so only this choice is left.
        (
            "u100 c r8000 c r8000",
            16_000,
            500,
            PlanLimits::default(),
            "cut 3, kept 4800, split from 0, 4 shortened",
        ),
        // The last turn fits with its result truncated.
        (
            "u8000 a10 u10 c r8000",
            16_000,
            500,
            PlanLimits::default(),
            "cut 2, kept 4800, 4 shortened",
        ),
    ] {
        let found = cut(session, window, &copaw(tokens), limits);
        assert_eq!(found, expected, "{session}");
    }
}

#[test]
fn force_compacts_what_could_stay() {
    for (session, expected) in [
        ("u100 a400 u100 a400", "cut 2, kept 500"),
        ("u2 a2 u100 c r400 c r400", "cut 5, kept 402, split from 2"),
        // More than the newest request is kept.
        ("u100 a400 u100 a400 u100 a400 u100 a400 u10", "cut 4, kept 1010"),
        // The newest user message is always kept.
        ("u100 a400", "only 0 tokens could be summarised: a summary would not be shorter"),
        ("u10 a10 u10 a10", "only 20 tokens could be summarised: a summary would not be shorter"),
        ("u1000", "there is only one message"),
        ("", "there are no messages"),
        ("s500 u10 a10", "only 0 tokens could be summarised: a summary would not be shorter"),
    ] {
        assert_eq!(cut(session, 64_000, &keep(20_000), force()), expected, "{session}");
    }
}

#[test]
fn targets_are_kept() {
    let session = "u100 a900 u100 a900 u100 a900 u100 a900 u100 a900 u100 a900";
    let ponybunny = config_of("ponybunny");
    let count = Config { keep_recent_messages: Some(KeepMessages::Count(2)), ..Config::default() };
    let budget = |t| PlanLimits { token_budget: Some(Tokens(t)), ..PlanLimits::default() };
    let emergency = PlanLimits { emergency: true, ..PlanLimits::default() };
    for (config, limits, kept, target) in [
        // 30 % of 8,000, a third of it for the summary.
        (&ponybunny, PlanLimits::default(), 1_000, 2_400),
        // 20 %.
        (&ponybunny, emergency, 1_000, 1_600),
        (&count, budget(1_500), 1_000, 1_500),
        (&count, budget(700_000), 1_000, 6_000),
        // The requested budget is less than fits.
        (&count, budget(0), 400, 256),
    ] {
        let PlanOutcome::Compact(plan) = planned(session, 8_000, config, limits) else {
            panic!("nothing planned for {target}");
        };
        assert!(plan.kept_tokens <= Tokens(kept), "{target}: {}", plan.kept_tokens);
        assert_eq!(plan.target, Tokens(target));
        let sum = plan.kept_tokens + plan.staying_tokens + plan.summary_budget;
        assert!(sum <= plan.target, "{target}: {sum}");
    }
    // Without a target, the size is the kept messages plus the summary: 0.8 of a reserve of 2,000.
    let PlanOutcome::Compact(plan) = planned(session, 8_000, &count, PlanLimits::default()) else {
        panic!("nothing planned");
    };
    assert_eq!(plan.summary_budget, Tokens(1_600));
    assert_eq!(plan.target, Tokens(2_600));
}

#[test]
fn the_threshold_is_a_share_of_the_window_or_what_the_reserve_leaves() {
    let ledger = TokenLedger::new(Counter::default(), Tokens(100_000), Tokens(20_000));
    for (ratio, expected) in [(None, 80_000), (Some(0.5), 50_000), (Some(0.95), 80_000)] {
        let config = Config { trigger_ratio: ratio, ..Config::default() };
        assert_eq!(config.threshold(&ledger), Tokens(expected));
    }
}

#[test]
fn what_a_layer_added_is_neither_cut_nor_summarised() {
    let mut view = view("u3000 a3000 u3000", 16_000);
    let recall = Arc::new(Entry::in_memory("recall", Message::text(Role::User, "you once said")));
    view.insert(2, recall, "memory", "recall").unwrap();
    let history = History::of(&view).unwrap();
    assert_eq!(history.items.len(), 3);
    let PlanOutcome::Compact(plan) = plan(&history, &keep(3_000), PlanLimits::default()).unwrap()
    else {
        panic!("nothing planned");
    };
    assert_eq!(&**history.items[plan.cut].entry.id(), "00000002");
}

#[test]
fn fixed_parts_without_room_are_refused() {
    let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000))
        .with_system(Tokens(12_000));
    let history = History::of(&ContextView::new(ledger)).unwrap();
    let error = plan(&history, &Config::default(), PlanLimits::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SystemPromptTooLarge);
}
