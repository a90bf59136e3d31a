//! The ranking and the citations of facts, and their audit.

use ctx_compaction::{SourceIndex, audit};
use ctx_core::{Block, Message, Role};
use ctx_facts::{CitedMessage, FactKind, RequiredFact, required_facts};

fn said(id: &str, role: Role, text: &str) -> CitedMessage {
    CitedMessage { id: id.into(), message: Message::text(role, text).into(), pinned: false }
}

fn user(id: &str, text: &str) -> CitedMessage {
    said(id, Role::User, text)
}

fn assistant(id: &str, text: &str) -> CitedMessage {
    said(id, Role::Assistant, text)
}

fn of_kind(facts: &[RequiredFact], kind: FactKind) -> Vec<&str> {
    facts.iter().filter(|fact| fact.kind == kind).map(|fact| fact.text.as_str()).collect()
}

#[test]
fn what_was_taken_back_is_no_demand_any_more() {
    for (earlier, between, later) in [
        (
            "Always use npm for this project.",
            "Use tabs.",
            "Actually, use pnpm instead of npm for this project.",
        ),
        (
            "Never deploy to staging.",
            "Use tabs.",
            "Never mind what I said, you can now deploy to staging.",
        ),
        ("必须用 npm 安装依赖。", "请用制表符。", "算了,改用 pnpm 安装依赖。"),
    ] {
        let history = [
            user("1", earlier),
            assistant("2", "Fine."),
            user("3", between),
            assistant("4", "Fine."),
            user("5", later),
            assistant("6", "Fine."),
        ];
        let facts = required_facts(&history);
        let demands: Vec<&str> =
            facts.iter().filter(|f| f.kind.is_passage()).map(|f| &*f.text).collect();
        let has = |text: &str| demands.iter().any(|d| text.contains(d));
        assert!(!has(earlier) && has(later) && has(between), "{demands:?}");
    }
}

#[test]
fn the_assistant_takes_back_no_demand_of_the_users() {
    let history = [
        user("1", "Never use npm for this project."),
        assistant("2", "We decided to use npm for this project because it is there."),
        user("3", "Use tabs."),
        assistant("4", "Fine."),
    ];
    let found = required_facts(&history);
    let demand = found.iter().find(|fact| fact.text.starts_with("Never use npm")).unwrap();
    assert!(demand.weight > 0.6, "{demand:?}");
}

#[test]
fn the_last_mention_is_cited_and_the_user_counts_most() {
    let history = [
        user("1", "Look at src/a.rs and src/b.rs."),
        assistant("2", "I read ./src/a.rs, src/c.rs and src/c.rs again."),
    ];
    let found = required_facts(&history);
    let paths: Vec<_> = found.iter().filter(|f| f.kind == FactKind::Path).collect();
    let of = |text: &str| *paths.iter().find(|f| f.text == text).unwrap();
    assert_eq!(paths.len(), 3, "{paths:?}");
    assert_eq!((&*of("src/a.rs").entry, &*of("src/b.rs").entry), ("2", "1"));
    assert!(
        of("src/a.rs").weight > of("src/b.rs").weight
            && of("src/b.rs").weight > of("src/c.rs").weight
    );
}

#[test]
fn go_on_stands_for_the_ask_before() {
    let history = [
        user("1", "Please add a retry to the upload."),
        assistant("2", "Shall I start?"),
        user("3", "yes"),
    ];
    let found = required_facts(&history);
    assert_eq!(of_kind(&found, FactKind::Ask), ["yes", "Please add a retry to the upload."]);
    assert_eq!(of_kind(&found, FactKind::Question), [] as [&str; 0]);
}

#[test]
fn pinned_messages_are_kept_sentence_by_sentence() {
    let mut pinned =
        user("1", "The customer is Acme. They pay by invoice.\n- Call them on Mondays");
    pinned.pinned = true;
    let found = required_facts(&[pinned, user("2", "ok"), assistant("3", "Fine.")]);
    let mut texts = of_kind(&found, FactKind::Pinned);
    texts.sort_unstable();
    assert_eq!(texts, ["Call them on Mondays", "The customer is Acme.", "They pay by invoice."]);
}

#[test]
fn thinking_is_no_source_but_may_be_cited() {
    let blocks = vec![
        Block::Thinking { thinking: "maybe src/secret.rs".into(), signature: None },
        Block::text("Done."),
    ];
    let message = Message::new(Role::Assistant, blocks).into();
    let history = [CitedMessage { id: "1".into(), message, pinned: false }];
    assert_eq!(required_facts(&history), []);
    let grounds = SourceIndex::of(&history, None, &[]);
    assert!(audit("src/secret.rs", &[], &grounds).ungrounded.is_empty());
}

#[test]
fn an_audit_tells_what_is_kept_missing_and_made_up() {
    let history = [
        user("e1", "Never touch src/a.rs. Port 8080 answers with HTTP 502 after 500 ms."),
        assistant("e2", "Fixed it in commit 3f2a9bc."),
    ];
    let facts = required_facts(&history);
    let grounds =
        SourceIndex::of(&history, Some("before: /old/path.md [e:e0]"), &["mind `the_focus`"]);
    for (summary, kept, made_up) in [
        (
            "- Never touch src/a.rs. [e:e1]\n- Port 8080: status code 502 after 500ms [e:e1]\n- 3f2a9bc [e:e2]",
            6,
            &[][..],
        ),
        ("- touch src/a.rs", 1, &[]),
        ("- src/a.rs.bak", 0, &["src/a.rs.bak"]),
        ("<modified-files>\nsrc/a.rs\n</modified-files>", 1, &[]),
        ("- see /old/path.md and `the_focus` [e:e0]", 0, &[]),
        ("- 3 files changed, 2 tests added", 0, &[]),
        ("- it took 700 ms, see https://x.org [e:e9]", 0, &["700 ms", "https://x.org", "[e:e9]"]),
        ("- commit 3f2a9bd, `invented_name`, E0308", 0, &["3f2a9bd", "invented_name", "E0308"]),
        ("", 0, &[]),
    ] {
        let audit = audit(summary, &facts, &grounds);
        assert_eq!(facts.len(), 7, "{facts:?}");
        assert_eq!(audit.report.kept, kept, "{summary}: {:?}", audit.missing);
        assert_eq!(audit.report.ungrounded, made_up, "{summary}");
        assert_eq!(audit.report.kept + audit.report.missing, 7);
        for one in audit.ungrounded {
            assert_eq!(summary.get(one.range), Some(one.text.as_str()));
        }
    }
}
