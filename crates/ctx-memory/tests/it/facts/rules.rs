use ctx_core::{Role, Timestamp};
use ctx_memory::facts::{FactKind, Rules, SourceMessage};

fn found(role: &Role, text: &str) -> Vec<(FactKind, String)> {
    let rules = Rules::default();
    let said = SourceMessage { entry: "e1", session: "s", role, timestamp: Timestamp(1), text };
    rules.find(&[said]).into_iter().map(|c| (c.kind, c.content)).collect()
}

/// Facts that must be found in messages of the user and of the model.
#[test]
fn statements_are_found_and_shortened() {
    use FactKind::{Architecture, Config, Decision, Implementation, Issue, TaskState};
    for (role, text, kind, content) in [
        (
            Role::User,
            "ok let's use PostgreSQL instead of MySQL",
            Decision,
            "Use PostgreSQL instead of MySQL",
        ),
        (
            Role::User,
            "We've decided to drop support for Node 16.",
            Decision,
            "Drop support for Node 16",
        ),
        (
            Role::User,
            "I've chosen SQLite as the database because it's lightweight, can you help?",
            Decision,
            "Chosen SQLite as the database because it's lightweight",
        ),
        (
            Role::User,
            "Always use British spelling in the docs.",
            Decision,
            "Always use British spelling in the docs",
        ),
        (
            Role::User,
            "Don't touch the migrations folder.",
            Decision,
            "Don't touch the migrations folder",
        ),
        (
            Role::User,
            "我们决定采用 PostgreSQL 而不是 MySQL。",
            Decision,
            "决定采用 PostgreSQL 而不是 MySQL",
        ),
        (
            Role::Assistant,
            "All hook handlers now use `getAgent()` instead of `detect()`.",
            Decision,
            "All hook handlers now use `getAgent()` instead of `detect()`",
        ),
        (
            Role::User,
            "We migrated from Jenkins to GitHub Actions last week.",
            Decision,
            "We migrated from Jenkins to GitHub Actions last week",
        ),
        (
            Role::Assistant,
            "The webhook endpoint is /api/stripe/webhook.",
            Implementation,
            "The webhook endpoint is /api/stripe/webhook",
        ),
        (
            Role::Assistant,
            "1. **Renamed** `ensureMeta` → `ensureEntire` in `common.go`",
            Implementation,
            "Renamed `ensureMeta` → `ensureEntire` in `common.go`",
        ),
        (
            Role::Assistant,
            "I've added `retry()` to src/client.ts.",
            Implementation,
            "Added `retry()` to src/client.ts",
        ),
        (Role::User, "I want it to run on port 5000, can you help me?", Config, "Run on port 5000"),
        (
            Role::Assistant,
            "The debounce delay is set to 300ms.",
            Config,
            "The debounce delay is set to 300ms",
        ),
        (
            Role::Assistant,
            "`MAX_RETRIES` defaults to 5 in production.",
            Config,
            "`MAX_RETRIES` defaults to 5 in production",
        ),
        (Role::User, "默认超时设置为30秒", Config, "默认超时设置为30秒"),
        (
            Role::User,
            "I keep getting the \"TemplateNotFound\" error when I render pages",
            Issue,
            "Getting the \"TemplateNotFound\" error when I render pages",
        ),
        (
            Role::Assistant,
            "The root cause is that `Detect()` iterates over a map without order.",
            Issue,
            "The root cause is that `Detect()` iterates over a map without order",
        ),
        (
            Role::User,
            "The login test fails in staging because the certificate expired",
            Issue,
            "The login test fails in staging because the certificate expired",
        ),
        (Role::User, "登录测试失败，因为证书过期了", Issue, "登录测试失败，因为证书过期了"),
        (
            Role::Assistant,
            "The refund logic is not yet implemented.",
            TaskState,
            "The refund logic is not yet implemented",
        ),
        (
            Role::Assistant,
            "- [ ] write the migration guide",
            TaskState,
            "TODO: Write the migration guide",
        ),
        (Role::User, "退款逻辑还没有实现", TaskState, "退款逻辑还没有实现"),
        (
            Role::User,
            "I've completed the user registration feature",
            TaskState,
            "Completed the user registration feature",
        ),
        (
            Role::User,
            "The backend is split into three services with a Redis queue between them.",
            Architecture,
            "The backend is split into three services with a Redis queue between them",
        ),
        (Role::User, "整个系统采用事件驱动架构", Architecture, "整个系统采用事件驱动架构"),
    ] {
        assert_eq!(found(&role, text), [(kind, content.to_owned())], "{text}");
    }
}

