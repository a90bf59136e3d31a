//! Each preset on constructed sessions.

use std::sync::Arc;

use ctx_core::{
    Block, ContextView, Counter, Entry, Message, RawJson, Role, TokenLedger, Tokens, ToolCall,
};

use super::apply::{PresetContext, PresetOutcome, act, squeeze};
use super::{ALL, Ask, Checked, Clear, Input, Keep, KeepResults, Policy, Preset, Threshold};

/// A session under construction, with a preset before each request.
struct Session {
    view: ContextView,
    history: Vec<Arc<Entry>>,
    calls: usize,
}

impl Session {
    fn new() -> Self {
        let ledger = TokenLedger::new(Counter::default(), Tokens(u32::MAX), Tokens::ZERO);
        Self { view: ContextView::new(ledger), history: Vec::new(), calls: 0 }
    }

    fn say(&mut self, message: Message) {
        let entry = Arc::new(Entry::in_memory(format!("{:08x}", self.history.len()), message));
        self.history.push(entry.clone());
        self.view.append(entry).unwrap();
    }

    fn user(&mut self, text: impl Into<String>) {
        self.say(Message::text(Role::User, text));
    }

    /// Adds a call and its result of this many tokens.
    fn tool(&mut self, tokens: usize) {
        let id = format!("call-{}", self.calls);
        self.calls += 1;
        let call =
            ToolCall::new(id.as_str(), "read", RawJson::from_text(r#"{"path":"src/main.rs"}"#));
        self.say(Message::new(Role::Assistant, vec![Block::ToolCall(call)]));
        self.say(Message::tool_result(id.as_str(), "word".repeat(tokens)));
    }

    /// Ten turns: a question with a number in it, three results of 2,000 tokens, an answer.
    fn long() -> Self {
        let mut session = Self::new();
        for turn in 0..10 {
            session.user(format!("question {turn}: keep ticket-{turn} open"));
            for _ in 0..3 {
                session.tool(2_000);
            }
            session.say(Message::text(Role::Assistant, format!("answer {turn}")));
        }
        session.user("the newest question");
        session
    }

    fn act(&mut self, name: &str, window: u32) -> PresetOutcome {
        self.act_at(name, window, true)
    }

    fn act_at(&mut self, name: &str, window: u32, new_turn: bool) -> PresetOutcome {
        let preset = Preset::find(name).unwrap();
        let moment = PresetContext { window: Tokens(window), new_turn, history: &self.history };
        let done = act(&preset, &mut self.view, &moment).unwrap();
        self.view.finish().unwrap();
        done
    }

    fn text(&self) -> String {
        super::super::text::of_request(&self.view).unwrap()
    }

    fn results_with(&self, text: &str) -> usize {
        let messages = self.view.messages().unwrap();
        let results = messages.iter().flat_map(|m| m.tool_results());
        results.filter(|result| result.plain_text().contains(text)).count()
    }
}

#[test]
fn nothing_is_done_before_the_threshold() {
    for preset in ALL.iter() {
        let mut session = Session::new();
        session.user("a short question");
        session.tool(500);
        let before = session.text();
        let done = session.act(preset.name, 200_000);
        assert!(done.summary.is_none() && !done.stuck, "{}", preset.name);
        assert_eq!(session.text(), before, "{}", preset.name);
    }
}

#[test]
fn every_preset_keeps_a_long_session_within_its_window() {
    for preset in ALL.iter() {
        let mut session = Session::long();
        let done = session.act(preset.name, 50_000);
        assert!(session.view.used() <= Tokens(50_000), "{}: {}", preset.name, session.view.used());
        assert!(!done.stuck, "{}", preset.name);
        assert!(session.text().contains("the newest question"), "{}", preset.name);
    }
}

#[test]
fn codex_keeps_user_messages_through_two_compactions() {
    let mut session = Session::long();
    assert_eq!(session.act("codex", 50_000).summary.unwrap().calls, 1);
    for _ in 0..25 {
        session.tool(2_000);
    }
    session.act("codex", 50_000);
    let text = session.text();
    // The summary after them may quote them.
    let (kept, _) = text.split_once("[end of the user's messages]").unwrap();
    for turn in 0..10 {
        let said = format!("question {turn}: keep ticket-{turn} open");
        assert_eq!(kept.matches(&said).count(), 1, "{turn}");
    }
    assert!(!kept.contains("answer") && text.contains("the newest question"));
    assert_eq!(text.matches("[end of the user's messages]").count(), 1);
}

#[test]
fn kept_user_messages_are_cut_at_twenty_thousand_tokens() {
    let mut session = Session::new();
    for turn in 0..5 {
        session.user(format!("{turn} {}", "word".repeat(6_000)));
        session.tool(4_000);
    }
    session.user("the newest question");
    session.act("codex", 40_000);
    let kept = session.view.used();
    assert!(kept > Tokens(19_000) && kept < Tokens(26_000), "{kept}");
    assert!(session.text().contains("tokens truncated"));
}

#[test]
fn opencode_clears_old_results_before_it_compacts() {
    let mut session = Session::new();
    for _ in 0..12 {
        session.user("go on");
        session.tool(6_000);
    }
    session.user("and now");
    let done = session.act("opencode", 200_000);
    assert!(done.summary.is_none());
    // The newest two turns, with one result, are not examined. The newest 40,000 tokens before them
    // have six of the other eleven results.
    assert_eq!(session.results_with("[Old tool result content cleared]"), 5);
    assert_eq!(session.results_with("word"), 7);
}

#[test]
fn all_tool_results_but_three_are_cleared() {
    let mut session = Session::long();
    session.act("clear-tool-uses", 60_000);
    assert_eq!(session.results_with("[Tool result cleared]"), 27);
    assert_eq!(session.results_with("word"), 3);
    // Over 100,000 tokens in a large window.
    let mut session = Session::long();
    session.act("clear-tool-uses", 200_000);
    assert_eq!(session.results_with("word"), 30);
}

#[test]
fn pi_compacts_between_tool_calls_only_after_a_refused_request() {
    let mut session = Session::long();
    let window = session.view.used().0 + 1_000;
    assert!(session.act_at("pi-0.73.1", window, false).summary.is_none());
    assert!(session.act_at("pi-0.73.1", window - 2_000, false).summary.is_some());
}

#[test]
fn pi_keeps_everything_if_the_newest_result_exceeds_the_kept_tokens() {
    let mut session = Session::long();
    session.tool(30_000);
    let before = session.view.used();
    let done = session.act_at("pi-0.73.1", 60_000, false);
    assert!(done.stuck && done.summary.is_none());
    assert_eq!(session.view.used(), before);
}

#[test]
fn a_summary_call_larger_than_the_window_fails_and_frees_nothing() {
    let mut session = Session::new();
    for turn in 0..10 {
        session.user(format!("{turn} {}", "word".repeat(10_000)));
        session.say(Message::text(Role::Assistant, "noted"));
    }
    session.user("the newest question");
    let before = session.view.used();
    let done = session.act("pi-0.73.1", 50_000);
    assert!(done.stuck && done.summary.unwrap().text.is_empty());
    assert_eq!(session.view.used(), before);
    // If results are truncated to 2,000 characters, the same size in results is not a problem.
    let mut session = Session::long();
    session.tool(40_000);
    session.user("and now");
    let done = session.act("pi-0.73.1", 50_000);
    assert!(done.summary.is_some_and(|made| !made.text.is_empty()));
}

#[test]
fn truncation_inserts_nothing_for_dropped_messages() {
    let mut session = Session::long();
    session.act("truncation", 30_000);
    assert!(session.view.used() <= Tokens(27_000));
    let text = session.text();
    assert!(!text.contains("ticket-0") && text.contains("ticket-9"));
    assert!(session.view.messages().unwrap().iter().all(|m| m.role != Role::CompactionSummary));
}

#[test]
fn a_session_is_squeezed_to_a_share_by_every_preset() {
    for preset in ALL.iter() {
        let mut session = Session::long();
        let before = session.view.used();
        let most = before.scale(0.3);
        let moment = PresetContext { window: before, new_turn: true, history: &session.history };
        squeeze(preset, &mut session.view, &moment, most).unwrap();
        session.view.finish().unwrap();
        let used = session.view.used();
        assert!(used <= most, "{}: {used} of {most}", preset.name);
        assert!(session.text().contains("the newest question"), "{}", preset.name);
    }
}

#[test]
fn a_session_with_only_a_question_is_not_changed() {
    for preset in ALL.iter() {
        let mut session = Session::new();
        session.user("word".repeat(3_000));
        let text = session.text();
        let done = session.act(preset.name, 2_000);
        assert!(done.summary.is_none_or(|made| made.text.is_empty()), "{}", preset.name);
        assert_eq!(session.text(), text, "{}", preset.name);
    }
}

#[test]
fn the_presets_have_the_constants_of_each_project() {
    use Threshold::{Below, Never, Share};
    let ask = |input| move |tokens, calls| Some(Ask { tokens, calls, input });
    let (fitted, all) = (ask(Input::Fitted), ask(Input::All { results: 2_000 }));
    let room = Below(52_000);
    let turns = Keep::Turns { share: 0.25, least: 2_000, most: 15_000, room };
    let compactions = [
        ("codex", Share(0.9), Keep::UserMessages(20_000), fitted(4_096, 1)),
        ("opencode", room, turns, all(4_096, 1)),
        ("goose", Share(0.8), Keep::Newest, fitted(4_096, 1)),
        ("gemini-cli", Share(0.5), Keep::Share(0.3), fitted(4_096, 2)),
        ("claude-code", Below(33_000), Keep::Newest, fitted(20_000, 1)),
        ("clear-tool-uses", Never, Keep::Newest, None),
        ("mask-observations", Never, Keep::Newest, None),
        ("tool-markers", Never, Keep::Newest, None),
        ("pi-0.73.1", Below(16_384), Keep::Recent(20_000), all(13_107, 1)),
        ("openclaw-safeguard", Below(20_000), Keep::Recent(20_000), fitted(4_000, 3)),
        ("truncation", Share(0.9), Keep::UnderTrigger, None),
    ];
    let newest = KeepResults::Newest;
    let tokens = |protect, minimum, turns| KeepResults::Tokens { protect, minimum, turns };
    let saved = "[Tool output truncated; the full output was saved to a file]";
    let clears = |name| match name {
        "opencode" => Some((
            Threshold::Tokens(0),
            tokens(40_000, 20_000, 2),
            "[Old tool result content cleared]",
        )),
        "gemini-cli" => Some((Share(0.5), tokens(50_000, 0, 0), saved)),
        "clear-tool-uses" => Some((Threshold::Tokens(100_000), newest(3), "[Tool result cleared]")),
        "mask-observations" => Some((Threshold::Tokens(0), newest(10), "[old output omitted]")),
        "tool-markers" => Some((Share(0.8), newest(1), "[tool output]")),
        _ => None,
    };
    let new_turn = ["goose", "pi-0.73.1", "openclaw-safeguard"];
    let recovers = ["opencode", "goose", "claude-code", "pi-0.73.1", "openclaw-safeguard"];
    let expected = compactions.map(|(name, trigger, keeps, summary)| {
        let clears =
            clears(name).map(|(trigger, keeps, placeholder)| Clear { trigger, keeps, placeholder });
        let checked =
            if new_turn.contains(&name) { Checked::NewTurn } else { Checked::EveryRequest };
        let recovers = recovers.contains(&name);
        (name, Policy { trigger, checked, recovers, clears, keeps, summary })
    });
    let read: Vec<_> = ALL.iter().map(|preset| (preset.name, preset.policy)).collect();
    assert_eq!(read, expected);
}

#[test]
fn every_preset_has_a_description_and_a_source() {
    let mut names: Vec<_> = ALL.iter().map(|preset| preset.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
    for preset in ALL.iter() {
        for said in [preset.about, preset.source, preset.simplified] {
            assert!(!said.is_empty(), "{}", preset.name);
        }
        assert_eq!(Preset::find(preset.name).unwrap().name, preset.name);
    }
    let error = Preset::find("codx").unwrap_err();
    assert!(error.to_string().contains("codex") && error.hint_text().is_some());
}

#[test]
fn thresholds_are_relative_or_absolute() {
    for (threshold, window, size) in [
        (Threshold::Share(0.9), 200_000, 180_000),
        (Threshold::Below(33_000), 200_000, 167_000),
        (Threshold::Below(33_000), 32_000, 16_000),
        (Threshold::Tokens(100_000), 32_000, 100_000),
        (Threshold::Below(1), 0, 0),
    ] {
        assert_eq!(threshold.of(Tokens(window)), Tokens(size), "{threshold:?} of {window}");
    }
}
