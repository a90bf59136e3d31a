//! Summaries that clients ask their own model for.

use ctx_dialect::wire::{Protocol, answer_text};
use ctx_testkit::provider::{FailureKind, FakeProvider, Step};

use super::*;

pub(super) const RULE: &str = "Never push to the branch stable-7.";
pub(super) const CLAUDE: &str =
    "CRITICAL: Respond with TEXT ONLY. [...] an <analysis> and a <summary> block.";
pub(super) const SUMMARY: &str = "1. Primary Request: the user wants the rivers described.";
pub(super) const MESSAGES: &str = "/v1/messages";
const CHAT: &str = "/v1/chat/completions";
const GEMINI: &str = "/v1beta/models/gemini-2.5-flash:generateContent";

fn by(compaction: &'static str) -> Set {
    let config = match compaction {
        "ctx" => "{ server: { summaries: 'extractive', clientCompaction: 'ctx' } }",
        "off" => "{ server: { summaries: 'extractive', clientCompaction: 'off' } }",
        _ => "{ server: { summaries: 'extractive' } }",
    };
    Set { config, ..Set::default() }
}

/// Starts a provider whose model writes a summary without the rule.
pub(super) fn provider() -> FakeProvider {
    let step = |request: &ctx_testkit::provider::Request| match request
        .json
        .to_string()
        .contains(CLAUDE)
    {
        true => Step::text(format!("<analysis>Hm.</analysis>\n<summary>\n{SUMMARY}\n</summary>")),
        false => Step::text("done"),
    };
    FakeProvider::builder().respond(step).start().unwrap()
}

/// Returns a conversation with a rule, without instructions.
pub(super) fn conversation() -> Vec<Value> {
    let mut all = talk(8, 100).split_off(1);
    all[0] = user(format!("Describe the rivers in /maps/river0.txt. {RULE}"));
    all
}

pub(super) fn anthropic(messages: &[Value]) -> Value {
    json!({ "model": "m", "max_tokens": 100, "messages": messages })
}

pub(super) fn with(mut messages: Vec<Value>, last: Value) -> Vec<Value> {
    if messages.last().is_some_and(|message| message["role"] == last["role"]) {
        messages.push(json!({ "role": "assistant", "content": "River 3." }));
    }
    messages.push(last);
    messages
}

/// Returns what Claude Code sends after its compaction.
pub(super) fn continued(summary: &str) -> Vec<Value> {
    let text = format!(
        "This session is being continued from a previous conversation.\nSummary:\n{summary}\n\nGo on."
    );
    vec![
        user(text),
        json!({ "role": "assistant", "content": "River 3." }),
        user("And the shortest river?"),
    ]
}

#[tokio::test]
async fn what_the_summary_of_a_client_lost_is_put_back() {
    let rig = Rig::new(provider(), by("audit")).await;
    let history = conversation();
    rig.post(MESSAGES, &anthropic(&history)).await;
    let asked = anthropic(&with(history, user(CLAUDE)));
    let got = rig.post(MESSAGES, &asked).await;
    assert!(got.body.contains("Primary Request") && rig.last().json == asked, "{got:?}");

    let body = anthropic(&continued(SUMMARY));
    rig.post(MESSAGES, &body).await;
    let first = rig.last().json["messages"][0].to_string();
    assert!(first.contains(SUMMARY) && first.contains(RULE) && !first.contains("[e:"), "{first}");
    assert_eq!(first.matches("left this out").count(), 1, "{first}");
    // It stays the same in later requests.
    let more = with(continued(SUMMARY), user("Thanks."));
    rig.post(MESSAGES, &anthropic(&more)).await;
    assert_eq!(rig.last().json["messages"][0].to_string(), first);
    assert_eq!(rig.last().json["messages"].as_array().unwrap().len(), 5);

    let sessions = rig.proxy.trace().sessions();
    let records = sessions.iter().flat_map(|session| &session.requests);
    let made: Vec<_> = records.filter_map(|record| record.compaction.as_ref()).collect();
    assert_eq!(made.len(), 1, "{made:?}");
    let audit = &made[0].details.as_ref().unwrap()["receipt"]["audit"];
    assert!(made[0].summary == SUMMARY && audit["missing"].as_u64() > Some(0), "{made:?}");
    assert!(rig.notes.lock().unwrap()[0].contains("of the facts kept"));

    // Another user gets nothing of it.
    let other = [("x-api-key", "other"), ("content-type", "application/json")];
    rig.send(Method::POST, MESSAGES, &other, body.to_string()).await;
    assert_eq!(rig.last().json, body);
}

