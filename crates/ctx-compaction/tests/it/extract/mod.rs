//! The extractive summariser on invented sessions.

mod earlier;
mod newcomer;
mod properties;
mod rules;
pub(crate) mod script;

use ctx_core::{Counter, Tokens};
use ctx_extract::{ExtractInput, extract};
use ctx_facts::{FactKind, FactLedger, PreviousSummary, RequiredFact};

use script::session;

/// A session, a budget, and the options of its summary.
struct Case<'a> {
    script: &'a str,
    previous: Option<&'a str>,
    /// The entry of the previous summary.
    previous_entry: Option<&'a str>,
    turn_start: Option<usize>,
    focus: Option<&'a str>,
    budget: u32,
    /// Given facts: kind, words, entry.
    facts: &'a [(FactKind, &'a str, &'a str)],
}

impl Default for Case<'_> {
    fn default() -> Self {
        Self {
            script: "",
            previous: None,
            previous_entry: None,
            turn_start: None,
            focus: None,
            budget: 2_000,
            facts: &[],
        }
    }
}

impl Case<'_> {
    fn summary(&self) -> String {
        let said = session(self.script);
        let previous = self.previous.map(|text| PreviousSummary {
            text: text.to_owned(),
            entry: self.previous_entry.map(Into::into),
            ..PreviousSummary::default()
        });
        let mut facts = FactLedger::of(&said).facts();
        let given = self.facts.iter().map(|&(kind, text, entry)| RequiredFact {
            kind,
            text: text.to_owned(),
            entry: entry.into(),
            weight: 0.5,
            by_user: false,
            order: 0,
        });
        facts.required.extend(given);
        extract(&ExtractInput {
            state: None,
            messages: &said,
            facts: &facts,
            previous: previous.as_ref(),
            turn_start: self.turn_start,
            focus: self.focus,
            budget: Tokens(self.budget),
            counter: &Counter::default(),
        })
    }

    #[track_caller]
    fn gives(&self, expected: &str) {
        assert_eq!(self.summary(), expected.trim());
    }
}

const ENGLISH: &str = r#"
U: Hi! Add a login endpoint to the API. Never store passwords in plain text.
A: Let me look at the routes first.
A> read {"path":"src/routes.rs"}
R: pub fn routes() {}
A: Two ways: \nA. Sessions in Redis\nB. Signed JWT\n\nWhich one do you prefer?
U: B, and keep tokens valid for 15 minutes
A: I chose Argon2id over bcrypt because the OWASP sheet recommends it.
A> edit {"path":"src/auth.rs"}
R: ok
A> bash {"command":"cd /srv/api && cargo test 2>&1 | tail -5"}
R! error[E0308]: mismatched types\n  --> src/auth.rs:10:5\nerror: could not compile `api`
A: The root cause is that `verify` returns a Result.
A> edit {"path":"src/auth.rs"}
R: ok
A> bash {"command":"cd /srv/api && cargo test 2>&1 | tail -5"}
R: running 12 tests\ntest result: ok. 12 passed; 0 failed
A> bash {"command":"git commit -am 'Add login'"}
R: [main 4f2a9c1] Add login\n 2 files changed
A: Done! Added `POST /login` in `src/auth.rs`.\n\nNext steps:\n- rate limiting\n- document the endpoint
U: great, now rate limit it: at most 5 tries a minute per IP
A> TodoWrite {"todos":[{"content":"Add the limiter middleware","status":"in_progress"},{"content":"Test with 6 tries","status":"pending"}]}
R: ok
"#;

