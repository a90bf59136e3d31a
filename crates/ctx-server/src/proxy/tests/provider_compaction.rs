//! What a provider's compaction covers is kept, and the model can read it.

use std::path::PathBuf;

use ctx_testkit::provider::{Answer, Call, FakeProvider, Request, Step};

use super::*;

const RECALL: &str = "ctx_recall";
const NOTE: &str = "[ctx: the earlier messages of this conversation were compacted";
/// What only the compacted messages have.
const FACT: &str = "The heron of /src/river.rs has the number 4711.";

/// How a client gets a compaction: the path of its requests, and how it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// OpenAI's, by a last item.
    Trigger,
    TriggerWhole,
    /// OpenAI's, in an answer.
    Long,
    /// Anthropic's, in an answer.
    Block,
    BlockStreamed,
}

const WAYS: [Way; 5] = [Way::Trigger, Way::TriggerWhole, Way::Long, Way::Block, Way::BlockStreamed];

impl Way {
    fn is_anthropic(self) -> bool {
        matches!(self, Self::Block | Self::BlockStreamed)
    }

    fn path(self) -> &'static str {
        if self.is_anthropic() { "/v1/messages" } else { "/v1/responses" }
    }

    fn streams(self) -> bool {
        matches!(self, Self::Trigger | Self::Long | Self::BlockStreamed)
    }

    fn body(self, messages: &[Value]) -> Value {
        let key = if self.is_anthropic() { "messages" } else { "input" };
        let kind = if self.is_anthropic() { "compact_20260112" } else { "compaction" };
        let mut body = json!({ "model": "m", key: messages, "stream": self.streams() });
        body["tools"] = match self.is_anthropic() {
            true => json!([{ "name": "read", "input_schema": { "type": "object" } }]),
            false => json!([{ "type": "function", "name": "read", "parameters": {} }]),
        };
        match self {
            Self::Trigger | Self::TriggerWhole => {}
            Self::Long => body["context_management"] = json!([{ "type": kind }]),
            Self::Block | Self::BlockStreamed => {
                body["context_management"] = json!({ "edits": [{ "type": kind }] });
                body["max_tokens"] = json!(64);
            }
        }
        body
    }

    /// Returns the provider's answer with a compaction.
    fn answer(self, content: &str) -> Step {
        let item = json!({ "type": "compaction", "encrypted_content": content });
        let block = json!({ "type": "compaction", "content": content });
        let response = json!({ "id": "r", "status": "completed", "output": [item] });
        let events = |events: &[Value]| {
            let event = |data: &Value| {
                format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
            };
            Step::raw(200, "text/event-stream", events.iter().map(event).collect::<String>())
        };
        match self {
            Self::TriggerWhole => Step::raw(200, "application/json", response.to_string()),
            Self::Trigger | Self::Long => events(&[
                json!({ "type": "response.output_item.done", "item": item }),
                json!({ "type": "response.completed", "response": response }),
            ]),
            Self::Block => {
                let answer = json!({ "type": "message", "role": "assistant", "content": [block] });
                Step::raw(200, "application/json", answer.to_string())
            }
            Self::BlockStreamed => events(&[
                json!({ "type": "message_start", "message": { "role": "assistant", "content": [] } }),
                json!({ "type": "content_block_start", "index": 0,
                    "content_block": { "type": "compaction", "content": null } }),
                json!({ "type": "content_block_delta", "index": 0,
                    "delta": { "type": "compaction_delta", "content": content } }),
                json!({ "type": "content_block_stop", "index": 0 }),
                json!({ "type": "message_stop" }),
            ]),
        }
    }

    /// Returns the compaction as later requests have it.
    fn compaction(self, content: &str) -> Value {
        match self.is_anthropic() {
            false => json!({ "type": "compaction", "encrypted_content": content }),
            true => json!({ "role": "assistant", "content": [
                { "type": "compaction", "content": content }] }),
        }
    }
}

/// Returns a model that searches before it answers, if it can.
fn reader() -> FakeProvider {
    let respond = |request: &Request| {
        let sent = request.json.to_string();
        match sent.contains(&format!("\"name\":\"{RECALL}\"")) && !sent.contains("Let me look.") {
            true => Step::answer(Answer {
                text: "Let me look.".to_owned(),
                calls: vec![Call {
                    name: RECALL.to_owned(),
                    arguments: json!({ "query": "heron" }),
                }],
                ..Answer::default()
            }),
            false => Step::text("done"),
        }
    };
    FakeProvider::builder().respond(respond).start().unwrap()
}