#[tokio::test]
async fn what_a_summary_lost_is_put_back_after_a_restart() {
    let rig = Rig::new(provider(), by("audit")).await;
    rig.post(MESSAGES, &anthropic(&with(conversation(), user(CLAUDE)))).await;
    rig.post(MESSAGES, &anthropic(&continued(SUMMARY))).await;
    let first = rig.last().json["messages"][0].clone();
    assert!(first.to_string().contains(RULE), "{first}");
    let (home, provider) = rig.end().await;
    let saved = home.path().join("proxy/summaries");
    std::fs::write(saved.join("torn.jsonl"), "{\"owner\":").unwrap();

    let rig = Rig::at(home, provider, by("audit")).await;
    let more = with(continued(SUMMARY), user("Thanks."));
    rig.post(MESSAGES, &anthropic(&more)).await;
    assert_eq!(rig.last().json["messages"][0], first);
    assert_eq!(rig.proxy.trace().sessions().len(), 2, "its conversation goes on");
    // A summary of that summary is audited too.
    rig.post(MESSAGES, &anthropic(&with(more, user(CLAUDE)))).await;
    rig.post(MESSAGES, &anthropic(&continued(SUMMARY))).await;
    assert!(rig.last().json["messages"][0].to_string().contains(RULE));
    // Another key gets nothing of it.
    let other = [("x-api-key", "other"), ("content-type", "application/json")];
    let body = anthropic(&continued(SUMMARY));
    rig.send(Method::POST, MESSAGES, &other, body.to_string()).await;
    assert_eq!(rig.last().json, body);
}

#[tokio::test]
async fn a_failed_or_unaudited_summary_changes_nothing() {
    let failing = FakeProvider::builder().respond(|request| {
        match request.json.to_string().contains(CLAUDE) {
            true => Step::error(FailureKind::RateLimited),
            false => Step::text("done"),
        }
    });
    for (provider, set) in [(failing.start().unwrap(), by("audit")), (provider(), by("off"))] {
        let rig = Rig::new(provider, set).await;
        rig.post(MESSAGES, &anthropic(&with(conversation(), user(CLAUDE)))).await;
        let body = anthropic(&continued(SUMMARY));
        rig.post(MESSAGES, &body).await;
        assert_eq!(rig.last().json, body);
    }
}

#[tokio::test]
async fn a_long_summary_in_small_pieces_is_audited_and_a_short_one_is_not_looked_for() {
    let long = format!("{SUMMARY} {}", "More of it follows here. ".repeat(400));
    for (summary, is_audited) in [(long.as_str(), true), ("ok", false)] {
        let text = format!("<summary>{summary}</summary>");
        let builder = FakeProvider::builder().respond(move |request| {
            match request.json.to_string().contains(CLAUDE) {
                true => Step::text(&*text),
                false => Step::text("done"),
            }
        });
        let rig = Rig::new(builder.start().unwrap(), by("audit")).await;
        let mut asked = anthropic(&with(conversation(), user(CLAUDE)));
        asked["stream"] = json!(true);
        rig.post(MESSAGES, &asked).await;
        let body = anthropic(&continued(summary.trim()));
        rig.post(MESSAGES, &body).await;
        assert_eq!(rig.last().json.to_string().contains(RULE), is_audited);
    }
}

