//! Any transcript gives an accepted and deterministic request.

use ctx_core::{Block, Image, Message, RawJson, Role};
use ctx_dialect::hygiene::{Rules, Thoughts, clean};
use ctx_dialect::{anthropic, openai_chat, openai_responses};
use proptest::prelude::*;
use serde_json::Value;

use crate::accepted::{refusal, texts, written};
use crate::random::{anything, sensible};

fn providers() -> Vec<Rules> {
    let of = |api: &str, provider: &str, model: &str| Rules::of(api, provider, model);
    let chat = |provider: &str, model: &str| of("openai-completions", provider, model);
    vec![
        of("anthropic-messages", "anthropic", "claude-sonnet-4-5"),
        of("openai-responses", "openai", "gpt-5"),
        chat("openai", "gpt-4o"),
        chat("mistral", "mistral-large-latest"),
        chat("vllm", "org/Devstral-Small"),
        chat("google", "gemini-2.5-pro"),
        chat("deepseek", "deepseek-chat"),
        chat("openrouter", "anthropic/claude-sonnet-4.5"),
        chat("llamacpp", "qwen3").in_turn(),
        chat("ollama", "qwen3:8b"),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_from_any_messages_are_accepted(messages in anything()) {
        for rules in providers() {
            let out = written(&messages, &rules);
            let why = refusal(&out, &rules);
            prop_assert!(why.is_none(), "{} {}: {why:?}\n{out:#?}", rules.provider, rules.api);
        }
    }

    #[test]
    fn the_same_conversation_always_gives_the_same_bytes(messages in anything()) {
        for rules in providers() {
            prop_assert_eq!(texts(&messages, &rules), texts(&messages, &rules));
        }
    }

    #[test]
    fn a_longer_conversation_keeps_the_bytes_of_its_beginning(messages in sensible()) {
        for rules in providers() {
            if rules.thoughts == Thoughts::NamedThisTurn {
                continue;
            }
            let whole = texts(&messages, &rules);
            // Each answer marks the end of an earlier request.
            let ends = (1..messages.len()).filter(|at| messages[*at].role == Role::Assistant);
            for at in ends {
                let part = texts(&messages[..at], &rules);
                prop_assert_eq!(&part[..], &whole[..part.len()], "{} {}", rules.provider, at);
            }
        }
    }

    #[test]
    fn a_sensible_conversation_loses_no_call_and_no_result(messages in sensible()) {
        let calls: usize = messages.iter().map(|message| message.tool_calls().count()).sum();
        for rules in providers() {
            let clean = clean(&messages, &rules);
            let kept: usize = clean.iter().map(|message| message.tool_calls().count()).sum();
            let results: usize = clean.iter().map(|message| message.tool_results().count()).sum();
            prop_assert_eq!((kept, results), (calls, calls));
            let made_up = clean.iter().flat_map(|message| message.tool_results());
            let made_up = made_up.filter(|result| format!("{result:?}").contains("no result"));
            prop_assert_eq!(made_up.count(), 0);
        }
    }
}

#[test]
fn without_cleaning_every_provider_refuses() {
    let odd = [
        r#"{"role":"assistant","content":[{"type":"toolCall","id":"é id","name":"a/b","arguments":5}]}"#,
        r#"{"role":"toolResult","toolCallId":"nobody","content":[]}"#,
    ];
    let odd = odd.map(read);
    for rules in providers() {
        let raw: Vec<RawJson> = match rules.api.as_str() {
            "anthropic-messages" => anthropic::write(&odd).messages,
            "openai-responses" => openai_responses::write(&odd),
            _ => openai_chat::write(&odd),
        };
        let raw: Vec<_> =
            raw.iter().map(|json| serde_json::from_str(json.as_str()).unwrap()).collect();
        assert!(refusal(&raw, &rules).is_some(), "{} {raw:#?}", rules.provider);
        assert_eq!(refusal(&written(&odd, &rules), &rules), None);
    }
}

fn rules(api: &str, provider: &str, model: &str) -> Rules {
    Rules::of(api, provider, model)
}

fn read(json: &str) -> Message {
    ctx_dialect::pi::parse(json).expect("a message")
}

#[test]
fn unchanged_messages_are_not_copied() {
    let messages = [
        Message::text(Role::User, "read it"),
        read(
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"t","thinkingSignature":"EqQB"},{"type":"toolCall","id":"toolu_1","name":"read","arguments":{"p":1.50}}],"provider":"anthropic","model":"m","stopReason":"toolUse"}"#,
        ),
        Message::tool_result("toolu_1", "done"),
    ];
    let clean = clean(&messages, &rules("anthropic-messages", "anthropic", "m"));
    assert_eq!(clean.len(), 3);
    for message in clean {
        assert!(matches!(message, std::borrow::Cow::Borrowed(_)), "{message:?}");
    }
}