fn long() -> Vec<Value> {
    let said = |role: &str, text: &str| json!({ "role": role, "content": text });
    vec![said("user", "Never push to main. Find the bird."), said("assistant", FACT)]
}

impl Rig {
    /// Sends a history that the provider compacts.
    async fn compacted(&self, way: Way, history: &[Value], content: &str) -> Got {
        self.provider.extend([way.answer(content)]);
        let mut all = history.to_vec();
        if matches!(way, Way::Trigger | Way::TriggerWhole) {
            all.push(json!({ "type": "compaction_trigger" }));
        }
        let got = self.post(way.path(), &way.body(&all)).await;
        assert!(got.status == 200 && got.body.contains(content), "{way:?} {got:?}");
        got
    }

    /// Sends a request, and returns the bodies that the provider received.
    async fn asked(&self, way: Way, messages: &[Value], key: &str) -> Vec<Value> {
        let before = self.provider.count();
        let body = way.body(messages).to_string();
        let got = self.send(Method::POST, way.path(), &[("authorization", key)], body).await;
        assert!(got.status == 200 && got.body.contains("done"), "{way:?} {got:?}");
        self.provider.requests().split_off(before).into_iter().map(|sent| sent.json).collect()
    }

    /// Returns the files of compactions.
    fn files(&self) -> Vec<PathBuf> {
        let files = std::fs::read_dir(self.home.path().join("proxy/compactions"));
        files.into_iter().flatten().map(|file| file.unwrap().path()).collect()
    }
}

fn history(sent: &Value) -> &Vec<Value> {
    sent.get("input").unwrap_or(&sent["messages"]).as_array().unwrap()
}

#[tokio::test]
async fn the_model_reads_what_a_provider_compacted_also_after_a_restart() {
    for way in WAYS {
        let rig = Rig::new(reader(), Set::default()).await;
        rig.compacted(way, &long(), "sealed").await;
        let mut all = vec![way.compaction("sealed"), user("Which number has it?")];
        let first = rig.asked(way, &all, "Bearer k").await;
        assert_eq!(first.len(), 2, "{way:?}: {first:?}");
        assert_eq!(history(&first[0])[0], all[0], "{way:?}");
        assert!(history(&first[0])[1].to_string().contains(NOTE), "{way:?} {}", first[0]);
        assert!(!first[0].to_string().contains(FACT), "{way:?}");
        assert!(first[1].to_string().contains(FACT), "{way:?}: {}", first[1]);
        let (home, provider) = rig.end().await;
        let rig = Rig::at(home, provider, Set::default()).await;
        all.extend([json!({ "role": "assistant", "content": "4711." }), user("And now?")]);
        let second = rig.asked(way, &all, "Bearer k").await;
        let (before, after) = (history(&first[0]), history(&second[0]));
        assert_eq!(after[..before.len()], before[..], "{way:?}: the cache stays valid");
        assert!(second[1].to_string().contains(FACT), "{way:?}: {}", second[1]);
    }
}

#[tokio::test]
async fn the_note_comes_with_the_compaction_in_a_running_conversation() {
    for way in WAYS {
        let rig = Rig::new(reader(), Set::default()).await;
        let post = async |messages: &[Value]| {
            let headers = [("authorization", "Bearer k"), ("session-id", "s")];
            let body = way.body(messages).to_string();
            let before = rig.provider.count();
            assert_eq!(rig.send(Method::POST, way.path(), &headers, body).await.status, 200);
            rig.provider.requests()[before].json.clone()
        };
        let mut all = long();
        all.push(user("Go on."));
        assert_eq!(post(&all).await, way.body(&all), "{way:?}: nothing is cut");
        rig.provider.extend([way.answer("sealed")]);
        let trigger = json!({ "type": "compaction_trigger" });
        all.extend(matches!(way, Way::Trigger | Way::TriggerWhole).then_some(trigger));
        post(&all).await;
        // OpenAI returns the user's messages with its item.
        let kept = (!way.is_anthropic()).then(|| long().remove(0));
        all = kept.into_iter().chain([way.compaction("sealed")]).collect();
        let at = all.len();
        all.push(user("Which number has it?"));
        let first = post(&all).await;
        assert!(history(&first)[at].to_string().contains(NOTE), "{way:?} {first}");
        all.extend([json!({ "role": "assistant", "content": "4711." }), user("And now?")]);
        let (before, after) = (history(&first).clone(), history(&post(&all).await).clone());
        assert_eq!(after[..before.len()], before[..], "{way:?}: the cache stays valid");
    }
}