#[tokio::test]
async fn the_summary_of_codex_is_found_after_many_messages_of_the_user() {
    let ask = "You are performing a CONTEXT CHECKPOINT COMPACTION. Create a handoff summary.";
    let step = move |request: &ctx_testkit::provider::Request| match request
        .json
        .to_string()
        .contains(ask)
    {
        true => Step::text(SUMMARY),
        false => Step::text("done"),
    };
    let provider = FakeProvider::builder().respond(step).start().unwrap();
    let rig = Rig::new(provider, by("audit")).await;
    let item = |text: &str| {
        json!({ "type": "message", "role": "user",
        "content": [{ "type": "input_text", "text": text }] })
    };
    let body = |items: &[Value]| json!({ "model": "m", "input": items });
    let mut items: Vec<Value> = (0..12).map(|n| item(&format!("Describe river {n}."))).collect();
    rig.post("/v1/responses", &body(&[&items[..], &[item(RULE), item(ask)]].concat())).await;
    items.push(item(&format!("Another language model started to solve this problem.\n{SUMMARY}")));
    items.push(item("Go on."));
    rig.post("/v1/responses", &body(&items)).await;
    let sent = rig.last().json;
    // It is an item of its own, without what the client keeps itself.
    let added = sent["input"][13].to_string();
    assert!(added.contains("left this out") && added.contains(RULE), "{sent}");
    assert!(!added.contains("Describe river"), "{added}");
    assert_eq!(sent["input"].as_array().unwrap().len(), 15);
}

#[tokio::test]
async fn ctx_writes_the_summary_of_claude_code() {
    for streams in [true, false] {
        let rig = Rig::new(provider(), by("ctx")).await;
        let mut body = anthropic(&with(conversation(), user(CLAUDE)));
        body["stream"] = json!(streams);
        let got = rig.post(MESSAGES, &body).await;
        let text = answer_text(Protocol::Messages, got.body.as_bytes());
        assert!(text.starts_with("<summary>\n") && text.ends_with("\n</summary>"), "{got:?}");
        assert!(text.contains(RULE) && text.contains("/maps/river7.txt"), "{text}");
        assert!(!text.contains("[e:") && !text.contains("TEXT ONLY"), "{text}");
        assert_eq!(rig.provider.count(), 0, "the model is not asked");
        let record = rig.records().await.pop().unwrap();
        assert!(record.compaction.is_some() && record.status == Some(200), "{record:?}");
    }
}

#[tokio::test]
async fn a_summary_is_audited_against_the_history_that_it_is_of() {
    let rig = Rig::new(provider(), by("audit")).await;
    let said = |text: &str| json!({ "role": "assistant", "content": text });
    let first = user("Describe the rivers.");
    let history = vec![first.clone(), said("Which?"), user(RULE), said("Yes.")];
    rig.post(MESSAGES, &anthropic(&with(history, user(CLAUDE)))).await;
    // The conversation goes on from its beginning, without the rule.
    rig.post(MESSAGES, &anthropic(&[first, said("All of them?"), user("Yes.")])).await;
    assert_eq!(rig.proxy.trace().sessions().len(), 1);
    rig.post(MESSAGES, &anthropic(&continued(SUMMARY))).await;
    assert!(rig.last().json["messages"][0].to_string().contains(RULE), "{}", rig.last().json);
}

#[tokio::test]
async fn a_rule_survives_many_compactions_of_the_client() {
    for by_ctx in [true, false] {
        let rig = Rig::new(provider(), by(if by_ctx { "ctx" } else { "audit" })).await;
        let mut history = conversation();
        for round in 0..4 {
            rig.post(MESSAGES, &anthropic(&history)).await;
            assert!(
                rig.last().json.to_string().contains(RULE),
                "{by_ctx} {round} {}",
                rig.last().json
            );
            let got = rig.post(MESSAGES, &anthropic(&with(history, user(CLAUDE)))).await;
            let text = answer_text(Protocol::Messages, got.body.as_bytes());
            let (_, text) = text.split_once("<summary>").expect("a summary");
            history = continued(text.split("</summary>").next().unwrap().trim());
            history[2] = user(format!("And the river number {round} in /maps/more{round}.txt?"));
        }
    }
}

