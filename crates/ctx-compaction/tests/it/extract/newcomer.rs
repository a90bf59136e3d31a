//! What a reader who does not know the session must and must not learn from its summary.

use ctx_compaction::audit;
use ctx_core::{Counter, Tokens};
use ctx_extract::{ExtractInput, extract};
use ctx_facts::{FactKind, FactLedger, PreviousSummary, required_facts};

use super::script::session;

/// A session, lines its summary must contain (with their heading), and words it must not contain.
type Told<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str]);

pub(super) fn summary(script: &str, previous: Option<&str>) -> String {
    let said = session(script);
    let facts = FactLedger::of(&said).facts();
    let previous =
        previous.map(|text| PreviousSummary { text: text.to_owned(), ..Default::default() });
    extract(&ExtractInput {
        state: None,
        messages: &said,
        facts: &facts,
        previous: previous.as_ref(),
        turn_start: None,
        focus: None,
        budget: Tokens(2_000),
        counter: &Counter::default(),
    })
}

/// The lines under a heading, up to the next one.
pub(super) fn under<'a>(text: &'a str, heading: &str) -> Vec<&'a str> {
    let lines = text.lines().skip_while(|line| line.trim_start_matches('#').trim() != heading);
    lines.skip(1).take_while(|line| !line.starts_with('#')).collect()
}

fn holds(text: &str, heading: &str, words: &str) -> bool {
    under(text, heading).iter().any(|line| line.contains(words))
}

