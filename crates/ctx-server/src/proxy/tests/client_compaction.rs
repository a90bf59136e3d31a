//! Compactions that Codex asks for.

use ctx_dialect::openai_responses;
use ctx_dialect::wire::{Protocol, Watch};
use ctx_testkit::provider::{FakeProvider, Raw, Reply, Step};

use super::*;

const PATH: &str = "/v1/responses";

fn provider() -> FakeProvider {
    FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap()
}

pub(super) fn message(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

/// Returns a call and its result of about `tokens` tokens.
fn read(n: usize, tokens: usize) -> [Value; 2] {
    let id = format!("call_{n}");
    let text = format!("line {n} of the file\n").repeat(tokens / 5);
    let arguments = format!("{{\"path\":\"src/file{n}.rs\"}}");
    [
        json!({ "type": "function_call", "call_id": id, "name": "read", "arguments": arguments }),
        json!({ "type": "function_call_output", "call_id": id, "output": text }),
    ]
}

/// Returns the history of a session that reads some files.
pub(super) fn history(files: usize) -> Vec<Value> {
    let rules = message("developer", "You are a coding agent.");
    let mut all = vec![rules, message("user", "Read the files. Never push to main.")];
    all.extend((0..files).flat_map(|n| read(n, 1_500)));
    all.push(message("assistant", "The files are read."));
    all
}

pub(super) fn body(items: &[Value]) -> Value {
    json!({ "model": "m", "stream": true, "input": items })
}

/// Returns the number of compaction items in an answer.
fn compactions_in(answer: &str) -> usize {
    let mut watch = Watch::new(Protocol::Responses);
    watch.push(answer.as_bytes());
    watch.compactions().len()
}

impl Rig {
    /// Asks for a compaction as Codex does, and returns its item.
    pub(super) async fn compact(&self, history: &[Value]) -> Value {
        let mut items = history.to_vec();
        items.push(json!({ "type": "compaction_trigger" }));
        let got = self.post(PATH, &body(&items)).await;
        assert_eq!((got.status, compactions_in(&got.body)), (StatusCode::OK, 1), "{got:?}");
        let done = got.body.lines().filter_map(|line| line.strip_prefix("data: "));
        let mut done = done.map(|data| serde_json::from_str::<Value>(data).unwrap());
        let is_item = |event: &Value| event["type"] == "response.output_item.done";
        done.find(is_item).unwrap()["item"].clone()
    }

    /// Sends items, and returns the items that the provider received.
    pub(super) async fn received(&self, items: &[Value]) -> Vec<Value> {
        assert_eq!(self.post(PATH, &body(items)).await.status, 200);
        self.last().json["input"].as_array().unwrap().clone()
    }
}

/// Returns the messages that Codex keeps, with the item after them.
pub(super) fn kept(history: &[Value], item: Value) -> Vec<Value> {
    let is_kept = |item: &&Value| matches!(item["role"].as_str(), Some("user" | "developer"));
    history.iter().filter(is_kept).cloned().chain([item]).collect()
}

#[tokio::test]
async fn a_conversation_goes_on_after_compactions_by_ctx() {
    let rig = Rig::new(provider(), Set { window: Some(64_000), ..Set::default() }).await;
    let mut items = history(3);
    for (asked, question) in [(1, "And now?"), (0, "And then?"), (0, "Why?")] {
        let before = rig.provider.count();
        let item = rig.compact(&items).await;
        assert_eq!(rig.provider.count(), before + asked, "the provider is asked once");
        items = kept(&items, item);
        items.push(message("user", question));
        let received = rig.received(&items).await;
        let text = json!(received).to_string();
        assert!(text.contains("Never push to main") && text.contains("src/file0.rs"), "{text}");
        assert!(text.contains("<summary>") && !text.contains("line 0 of the file"), "{text}");
        assert_eq!(received.last(), Some(&message("user", question)));
        items.push(message("assistant", "done"));
    }
    assert_eq!(rig.proxy.trace().sessions().len(), 1);
}

#[tokio::test]
async fn an_undone_compaction_leaves_the_whole_history() {
    let rig = Rig::new(provider(), Set { window: Some(400_000), ..Set::default() }).await;
    let long = history(24);
    let mut next = kept(&long, rig.compact(&long).await);
    next.push(message("user", "And now?"));
    assert!(rig.received(&next).await.len() < long.len());
    let records = rig.records().await;
    let compaction = records[0].compaction.as_ref().expect("a compaction");
    assert!(compaction.details.as_ref().unwrap()["receipt"].is_object());
    let entry = compaction.entry_id.clone().unwrap();
    rig.proxy.undo(&records[0].session, &entry).await.unwrap();
    let noted =
        rig.notes.lock().unwrap().iter().filter(|n| n.contains("of the facts kept")).count();
    assert_eq!(noted, 1);
    let whole: Vec<Value> = long.into_iter().chain([message("user", "And now?")]).collect();
    assert_eq!(rig.received(&next).await, whole);
}

#[tokio::test]
async fn a_short_history_is_not_replaced() {
    let rig = Rig::new(provider(), Set::default()).await;
    let first = history(0);
    let item = rig.compact(&first).await;
    assert_eq!(rig.received(&kept(&first, item)).await, first);
}

#[tokio::test]
async fn a_history_that_cannot_be_compacted_gets_an_item_too() {
    let rig = Rig::new(provider(), Set::default()).await;
    let mut request = body(&history(1));
    request["instructions"] = json!("You are a coding agent. ".repeat(4_000));
    assert_eq!(rig.post(PATH, &request).await.status, 400);
    request["input"].as_array_mut().unwrap().push(json!({ "type": "compaction_trigger" }));
    let got = rig.post(PATH, &request).await;
    assert_eq!((got.status, compactions_in(&got.body)), (StatusCode::OK, 1), "{got:?}");
    let warnings = rig.warnings.lock().unwrap().clone();
    assert!(warnings.iter().any(|text| text.contains("is not compacted")), "{warnings:?}");
}

#[tokio::test]
async fn an_item_is_good_after_a_restart_and_only_for_its_owner() {
    let set = Set {
        config: "{ server: { summaries: 'extractive', compaction: 'ctx' } }",
        ..Set::default()
    };
    let rig = Rig::new(provider(), set.clone()).await;
    let first = history(1);
    let item = rig.compact(&first).await;
    assert_eq!(rig.provider.count(), 0);
    let (home, provider) = rig.end().await;
    let rig = Rig::at(home, provider, set).await;
    let received = json!(rig.received(&kept(&first, item.clone())).await).to_string();
    assert!(received.contains("src/file0.rs"), "{received}");
    let mut forged = item.clone();
    let content = item["encrypted_content"].as_str().unwrap();
    forged["encrypted_content"] = json!(format!("{content}0"));
    let [user, developer] =
        [message("user", "Read the files. Never push to main."), first[0].clone()];
    for (key, item) in [("Bearer other", item.clone()), ("Bearer k", forged)] {
        let body = body(&[developer.clone(), user.clone(), item]).to_string();
        let got = rig.send(Method::POST, PATH, &[("authorization", key)], body).await;
        assert_eq!(got.status, 200);
        let received = rig.last().json["input"].as_array().unwrap().clone();
        assert_eq!(received[..2], [developer.clone(), user.clone()]);
        assert!(received[2].to_string().contains("not available any more"), "{received:?}");
    }
    let lost = |text: &String| text.contains("a part of a history is lost");
    assert_eq!(rig.warnings.lock().unwrap().iter().filter(|text| lost(text)).count(), 1);
}

#[tokio::test]
async fn an_item_is_good_for_a_second_server_of_the_home_and_in_another_conversation() {
    let rig = Rig::new(provider(), Set::default()).await;
    let first = history(1);
    let item = rig.compact(&first).await;
    let second = Rig::beside(&rig, provider()).await;
    let mut other = kept(&first, item);
    other.insert(0, message("user", "Another beginning."));
    for (server, items) in [(&second, &other[1..]), (&rig, &other[..])] {
        let received = json!(server.received(items).await).to_string();
        assert!(received.contains("src/file0.rs"), "{received}");
    }
}

#[tokio::test]
async fn what_compactions_replaced_is_listed_and_read_again() {
    let rig = Rig::new(provider(), Set::default()).await;
    let first = history(1);
    let item = rig.compact(&first).await;
    let mut next = kept(&first, item.clone());
    next.push(message("user", "And now?"));
    rig.compact(&next).await;
    let saved = SavedCompactions::of(&Home::at(rig.home.path()));
    let ids = saved.ids();
    let listed: Vec<_> = ids.iter().map(|id| saved.get(id).unwrap()).collect();
    let [older, newer] = &listed[..] else { panic!("{listed:?}") };
    assert_eq!((older.messages, newer.messages), (first.len(), 1), "{listed:?}");
    assert_eq!((&older.parent, &newer.parent), (&None, &Some(older.id.clone())));
    let session = rig.proxy.trace().sessions()[0].info.id.clone();
    assert!(listed.iter().all(|one| one.session.as_ref() == Some(&session)), "{listed:?}");
    let parse = |item: &Value| openai_responses::parse(&item.to_string()).unwrap();
    let read = |saved: &SavedCompactions, id: &str| {
        let entries = saved.restore(id).unwrap().entries();
        entries.iter().map(|entry| (*entry.message().unwrap()).clone()).collect::<Vec<_>>()
    };
    let mut all: Vec<_> = first.iter().map(parse).collect();
    assert_eq!(read(&saved, &older.id), all);
    all.push(parse(&next[next.len() - 1]));
    assert_eq!(read(&saved, &newer.id), all);
    assert_eq!(saved.find(item["encrypted_content"].as_str().unwrap()).unwrap(), older.id);
    // A file of an earlier version.
    let path = rig.home.path().join(format!("proxy/compactions/{}.jsonl", older.id));
    let mut file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(file.as_object_mut().unwrap().remove("protocol"), Some(json!("responses")));
    std::fs::write(&path, file.to_string()).unwrap();
    assert_eq!(saved.get(&older.id).unwrap().protocol, Some(Protocol::Responses));
    assert_eq!(read(&saved, &newer.id), all);
    std::fs::remove_file(path).unwrap();
    let rest = saved.restore(&newer.id).unwrap();
    assert_eq!((rest.missing.as_ref(), rest.entries().len()), (Some(&older.id), 1));
}

#[tokio::test]
async fn lost_items_leave_the_messages_that_the_client_has_kept() {
    let rig = Rig::new(provider(), Set::default()).await;
    let first = history(1);
    let item = rig.compact(&first).await;
    let (home, provider) = rig.end().await;
    std::fs::remove_dir_all(home.path().join("proxy/compactions")).unwrap();
    let rig = Rig::at(home, provider, Set::default()).await;
    let received = rig.received(&kept(&first, item)).await;
    assert_eq!(received[..2], first[..2]);
    assert!(received[2].to_string().contains("not available any more"), "{received:?}");
}

#[tokio::test]
async fn a_provider_that_compacts_is_left_to_do_it() {
    let rig = Rig::new(provider(), Set::default()).await;
    let item = json!({ "type": "compaction", "id": "cmp_1", "encrypted_content": "x" });
    let answer = json!({ "id": "r", "status": "completed", "output": [item] }).to_string();
    for _ in 0..2 {
        rig.provider
            .extend([Step::new(Reply::Raw(Raw { body: answer.clone(), ..Raw::default() }))]);
        let body = json!({ "model": "m", "input": [{ "type": "compaction_trigger" }] });
        assert_eq!(rig.post(PATH, &body).await.body, answer);
    }
    assert_eq!(rig.provider.count(), 2);
}

#[tokio::test]
async fn the_path_of_older_clients_is_answered_too() {
    let rig = Rig::new(provider(), Set::default()).await;
    let first = history(1);
    for _ in 0..2 {
        let got = rig.post("/v1/responses/compact", &json!({ "model": "m", "input": first })).await;
        let answer = got.json();
        assert_eq!(answer["object"], "response.compaction", "{answer}");
        let item = answer["output"][0].clone();
        let received = json!(rig.received(&kept(&first, item)).await).to_string();
        assert!(received.contains("src/file0.rs"), "{received}");
    }
    let paths: Vec<String> =
        rig.provider.requests().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/v1/responses/compact", PATH, PATH]);
}

#[tokio::test]
async fn a_history_that_the_provider_stores_is_compacted_if_ctx_has_seen_it() {
    let rig = Rig::new(provider(), Set::default()).await;
    let request = json!({ "model": "m", "input": history(3) });
    let id = rig.post(PATH, &request).await.json()["id"].clone();
    let compact = "/v1/responses/compact";
    let asked = json!({ "model": "m", "previous_response_id": id });
    let item = rig.post(compact, &asked).await.json()["output"][0].clone();
    let received = json!(rig.received(&[item, message("user", "And now?")]).await).to_string();
    for part in ["Never push to main", "src/file2.rs", "And now?"] {
        assert!(received.contains(part), "{part}: {received}");
    }
    let other = json!({ "model": "m", "previous_response_id": "resp_other" });
    let got = rig.post(compact, &other).await;
    assert!(got.status == 400 && got.body.contains("does not see"), "{got:?}");
}

#[tokio::test]
async fn a_refused_key_is_reported_and_another_failure_is_compacted_here() {
    let rig = Rig::new(provider(), Set::default()).await;
    for (status, expected) in [(401, 401), (403, 403), (429, 200), (500, 200), (503, 200)] {
        let raw =
            Raw { status, body: r#"{"error":{"message":"no"}}"#.to_owned(), ..Raw::default() };
        rig.provider.extend([Step::new(Reply::Raw(raw))]);
        let count = rig.provider.count();
        let mut items = history(1);
        items.push(json!({ "type": "compaction_trigger" }));
        assert_eq!(rig.post(PATH, &body(&items)).await.status, expected, "{status}");
        assert_eq!(rig.provider.count(), count + 1, "the provider may do it the next time");
    }
}