#[tokio::test]
async fn ctx_writes_the_summary_of_gemini_cli_and_repeats_it() {
    let rig = Rig::new(provider(), by("ctx")).await;
    let content = |role: &str, text: &str| json!({ "role": role, "parts": [{ "text": text }] });
    let mut contents: Vec<Value> = conversation()
        .iter()
        .map(|message| {
            let role = if message["role"] == "user" { "user" } else { "model" };
            content(role, message["content"].as_str().unwrap())
        })
        .collect();
    contents.push(content("model", "River 3."));
    contents.push(content("user", "Generate a new <state_snapshot> based on the history."));
    let system = "You are a specialized system component responsible for distilling chat history.";
    let mut body = json!({ "systemInstruction": { "parts": [{ "text": system }] } });
    let mut texts = Vec::<String>::new();
    for ask in ["", "Critically evaluate the <state_snapshot> you just generated."] {
        if let Some(last) = texts.last() {
            contents.pop();
            contents.push(content("model", last));
            contents.push(content("user", ask));
        }
        body["contents"] = json!(contents);
        let got = rig.post(GEMINI, &body).await;
        texts.push(answer_text(Protocol::Gemini, got.body.as_bytes()));
    }
    assert!(texts[0].starts_with("<state_snapshot>\n") && texts[0].contains(RULE), "{texts:?}");
    assert_eq!(texts[0], texts[1]);
    assert_eq!(rig.provider.count(), 0);
}

#[tokio::test]
async fn ctx_writes_the_summary_of_a_conversation_that_is_quoted() {
    let rig = Rig::new(provider(), by("ctx")).await;
    let headers = [("authorization", "Bearer k"), ("x-session-id", "ses_1")];
    let post = async |messages: &[Value]| {
        let body = json!({ "model": "m", "stream": true, "messages": messages });
        rig.send(Method::POST, CHAT, &headers, body.to_string()).await
    };
    let system = |text: &str| json!({ "role": "system", "content": text });
    post(&[vec![system("You are an agent.")], conversation()].concat()).await;
    let quoted =
        "Here is the conversation so far:\n\n<conversation>\n[User]: [...]\n</conversation>";
    let ask = [system("You are a context summarization agent."), user(quoted)];
    let got = post(&ask).await;
    let text = answer_text(Protocol::Chat, got.body.as_bytes());
    assert!(text.contains(RULE) && text.contains("/maps/river7.txt"), "{text}");
    assert_eq!(rig.provider.count(), 1);
    // Its receipt belongs to the request that has the summary.
    post(&[user("What did we do so far?"), json!({ "role": "assistant", "content": text })]).await;
    let sessions = rig.proxy.trace().sessions();
    let records = sessions.iter().flat_map(|session| &session.requests);
    assert_eq!(records.filter(|record| record.compaction.is_some()).count(), 1);
    // In another session there is nothing to summarise: the model is asked.
    let other = [("authorization", "Bearer k"), ("x-session-id", "ses_2")];
    let body = json!({ "model": "m", "messages": ask }).to_string();
    rig.send(Method::POST, CHAT, &other, body.clone()).await;
    assert_eq!(
        rig.last().json.to_string(),
        serde_json::from_str::<Value>(&body).unwrap().to_string()
    );
}

const PI: &str = "You are a context summarization assistant. [...]";

/// Starts a provider that answers the requests of pi with these summaries, in turns.
fn pi_provider(summaries: &'static [&'static str]) -> FakeProvider {
    let asked = std::sync::atomic::AtomicUsize::new(0);
    let step = move |request: &ctx_testkit::provider::Request| match request.json["messages"][0]["content"]
        == PI
    {
        true => {
            let nth = asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Step::text(summaries[nth % summaries.len()])
        }
        false => Step::text("done"),
    };
    FakeProvider::builder().respond(step).start().unwrap()
}

