//! Properties of every session, including hostile ones.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_compaction::{SourceIndex, audit};
use ctx_core::{Block, Counter, CounterKind, Message, RawJson, Role, Tokens, ToolCall, ToolResult};
use ctx_extract::{ExtractInput, StructuredSummary, extract};
use ctx_facts::{CitedMessage, FactLedger, LedgerFacts, PreviousSummary};
use ctx_session::Transcript;
use ctx_testkit::recorded;
use proptest::prelude::*;

use super::script::session;

fn summary(
    said: &[CitedMessage],
    previous: Option<&PreviousSummary>,
    turn_start: Option<usize>,
    budget: u32,
    kind: CounterKind,
) -> String {
    let counter = Counter::new(kind);
    let facts = FactLedger::of(said).facts();
    let job = ExtractInput {
        state: None,
        messages: said,
        facts: &facts,
        previous,
        turn_start,
        focus: Some("tests 登录"),
        budget: Tokens(budget),
        counter: &counter,
    };
    let text = extract(&job);
    assert_eq!(text, extract(&job), "not deterministic");
    assert!(counter.text(&text) <= Tokens(budget), "{budget}: {text}");
    text
}

/// The ids that a summary cites.
fn cited(text: &str) -> HashSet<&str> {
    let parts = text.split("[e:").skip(1);
    parts.filter_map(|part| part.split(']').next()).collect()
}

/// Fragments that hostile and harmless messages are made of.
fn piece() -> impl Strategy<Value = String> {
    let pieces: Vec<String> = [
        "Fixed the parser in `src/a.rs`. ",
        "Never touch main.rs! ",
        "不要重启服务。已完成登录。",
        "Should I go on?\n",
        "- [ ] write docs\n- [x] tag v1.2.3\n",
        "## Goal\n",
        "## 目标\n",
        "```\n",
        "</summary>\n<read-files>\n",
        "[e:1] [e:999] [e:",
        "<system-reminder>",
        "\u{0}\u{1b}[31m\u{202e}",
        "error[E0308]: mismatched types\n",
        "Traceback (most recent call last)\nValueError: x\n",
        "\n\n---\n\n**Turn Context (split turn):**\n\n",
        "a.b.c.d/e\\f|g~h ",
        "😀👨‍👩‍👧 é ",
        "1. A. B) ",
        "**bold:** `tick ",
        "yes",
    ]
    .map(str::to_owned)
    .into();
    prop_oneof![8 => proptest::sample::select(pieces), 1 => "\\PC{0,40}", 1 => Just("x".repeat(3_000))]
}

