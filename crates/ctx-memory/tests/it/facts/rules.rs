use ctx_core::{Role, Timestamp};
use ctx_memory::facts::{FactCandidate, FactKind, SourceMessage, find_facts};

fn read(talk: &[(Role, &str)]) -> Vec<FactCandidate> {
    let ids: Vec<String> = (0..talk.len()).map(|at| format!("e{at}")).collect();
    let said = talk.iter().zip(&ids).map(|((role, text), entry)| SourceMessage {
        entry: entry.into(),
        session: "s",
        role,
        timestamp: Timestamp(1),
        text,
    });
    find_facts(&said.collect::<Vec<_>>())
}

fn found(text: &str) -> Vec<(FactKind, String)> {
    let found = read(&[(Role::User, text)]);
    found.into_iter().map(|c| (c.kind, c.content)).collect()
}

#[test]
fn lasting_statements_of_the_user_are_found_word_for_word() {
    use FactKind::{Architecture, Config, Constraint, Decision, Personal};
    for (text, kind, content) in [
        (
            "ok let's use PostgreSQL instead of MySQL",
            Decision,
            "let's use PostgreSQL instead of MySQL",
        ),
        (
            "We've decided to drop support for Node 16.",
            Decision,
            "We've decided to drop support for Node 16",
        ),
        (
            "I've chosen SQLite as the database because it's lightweight, can you help?",
            Decision,
            "I've chosen SQLite as the database because it's lightweight",
        ),
        (
            "Always use British spelling in the docs.",
            Constraint,
            "Always use British spelling in the docs",
        ),
        ("Don't touch the migrations folder.", Constraint, "Don't touch the migrations folder"),
        (
            "Please keep the bundle size under 150 KB, can you?",
            Constraint,
            "Please keep the bundle size under 150 KB",
        ),
        (
            "Remove the retry wrapper again because it hides timeouts.",
            Decision,
            "Remove the retry wrapper again because it hides timeouts",
        ),
        (
            "我们决定采用 PostgreSQL 而不是 MySQL。",
            Decision,
            "我们决定采用 PostgreSQL 而不是 MySQL",
        ),
        ("以后提交信息都用英文。", Constraint, "以后提交信息都用英文"),
        ("默认超时设置为30秒", Config, "默认超时设置为30秒"),
        ("Verwende immer pnpm im Frontend.", Constraint, "Verwende immer pnpm im Frontend"),
        ("My name is Ada, can you help me?", Personal, "My name is Ada"),
        (
            "The staging server listens on port 3000.",
            Config,
            "The staging server listens on port 3000",
        ),
        (
            "The backend is split into three services with a Redis queue between them.",
            Architecture,
            "The backend is split into three services with a Redis queue between them",
        ),
    ] {
        assert_eq!(found(text), [(kind, content.to_owned())], "{text}");
    }
}

#[test]
fn talk_doubt_questions_requests_code_and_output_are_left_out() {
    for text in [
        "Hey! Good to see you! How have you been?",
        "Thanks, that works great!",
        "Please add a test for the parser.",
        "Maybe we should use Redis instead of Memcached.",
        "We could switch to Postgres for storage at some point.",
        "Should we use Redis instead of Memcached?",
        "What if the server runs on port 3000?",
        "If the port is 3000, the tests fail because of the proxy.",
        "I haven't decided to use Kafka yet.",
        "I'm thinking of going with Flask for the backend.",
        "Let's keep going and reach success together",
        "For now, set the timeout to 5 seconds to debug it.",
        "```\nport = 3000\nlet's use X instead of Y\n```",
        "> We decided to use MySQL.",
        "2024-03-01 12:00:01 ERROR the server failed because of a timeout",
        "{\"port\": 3000, \"note\": \"we decided to use X\"}",
        "也许我们可以采用 Redis",
        "要不要改用 PostgreSQL？",
        "It is set to 5.",
        "<recalled-context source=\"memory-context\">\n- [decision] We decided to use Redis\n</recalled-context>",
        "<relevant_context>\nWe decided to use Redis for sessions.\n</relevant_context>",
        "We decided to use the header Authorization: Bearer Zk3v9QpL8xWm2RtY7uBn for staging.",
        "We decided to use postgres://admin:s3cr3tPw9@db.internal:5432/app for staging.",
        "We've decided to use the key [redacted:openai-key] for staging.",
        "",
    ] {
        assert_eq!(found(text), [], "{text}");
    }
    let fact = "We decided to use Redis for sessions.";
    for role in [Role::Assistant, Role::System, Role::ToolResult, Role::Custom] {
        assert_eq!(read(&[(role.clone(), fact)]), [], "{role:?}");
    }
}

#[test]
fn a_chosen_option_is_a_decision_with_the_question_it_answers() {
    let offer =
        "Two ways:\n\nA. **On commit** - one call\nB. **On demand** - lazy\n\nWhich timing?";
    let talk = [(Role::Assistant, offer), (Role::User, "B, it leaves us room. Thanks!")];
    let found = read(&talk);
    assert_eq!(found[0].kind, FactKind::Decision);
    assert_eq!(found[0].content, "Which timing? On demand - lazy");
    assert_eq!(found[0].context, "B, it leaves us room. Thanks!");
    assert_eq!(found[0].source_entry_ids, ["e1"]);
    let by_tool = [(Role::ToolResult, offer), (Role::User, "B")];
    assert_eq!(read(&by_tool), []);
    let twice = [(Role::Assistant, offer), (Role::User, "why?"), (Role::User, "B")];
    assert_eq!(read(&twice), []);
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
        let found = found(&text);
        assert!(found.len() <= 8, "{found:?}");
        assert!(found.iter().all(|(_, content)| content.chars().count() <= 240));
    }
}