fn said(text: &str) -> Value {
    json!({ "role": "assistant", "content": text })
}

fn chat(system: &str, messages: &[Value]) -> Value {
    let system = json!({ "role": "system", "content": system });
    let all = [&[system], messages].concat();
    json!({ "model": "m", "messages": all })
}

/// Returns pi's request for a summary of these messages.
fn pi_asks(messages: &[Value], previous: &str) -> Value {
    let part = |message: &Value| {
        let label = if message["role"] == "user" { "User" } else { "Assistant" };
        format!("[{label}]: {}", message["content"].as_str().unwrap())
    };
    let parts: Vec<_> = messages.iter().map(part).collect();
    let quoted = format!("<conversation>\n{}\n</conversation>\n\n{previous}", parts.join("\n\n"));
    chat(PI, &[user(format!("{quoted}The messages above are a conversation to summarize."))])
}

/// Returns what pi sends after its compaction.
fn pi_continues(summary: &str, kept: &[Value]) -> Value {
    let text = format!(
        "The conversation history before this point was compacted into the following \
         summary:\n\n<summary>\n{summary}\n</summary>"
    );
    chat("You are pi.", &[&[user(text)], kept].concat())
}

const MORE: &str = "## Goal\nThe user wants every river to be described in a file.";

#[tokio::test]
async fn what_a_summary_of_quoted_messages_lost_is_put_back() {
    let rig = Rig::new(pi_provider(&[SUMMARY, MORE]), by("audit")).await;
    let history = conversation();
    rig.post(CHAT, &chat("You are pi.", &history)).await;
    // Other conversations of the same key, and the same one of another key.
    let other = [user("Describe the lakes. Never push to lake-9."), said("Which?"), user("All.")];
    rig.post(CHAT, &chat("You are pi.", &other)).await;
    let (asked, kept) = (pi_asks(&history[..6], ""), &history[6..]);
    let body = rig.post(CHAT, &asked).await.body;
    assert!(body.contains("Primary Request") && rig.last().json == asked, "{body}");
    // The beginning of a turn has a summary of its own.
    rig.post(CHAT, &pi_asks(&kept[..2], "")).await;
    let both = format!("{SUMMARY}\n\n---\n\n**Turn Context (split turn):**\n\n{MORE}");
    let after = pi_continues(&both, &kept[2..]);
    rig.post(CHAT, &after).await;
    let first = rig.last().json["messages"][1].to_string();
    assert!(first.contains(RULE) && first.contains("/maps/river2.txt"), "{first}");
    assert!(first.contains("/maps/river3.txt"), "what the beginning of the turn lost: {first}");
    assert!(!first.contains("/maps/river4.txt"), "what is kept: {first}");
    assert!(!first.contains("lake-9"), "{first}");
    let sessions = rig.proxy.trace().sessions();
    let records = sessions.iter().flat_map(|session| &session.requests);
    assert_eq!(records.filter(|record| record.compaction.is_some()).count(), 1);

    // The summary is brought up to date.
    let kept = [&kept[2..], &[said("River 3."), user("And the shortest?")]].concat();
    rig.post(CHAT, &pi_continues(&both, &kept)).await;
    let previous = format!("<previous-summary>\n{both}\n</previous-summary>\n\n");
    rig.post(CHAT, &pi_asks(&kept[..1], &previous)).await;
    rig.post(CHAT, &pi_continues(SUMMARY, &kept[1..])).await;
    let first = rig.last().json["messages"][1].to_string();
    assert!(first.contains(RULE), "{first}");
}