/// Text in which no fact must be found.
#[test]
fn talk_doubt_questions_advice_code_and_output_are_left_out() {
    for text in [
        "Hey! Good to see you! How have you been?",
        "Thanks, that works great!",
        "Maybe we should use Redis instead of Memcached.",
        "We could switch to Postgres for storage at some point.",
        "Should we use Redis instead of Memcached?",
        "What if the server runs on port 3000?",
        "If the port is 3000, the tests fail because of the proxy.",
        "I haven't decided to use Kafka yet.",
        "I'm thinking of going with Flask for the backend.",
        "Let me check whether the server runs on port 3000.",
        "Let's keep going and reach success together",
        "For now, set the timeout to 5 seconds to debug it.",
        "```\nport = 3000\nlet's use X instead of Y\n```",
        "> We decided to use MySQL.",
        "| Port | 3000 |\n|---|---|\n| Host | a is set to b |",
        "2024-03-01 12:00:01 ERROR the server failed because of a timeout",
        "    at connect (src/db.ts:12) failed because of a timeout",
        "{\"port\": 3000, \"note\": \"we decided to use X\"}",
        "let note = we decided to use MySQL;",
        "bash({\"command\":\"echo we decided to use MySQL\"})",
        "## We decided to use MySQL",
        "也许我们可以采用 Redis",
        "要不要改用 PostgreSQL？",
        "你好，谢谢！",
        "It is set to 5.",
        "Task 1 is complete.",
        "<recalled-context source=\"memory-context\">\n- [decision] We decided to use Redis\n</recalled-context>",
        "<relevant_context>\nWe decided to use Redis for sessions.\n</relevant_context>",
        "We decided to use the header Authorization: Bearer Zk3v9QpL8xWm2RtY7uBn for staging.",
        "We decided to use postgres://admin:s3cr3tPw9@db.internal:5432/app for staging.",
        "We've decided to use the key [redacted:openai-key] for staging.",
        "",
    ] {
        assert_eq!(found(&Role::User, text), [], "{text}");
    }
    for text in [
        "You can use Redis instead of Memcached.",
        "Set the timeout to 30 seconds in your config.",
        "Caching: the TTL is set to 5 minutes.",
        "Now let me add `retry()` to src/client.ts.",
        "I'll now switch to using `fetch` instead of `axios`.",
        "For example, the server runs on port 3000.",
    ] {
        assert_eq!(found(&Role::Assistant, text), [], "{text}");
    }
    let fact = "We decided to use Redis for sessions.";
    for role in [Role::System, Role::ToolResult, Role::Custom, Role::CompactionSummary] {
        assert_eq!(found(&role, fact), [], "{role:?}");
    }
}

#[test]
fn prose_and_tasks_are_found_among_code_output_tables_and_quotations() {
    let text = "We decided to use Redis for sessions.\n```\nport = 1\n```\n> quoted\n| a | b |\n\
                    at f (a.js:1)\n{\"a\": 1}\n2024-01-01 00:00 started\n## Next\n\
                - [ ] write docs\n- [x] release notes\n1. We chose tags for it\nlet x = 1;\n\
                bash({\"command\":\"echo we use MySQL\"})";
    let contents: Vec<String> = found(&Role::User, text).into_iter().map(|(_, c)| c).collect();
    assert_eq!(
        contents,
        [
            "TODO: Write docs",
            "Done: Release notes",
            "Use Redis for sessions",
            "We chose tags for it"
        ]
    );
}

#[test]
fn hostile_text_is_read_in_reasonable_time_and_yields_little() {
    for text in [
        "we decided to ".repeat(20_000),
        "`".repeat(200_001),
        "](".repeat(100_000),
        "[".repeat(100_000) + &"](x)".repeat(50_000),
        "用".repeat(100_000),
        "port 3000, and we ".repeat(20_000),
        "Let's use X instead of Y.\n".repeat(20_000),
        "\u{202e}\u{0}\u{fffd} the port is 3000".into(),
    ] {
        let found = found(&Role::User, &text);
        assert!(found.len() <= 8, "{found:?}");
        assert!(found.iter().all(|(_, content)| content.chars().count() <= 240));
    }
}
