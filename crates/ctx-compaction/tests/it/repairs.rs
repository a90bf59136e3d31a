//! Properties of facts, audit and repair for any input.

use ctx_compaction::{RepairOptions, Repaired, SourceIndex, Ungrounded, audit, repair};
use ctx_core::{
    BashRun, Block, Counter, CounterKind, Message, RawJson, Role, Tokens, ToolCall, ToolResult,
};
use ctx_facts::{CitedMessage, FactKind, RequiredFact, required_facts};
use proptest::prelude::*;

/// Fragments that texts are made of: words, identifiers, punctuation, hostile parts.
const PIECES: &[&str] = &[
    "Never touch src/main.rs.",
    "Use pnpm, not npm.",
    "don't",
    "Do not restart the server!",
    "We decided to use SQLite because it is small.",
    "Should we support Windows?",
    "TBD: the name",
    "src/a.rs",
    "lib/b/c.ts:10:2",
    "/etc/hosts",
    "https://x.org/a?b=c",
    "#42",
    "ABC-7",
    "3f2a9bc",
    "v1.2.3",
    "10.0.0.1:80",
    "500 ms",
    "3万",
    "20%",
    "$5",
    "E0308",
    "ENOENT",
    "HTTP 404",
    "exit code 1",
    "TypeError: x",
    "`retry_after`",
    "getUser()",
    "std::fs::read",
    "--flag",
    "fixed",
    "不要重启服务",
    "我们决定采用 Redis",
    "别动配置",
    "端口 8080",
    "要不要支持?",
    "。",
    "\n",
    "\n\n",
    "## Goal",
    "### Done",
    "## Key Decisions",
    "## Critical Context",
    "- ",
    "1. ",
    "```",
    "~~~",
    "<read-files>",
    "</read-files>",
    "<system-reminder>",
    "</system-reminder>",
    "---",
    "**Turn Context (split turn):**",
    "[e:1]",
    "[e:999]",
    "[e:",
    "[e:1, e:x]",
    "[unverified]",
    "`",
    "\"",
    "\\n",
    "{\"a\":1}",
    "(",
    ")",
    "…",
    "\u{200b}",
    "😀",
    "e\u{301}",
    ", ",
    ": ",
    ".",
    " ",
    "the",
    "and",
    "server",
    "at f (a.js:1:2)",
];

fn text() -> impl Strategy<Value = String> {
    let piece =
        prop_oneof![9 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => ".{0,12}"];
    let gap = prop_oneof![4 => Just(" "), 2 => Just("\n"), 1 => Just("")];
    prop::collection::vec((piece, gap), 0..40)
        .prop_map(|pieces| pieces.into_iter().map(|(piece, gap)| piece + gap).collect())
}

fn message() -> impl Strategy<Value = Message> {
    let call = |text: String| {
        let arguments = serde_json::json!({ "path": text, "command": text, "content": text });
        let arguments = RawJson::from_text(arguments.to_string());
        Block::ToolCall(ToolCall::new("c", "edit", arguments))
    };
    let result = |(text, is_error)| {
        let content = vec![Block::Text { text }];
        let result = ToolResult { call_id: "c".into(), name: None, content, is_error };
        Message::new(Role::ToolResult, vec![Block::ToolResult(result)])
    };
    prop_oneof![
        4 => text().prop_map(|text| Message::text(Role::User, text)),
        4 => text().prop_map(|text| Message::text(Role::Assistant, text)),
        1 => text().prop_map(move |text| Message::new(Role::Assistant, vec![call(text)])),
        1 => (text(), any::<bool>()).prop_map(result),
        1 => text().prop_map(|text| {
            let run = BashRun { command: text.clone(), output: text, exit_code: Some(3), ..BashRun::default() };
            Message::new(Role::BashExecution, vec![Block::Bash(run)])
        }),
    ]
}

fn history() -> impl Strategy<Value = Vec<CitedMessage>> {
    prop::collection::vec((message(), prop::bool::weighted(0.1)), 0..12).prop_map(|messages| {
        let said = messages.into_iter().enumerate().map(|(at, (message, pinned))| CitedMessage {
            id: at.to_string().into(),
            message: message.into(),
            pinned,
        });
        said.collect()
    })
}

struct Case {
    facts: Vec<RequiredFact>,
    grounds: SourceIndex,
    counter: Counter,
    budget: Tokens,
    ungrounded: Ungrounded,
}

