//! Histories that do not fit, and stay cut.

use ctx_dialect::openai_chat;
use ctx_testkit::provider::{FakeProvider, Step};

use super::*;

fn provider() -> FakeProvider {
    FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap()
}

/// Returns the messages that the provider received.
fn sent(request: &ctx_testkit::provider::Request) -> Vec<Value> {
    request.json["messages"].as_array().cloned().unwrap_or_default()
}

/// Checks that each call has its result and each result its call.
fn pairs_are_whole(messages: &[Value]) {
    let read: Vec<_> =
        messages.iter().map(|m| openai_chat::parse(&m.to_string()).unwrap()).collect();
    ctx_core::check_pairs(&read).unwrap_or_else(|error| panic!("{error:?} {messages:?}"));
}

#[tokio::test]
async fn a_history_that_does_not_fit_is_cut_to_the_budget() {
    let rig = Rig::new(provider(), Set::default()).await;
    let all = session(30, 1_500);
    let got = rig.chat(&all).await;
    assert_eq!(got.status, 200, "{got:?}");
    let asked = rig.last();
    assert!(asked.prompt.tokens() < 12_500, "{} tokens", asked.prompt.tokens());
    let out = sent(&asked);
    pairs_are_whole(&out);
    assert_eq!(out[0], all[0], "the system prompt stays");
    assert_eq!(out.last(), all.last(), "the newest result stays");
    let record = rig.records().await.remove(0);
    assert!(record.fits && record.raw_tokens > record.limit, "{record:?}");
    assert!(record.sent_tokens <= record.limit);
    assert!(!record.actions.is_empty() || record.compaction.is_some());
}

#[tokio::test]
async fn cuts_stay_while_the_conversation_grows() {
    let rig = Rig::new(provider(), Set::default()).await;
    let mut all = session(24, 1_500);
    let mut before: Vec<Value> = Vec::new();
    let mut compacted = 0;
    for n in 24..40 {
        rig.chat(&all).await;
        let now = sent(&rig.last());
        pairs_are_whole(&now);
        let record = rig.records().await.pop().unwrap();
        if record.compaction.is_some() || !record.actions.is_empty() {
            compacted += 1;
        } else {
            assert_eq!(now[..before.len()], before[..], "request {n} changed its beginning");
        }
        assert!(record.sent_tokens <= record.limit, "{record:?}");
        before = now;
        all.extend(work(n, 300));
    }
    assert!((1..8).contains(&compacted), "{compacted} of 16 requests were cut again");
}

#[tokio::test]
async fn cuts_stay_after_a_restart() {
    stays_after_a_restart(session(30, 1_500)).await;
}

#[tokio::test]
async fn a_summary_stays_after_a_restart() {
    stays_after_a_restart(talk(40, 600)).await;
}

async fn stays_after_a_restart(all: Vec<Value>) {
    let mut rig = Rig::new(provider(), Set::default()).await;
    rig.chat(&all).await;
    let first = sent(&rig.last());
    let id = rig.proxy.trace().sessions()[0].info.id.clone();
    let (home, provider) = rig.end().await;
    rig = Rig::at(home, provider, Set::default()).await;
    rig.chat(&all).await;
    assert_eq!(sent(&rig.last()), first);
    let mut grown = all.clone();
    grown.push(json!({ "role": "assistant", "content": "I have read them." }));
    grown.push(user("And?"));
    rig.chat(&grown).await;
    assert_eq!(sent(&rig.last())[..first.len()], first[..]);
    let again = rig.proxy.trace().of_session(&id).expect("the same conversation");
    let numbers: Vec<u64> = again.requests.iter().map(|record| record.number).collect();
    assert_eq!(numbers, [0, 1, 2]);
}

#[tokio::test]
async fn evicted_conversations_are_reloaded_unchanged() {
    let config = "{ server: { summaries: 'extractive', maxConversations: 1 } }";
    let rig = Rig::new(provider(), Set { config, ..Set::default() }).await;
    let all = session(30, 1_500);
    rig.chat(&all).await;
    let first = sent(&rig.last());
    for n in 0..5 {
        rig.chat(&[user(format!("Something else, {n}."))]).await;
    }
    assert_eq!(rig.proxy.conversations.count(), 1);
    rig.chat(&all).await;
    assert_eq!(sent(&rig.last()), first);
}