#[tokio::test]
async fn a_history_at_the_provider_is_not_sent_because_of_a_note() {
    let way = Way::TriggerWhole;
    let rig = Rig::new(reader(), Set::default()).await;
    rig.compacted(way, &long(), "sealed").await;
    let whole = way.body(&[way.compaction("sealed"), user("Which number has it?")]);
    let id = rig.post(way.path(), &whole).await.json()["id"].clone();
    let mut next = way.body(&[user("And now?")]);
    next["previous_response_id"] = id;
    assert_eq!(rig.post(way.path(), &next).await.status, 200);
    assert_eq!(rig.last().json, next);
}

#[tokio::test]
async fn nobody_else_gets_it_and_a_damaged_file_changes_nothing() {
    for way in WAYS {
        let rig = Rig::new(reader(), Set::default()).await;
        rig.compacted(way, &long(), "sealed").await;
        let own = [way.compaction("sealed"), user("Which number has it?")];
        let forged = [way.compaction("sealed2"), user("Which number has it?")];
        for (key, messages) in [("Bearer other", &own), ("Bearer k", &forged)] {
            let sent = rig.asked(way, messages, key).await;
            assert_eq!(sent, [way.body(messages)], "{way:?} {key}");
        }
        let (home, provider) = rig.end().await;
        let rig = Rig::at(home, provider, Set::default()).await;
        let [file] = &rig.files()[..] else { panic!("{:?}", rig.files()) };
        let whole = std::fs::read(file).unwrap();
        std::fs::write(file, &whole[..whole.len() / 2]).unwrap();
        assert_eq!(rig.asked(way, &own, "Bearer k").await, [way.body(&own)], "{way:?}");
        std::fs::write(file, &whole).unwrap();
        let other = [own[0].clone(), user("Which bird?")];
        assert_eq!(rig.asked(way, &other, "Bearer k").await.len(), 2, "{way:?}: it is whole again");
    }
}

#[tokio::test]
async fn nothing_changes_without_the_tools() {
    for way in WAYS {
        let config = "{ server: { summaries: 'extractive', retrieval: 'off' } }";
        let rig = Rig::new(reader(), Set { config, ..Set::default() }).await;
        rig.compacted(way, &long(), "sealed").await;
        assert!(rig.files().is_empty(), "{way:?}");
        let all = [way.compaction("sealed"), user("Which number has it?")];
        assert_eq!(rig.asked(way, &all, "Bearer k").await, [way.body(&all)], "{way:?}");
        // A forced call leaves no choice to the model.
        let rig = Rig::new(reader(), Set::default()).await;
        rig.compacted(way, &long(), "sealed").await;
        let mut body = way.body(&all);
        body["tool_choice"] = json!({ "type": "any" });
        assert_eq!(rig.post(way.path(), &body).await.status, 200);
        assert_eq!(rig.last().json, body, "{way:?}");
    }
}

#[tokio::test]
async fn what_a_readable_compaction_lost_is_put_back_once_also_after_a_restart() {
    let rule = "Never push to main.";
    for way in WAYS {
        for (content, is_lost) in [
            ("They looked for a bird near the river.", way.is_anthropic()),
            (&*format!("{rule} Find the bird. {FACT}"), false),
        ] {
            let rig = Rig::new(reader(), Set::default()).await;
            rig.compacted(way, &long(), content).await;
            let all = [way.compaction(content), user("Which number has it?")];
            let first = rig.asked(way, &all, "Bearer k").await.remove(0);
            let note = history(&first)[1].to_string();
            assert!(note.contains(NOTE), "{way:?} {note}");
            assert_eq!(note.matches(rule).count(), usize::from(is_lost), "{way:?} {note}");
            assert_eq!(note.contains("/src/river.rs"), is_lost, "{way:?} {note}");
            let (home, provider) = rig.end().await;
            let rig = Rig::at(home, provider, Set::default()).await;
            let second = rig.asked(way, &all, "Bearer k").await.remove(0);
            assert_eq!(history(&second)[..2], history(&first)[..2], "{way:?}");
        }
    }
}