#[test]
fn an_english_session_is_told_so_that_the_work_can_go_on() {
    Case { script: ENGLISH, ..Case::default() }.gives(
        r#"
## Goal
- Latest ask: great, now rate limit it: at most 5 tries a minute per IP [e:20]
- First: Add a login endpoint to the API. [e:1]

## Constraints & Preferences
- Never store passwords in plain text. [e:1]

## Progress
### Done
- [x] Commit [main 4f2a9c1] Add login [e:18]
- [x] Added `POST /login` in `src/auth.rs`. [e:19]

### In Progress
- [ ] Add the limiter middleware [e:21]

## Key Decisions
- Which one do you prefer? Signed JWT → user: B, and keep tokens valid for 15 minutes [e:5] [e:6]
- I chose Argon2id over bcrypt because the OWASP sheet recommends it. [e:7]

## Next Steps
1. rate limiting [e:19]
2. document the endpoint [e:19]
3. Test with 6 tries [e:21]

## Critical Context
- The root cause is that `verify` returns a Result. [e:12]
- `cargo test` → test result: ok. 12 passed; 0 failed [e:16]
- Names: `routes()`
"#,
    );
}

#[test]
fn a_chinese_session_is_told_in_its_own_words() {
    Case {
        script: r#"
U: 你好，帮我给 order-service 加上订单导出功能，导出成 CSV。不要改动数据库结构。
A: 好的，我先看看代码。
A> read {"path":"src/order.ts"}
R: export class Orders {}
A: 有两种方案：\nA. 同步导出\nB. 异步导出，完成后通知\n\n我建议用方案 B，因为网关 30 秒就会超时。你希望用哪一种？
U: B，文件保留 7 天
A: 决定用 BullMQ 而不是自己写队列，因为项目里已经有 Redis。
A> bash {"command":"pnpm test"}
R! FAIL src/export.test.ts\nTypeError: queue is undefined\nTests: 1 failed, 12 passed
A: 测试失败的根本原因是 queue 没有注入。
"#,
        ..Case::default()
    }
    .gives(
        r#"
## Goal
- 你好，帮我给 order-service 加上订单导出功能，导出成 CSV。 [e:1]

## Constraints & Preferences
- 不要改动数据库结构。 [e:1]

## Progress
### Blocked
- `pnpm test` → TypeError: queue is undefined [e:9]

## Key Decisions
- 你希望用哪一种？ 异步导出，完成后通知 → user: B，文件保留 7 天 [e:5] [e:6]
- 决定用 BullMQ 而不是自己写队列，因为项目里已经有 Redis。 [e:7]

## Critical Context
- 我建议用方案 B，因为网关 30 秒就会超时。 [e:5]
- 测试失败的根本原因是 queue 没有注入。 [e:10]
"#,
    );
}

#[test]
fn a_split_turn_is_told_in_its_own_part_with_its_request_in_full() {
    Case {
        script: r#"
U: Write a parser for INI files
A: Wrote `src/ini.rs` with 9 tests, all tests pass.
U: Now read the settings from it.\nRules:\n- unknown keys are errors\n- do not panic
A: The settings live in `src/config.rs`; the loader is called twice because of the watcher.
A> edit {"path":"src/config.rs"}
R: ok
A: Now let me update the watcher:
A> read {"path":"src/watch.rs"}
R: fn watch() {}
"#,
        turn_start: Some(2),
        ..Case::default()
    }
    .gives(
        r#"
## Goal
- First: Write a parser for INI files [e:1]

## Constraints & Preferences
- do not panic [e:3]

## Progress
### Done
- [x] Wrote `src/ini.rs` with 9 tests, all tests pass. [e:2]

## Critical Context
- Names: `watch()`

---

**Turn Context (split turn):**

## Original Request
> Now read the settings from it.
> Rules:
> - unknown keys are errors
> - do not panic [e:3]

## Context for Suffix
- The settings live in `src/config.rs`; the loader is called twice because of the watcher. [e:4]
"#,
    );
}

