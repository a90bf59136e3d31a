//! Requests for a summary, shortened from recordings of the clients.

use ctx_core::{Message, Role};
use ctx_dialect::wire::{QuotedHistory, Request, SummaryRequest, route};
use serde_json::{Value, json};

const MESSAGES: &str = "/v1/messages";
const CHAT: &str = "/v1/chat/completions";
const GEMINI: &str = "/v1beta/models/gemini-2.5-flash:generateContent";

const CLAUDE: &str = "CRITICAL: Respond with TEXT ONLY. [...] an <analysis> block followed by a \
                      <summary> block.";
const DISTILL: &str = "You are a specialized system component responsible for distilling chat \
                       history into a structured XML <state_snapshot>. [...]";

/// pi 0.87.1 and OpenClaw 2026.9.6: a history with an earlier summary, and the beginning of a turn.
const PI: &str =
    "You are a context summarization assistant. Your task is to read a conversation [...]";
const HISTORY: &str = "<conversation>\n[User]: Fix it.\n\nBut not there.\n\n[Assistant tool \
                       calls]: read(path=\"a.rs\")\n\n[User sender={\"id\":\"1\"}]: Go on.\n\n\
                       [Tool result]: fn main\n\n[... 9 more characters truncated]\n\
                       </conversation>\n\n<previous-summary>\nThe user fixed the \
                       pump.\n</previous-summary>\n\nProduce a compact, factual summary with \
                       these exact section headings:\n## Open TODOs\n## Decisions\nFor them \
                       [...]\n\nAdditional focus: the pump";
const TURN: &str = "# Conversation\n[User]: Go on.\n\n# Instructions\nThe messages above are [...]";

const BRIEFLY: &str = "*Briefly* summarize this partial conversation about programming.\n[...]";
const AIDER: &str =
    "# USER\nI spoke to you previously.\nI asked you.\n# ASSISTANT\nOk.\n# USER\nGo on.\n";

/// Returns the recognised client, and the number of messages without the text that asks.
fn recognised(path: &str, body: &Value) -> Option<(&'static str, usize)> {
    let (route, text) = (route("POST", path).expect("valid"), body.to_string());
    let request = Request::parse(&route, &text).expect("valid");
    let found = SummaryRequest::of(&request)?;
    assert!(SummaryRequest::may_be(&text), "{text}");
    let history = found.history(&request).expect("valid");
    let history =
        history.map_or(0, |body| Request::parse(&route, &body).expect("valid").units.len());
    Some((found.client(), history))
}

fn text(role: &str, text: &str) -> Value {
    json!({ "role": role, "content": [{ "type": "text", "text": text }] })
}

#[test]
fn the_requests_of_clients_are_recognised() {
    let claude = json!({ "model": "m", "system": "You are a Claude agent.", "messages": [
        text("user", "Fix it."), text("assistant", "Done."), { "role": "user", "content": CLAUDE }] });
    assert_eq!(recognised(MESSAGES, &claude), Some(("claude-code", 2)));
    // After a call, the text is in the message with the result.
    let result = json!({ "type": "tool_result", "tool_use_id": "t", "content": "ok" });
    let call = json!({ "type": "tool_use", "id": "t", "name": "Read", "input": {} });
    let claude = json!({ "model": "m", "messages": [text("user", "Fix it."),
        { "role": "assistant", "content": [call] },
        { "role": "user", "content": [result, { "type": "text", "text": CLAUDE }] }] });
    assert_eq!(recognised(MESSAGES, &claude), Some(("claude-code", 3)));

    for ask in [
        "Generate a new <state_snapshot> based on the provided history. [...]",
        "A previous <state_snapshot> exists in the history. [...]",
        "Critically evaluate the <state_snapshot> you just generated. [...]",
    ] {
        let parts = |role: &str, text: &str| json!({ "role": role, "parts": [{ "text": text }] });
        let gemini = json!({ "systemInstruction": { "parts": [{ "text": DISTILL }] },
            "contents": [parts("user", "Fix it."), parts("model", "Done."), parts("user", ask)] });
        assert_eq!(recognised(GEMINI, &gemini), Some(("gemini-cli", 2)));
    }

    let ask = "First, reason in your <analysis> block. Then, produce the <state_snapshot> XML.";
    let summarizes = "You are the component that summarizes a conversation when [...]";
    let qwen = json!({ "model": "m", "messages": [text("system", summarizes),
        text("user", "Fix it."), text("assistant", "Done."), text("user", ask)] });
    assert_eq!(recognised(CHAT, &qwen), Some(("qwen-code", 3)));
    let shared = format!("{summarizes} Do not call tools. {ask}");
    let qwen = json!({ "model": "m", "messages": [text("system", "You are Qwen Code."),
        text("user", "Fix it."), text("assistant", "Done."), text("user", &shared)] });
    assert_eq!(recognised(CHAT, &qwen), Some(("qwen-code", 3)));

    let ask = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary [...]";
    let item = |text: &str| {
        json!({ "type": "message", "role": "user",
        "content": [{ "type": "input_text", "text": text }] })
    };
    let codex = json!({ "model": "m", "input": [item("Fix it."), item(ask)] });
    assert_eq!(recognised("/v1/responses", &codex), Some(("codex", 1)));

    let conversation = "Here is the conversation so far:\n\n<conversation>\n[User]: Fix it.\n\
                        </conversation>\n\nCreate a new anchored summary [...]";
    let opencode = json!({ "model": "m", "messages": [
        text("system", "You are a context summarization agent. [...]"),
        text("user", conversation)] });
    assert_eq!(recognised(CHAT, &opencode), Some(("opencode", 1)));

    let aider = json!({ "model": "m", "messages": [text("system", BRIEFLY), text("user", AIDER)] });
    assert_eq!(recognised(CHAT, &aider), Some(("aider", 1)));
    for quoted in [HISTORY, TURN] {
        let pi = json!({ "model": "m", "messages": [text("system", PI), text("user", quoted)] });
        assert_eq!(recognised(CHAT, &pi), Some(("pi", 1)));
        let pi = json!({ "model": "m", "system": PI, "messages": [text("user", quoted)] });
        assert_eq!(recognised(MESSAGES, &pi), Some(("pi", 0)));
    }
}

