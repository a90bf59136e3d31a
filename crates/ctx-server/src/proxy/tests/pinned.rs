//! Compactions that a provider made, in the history of its client.

use ctx_testkit::provider::{FakeProvider, Step};

use super::*;

const RESPONSES: &str = "/v1/responses";
const MESSAGES: &str = "/v1/messages";

fn provider() -> FakeProvider {
    FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap()
}

fn compacted() -> Value {
    json!({ "type": "compaction", "encrypted_content": "opaque" })
}

/// Returns the body of a request of the API at `path`.
fn body(path: &str, messages: &[Value]) -> Value {
    match path {
        RESPONSES => json!({ "model": "m", "input": messages }),
        _ => json!({ "model": "m", "max_tokens": 64, "messages": messages }),
    }
}

/// Returns a provider's compaction of that API, followed by a question and a long answer, `turns`
/// times.
fn history(path: &str, turns: usize) -> Vec<Value> {
    let first = match path {
        RESPONSES => compacted(),
        _ => json!({ "role": "assistant", "content": [
            { "type": "compaction", "content": "The port is 4711." },
            { "type": "text", "text": "I go on." },
        ] }),
    };
    let turn = |n: usize| {
        let answer = format!("Part {n} of the answer is long. ").repeat(400);
        [user(format!("Question {n}?")), json!({ "role": "assistant", "content": answer })]
    };
    let mut all = vec![user("Never push to main."), first];
    all.extend((0..turns).flat_map(turn));
    all.push(user("And now?"));
    all
}

#[tokio::test]
async fn a_compaction_of_the_provider_stays_in_each_request() {
    for path in [RESPONSES, MESSAGES] {
        let rig = Rig::new(provider(), Set::default()).await;
        for turns in 1..16 {
            let all = history(path, turns);
            assert_eq!(rig.post(path, &body(path, &all)).await.status, 200);
            let sent = rig.last();
            let key = if path == RESPONSES { "input" } else { "messages" };
            let sent = sent.json[key].as_array().unwrap();
            assert!(sent.contains(&all[1]), "turn {turns}");
            assert!(sent.len() < all.len() || turns < 8, "turn {turns} was not cut");
        }
        rig.end().await;
    }
}

#[tokio::test]
async fn what_the_provider_ignores_costs_nothing() {
    for path in [RESPONSES, MESSAGES] {
        let rig = Rig::new(provider(), Set::default()).await;
        let mut all = history(path, 30);
        all.pop();
        all.extend(history(path, 2).into_iter().skip(1));
        let body = body(path, &all);
        assert_eq!(rig.post(path, &body).await.status, 200);
        assert_eq!(rig.last().json, body);
        assert!(rig.records().await[0].raw_tokens < Tokens(8_000));
        rig.end().await;
    }
}