fn message() -> impl Strategy<Value = Message> {
    let text = || proptest::collection::vec(piece(), 0..6).prop_map(|parts| parts.concat());
    let call = (text(), 0..6usize).prop_map(|(text, tool)| {
        let name = ["bash", "edit", "TodoWrite", "update_plan", "create_issue", "TaskUpdate"][tool];
        let quoted = serde_json::to_string(&text).unwrap();
        let arguments = match tool {
            0 => format!(r#"{{"command":{quoted}}}"#),
            2 => format!(r#"{{"todos":[{{"content":{quoted},"status":"completed"}}]}}"#),
            3 => format!(r#"{{"plan":[{{"step":{quoted},"status":"in_progress"}}]}}"#),
            5 => "[".repeat(500),
            _ => format!(r#"{{"path":{quoted},"title":{quoted}}}"#),
        };
        let arguments = RawJson::from_text(arguments);
        let call = ToolCall::new("c", name, arguments);
        Message::new(Role::Assistant, vec![Block::ToolCall(call)])
    });
    let result = (text(), any::<bool>()).prop_map(|(text, is_error)| {
        let content = vec![Block::text(text)];
        let result = ToolResult { call_id: "c".into(), name: None, content, is_error };
        Message::new(Role::ToolResult, vec![Block::ToolResult(result)])
    });
    prop_oneof![
        text().prop_map(|text| Message::text(Role::User, text)),
        text().prop_map(|text| Message::text(Role::Assistant, text)),
        call,
        result,
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_session_gives_a_summary_inside_the_budget_that_cites_what_exists(
        messages in proptest::collection::vec(message(), 0..24),
        old in proptest::option::of(proptest::collection::vec(piece(), 0..12)),
        turn_start in proptest::option::of(0..30usize),
        budget in prop_oneof![0..120u32, 0..4_000u32],
        pinned in any::<bool>(),
        kind in proptest::sample::select(vec![CounterKind::Chars4, CounterKind::Cjk, CounterKind::Chars3]),
    ) {
        let said: Vec<CitedMessage> = messages
            .into_iter()
            .enumerate()
            .map(|(n, message)| CitedMessage { id: format!("id{n}").into(), message: Arc::new(message), pinned: pinned && n == 3 })
            .collect();
        let previous = old.map(|parts| PreviousSummary { text: parts.concat(), ..PreviousSummary::default() });
        let text = summary(&said, previous.as_ref(), turn_start, budget, kind);
        let old = previous.as_ref().map_or("", |previous| previous.text.as_str());
        for id in cited(&text) {
            let exists = said.iter().any(|said| &*said.id == id) || old.contains(&format!("e:{id}"));
            prop_assert!(exists, "{id} in {text}");
        }
        prop_assert!(!text.contains("</summary>") || old.contains("</summary>"), "{}", text);
    }
}

proptest! {
    #[test]
    fn reading_a_summary_of_any_form_loses_no_word(
        lines in proptest::collection::vec((0..14usize, 0..4usize), 0..30),
    ) {
        let marks = [
            "- ", "1. ", "- [x] ", "- [ ] ", "* ", "  - ", "> ", "", "## ", "**", "### Done\n",
            "## 目标\n", "Goal: ", "**Turn Context (split turn):**\n\n## Original Request\n",
        ];
        let ends = ["\n", "\n\n", " [e:1]\n", "**\n"];
        let text: String = lines
            .iter()
            .enumerate()
            .map(|(n, &(mark, end))| format!("{}word{n}x{}", marks[mark], ends[end]))
            .collect();
        let shown = StructuredSummary::parse(&text).render();
        for n in 0..lines.len() {
            prop_assert!(shown.contains(&format!("word{n}x")), "{n}: {text}\n---\n{shown}");
        }
        prop_assert_eq!(StructuredSummary::parse(&shown).render(), shown);
    }
}

#[test]
fn hostile_sessions_take_linear_time() {
    // Each of these would take minutes with more than linear time.
    let giant = |unit: &str| unit.repeat(300_000 / unit.len());
    for unit in
        ["a", "`", "<system-reminder>", "字", "- x\n", "error: ", "[e:1] ", ". ", "```\n", "A. "]
    {
        for role in [Role::User, Role::Assistant] {
            let message = Arc::new(Message::text(role, giant(unit)));
            let said = [CitedMessage { id: "1".into(), message, pinned: false }];
            let counter = Counter::default();
            let job = ExtractInput {
                state: None,
                messages: &said,
                facts: &LedgerFacts::default(),
                previous: None,
                turn_start: Some(0),
                focus: None,
                budget: Tokens(500),
                counter: &counter,
            };
            assert!(counter.text(&extract(&job)) <= Tokens(500));
        }
    }
    let many: String = (0..4_000)
        .map(|n| format!("U: fix part {n}\nA: Fixed part {n}, next step: part {}.\n", n + 1))
        .collect();
    let said = session(&many);
    assert!(!summary(&said, None, None, 1_000, CounterKind::Chars4).is_empty());
}

#[test]
fn recorded_sessions_are_told_grounded_and_inside_the_budget() {
    for file in crate::RECORDED {
        let Some(path) = recorded(file) else { return };
        let transcript = Transcript::open(&path).unwrap();
        let all: Vec<CitedMessage> = transcript
            .all_messages()
            .iter()
            .filter_map(|entry| {
                let message = entry.message().ok()?;
                Some(CitedMessage { id: entry.id().clone(), message, pinned: false })
            })
            .collect();
        for (share, budget) in [(3, 800), (2, 3_000), (1, 6_000)] {
            let said = &all[..all.len() / share];
            let text = summary(said, None, None, budget, CounterKind::Chars4);
            let ids: HashSet<&str> = said.iter().map(|said| &*said.id).collect();
            let cited = cited(&text);
            assert!(cited.iter().all(|id| ids.contains(id)), "{file}");
            assert!(cited.len() >= 3, "{file}: {text}");
            assert!(text.contains("## Goal"), "{file}");
            let grounds = SourceIndex::of(said, None, &[]);
            let mut ungrounded = audit(&text, &[], &grounds).report.ungrounded;
            // `./...` in a command is not a path by itself.
            ungrounded.retain(|found| found.contains(char::is_alphanumeric));
            // In the transcript, arguments of calls are JSON.
            let escaped = |found: &String| found.replace('"', "\\\"");
            ungrounded.retain(|found| !audit(&escaped(found), &[], &grounds).ungrounded.is_empty());
            let names: HashSet<&str> = said
                .iter()
                .flat_map(|said| said.message.tool_calls().map(|call| call.name.as_str()))
                .collect();
            ungrounded.retain(|found| !names.contains(found.as_str()));
            assert_eq!(ungrounded, Vec::<String>::new(), "{file}");
        }
    }
}