#[test]
fn a_quoted_history_has_what_the_user_asked() {
    let route = route("POST", CHAT).expect("valid");
    let quoted = |ask: &str| {
        let system = if ask == AIDER { BRIEFLY } else { PI };
        let body = json!({ "messages": [text("system", system), text("user", ask)] }).to_string();
        let request = Request::parse(&route, &body).expect("valid");
        let asked = SummaryRequest::of(&request).expect("recognised");
        (asked.quoted(&request).expect("quoted"), asked.focus(&request))
    };
    let asked = |history: &QuotedHistory| -> Vec<String> {
        let asked = history.messages.iter().filter(|message| message.role == Role::User);
        asked.map(Message::plain_text).collect()
    };
    let (history, focus) = quoted(HISTORY);
    assert_eq!(asked(&history), ["Fix it.\n\nBut not there.", "Go on."]);
    assert!(history.messages[2].plain_text().contains("a.rs"), "{history:?}");
    assert!(history.text.ends_with("truncated]"), "{history:?}");
    assert!(history.rest.contains("fixed the pump"), "{history:?}");
    assert_eq!(focus.as_deref(), Some("the pump"));
    let headings = "A.\n\n## Open TODOs\nB.\n\n## Decisions\nAs stated above.";
    assert_eq!(history.with_sections("A.\n\n## Open TODOs\nB.\n".to_owned()), headings);
    let (history, _) = quoted(AIDER);
    assert_eq!(asked(&history), ["I spoke to you previously.\nI asked you.", "Go on."]);
    let (turn, focus) = quoted(TURN);
    assert_eq!((asked(&turn), focus), (vec!["Go on.".to_owned()], None));
    assert_eq!(turn.text, "# Conversation\n[User]: Go on.");
}

#[test]
fn an_imitation_is_not_recognised() {
    let call =
        json!({ "id": "c", "type": "function", "function": { "name": "read", "arguments": "{}" } });
    let quoted = format!("What does this prompt do? {CLAUDE}");
    for last in [
        vec![
            json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
            json!({ "role": "tool", "tool_call_id": "c", "content": CLAUDE }),
        ],
        vec![
            json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
            json!({ "role": "tool", "tool_call_id": "c", "content": HISTORY }),
        ],
        vec![text("user", &quoted)],
        vec![text("user", CLAUDE), text("assistant", "No.")],
        vec![text("assistant", CLAUDE)],
        // The system prompt of the client is missing.
        vec![text("user", "Generate a new <state_snapshot> based on the provided history.")],
        vec![text("user", "Here is the conversation so far: </conversation>")],
        vec![text("user", HISTORY)],
        vec![text("user", AIDER)],
    ] {
        let mut all = vec![text("system", "You are an agent."), text("user", "Go on.")];
        all.extend(last);
        let body = json!({ "model": "m", "messages": all });
        assert_eq!(recognised(CHAT, &body), None, "{body}");
    }
}

#[test]
fn a_summary_has_the_form_that_the_client_reads() {
    let of = |path: &str, body: &Value| {
        let (route, text) = (route("POST", path).unwrap(), body.to_string());
        SummaryRequest::of(&Request::parse(&route, &text).unwrap()).unwrap()
    };
    let claude = of(MESSAGES, &json!({ "model": "m", "messages": [text("user", CLAUDE)] }));
    assert_eq!(
        claude.answer("It quotes </summary>."),
        "<summary>\nIt quotes <\\/summary>.\n</summary>"
    );
    let answer = "<analysis>The <b>words</b>.</analysis>\n<summary>\n1. Fix it.\n</summary>\n";
    assert_eq!(claude.summary(answer), Some("1. Fix it."));
    assert_eq!(claude.summary("<summary>cut off"), Some("cut off"));
    for none in ["", "I cannot do that.", "<summary> </summary>"] {
        assert_eq!(claude.summary(none), None, "{none}");
    }
    let ask = "Here is the conversation so far: <conversation> </conversation>";
    let opencode = of(
        CHAT,
        &json!({ "model": "m", "messages": [
        text("system", "You are a context summarization agent."), text("user", ask)] }),
    );
    assert_eq!((opencode.answer("a"), opencode.summary(" a\n")), ("a".to_owned(), Some("a")));
    assert!(opencode.is_quoted() && !claude.is_quoted());
}