#[tokio::test]
async fn what_the_summary_of_a_branch_lost_is_put_back_beside_another() {
    let rig = Rig::new(pi_provider(&[SUMMARY, MORE]), by("audit")).await;
    let history = conversation();
    rig.post(CHAT, &chat("You are pi.", &history)).await;
    rig.post(CHAT, &pi_asks(&history[..2], "")).await;
    let branch = [&history[..], &[said("River 3."), user("Never mention lake-9.")]].concat();
    rig.post(CHAT, &chat("You are pi.", &branch)).await;
    rig.post(CHAT, &pi_asks(&branch[17..], "")).await;
    let of_branch = format!(
        "The following is a summary of a branch that this conversation came back from:\n\n\
         <summary>\n{MORE}</summary>"
    );
    let kept = [&history[2..], &[user(of_branch), user("Go on.")]].concat();
    rig.post(CHAT, &pi_continues(SUMMARY, &kept)).await;
    let sent = rig.last().json["messages"].as_array().unwrap().clone();
    assert_eq!(sent.len(), kept.len() + 2);
    let (first, last) = (sent[1].to_string(), sent[kept.len()].to_string());
    assert!(first.contains(RULE) && !first.contains("lake-9"), "{first}");
    assert!(last.contains("lake-9") && !last.contains(RULE), "{last}");
}

#[tokio::test]
async fn only_a_conversation_with_the_quoted_messages_is_used() {
    let history = conversation();
    let rig = Rig::new(pi_provider(&[SUMMARY]), by("ctx")).await;
    let post = async |key: &str, body: &Value| {
        let headers = [("authorization", key), ("content-type", "application/json")];
        let got = rig.send(Method::POST, CHAT, &headers, body.to_string()).await;
        answer_text(Protocol::Chat, got.body.as_bytes())
    };
    post("Bearer other", &chat("You are pi.", &history)).await;
    let part = [&history[..3], &[user("Something else.")]].concat();
    post("Bearer k", &chat("You are pi.", &part)).await;
    // The model writes it, and what it lost of the text is put back.
    assert_eq!(post("Bearer k", &pi_asks(&history, "")).await, SUMMARY);
    post("Bearer k", &pi_continues(SUMMARY, &[user("Go on.")])).await;
    let first = rig.last().json["messages"][1].to_string();
    assert!(first.contains(RULE) && !first.contains("Something else"), "{first}");
    // A client may add the time and lines of its own to a message.
    let stamped = |message: &Value| match message["role"] == "user" {
        true => user(format!("[Sun 04:39 UTC] {}\n\nhost=a", message["content"].as_str().unwrap())),
        false => message.clone(),
    };
    let stamped: Vec<_> = history.iter().map(stamped).collect();
    post("Bearer k", &chat("You are OpenClaw.", &stamped)).await;
    let text = post("Bearer k", &pi_asks(&history, "")).await;
    assert!(text != SUMMARY && text.contains(RULE), "{text}");
}

#[tokio::test]
async fn ctx_writes_the_summary_of_quoted_messages() {
    for compaction in ["ctx", "off"] {
        let rig = Rig::new(pi_provider(&[SUMMARY]), by(compaction)).await;
        let history = conversation();
        rig.post(CHAT, &chat("You are pi.", &history)).await;
        let got = rig.post(CHAT, &pi_asks(&history[..6], "")).await;
        let text = answer_text(Protocol::Chat, got.body.as_bytes());
        let is_own = compaction == "ctx";
        assert_eq!(text.contains(RULE) && text.contains("/maps/river2.txt"), is_own, "{text}");
        assert!(!text.contains("/maps/river7.txt"), "only what is quoted: {text}");
        let after = pi_continues(&text, &history[6..]);
        rig.post(CHAT, &after).await;
        assert_eq!(rig.last().json, after, "nothing is put back");
        let sessions = rig.proxy.trace().sessions();
        let records = sessions.iter().flat_map(|session| &session.requests);
        assert_eq!(
            records.filter(|record| record.compaction.is_some()).count(),
            usize::from(is_own)
        );
    }
}