#[tokio::test]
async fn a_new_instruction_with_each_request_does_not_undo_the_cut() {
    let rig = Rig::new(provider(), Set::default()).await;
    let mut all = session(30, 1_500);
    rig.chat(&all).await;
    let first = sent(&rig.last());
    all[0] = json!({ "role": "system", "content": "Be brief. It is a minute later." });
    rig.chat(&all).await;
    let second = sent(&rig.last());
    assert_eq!(second[0], all[0]);
    assert_eq!(second[1..], first[1..]);
    assert_eq!(rig.proxy.trace().sessions().len(), 1);
}

#[tokio::test]
async fn moved_cache_markers_change_nothing() {
    let rig = Rig::new(provider(), Set::default()).await;
    let path = "/v1/messages";
    let marked = |text: &str| {
        let mark = json!({ "type": "ephemeral" });
        json!([{ "type": "text", "text": text, "cache_control": mark }])
    };
    let first = json!({ "model": "m", "max_tokens": 100, "messages": [
        { "role": "user", "content": marked("hello") } ] });
    let second = json!({ "model": "m", "max_tokens": 100, "messages": [
        { "role": "user", "content": [{ "type": "text", "text": "hello" }] },
        { "role": "assistant", "content": "hi" },
        { "role": "user", "content": marked("and now?") } ] });
    for body in [&first, &second] {
        assert_eq!(rig.post(path, body).await.status, 200);
        assert_eq!(rig.last().body, body.to_string().as_bytes());
    }
    assert_eq!(rig.records().await.len(), 2);
}

#[tokio::test]
async fn two_keys_share_no_conversation() {
    let rig = Rig::new(provider(), Set::default()).await;
    let body = json!({ "model": "m", "messages": [user("hi")] }).to_string();
    for key in ["Bearer one", "Bearer two", "Bearer one"] {
        let headers = [("authorization", key), ("session-id", "same")];
        rig.send(Method::POST, "/v1/chat/completions", &headers, body.clone()).await;
    }
    let mut sizes: Vec<usize> =
        rig.proxy.trace().sessions().iter().map(|session| session.requests.len()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 2]);
}

#[tokio::test]
async fn a_conversation_that_diverges_early_is_a_new_one() {
    let rig = Rig::new(provider(), Set::default()).await;
    let all = session(30, 1_500);
    rig.chat(&all).await;
    let first = sent(&rig.last());
    let mut other = all[..30].to_vec();
    other.push(user("Something else altogether."));
    rig.chat(&other).await;
    pairs_are_whole(&sent(&rig.last()));
    assert_eq!(rig.proxy.trace().sessions().len(), 2);
    rig.chat(&all).await;
    assert_eq!(sent(&rig.last()), first, "the other conversation is unchanged");
    // A regenerated answer does not start a new conversation.
    let mut again = all.clone();
    again.pop();
    again.pop();
    again.push(user("Try again."));
    rig.chat(&again).await;
    assert_eq!(rig.proxy.trace().sessions().len(), 2);
}

#[tokio::test]
async fn a_compaction_can_be_undone() {
    let rig = Rig::new(provider(), Set::default()).await;
    let all = talk(40, 600);
    rig.chat(&all).await;
    let record = rig.records().await.remove(0);
    let compaction = record.compaction.clone().expect("it was compacted");
    let entry = compaction.entry_id.expect("it has a summary");
    assert!(rig.proxy.undo(&record.session, "nothing").await.is_err());
    rig.proxy.undo(&record.session, &entry).await.unwrap();
    assert!(rig.records().await[0].compaction.as_ref().unwrap().undone);
    assert!(rig.proxy.undo(&record.session, &entry).await.is_err(), "already undone");
    rig.chat(&all).await;
    let again = rig.records().await.pop().unwrap();
    assert!(again.fits);
    assert_ne!(again.compaction.clone().and_then(|compaction| compaction.entry_id), Some(entry));
}