#[tokio::test]
async fn what_an_answer_says_before_its_compaction_is_kept() {
    const WORDS: &str = "The egret has the number 815.";
    for way in [Way::TriggerWhole, Way::Long] {
        let rig = Rig::new(reader(), Set::default()).await;
        let said = json!({ "type": "message", "id": "m1", "role": "assistant",
            "content": [{ "type": "output_text", "text": WORDS }] });
        let response = json!({ "id": "r1", "status": "completed",
            "output": [said, way.compaction("sealed")] });
        let event = json!({ "type": "response.completed", "response": response });
        rig.provider.extend([match way.streams() {
            true => Step::raw(
                200,
                "text/event-stream",
                format!("event: response.completed\ndata: {event}\n\n"),
            ),
            false => Step::raw(200, "application/json", response.to_string()),
        }]);
        assert_eq!(rig.post(way.path(), &way.body(&long())).await.status, 200);
        // The provider has the history; ctx has it too, if it has to send it.
        let mut next = way.body(&[user("Go on. ".repeat(9_000))]);
        next["previous_response_id"] = json!("r1");
        assert_eq!(rig.post(way.path(), &next).await.status, 200);
        let sent = rig.last().json;
        assert!(sent["previous_response_id"].is_null(), "{way:?}: it is sent whole");
        assert!(sent.to_string().contains(WORDS) && sent.to_string().contains("sealed"), "{sent}");
    }
}

#[tokio::test]
async fn a_second_compaction_stands_for_the_first_one_too() {
    for way in WAYS {
        let rig = Rig::new(reader(), Set::default()).await;
        rig.compacted(way, &long(), "first").await;
        let more = json!({ "role": "assistant", "content": "The stork is new." });
        let all = [way.compaction("first"), user("And the stork?"), more];
        rig.compacted(way, &all, "second").await;
        let all = [way.compaction("second"), user("Which number has it?")];
        let sent = rig.asked(way, &all, "Bearer k").await;
        assert!(sent[1].to_string().contains(FACT), "{way:?}: {}", sent[1]);
    }
}

#[tokio::test]
async fn a_compaction_that_is_its_own_parent_ends() {
    for way in WAYS {
        let rig = Rig::new(reader(), Set::default()).await;
        let all = [way.compaction("same"), user("And the stork?"), long().remove(1)];
        for _ in 0..2 {
            rig.compacted(way, &all, "same").await;
        }
        let next = [way.compaction("same"), user("Which number has it?")];
        let sent = rig.asked(way, &next, "Bearer k").await;
        assert!(sent[1].to_string().contains(FACT), "{way:?}: {}", sent[1]);
    }
}

#[tokio::test]
async fn equal_summaries_of_two_conversations_give_nothing_of_either() {
    let way = Way::Block;
    let rig = Rig::new(reader(), Set::default()).await;
    rig.compacted(way, &long(), "Nothing was said.").await;
    let other = [user("Another conversation."), json!({ "role": "assistant", "content": "Yes." })];
    let all = [way.compaction("Nothing was said."), user("Which number has it?")];
    for history in [&other[..], &long()] {
        rig.compacted(way, history, "Nothing was said.").await;
        assert_eq!(rig.asked(way, &all, "Bearer k").await, [way.body(&all)]);
    }
}

#[tokio::test]
async fn a_readable_compaction_is_audited_and_an_opaque_one_is_reported() {
    for way in WAYS {
        let rig = Rig::new(reader(), Set::default()).await;
        rig.compacted(way, &long(), "They looked for a bird near the river.").await;
        let records = rig.records().await;
        let compaction = records[0].compaction.as_ref().expect("a record");
        let details = compaction.details.clone().unwrap_or_default();
        let notes = rig.notes.lock().unwrap().clone();
        let [note] = &notes[..] else { panic!("{way:?} {notes:?}") };
        assert!(note.contains("compacted from"), "{way:?} {note}");
        assert_eq!(note.contains("of the facts kept"), way.is_anthropic(), "{way:?} {note}");
        let missing = details["receipt"]["audit"]["missing"].as_u64();
        assert_eq!(missing.is_some_and(|missing| missing > 0), way.is_anthropic(), "{details}");
        assert_eq!(compaction.summary.contains("cannot be audited"), !way.is_anthropic());
    }
}