#[test]
fn reasoning_is_sent_back_only_to_its_own_model() {
    let thought = |maker: &str, model: &str, signature: &str| {
        read(&format!(
            r#"{{"role":"assistant","content":[{{"type":"thinking","thinking":"t","thinkingSignature":"{signature}"}},{{"type":"text","text":"x"}}],"provider":"{maker}","model":"{model}","stopReason":"stop"}}"#
        ))
    };
    let goes_back = |message: Message, rules: &Rules| {
        let messages = [Message::text(Role::User, "a"), message, Message::text(Role::User, "b")];
        texts(&messages, rules)[1].contains("\"t\"")
    };
    let claude = rules("anthropic-messages", "anthropic", "claude-a");
    assert!(goes_back(thought("anthropic", "claude-a", "EqQB"), &claude));
    assert!(!goes_back(thought("anthropic", "claude-b", "EqQB"), &claude));
    assert!(!goes_back(thought("bedrock", "claude-a", "EqQB"), &claude));
    assert!(!goes_back(thought("anthropic", "claude-a", "reasoning"), &claude));
    let local = rules("openai-completions", "vllm", "qwen3");
    assert!(goes_back(thought("vllm", "qwen3", "reasoning_content"), &local));
    assert!(!goes_back(thought("vllm", "other", "reasoning_content"), &local));
    // This provider does not accept reasoning from before the last user message.
    let deepseek = rules("openai-completions", "deepseek", "r");
    assert!(!goes_back(thought("deepseek", "r", "reasoning_content"), &deepseek));
    let messages = [Message::text(Role::User, "a"), thought("deepseek", "r", "reasoning_content")];
    assert!(texts(&messages, &deepseek)[1].contains("\"t\""));
}

#[test]
fn a_failed_answer_keeps_its_complete_parts() {
    let answer = |stop: &str| {
        read(&format!(
            r#"{{"role":"assistant","content":[{{"type":"text","text":"half a"}},{{"type":"toolCall","id":"a","name":"read","arguments":{{}}}},{{"type":"toolCall","id":"b","name":"read","arguments":{{}}}}],"stopReason":"{stop}"}}"#
        ))
    };
    let local = rules("openai-completions", "ollama", "m");
    let out = |stop: &str, results: &[&str]| {
        let mut messages = vec![Message::text(Role::User, "q"), answer(stop)];
        messages.extend(results.iter().map(|id| Message::tool_result(*id, "r")));
        messages.push(Message::text(Role::User, "again"));
        let roles = written(&messages, &local).into_iter().map(|message| {
            let calls = message["tool_calls"].as_array().map_or(0, Vec::len);
            format!("{} {calls}", message["role"].as_str().unwrap_or_default())
        });
        roles.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(out("error", &[]), "user 0, user 0");
    assert_eq!(out("aborted", &[]), "user 0, assistant 0, user 0");
    assert_eq!(out("error", &["b"]), "user 0, assistant 1, tool 0, user 0");
    assert_eq!(out("toolUse", &["b"]), "user 0, assistant 2, tool 0, tool 0, user 0");
}

#[test]
fn images_get_their_real_type_and_become_text_for_models_without_vision() {
    let picture = |mime: &str, data: &str, is_url: bool| {
        let image = Image { mime_type: mime.to_owned(), data: data.into(), is_url };
        [Message::new(Role::User, vec![Block::Image(image), Block::text("see")])]
    };
    let shown = |message: &[Message], rules: &Rules| -> Value {
        written(message, rules)[0]["content"][0].clone()
    };
    let claude = rules("anthropic-messages", "anthropic", "m");
    let mislabelled = picture("image/png", "/9j/4AAQ", false);
    assert_eq!(shown(&mislabelled, &claude)["source"]["media_type"], "image/jpeg");
    for (mime, data, is_url) in [
        ("image/bmp", "Qk0x", false),
        ("image/svg+xml", "PHN2Zz4=", false),
        ("image/png", "iVBOR not base64", false),
        ("", "file:///etc/passwd", true),
    ] {
        let block = shown(&picture(mime, data, is_url), &claude);
        assert_eq!(block["type"], "text", "{block}");
        assert!(!block.to_string().contains(data), "{block}");
    }
    let blind = rules("openai-completions", "deepseek", "m");
    let text = written(&mislabelled, &blind)[0]["content"].to_string();
    assert!(text.contains("[image: image/png]"), "{text}");
}

#[test]
fn mistral_gets_a_model_message_between_tools_and_user() {
    let mut result = Message::tool_result("toolu_1", "a chart");
    if let Block::ToolResult(result) = &mut result.blocks[0] {
        let data = "iVBORw0KGgo=".into();
        let image = Image { mime_type: "image/png".to_owned(), data, is_url: false };
        result.content.push(Block::Image(image));
    }
    let call = r#"{"role":"assistant","content":[{"type":"toolCall","id":"toolu_1","name":"draw","arguments":{}}]}"#;
    let messages =
        [Message::text(Role::User, "draw"), read(call), result, Message::text(Role::User, "and?")];
    let out = written(&messages, &rules("openai-completions", "mistral", "mistral-large"));
    let roles: Vec<_> = out.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "user"]);
    let id = out[1]["tool_calls"][0]["id"].as_str().unwrap();
    assert_eq!((id.len(), &out[2]["tool_call_id"]), (9, &Value::from(id)));
    assert!(out[4].to_string().contains("iVBORw0KGgo=") && out[4].to_string().contains("and?"));
}