impl Case {
    fn repair(&self, text: &str) -> Repaired {
        let how = RepairOptions {
            budget: self.budget,
            counter: &self.counter,
            ungrounded: self.ungrounded,
        };
        repair(text, &self.facts, &self.grounds, &how)
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 512,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_repaired_summary_fits_is_grounded_and_stays_as_it_is(
        said in history(),
        draft in text(),
        budget in prop_oneof![0..40u32, 40..400u32, Just(100_000u32)],
        kind in prop::sample::select(CounterKind::ALL),
        mark in any::<bool>(),
    ) {
        let ungrounded = if mark { Ungrounded::Mark } else { Ungrounded::Remove };
        let facts = required_facts(&said);
        let grounds = SourceIndex::of(&said, None, &[]);
        let case = Case { facts, grounds, counter: Counter::new(kind), budget: Tokens(budget), ungrounded };
        let once = case.repair(&draft);
        prop_assert!(case.counter.text(&once.text) <= case.budget, "{}", once.text);
        let found = audit(&once.text, &case.facts, &case.grounds);
        if !mark {
            prop_assert!(found.ungrounded.is_empty(), "{:?}\n{}", found.ungrounded, once.text);
        }
        let report = &once.report;
        prop_assert_eq!(report.kept + report.repaired, found.report.kept);
        prop_assert_eq!(report.missing as usize, found.missing.len());
        prop_assert_eq!(report.coverage, found.report.coverage);
        if budget == 100_000 {
            prop_assert!(found.missing.is_empty(), "{:?}\n{}", case.facts.get(found.missing[0]), once.text);
        }
        let twice = case.repair(&once.text);
        prop_assert_eq!(&twice.text, &once.text);
        prop_assert_eq!(case.repair(&draft), once);
    }

    #[test]
    fn facts_are_found_in_an_order_that_never_changes(said in history()) {
        let found = required_facts(&said);
        prop_assert_eq!(&found, &required_facts(&said));
        prop_assert!(found.is_sorted_by_key(|fact| fact.kind));
        let ids: Vec<_> = said.iter().map(|one| one.id.clone()).collect();
        for fact in &found {
            prop_assert!(ids.contains(&fact.entry) && (0.0..=1.0).contains(&fact.weight));
            prop_assert!(!fact.text.trim().is_empty() && !fact.text.contains('\n'), "{:?}", fact.text);
        }
    }
}

#[test]
fn hostile_text_is_read_like_any_other() {
    let of_length = |piece: &str, length: usize| piece.repeat(length / piece.len());
    // Without optimisation a megabyte of each would take minutes.
    let long = |piece: &str| of_length(piece, 200_000);
    let megabyte = |piece: &str| of_length(piece, 1_000_000);
    for text in [
        megabyte("a"),
        megabyte("."),
        megabyte("`"),
        long("a/"),
        megabyte("汉"),
        long("不要"),
        long("1,"),
        megabyte("[e:"),
        long("<system-reminder>"),
        long("<a"),
        long("\n"),
        long(" \n"),
        long("\"a\":"),
        long("- "),
        long("http://"),
        long("a_"),
        long("x::"),
        long("don't "),
        long("(/[("),
        long("```\n"),
        megabyte("Use it. "),
        long("## Goal\n"),
        long("src/a.rs "),
        long("\u{301}"),
        long("1 ms "),
        long("[e:1]"),
        long("A"),
        long("at f\n"),
        long("<read-files>\n"),
        long("---\na\n"),
        long("<read-files>\na\n"),
        long("a\n</read-files>\n"),
        long("- src/a.rs is it\n"),
        long("a\n\n"),
        long("{\""),
    ] {
        let user = CitedMessage {
            id: "1".into(),
            message: Message::text(Role::User, &*text).into(),
            pinned: false,
        };
        let result = Message::tool_result("c", &*text).into();
        let result = CitedMessage { id: "2".into(), message: result, pinned: false };
        let arguments = RawJson::from_text(format!("{{\"command\":\"{text}\"}}"));
        let call = ToolCall::new("c", "bash", arguments);
        let call = Message::new(Role::Assistant, vec![Block::ToolCall(call)]).into();
        let call = CitedMessage { id: "3".into(), message: call, pinned: false };
        let said = [user, call, result];
        let facts = required_facts(&said);
        let grounds = SourceIndex::of(&said, Some(&text), &[]);
        let counter = Counter::default();
        let how = RepairOptions {
            budget: Tokens(500),
            counter: &counter,
            ungrounded: Ungrounded::Remove,
        };
        let repaired = repair(&text, &facts, &grounds, &how);
        let start: String = text.chars().take(20).collect();
        assert!(counter.text(&repaired.text) <= Tokens(500), "{start}");
        assert!(facts.len() < 2_000, "{start}: {}", facts.len());
    }
}

#[test]
fn what_is_missing_goes_where_it_belongs() {
    let said = [
        CitedMessage {
            id: "a1".into(),
            message: Message::text(
                Role::User,
                "Never touch src/main.rs. It fails with E0308 after 500 ms, see #42.",
            )
            .into(),
            pinned: false,
        },
        CitedMessage {
            id: "a2".into(),
            message: Message::text(Role::Assistant, "We chose SQLite because it is small.").into(),
            pinned: false,
        },
    ];
    let facts = required_facts(&said);
    let grounds = SourceIndex::of(&said, None, &[]);
    let counter = Counter::default();
    let how =
        RepairOptions { budget: Tokens(400), counter: &counter, ungrounded: Ungrounded::Remove };
    let text = |draft: &str| repair(draft, &facts, &grounds, &how).text;

    let draft = "## Goal\n- Make it build\n\n## Constraints & Preferences\n- (none)\n\n## Key Decisions\n\
        - none yet\n\n## Critical Context\n- It is slow: 900 ms\n- The parser\n\n<read-files>\n</read-files>";
    assert_eq!(
        text(draft),
        "## Goal\n- Make it build\n\n## Constraints & Preferences\n- (none)\n\
        - Never touch src/main.rs. [e:a1]\n\n## Key Decisions\n- none yet\n\
        - We chose SQLite because it is small. [e:a2]\n\n## Critical Context\n- The parser\n\
        - User: It fails with E0308 after 500 ms, see #42. [e:a1]\n\n<read-files>\n</read-files>"
    );
    assert_eq!(
        text("It was built."),
        "It was built.\n\n## Critical Context\n- Constraint: Never touch src/main.rs. [e:a1]\n\
        - Decision: We chose SQLite because it is small. [e:a2]\n\
        - User: It fails with E0308 after 500 ms, see #42. [e:a1]"
    );
    let split = "## Goal\n- Build\n\n---\n\n**Turn Context (split turn):**\n\n## Original Request\nBuild it";
    let repaired = text(split);
    let (history, turn) = repaired.split_once("\n\n---\n\n").unwrap();
    assert!(history.contains("## Critical Context\n- Constraint: Never touch"), "{history}");
    assert_eq!(turn, "**Turn Context (split turn):**\n\n## Original Request\nBuild it");
}

#[test]
fn what_matters_most_finds_room_first() {
    let said = [CitedMessage {
        id: "1".into(),
        message: Message::text(
            Role::User,
            "Never restart the production database. See src/one.rs, src/two.rs and src/three.rs.",
        )
        .into(),
        pinned: false,
    }];
    let facts = required_facts(&said);
    let grounds = SourceIndex::of(&said, None, &[]);
    let counter = Counter::default();
    let story = "It was a long day and much was tried.\n".repeat(12);
    let how =
        RepairOptions { budget: Tokens(100), counter: &counter, ungrounded: Ungrounded::Remove };
    let repaired = repair(&story, &facts, &grounds, &how);
    assert!(repaired.text.contains("Never restart the production database."), "{}", repaired.text);
    assert!(repaired.text.contains("It was a long day"), "{}", repaired.text);
    let kept = repaired.report.kinds[&FactKind::Constraint];
    assert_eq!((kept.facts, kept.kept, kept.repaired), (1, 0, 1));
}

#[test]
fn the_folder_of_all_paths_is_never_trimmed() {
    let said = [CitedMessage {
        id: "1".into(),
        message: Message::text(Role::User, "Never change src/one.rs.").into(),
        pinned: false,
    }];
    let facts = required_facts(&said);
    let folder = "Paths are relative to `/home/ann/project/`.";
    let text = format!("{folder}\n\n{}", "The agent looked around.\n".repeat(40));
    let grounds = SourceIndex::of(&said, Some(&text), &[]);
    let counter = Counter::default();
    let how =
        RepairOptions { budget: Tokens(80), counter: &counter, ungrounded: Ungrounded::Remove };
    let repaired = repair(&text, &facts, &grounds, &how).text;
    assert!(counter.text(&repaired) <= Tokens(80));
    assert!(repaired.starts_with(folder) && repaired.contains("src/one.rs"), "{repaired}");
}
