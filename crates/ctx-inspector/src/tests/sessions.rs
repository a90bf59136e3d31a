//! The data of a session.

use ctx_session::{Agent, AgentHomes};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_lists_its_requests_from_a_given_number_on() {
    let place = Place::new();
    let file = place.transcript("one.jsonl", 60, 300);
    let (api, id) = place.api(&[&file]);
    let all = api.found(&format!("/api/sessions/{id}")).await;
    assert_eq!((all["title"].as_str(), all["total"].as_u64()), (Some("one.jsonl"), Some(60)));
    assert_eq!(all["requests"].as_array().unwrap().len(), 60);
    assert_eq!((&all["window"], &all["source"]), (&json!(16_000), &json!("file")));
    let newest = &all["requests"][59];
    assert_eq!(newest["number"], 60);
    assert!(newest["rawTokens"].as_u64() > newest["sentTokens"].as_u64(), "{newest}");
    let rest = api.found(&format!("/api/sessions/{id}?from=58")).await;
    assert_eq!(rest["requests"].as_array().unwrap().len(), 2);
    assert_eq!(rest["requests"][1], *newest);
    let none = api.found(&format!("/api/sessions/{id}?from=18446744073709551615")).await;
    assert!(none["requests"].as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_paged_and_can_be_filtered() {
    let place = Place::new();
    let file = place.transcript("one.jsonl", 60, 300);
    let (api, id) = place.api(&[&file]);
    let request = format!("/api/sessions/{id}/requests/60");
    let all = api.found(&request).await;
    let states = all["states"].as_object().unwrap();
    let count = |state: &str| states.get(state).and_then(Value::as_u64).unwrap_or(0);
    assert!(count("dropped") > 0, "{states:?}");
    let total = count("kept") + count("dropped") + count("replaced") + count("inserted");
    assert_eq!(all["matching"], total);
    let page = api.found(&format!("{request}?from=100&count=5")).await;
    let expected = &all["entries"].as_array().unwrap()[100..105];
    assert_eq!(page["entries"].as_array().unwrap(), expected);
    let dropped = api.found(&format!("{request}?state=dropped")).await;
    assert_eq!(dropped["matching"], count("dropped"));
    let layers: Vec<&str> =
        dropped["entries"].as_array().unwrap().iter().filter_map(|e| e["layer"].as_str()).collect();
    let by = layers[0];
    let of_layer = api.found(&format!("{request}?layer={by}")).await;
    assert_eq!(of_layer["matching"], all["layers"][by]);
    // The summary may contain the words too.
    for words in ["0000000a", "MESSAGE%2010%20word"] {
        let found = api.found(&format!("{request}?q={words}&entry=0000000a")).await;
        assert!(found["matching"].as_u64().unwrap() < total, "{words}: {}", found["matching"]);
        let at = usize::try_from(found["place"].as_u64().unwrap()).unwrap();
        assert_eq!(found["entries"][at]["entry"], "0000000a");
        assert!(found["entries"][at]["begins"].as_str().unwrap().starts_with("message 10 word"));
    }
    let placed = api.found(&format!("{request}?entry=0000000a&count=0")).await;
    let at = usize::try_from(placed["place"].as_u64().unwrap()).unwrap();
    assert_eq!(all["entries"][at]["entry"], "0000000a");
    let beyond = api.found(&format!("{request}?from=99999&count=99999")).await;
    assert!(beyond["entries"].as_array().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_has_its_recorded_text_or_its_summary() {
    let place = Place::new();
    let file = place.transcript("one.jsonl", 60, 300);
    let (api, id) = place.api(&[&file]);
    let entry = api.found(&format!("/api/sessions/{id}/entries/00000002?request=60")).await;
    assert_eq!(entry["fate"]["state"], "dropped");
    let text = entry["recorded"]["parts"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("message 2 word"));
    let request = api.found(&format!("/api/sessions/{id}/requests/60?state=inserted")).await;
    let summary = request["entries"][0]["entry"].as_str().unwrap();
    let opened = api.found(&format!("/api/sessions/{id}/entries/{summary}?request=60")).await;
    assert_eq!(opened["recorded"], Value::Null);
    assert!(!opened["sent"]["parts"][0]["text"].as_str().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_entry_is_truncated_unless_the_whole_is_requested() {
    let place = Place::new();
    let file = place.transcript("one.jsonl", 1, 100_000);
    let (api, id) = place.api(&[&file]);
    let entry = format!("/api/sessions/{id}/entries/00000000?request=1");
    let begun = api.found(&entry).await["recorded"].clone();
    let whole = api.found(&format!("{entry}&whole=true")).await["recorded"].clone();
    let text = |shown: &Value| shown["parts"][0]["text"].as_str().unwrap().to_owned();
    let cut = usize::try_from(begun["cut"].as_u64().unwrap()).unwrap();
    assert!(cut > 0 && text(&whole).starts_with(&text(&begun)));
    assert_eq!((text(&begun).len() + cut, &whole["cut"]), (text(&whole).len(), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_grew_is_replayed_again_and_stays_available() {
    let place = Place::new();
    let file = place.transcript("one.jsonl", 5, 3);
    let (api, id) = place.api(&[&file]);
    let path = format!("/api/sessions/{id}");
    assert_eq!(api.found(&path).await["total"], 5);
    std::fs::write(&file, transcript("a-session", 6, 3)).unwrap();
    while api.found(&path).await["total"] != 6 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_has_files_and_sessions_of_the_home_each_once() {
    let place = Place::new();
    let folder = place.home().root.join("agents/main/sessions");
    std::fs::create_dir_all(&folder).unwrap();
    let stored = folder.join("s-1.jsonl");
    std::fs::write(&stored, transcript("s-1", 2, 3)).unwrap();
    let store = json!({
        "agent:main:main": { "sessionId": "s-1", "updatedAt": 5, "displayName": "The <b>first" },
        "agent:main:gone": { "sessionId": "s-2", "updatedAt": 6 },
        "agent:main:out": { "sessionId": "s-3", "sessionFile": "../../../etc/passwd" },
    });
    std::fs::write(folder.join("sessions.json"), store.to_string()).unwrap();
    let file = place.transcript("one.jsonl", 2, 3);
    let (api, _) = place.api(&[&file, &stored]);
    let list = api.found("/api/sessions").await;
    let titles: Vec<&str> =
        list["sessions"].as_array().unwrap().iter().filter_map(|s| s["title"].as_str()).collect();
    assert_eq!(titles.len(), 2, "{titles:?}");
    let (of_home, _) = Place::api(&place, &[&file]);
    let list = of_home.found("/api/sessions").await;
    let first = list["sessions"].as_array().unwrap().iter().find(|s| s["source"] == "store");
    assert_eq!(first.unwrap()["title"], "The <b>first");
    let replays = place.replays(&[]);
    let by_key = replays.find("agent:main:main").unwrap();
    assert_eq!(replays.find("s-1").unwrap(), by_key);
    assert_eq!(replays.find("nobody").unwrap_err().kind(), ctx_core::ErrorKind::NotFound);
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_other_agents_are_listed_with_project_and_usage() {
    let place = Place::new();
    let homes = place.dir.path().join("agents");
    let write = |id: &str, tokens: u64| {
        let usage = json!({ "input_tokens": tokens, "output_tokens": 1 });
        let answer = json!({ "role": "assistant", "model": "claude-sonnet-4-5", "id": "m",
            "content": [{ "type": "text", "text": "hello" }], "usage": usage });
        let line = json!({ "type": "assistant", "uuid": "u", "isSidechain": false,
            "sessionId": id, "cwd": "/home/me/shop", "message": answer });
        std::fs::create_dir_all(homes.join("-home-me-shop")).unwrap();
        std::fs::write(homes.join(format!("-home-me-shop/{id}.jsonl")), format!("{line}\n"))
            .unwrap();
    };
    write("aaaa-1", 1_000);
    let agents = AgentHomes::default().with(Agent::CLAUDE_CODE, &homes);
    let replays = Arc::new(place.replays(&[]).with_agents(agents));
    let api = place.over(replays.clone());
    let listed = api.found("/api/sessions").await;
    let session = &listed["sessions"][0];
    for (key, value) in [
        ("agent", json!("claude-code")),
        ("sessionId", json!("aaaa-1")),
        ("project", json!("/home/me/shop")),
        ("title", json!("shop")),
        ("model", json!("claude-sonnet-4-5")),
        ("sentTokens", json!(1_000)),
    ] {
        assert_eq!(session[key], value, "{key}: {session}");
    }
    let before = replays.stamp(None);
    write("aaaa-1", 22_000);
    write("aaaa-2", 3);
    assert_ne!(replays.stamp(None), before);
    let listed = api.found("/api/sessions").await;
    let tokens = |id: &str| {
        let mut sessions = listed["sessions"].as_array().unwrap().iter();
        sessions.find(|session| session["sessionId"] == id).unwrap()["sentTokens"].clone()
    };
    assert_eq!((tokens("aaaa-1"), tokens("aaaa-2")), (json!(22_000), json!(3)));
    assert_eq!(replays.find("aaaa-2").unwrap(), replays.find("aaaa-2").unwrap());
    let opened = api.found(&format!("/api/sessions/{}", replays.find("aaaa-1").unwrap())).await;
    assert_eq!(opened["total"], 1, "{opened}");
}