#[track_caller]
fn check(cases: &[Told<'_>]) {
    let mut wrong = String::new();
    for (script, told, untold) in cases {
        let text = summary(script, None);
        let lost = told.iter().filter(|(heading, words)| !holds(&text, heading, words));
        let lost: Vec<_> = lost.collect();
        let there: Vec<_> = untold.iter().filter(|words| text.contains(**words)).collect();
        if !lost.is_empty() || !there.is_empty() {
            wrong += &format!("{script}\nlost {lost:?}, there {there:?}\n{text}\n\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

const CONTEXT: &str = "Critical Context";
const BLOCKED: &str = "Blocked";

#[test]
fn the_telling_line_of_an_error_is_kept_with_its_citation() {
    let cases = [
        (
            r#"bash {'command':'cargo test'}"#,
            r#"running 3 tests\ntest db::pool ... FAILED\n\nfailures:\n\n---- db::pool stdout ----\n\nthread 'db::pool' panicked at src/db.rs:42:10:\ncalled `Result::unwrap()` on an `Err` value: PoolTimedOut\nnote: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n\ntest result: FAILED. 2 passed; 1 failed"#,
            "panicked at src/db.rs:42:10: called `Result::unwrap()` on an `Err` value: PoolTimedOut",
        ),
        (
            r#"bash {'command':'cargo test sums'}"#,
            r#"running 1 test\n\nthread 'sums' (4711) panicked at src/sum.rs:9:5:\nassertion `left == right` failed: of two\n  left: 3\n right: 4\n\ntest result: FAILED. 0 passed; 1 failed"#,
            "panicked at src/sum.rs:9:5: assertion `left == right` failed: of two left: 3 right: 4",
        ),
        (
            r#"bash {'command':'./deploy --now'}"#,
            r#"Error: could not load the settings\n\nCaused by:\n    0: reading /etc/app.toml\n    1: invalid port 70000 in `listen`"#,
            "invalid port 70000 in `listen`",
        ),
        (
            r#"bash {'command':'python app.py'}"#,
            r#"Traceback (most recent call last):\n  File "/srv/app.py", line 12, in <module>\n    main()\n  File "/srv/app.py", line 7, in main\n    rows = load(path)\n           ^^^^^^^^^^\nsqlalchemy.exc.OperationalError: (sqlite3.OperationalError) no such table: users"#,
            "sqlalchemy.exc.OperationalError: (sqlite3.OperationalError) no such table: users",
        ),
        (
            r#"bash {'command':'pytest -q'}"#,
            r#"F..\n=== FAILURES ===\n___ test_total ___\n\n    def test_total():\n>       assert total([1]) == 2\nE       assert 1 == 2\nE        +  where 1 = total([1])\n\ntest_cart.py:4: AssertionError\n=== short test summary info ===\nFAILED test_cart.py::test_total - assert 1 == 2\n1 failed, 2 passed in 0.02s"#,
            "assert 1 == 2",
        ),
        (
            r#"bash {'command':'cargo build'}"#,
            r#"   Compiling shop v0.1.0\nerror[E0308]: mismatched types\n  --> src/cart.rs:10:5\n   |\n10 |     total\n   |     ^^^^^ expected `u64`, found `f64`\n\nerror: could not compile `shop`"#,
            "error[E0308]: mismatched types",
        ),
        (
            r#"bash {'command':'node server.js'}"#,
            r#"node:events:497\n      throw er; // Unhandled 'error' event\n      ^\n\nError: listen EADDRINUSE: address already in use :::3000\n    at Server.setupListenHandle [as _listen2] (node:net:1817:16)\n    at listenInCluster (node:net:1865:12)\n\nNode.js v20.11.0"#,
            "Error: listen EADDRINUSE: address already in use :::3000",
        ),
        (
            r#"bash {'command':'npx jest'}"#,
            r#"FAIL src/cart.test.ts\n  ● cart › adds\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 4\n    Received: 3\n\n      at Object.<anonymous> (src/cart.test.ts:6:20)\n\nTests:       1 failed, 11 passed, 12 total"#,
            "Expected: 4 Received: 3",
        ),
        (
            r#"bash {'command':'go test ./...'}"#,
            r#"--- FAIL: TestTotal (0.00s)\n    cart_test.go:14: total = 3, want 4\nFAIL\nFAIL\tshop/cart\t0.004s"#,
            "cart_test.go:14: total = 3, want 4",
        ),
    ];
    let mut wrong = String::new();
    for (call, output, cause) in cases {
        let call = call.replace('\'', "\"");
        // The line is kept whether the session ends there or continues with other work for long.
        for after in [
            "",
            "A: I look at it.\nU: leave that, first explain the cache to me\nA: It holds pages.",
        ] {
            let script = format!("U: make it run\nA> {call}\nR! {output}\n{after}");
            let said = session(&script);
            let facts = required_facts(&said);
            let text = summary(&script, None);
            let is_told = [CONTEXT, BLOCKED].iter().any(|heading| {
                under(&text, heading).iter().any(|l| l.contains(cause) && l.contains("[e:3]"))
            });
            let fact = facts.iter().find(|f| f.kind == FactKind::Failure && f.text.contains(cause));
            let kept = fact.is_some_and(|fact| {
                let grounds = ctx_compaction::SourceIndex::of(&said, None, &[]);
                audit(&text, std::slice::from_ref(fact), &grounds).missing.is_empty()
            });
            if !is_told || !kept {
                wrong += &format!("{cause}: told {is_told}, {fact:?} kept {kept}\n{text}\n\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn an_error_that_is_gone_is_told_as_gone_or_not_at_all() {
    let fail = r#"A> bash {"command":"cargo build"}\nR! error[E0308]: mismatched types\n  --> src/a.rs:1:1"#
        .replace("\\nR!", "\nR!");
    let script = format!(
        "U: build it\n{fail}\nA> edit {{\"path\":\"src/a.rs\"}}\nR: ok\n\
         A> bash {{\"command\":\"cargo build\"}}\nR: Finished dev target(s)\nA: It builds."
    );
    let said = session(&script);
    assert!(required_facts(&said).iter().all(|fact| fact.kind != FactKind::Failure));
    assert!(!summary(&script, None).contains("mismatched types"));
}

#[test]
fn what_was_put_off_stays_open() {
    check(&[
        (
            "U: add the export and its docs\nA: Added the export in `src/export.rs`. The docs page I skipped for now.\nU: good, now the import\nA: Wrote the import in `src/import.rs`.\nU: and the flag?\nA: The flag `--from` is there.",
            &[("Next Steps", "The docs page I skipped for now.")],
            &[],
        ),
        (
            "U: add the export\nA: The export is in `src/export.rs`. Error messages are a TODO.\nU: now the import\nA: Wrote it.\nU: and the flag?\nA: It is there.",
            &[("Next Steps", "Error messages are a TODO.")],
            &[],
        ),
        (
            "U: add the export\nA: The export is in `src/export.rs`. Large files I left for a follow-up.\nU: now the import\nA: Wrote it.\nU: and the flag?\nA: It is there.",
            &[("Next Steps", "Large files I left for a follow-up.")],
            &[],
        ),
        (
            "U: add the export\nA: The export is in `src/export.rs`. I will do the retry on timeouts later.\nU: now the import\nA: Wrote it.\nU: and the flag?\nA: It is there.",
            &[("Next Steps", "I will do the retry on timeouts later.")],
            &[],
        ),
        (
            "U: add the export\nA: The export is in `src/export.rs`, but the migration is not done yet.\nU: now the import\nA: Wrote it.\nU: and the flag?\nA: It is there.",
            &[("Next Steps", "the migration is not done yet")],
            &[],
        ),
        (
            "U: add the export. We'll look at the Windows build later.\nA: The export is in `src/export.rs`.\nU: now the import\nA: Wrote it.\nU: and the flag?\nA: It is there.",
            &[("Next Steps", "We'll look at the Windows build later.")],
            &[],
        ),
        (
            "U: 加上导出功能\nA: 导出已经写好，在 `src/export.rs`。导出的文档以后再做。\nU: 现在做导入\nA: 写好了。\nU: 参数呢？\nA: 在那里。",
            &[("Next Steps", "导出的文档以后再做。")],
            &[],
        ),
        (
            "U: 加上导出功能\nA: 导出已经写好，大文件的处理暂时跳过。\nU: 现在做导入\nA: 写好了。\nU: 参数呢？\nA: 在那里。",
            &[("Next Steps", "大文件的处理暂时跳过")],
            &[],
        ),
        (
            "U: 加上导出功能\nA: 导出在 `src/export.rs`。待办：给导出加上测试。\nU: 现在做导入\nA: 写好了。\nU: 参数呢？\nA: 在那里。",
            &[("Next Steps", "给导出加上测试")],
            &[],
        ),
        // Postponed work that was done since is not open.
        (
            "U: add the export and its docs\nA: Added the export. The docs page of the export I skipped for now.\nU: good, now write it\nA: Wrote the docs page of the export in `docs/export.md`.\nU: and the flag?\nA: It is there.",
            &[("Done", "Wrote the docs page of the export")],
            &["skipped for now"],
        ),
    ]);
}

#[test]
fn a_fix_that_was_taken_back_is_not_told_as_done() {
    check(&[
        (
            "U: fix the login\nA> edit {\"path\":\"src/login.rs\"}\nR: ok\nA: Fixed the login in `src/login.rs` with a retry loop.\nU: no, that makes it worse\nA> bash {\"command\":\"git checkout -- src/login.rs\"}\nR: Updated 1 path from the index\nA: It is as before now.",
            &[],
            &["[x] Fixed the login", "Reverted by the user"],
        ),
        (
            "U: fix the login\nA> bash {\"command\":\"git commit -am 'Retry the login'\"}\nR: [main 4f2a9c1] Retry the login\\n 1 file changed\nA: Done.\nU: that broke signup, take it back\nA> bash {\"command\":\"git revert --no-edit 4f2a9c1\"}\nR: [main 77aa001] Revert \"Retry the login\"\\n 1 file changed\nA: It is back to what it was.",
            &[("Done", "Revert \"Retry the login\"")],
            &["[x] Commit [main 4f2a9c1] Retry the login"],
        ),
    ]);
}

/// A session in which the user says something after a first and a second change.
fn told_after(said: &str) -> (bool, bool) {
    let script = format!(
        "U: add a cache\nA> edit {{\"path\":\"src/cache.rs\"}}\nR: ok\nA: Added the cache in `src/cache.rs`.\n\
         U: now the login\nA> edit {{\"path\":\"src/login.rs\"}}\nR: ok\nA: Fixed the login in `src/login.rs` with a retry loop.\n\
         U: {said}\nA: I see.\nU: what about the docs page?"
    );
    let text = summary(&script, None);
    let holds = |line: &str| {
        let is_done = text.contains(&format!("- [x] {line}"));
        let is_reverted = text.contains(&format!("- Reverted by the user: {line}"));
        assert!(is_done != is_reverted, "{said}: {text}");
        is_done
    };
    (holds("Added the cache in"), holds("Fixed the login in"))
}

#[test]
fn what_the_user_reverted_is_not_told_as_done() {
    for said in [
        "I reverted your changes",
        "undo that, I rolled it back",
        "I've reverted it, can you find another way?",
        "that broke signup. I did a git reset --hard",
        "git reset --hard by me",
        "我把改动撤回了",
        "Das ging nicht, ich habe es rückgängig gemacht.",
    ] {
        assert_eq!(told_after(said), (true, false), "{said}");
    }
    assert_eq!(told_after("I reverted src/cache.rs"), (false, true));
    assert_eq!(told_after("I rolled back everything"), (false, false));
    for said in [
        "please revert your changes",
        "should I have reverted your changes?",
        "if I rolled it back, would signup work?",
        "I haven't reverted your changes",
        "the migration was rolled back by the database",
        "我没有撤回改动",
    ] {
        assert_eq!(told_after(said), (true, true), "{said}");
    }
}

#[test]
fn a_demand_that_was_withdrawn_does_not_stand_beside_its_withdrawal() {
    check(&[
        (
            "U: Use npm for the frontend. Never touch vendor/.\nA: ok\nU: forget npm, use pnpm instead\nA: ok\nU: and the tests?\nA: They pass.",
            &[
                ("Constraints & Preferences", "use pnpm instead"),
                ("Constraints & Preferences", "Never touch vendor/."),
            ],
            &["Use npm for the frontend"],
        ),
        (
            "U: Always write the changelog in German. Keep lines under 80.\nA: ok\nU: never mind about the changelog in German\nA: ok\nU: and the tests?\nA: They pass.",
            &[("Constraints & Preferences", "Keep lines under 80.")],
            &["- Always write the changelog in German."],
        ),
        (
            "U: 必须用 Redis 做缓存。不要改数据库。\nA: 好\nU: Redis 缓存不用了，算了，用内存就行\nA: 好\nU: 测试呢？\nA: 通过了。",
            &[("Constraints & Preferences", "不要改数据库")],
            &["- 必须用 Redis 做缓存"],
        ),
    ]);
}

#[test]
fn advice_and_statements_are_not_told_as_done() {
    check(&[
        (
            "U: How do I get my sourdough to rise?\nA: Make sure the starter is fed. Once the dough has been moved to the fridge it rises slowly. Baking is completed when the crust is brown. Created in 1849, Boudin is the oldest bakery there.\nU: And the salt?\nA: Salt is added after the autolyse. Updated recipes use 2%.",
            &[],
            &["[x]"],
        ),
        (
            "U: Tips for my CV?\nA: 1. **Completed projects**: list what you implemented and deployed.\\n2. **Skills**: keep them updated.\\n3. Your degree should be added first.\nU: thanks! And the letter?\nA: Published letters of others are a good start. The best ones are finished in one page.",
            &[],
            &["[x]"],
        ),
        // Work that the agent reports as done counts even without a tool.
        (
            "U: Rewrite the second paragraph\nA: I rewrote the second paragraph and removed the adjectives from it.\nU: ok\nA: I've added a closing line, too.",
            &[
                ("Done", "I rewrote the second paragraph"),
                ("Done", "I've added a closing line, too."),
            ],
            &[],
        ),
    ]);
}

#[test]
fn a_chosen_option_is_told_with_what_it_says() {
    let ask = "U: how shall we store sessions?";
    let table = r"A: | Option | Store | Cost |\n|---|---|---|\n| A | Redis cluster | $40 |\n| B | Signed cookies | $0 |\n| C | Postgres table | $5 |\n\nWhich one do you want?";
    let list =
        r"A: 1. Redis cluster\n2. Signed cookies\n3. Postgres table\n\nWhich one do you want?";
    let bold = r"A: **Option 1: Redis cluster** costs most\n\n**Option 2: Signed cookies** need no server\n\nWhich one?";
    let chinese = r"A: 1. Redis 集群\n2. 签名 Cookie\n3. 数据库表\n\n你希望用哪一个？";
    let rows: &[(&str, &str, &str)] = &[
        (table, "B", "Signed cookies"),
        (table, "option C please", "Postgres table"),
        (list, "2", "Signed cookies"),
        (list, "option 2", "Signed cookies"),
        (bold, "option 2, and keep it small", "Signed cookies"),
        (chinese, "2", "签名 Cookie"),
    ];
    for (options, answer, chosen) in rows {
        let text = summary(&format!("{ask}\n{options}\nU: {answer}\nA: ok"), None);
        let decided = under(&text, "Key Decisions").into_iter().find(|l| l.contains("→ user: "));
        let decided = decided.unwrap_or_default();
        assert!(decided.contains(chosen) && decided.contains(answer), "{answer}\n{text}");
        for other in ["Redis", "Signed", "Postgres", "签名", "数据库"] {
            assert!(!decided.contains(other) || chosen.contains(other), "{answer}\n{text}");
        }
    }
}

#[test]
fn go_on_is_no_ask_where_there_is_a_real_one() {
    let mut script = "U: 请把支付模块从 PHP 迁移到 Go，保持接口不变\nA: 好的，开始。\n".to_owned();
    for go_on in [
        "请继续",
        "继续。",
        "请继续吧",
        "continue",
        "please continue",
        "请接着做",
        "keep going",
        "好的，请继续",
    ] {
        script += &format!("U: {go_on}\nA: 这一部分迁移好了。\n");
    }
    let text = summary(&script, None);
    let goal = under(&text, "Goal");
    assert!(goal.iter().any(|line| line.contains("请把支付模块从 PHP 迁移到 Go")), "{text}");
    for go_on in ["继续", "continue", "keep going", "接着做"] {
        assert!(!goal.iter().any(|line| line.contains(go_on)), "{text}");
    }
}

#[test]
fn demands_stand_in_whole_clauses_and_pasted_errors_are_none() {
    check(&[
        (
            "U: Change the parser only (the lexer stays, don't touch it. nothing else), and then run the tests. Keep it small.\nA: ok\nU: and?\nA: yes",
            &[("Constraints & Preferences", "nothing else), and then run the tests.")],
            &["- nothing else), and"],
        ),
        (
            "U: I get this:\\n\\nerror: the field `name` must not be empty\\nWARN pool: must be at least 4 connections\\n2024-05-01 10:00:01 INFO retry: only 3 attempts allowed\\nnpm ERR! You must provide the URL\\nTypeError: argument must be a string\\n    at must (a.js:1:2)\\n\\nNever change the schema.\nA: ok\nU: and?\nA: yes",
            &[("Constraints & Preferences", "Never change the schema.")],
            &["- WARN", "- 2024-05-01", "- npm ERR!"],
        ),
    ]);
}

#[test]
fn of_two_values_of_one_thing_the_later_is_told_or_both_in_order() {
    for (script, old, new) in [
        (
            "U: note: the timeout is 30s for uploads\nA: ok\nU: the timeout is now 60s for uploads\nA: ok\nU: and the tests?\nA: They pass.",
            "timeout is 30s",
            "timeout is now 60s",
        ),
        (
            "U: check the pool\nA: The pool holds 20 connections because of `POOL_SIZE`.\nU: and now?\nA: The pool now holds 50 connections because of `POOL_SIZE`.\nU: and the tests?\nA: They pass.",
            "pool holds 20",
            "pool now holds 50",
        ),
        (
            "U: 注意：上传服务的端口是 8080\nA: 好的\nU: 上传服务的端口现在改成 9090\nA: 好的\nU: 测试呢？\nA: 通过了。",
            "端口是 8080",
            "端口现在改成 9090",
        ),
        (
            "U: 注意：上传服务的端口是8080\nA: 好的\nU: 现在改成9090\nA: 好的\nU: 测试呢？\nA: 通过了。",
            "端口是8080",
            "上传服务的端口是9090 (was 8080)",
        ),
    ] {
        let text = summary(script, None);
        assert!(text.contains(new), "{text}");
        let marked = text.lines().filter(|line| line.contains(old));
        assert_eq!(marked.count(), 0, "{text}");
    }
}

#[test]
fn a_blocked_item_goes_only_when_it_is_done_itself() {
    let previous = "## Progress\n### Blocked\n- Deploy to staging waits for the VPN account [e:p1]\n\n\
        ## Next Steps\n1. write the release notes [e:p2]";
    let script = |words: &str| format!("U: and the parser?\nA: {words}\nU: ok\nA: Fine.");
    let done = "Everything is done, all green, committed as 9c41e07.";
    let text = summary(&script(done), Some(previous));
    assert!(holds(&text, BLOCKED, "waits for the VPN account"), "{text}");
    assert!(!text.contains("release notes"), "{text}");
    let own = "I deployed it to staging: the VPN account is there, so nothing waits any more.";
    let text = summary(&script(own), Some(previous));
    assert!(!holds(&text, BLOCKED, "waits for the VPN account"), "{text}");
}