#[tokio::test]
async fn records_contain_entries_without_secrets() {
    let rig = Rig::new(provider(), Set::default()).await;
    let secret = "sk-proj-aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF";
    let headers = [("authorization", "Bearer sk-the-key-itself-0123456789")];
    // The secret crosses the end of the recorded text.
    let text = format!("{} key {secret} is mine", "x ".repeat(30));
    let body = json!({ "model": "m", "messages": [user(text)] });
    rig.send(Method::POST, "/v1/chat/completions", &headers, body.to_string()).await;
    let session = rig.proxy.trace().sessions().remove(0);
    let record = rig.proxy.trace().record(&session.info.id, 0).unwrap().unwrap();
    assert_eq!(record.entries.len(), 1);
    assert!(record.entries[0].begins.text().starts_with("x x "));
    let mut folders = vec![rig.home.path().to_owned()];
    while let Some(folder) = folders.pop() {
        for file in std::fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            for hidden in ["aB3dE6", "sk-the-key-itself"] {
                assert!(!text.contains(hidden), "{} contains {hidden}", path.display());
            }
        }
    }
}

#[tokio::test]
async fn a_summary_is_never_applied_to_a_similar_conversation() {
    let mut rig = Rig::new(provider(), Set::default()).await;
    rig.chat(&talk(40, 600)).await;
    assert!(rig.records().await[0].compaction.is_some());
    let (home, provider) = rig.end().await;
    rig = Rig::at(home, provider, Set::default()).await;
    // The same first message, then a different history that fits.
    let mut other = talk(40, 600);
    other.truncate(2);
    for n in 0..60 {
        other.push(json!({ "role": "assistant", "content": format!("Another answer, {n}.") }));
        other.push(user(format!("Another question, {n}?")));
    }
    for _ in 0..2 {
        rig.chat(&other).await;
        assert_eq!(sent(&rig.last()), other);
        other.push(json!({ "role": "assistant", "content": "Well." }));
        other.push(user("And?"));
    }
}

/// Two models, one with a window that is too small for anything.
const MODELS: &str = "{ server: { summaries: 'extractive' }, models: { providers: { p: { models: [
    { id: 'm', contextWindow: 16000 }, { id: 'tiny', contextWindow: 2000 } ] } } } }";

#[tokio::test]
async fn another_model_does_not_change_the_cuts() {
    let set = Set { window: None, config: MODELS, ..Set::default() };
    let rig = Rig::new(provider(), set).await;
    let all = talk(40, 600);
    rig.chat(&all).await;
    let first = sent(&rig.last());
    assert!(first.len() < all.len());
    // A window under the minimum: the request passes unchanged, with a warning.
    let tiny = json!({ "model": "tiny", "messages": all });
    assert_eq!(rig.post("/v1/chat/completions", &tiny).await.status, 200);
    assert_eq!(sent(&rig.last()), all);
    let untouched = |text: &&String| text.contains("requests pass unchanged:");
    assert_eq!(rig.warnings.lock().unwrap().iter().filter(untouched).count(), 1);
    rig.chat(&all).await;
    assert_eq!(sent(&rig.last()), first);
}

#[tokio::test]
async fn a_long_answer_has_its_reserve() {
    let rig = Rig::new(provider(), Set::default()).await;
    for (n, answer) in [100, 6_000, 9_000, 100_000].into_iter().enumerate() {
        let mut all = talk(40, 600);
        all[1] = user(format!("Conversation {n}."));
        let body = json!({ "model": "m", "messages": all, "max_tokens": answer });
        assert_eq!(rig.post("/v1/chat/completions", &body).await.status, 200);
        let prompt = rig.last().prompt.tokens();
        let most = (16_000 - answer.max(4_000)).max(6_000) as u64;
        assert!(prompt <= most + most / 20, "{prompt} tokens with an answer limit of {answer}");
    }
}
