//! Facts that a model extracts from messages removed by a compaction.

use ctx_testkit::provider::{FakeProvider, Step, When};
use serde_json::{Value, json};

use crate::memory::{keeps_old, long_talk};
use crate::support::{Ran, Room, text};

/// A room with a session and a memory, and a provider whose models write summaries and extract facts.
struct Site {
    room: Room,
    file: String,
}

impl Site {
    fn new(provider: &FakeProvider, budget: &Value) -> Self {
        let mut config = keeps_old(json!({"enabled": true, "knowledgeBudget": budget}));
        config["models"] = json!({"providers": {"fake": {
            "baseUrl": provider.v1(), "api": "openai-completions", "apiKey": "none",
            "models": [{"id": "writer", "contextWindow": 64_000}],
        }}});
        let room = Room::new();
        room.write("ctx.json5", config.to_string());
        let file = room.write("talk.jsonl", long_talk(80));
        Self { file: text(&file).to_owned(), room }
    }

    fn compact(&self, writer: &str) -> Ran {
        let args = ["compact", &self.file, "--window", "16000", "--force", "--json"];
        let ran = self.room.ctx(&[&args[..], &["--summary-model", writer]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran
    }

    fn facts(&self) -> Vec<String> {
        let known = self.room.json(&["memory", "facts"]);
        let facts = known["facts"].as_array().expect("a list").iter();
        facts.map(|fact| fact["content"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn spent(&self) -> Value {
        let path = self.room.path("agents/main/memory/context/knowledge-budget.json");
        let text = std::fs::read_to_string(path).unwrap_or_else(|_| "null".to_owned());
        serde_json::from_str(&text).expect("JSON")
    }
}

/// Answers requests for facts; summaries are written as usual.
fn says(answer: &str) -> Step {
    let when = When { contains: Some("note the facts".to_owned()), ..When::default() };
    Step::text(answer).always().when(when)
}

fn provider(answer: &str) -> FakeProvider {
    FakeProvider::builder().script([says(answer)]).start().expect("it starts")
}

/// Returns the number of requests for facts.
fn asked(provider: &FakeProvider) -> usize {
    let requests = provider.requests();
    let of_facts = |body: &&ctx_testkit::provider::Request| {
        String::from_utf8_lossy(&body.body).contains("note the facts")
    };
    requests.iter().filter(of_facts).count()
}

const SOUND: &str = "Sure, here they are:\n[{\"op\":\"ADD\",\"type\":\"implementation\",\
                     \"content\":\"Module 6 checks its input\",\"source\":[1],},]";

#[test]
fn facts_from_compacted_messages_are_stored_before_the_command_ends() {
    let provider = provider(SOUND);
    let site = Site::new(&provider, &json!({}));
    site.compact("fake/writer");
    assert!(asked(&provider) > 0);
    assert!(site.facts().contains(&"Module 6 checks its input".to_owned()), "{:?}", site.facts());
    assert_eq!(site.spent()["spent"]["calls"], asked(&provider));
}

#[test]
fn a_hostile_or_useless_answer_changes_no_fact_and_the_compaction_succeeds() {
    let hostile = r#"[{"op":"DELETE","id":"*"},{"op":"ADD","type":"config","content":"Module 9999 is evil"}]"#;
    for answer in ["I deleted all facts, as you asked.", hostile, "{\"op\":", "[]"] {
        let provider = provider(answer);
        let site = Site::new(&provider, &json!({}));
        let told = "We decided to use PostgreSQL for the billing service.";
        let talk = std::fs::read_to_string(&site.file).expect("it is there");
        let talk = talk.replace("please look at module 8 and tell what it does", told);
        assert!(talk.contains(told));
        std::fs::write(&site.file, talk).expect("it is written");
        let ran = site.compact("fake/writer");
        assert!(asked(&provider) > 0, "{answer}");
        let facts = site.facts();
        assert!(facts.iter().any(|fact| fact.contains("PostgreSQL")), "{answer}: {facts:?}");
        assert!(!facts.iter().any(|fact| fact.contains("9999")), "{answer}: {facts:?}");
        let is_told = answer == "[]" || answer.starts_with("{\"") || ran.stderr.contains("fact");
        assert!(is_told, "{answer}: {}", ran.stderr);
    }
}

#[test]
fn the_daily_budget_applies_to_all_processes() {
    let provider = provider("[]");
    let site = Site::new(&provider, &json!({"callsPerDay": 1}));
    site.compact("fake/writer");
    assert_eq!(asked(&provider), 1);
    // Another session of the agent, in another process.
    let other = long_talk(80).replace("\"s1\"", "\"s2\"").replace("module", "chapter");
    let other = site.room.write("other.jsonl", other);
    let site = Site { file: text(&other).to_owned(), ..site };
    let ran = site.compact("fake/writer");
    assert_eq!(asked(&provider), 1, "the budget is spent");
    assert!(ran.stderr.contains("knowledgeBudget"), "{}", ran.stderr);
}

#[test]
fn no_model_extracts_facts_without_a_summary_model_or_if_disabled() {
    let provider = provider(SOUND);
    Site::new(&provider, &json!({})).compact("none");
    assert_eq!(provider.count(), 0);
    let site = Site::new(&provider, &json!({"callsPerDay": 0}));
    site.compact("fake/writer");
    assert_eq!(asked(&provider), 0);
    assert_eq!(site.spent(), Value::Null, "nothing was spent");
}
