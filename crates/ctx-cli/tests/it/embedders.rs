//! Embedding models for memory: their configuration and their failures.

use ctx_testkit::provider::{Api, FailureKind, FakeProvider, Step, When};
use serde_json::{Value, json};

use crate::memory::{FACT, keeps_old, long_talk};
use crate::support::{Room, text};

const MESSAGES: usize = 40;
const QUESTION: &str = "what is the parrot of the lighthouse keeper called?";

/// A memory with vectors from a server, in a room with a session.
struct Site {
    room: Room,
    file: String,
    config: Value,
}

impl Site {
    fn new(provider: &FakeProvider) -> Self {
        Self::of("fake", &provider.v1())
    }

    fn of(id: &str, url: &str) -> Self {
        let mut config = keeps_old(json!({
            "enabled": true, "embeddingModel": "http",
            "embeddingSource": format!("{id}/vec"), "embeddingDimensions": 64,
        }));
        config["models"] = json!({"providers": {(id): {
            "baseUrl": url, "api": "openai-completions", "apiKey": "none",
            "models": [{"id": "writer", "contextWindow": 64_000}],
        }}});
        let room = Room::new();
        let file = room.write("talk/long.jsonl", long_talk(MESSAGES));
        let site = Self { file: text(&file).to_owned(), room, config };
        site.configure(&json!({}));
        site
    }

    /// Sets other keys of `memoryContext`.
    fn configure(&self, keys: &Value) {
        let mut config = self.config.clone();
        for (key, value) in keys.as_object().expect("keys") {
            config["agents"]["defaults"]["memoryContext"][key] = value.clone();
        }
        self.room.write("ctx.json5", config.to_string());
    }

    fn ingest(&self) -> Value {
        self.room.json(&["memory", "ingest", &self.file])
    }

    fn vectors(&self) -> Value {
        self.room.json(&["memory", "stats"])["vectors"].clone()
    }

    /// Checks that recall finds the fact by words or vectors. Returns the warnings.
    fn recalls(&self, why: &str) -> Vec<String> {
        let ran = self.room.ctx(&["recall", QUESTION, "--session", "s1"]);
        assert_eq!(ran.code, Some(0), "{why}: {}", ran.stderr);
        assert!(ran.stdout.contains(FACT), "{why}: {}{}", ran.stdout, ran.stderr);
        warnings(&ran.stderr)
    }
}

/// Returns the warnings, except the one about the small window.
fn warnings(stderr: &str) -> Vec<String> {
    let warned = stderr.lines().filter(|line| line.starts_with("warning"));
    warned.filter(|line| !line.contains("low context window")).map(str::to_owned).collect()
}

/// Answers a request for vectors.
fn embeds(step: Step) -> Step {
    step.when(When { api: Some(Api::Embeddings), ..When::default() })
}

fn answers(body: &Value) -> Step {
    embeds(Step::raw(200, "application/json", body.to_string()))
}