#[test]
fn a_previous_summary_is_merged_and_what_was_finished_is_told_as_done_once() {
    Case {
        script: r#"
U: now publish the parser crate
A: Published the parser crate to the registry as 0.2.0.
A> bash {"command":"cargo publish"}
R: Uploaded ini-parser v0.2.0
"#,
        previous: Some(
            "## Goal\n- Latest ask: document the parser [e:p3]\n\
             - First: write an INI parser [e:p1]\n\n\
             ## Constraints & Preferences\n- never use unsafe [e:p1]\n\n## Progress\n### Done\n\
             - [x] wrote src/ini.rs [e:p2]\n\n### In Progress\n\
             - [ ] publish the parser crate [e:p3]\n\n## Next Steps\n1. write a README [e:p3]",
        ),
        ..Case::default()
    }
    .gives(
        r#"
## Goal
- Latest ask: now publish the parser crate [e:1]
- Earlier: document the parser [e:p3]
- First: write an INI parser [e:p1]

## Constraints & Preferences
- never use unsafe [e:p1]

## Progress
### Done
- [x] wrote src/ini.rs [e:p2]
- [x] Published the parser crate to the registry as 0.2.0. [e:2]
- [x] `cargo publish` [e:4]

## Next Steps
1. write a README [e:p3]
"#,
    );
}

#[test]
fn facts_that_are_handed_in_are_told_under_their_field() {
    let text = Case {
        script: r#"
U: the service runs on port 7 behind the proxy of the customer
A: hm
"#,
        facts: &[
            (FactKind::Constraint, "behind the proxy of the customer", "1"),
            (FactKind::Decision, "we decided on the proxy of the customer", "2"),
            (FactKind::Question, "who owns it", "2"),
            (FactKind::Path, "src/a.rs", "2"),
            (FactKind::Ask, "cites an entry that is not there", "9"),
        ],
        ..Case::default()
    }
    .summary();
    for line in [
        "## Key Decisions\n- we decided on the proxy of the customer [e:2]",
        "\n- Open question: who owns it [e:2]",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!text.contains("[e:9]"));
}

#[test]
fn what_is_in_focus_comes_first() {
    let script = r#"
U: check the cache and the database, please
A: The cache keeps 512 entries because of `MAX_ENTRIES`.\n\nThe database pool has 20 connections because of `POOL_SIZE`.
U: ok
A: Done, both were checked.
"#;
    let plain = Case { script, ..Case::default() }.summary();
    let focused = Case { script, focus: Some("database pool"), ..Case::default() }.summary();
    let order = |text: &str| text.find("MAX_ENTRIES") < text.find("POOL_SIZE");
    assert!(order(&plain) && !order(&focused), "{plain}\n\n{focused}");
    let tight = Case { script, focus: Some("database pool"), budget: 60, ..Case::default() };
    assert!(tight.summary().contains("POOL_SIZE"), "{}", tight.summary());
}

#[test]
fn small_budgets_keep_the_goal() {
    for (budget, expected) in [
        (60, "rate limit it: at most 5 tries a minute per IP"),
        (30, "rate limit it"),
        (10, "rate limit it"),
    ] {
        let text = Case { script: ENGLISH, budget, ..Case::default() }.summary();
        assert!(text.contains(expected), "{budget}: {text}");
        assert!(Counter::default().text(&text) <= Tokens(budget));
    }
    assert_eq!(Case { script: ENGLISH, budget: 0, ..Case::default() }.summary(), "");
}

#[test]
fn noise_is_left_out() {
    let text = Case {
        script: r#"
U: <system-reminder>Never mention this reminder.</system-reminder>
U: <command-name>/exit</command-name>\n<local-command-stdout>Bye! You must not care</local-command-stdout>
U: rename `Foo` to `Bar` in src/a.rs
A: Great! Let me check the file first.
A> read {"path":"src/a.rs"}
R: // TODO: you must never see this comment\nfn foo() { panic!("error: no") }
A: ```rust\nfn must_not_be_quoted() {}\n```\nRenamed `Foo` to `Bar` in `src/a.rs`.
U: thanks!
A: You're welcome! Let me know if you need anything else.
"#,
        ..Case::default()
    }
    .summary();
    for noise in ["reminder", "Bye", "Great", "must", "welcome", "thanks", "panic"] {
        assert!(!text.contains(noise), "{noise}: {text}");
    }
    assert!(text.contains("Renamed `Foo` to `Bar`"));
}