/// Returns the ways in which a server can fail.
fn faults() -> Vec<(&'static str, Step)> {
    let vector = |numbers: Vec<Value>| json!({"data": [{"index": 0, "embedding": numbers}]});
    vec![
        ("an error", embeds(Step::error(FailureKind::ServerError))),
        ("overload", embeds(Step::error(FailureKind::Overloaded))),
        ("no number", answers(&vector(vec![Value::Null; 64]))),
        ("too large a number", answers(&vector(vec![json!(1e300); 64]))),
        ("NaN", embeds(Step::raw(200, "application/json", r#"{"data":[{"embedding":[NaN]}]}"#))),
        ("a vector has an unexpected number of dimensions", answers(&vector(vec![json!(0.5); 32]))),
        ("no vectors", answers(&json!({"data": []}))),
        ("no JSON", embeds(Step::raw(200, "text/html", "<html>a gateway</html>"))),
        ("garbage", embeds(Step::garbage())),
        ("no answer", embeds(Step::hang())),
    ]
}

#[test]
fn vectors_are_computed_once_and_not_again_after_a_restart() {
    let provider = FakeProvider::builder().start().expect("it starts");
    for (id, url, path) in
        [("fake", provider.v1(), "/v1/embeddings"), ("ollama", provider.url(), "/api/embed")]
    {
        let site = Site::of(id, &url);
        let before = provider.count();
        site.ingest();
        assert_eq!(site.vectors(), MESSAGES, "{id}");
        let asked = provider.requests().split_off(before);
        assert!(!asked.is_empty() && asked.iter().all(|r| r.path == path), "{asked:?}");
        let texts: usize =
            asked.iter().filter_map(|r| Some(r.json["input"].as_array()?.len())).sum();
        assert_eq!(texts, MESSAGES, "each text once");
        site.ingest();
        assert_eq!(provider.count(), before + asked.len(), "{id}: nothing is embedded again");
        assert_eq!(site.recalls(id), [] as [&str; 0]);
        assert_eq!(provider.count(), before + asked.len() + 1, "{id}: one vector for the question");
        let found = site.room.json(&["memory", "search", QUESTION, "--explain"]);
        assert!(found["hits"][0]["parts"]["cosine"].as_f64() > Some(0.1), "{id}: {found}");
    }
}

#[test]
fn removed_messages_get_their_vectors_before_the_command_ends() {
    let provider = FakeProvider::builder().start().expect("it starts");
    let site = Site::new(&provider);
    let done = site.room.json(&["compact", &site.file, "--window", "16000", "--force"]);
    assert_eq!(done["compacted"], true, "{done}");
    let stats = site.room.json(&["memory", "stats"]);
    assert!(stats["segments"].as_u64() > Some(10), "{stats}");
    assert_eq!(stats["vectors"], stats["segments"]);
}

#[test]
fn if_the_server_fails_a_question_warns_once_and_words_find_the_answer() {
    let provider = FakeProvider::builder().start().expect("it starts");
    let site = Site::new(&provider);
    site.ingest();
    for (name, fault) in faults() {
        provider.extend([fault]);
        let warned = site.recalls(name);
        assert_eq!(warned.len(), 1, "{name}: {warned:?}");
        assert!(warned[0].contains("recall is lexical only: "), "{name}: {warned:?}");
        assert_eq!(provider.steps_left(), 0, "{name}");
        assert_eq!(site.recalls("it is well again"), [] as [&str; 0]);
    }
    provider.stop();
    let warned = site.recalls("it is down");
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert_eq!(site.vectors(), MESSAGES, "they are kept");
}

#[test]
fn if_the_server_fails_no_message_is_lost_and_vectors_are_computed_later() {
    for (name, fault) in faults() {
        // The command would wait for the timeout of a batch.
        if name == "no answer" {
            continue;
        }
        let provider = FakeProvider::builder().script([fault]).start().expect("it starts");
        let site = Site::new(&provider);
        let ran = site.room.ctx(&["memory", "ingest", &site.file]);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        // If a batch fails, single texts are tried, which may succeed.
        let is_told = !warnings(&ran.stderr).is_empty();
        let stats = site.room.json(&["memory", "stats"]);
        assert_eq!(stats["segments"], json!(MESSAGES), "{name}");
        assert!(is_told || stats["vectors"] == json!(MESSAGES), "{name}: {stats}");
        site.ingest();
        assert_eq!(site.vectors(), MESSAGES, "{name}");
    }
}

#[test]
fn a_turn_is_assembled_compacted_and_recorded_whatever_the_server_does() {
    for (name, fault) in faults() {
        let provider = FakeProvider::builder().script([fault.always()]).start().expect("it starts");
        let site = Site::new(&provider);
        if name == "no answer" {
            // A query waits two seconds at most, and missing vectors are not computed then.
            site.configure(&json!({"enabled": true}));
        }
        let args = ["assemble", &site.file, "--window", "16000", "--json"];
        let ran = site.room.ctx(&args);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        let made: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert!(made["messages"].as_array().is_some_and(|m| !m.is_empty()), "{name}");
        if name == "no answer" {
            continue;
        }
        let ran = site.room.ctx(&["compact", &site.file, "--window", "16000", "--force", "--json"]);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        // One warning for the archived texts, and one for the query.
        assert!((1..=2).contains(&warnings(&ran.stderr).len()), "{name}: {}", ran.stderr);
        let stats = site.room.json(&["memory", "stats"]);
        assert!(stats["segments"].as_u64() > Some(10), "{name}: {stats}");
    }
}

#[test]
fn an_unavailable_model_is_reported_once_and_replaced_by_hashes() {
    let provider = FakeProvider::builder().start().expect("it starts");
    let site = Site::new(&provider);
    site.ingest();
    let asked = provider.count();
    let nowhere = text(&site.room.path("nowhere")).to_owned();
    for (keys, words) in [
        (json!({"embeddingModel": "transformer", "embeddingSource": nowhere}), ""),
        (json!({"embeddingModel": "transformer", "embeddingSource": null}), "embeddingSource"),
        (json!({"embeddingSource": null}), "embeddingSource"),
        (json!({"embeddingSource": "nobody/vec"}), "nobody"),
        (json!({"embeddingDimensions": null}), "embeddingDimensions"),
    ] {
        site.configure(&keys);
        let warned = site.recalls(&keys.to_string());
        assert_eq!(warned.len(), 1, "{keys}: {warned:?}");
        assert!(warned[0].contains("hash") && warned[0].contains(words), "{keys}: {warned:?}");
        site.ingest();
    }
    assert_eq!(provider.count(), asked);
    // Vectors made by the model were kept.
    site.configure(&json!({}));
    site.ingest();
    assert_eq!((site.vectors(), provider.count()), (json!(MESSAGES), asked));
}

#[test]
fn hashes_that_replace_a_model_are_not_mixed_with_its_vectors() {
    let provider = FakeProvider::builder().start().expect("it starts");
    let site = Site::new(&provider);
    let theirs = json!({"embeddingSource": "nobody/vec", "search": {"hashWeight": 0.7}});
    site.configure(&theirs);
    site.ingest();
    assert_eq!(site.vectors(), MESSAGES, "of hashes");
    site.configure(&json!({"search": {"hashWeight": 0.7}}));
    site.ingest();
    assert_eq!(site.vectors(), MESSAGES, "of the model");
    let asked = provider.count();
    assert!(asked > 0);
    // The model fails and recovers: its vectors were not mixed with hashes.
    site.configure(&theirs);
    site.ingest();
    site.recalls("by words");
    site.configure(&json!({"search": {"hashWeight": 0.7}}));
    site.ingest();
    assert_eq!((site.vectors(), provider.count()), (json!(MESSAGES), asked));
}

#[test]
fn an_impossible_vector_length_is_refused_with_its_key() {
    let provider = FakeProvider::builder().start().expect("it starts");
    let site = Site::new(&provider);
    for wrong in [json!(0), json!(1_000_000), json!("many")] {
        site.configure(&json!({"embeddingDimensions": wrong}));
        site.room.refused(&["memory", "stats"], "embeddingDimensions");
    }
    site.configure(&json!({"knowledgeBudget": {"usdPerDay": -1}}));
    site.room.refused(&["memory", "stats"], "usdPerDay");
}
