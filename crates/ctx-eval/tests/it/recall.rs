//! Labelled conversations, from files to figures.

use std::fs;
use std::path::{Path, PathBuf};

use ctx_core::{Counter, CounterKind, Embedder, ErrorKind};
use ctx_eval::recall::{
    DatasetFormat, RecallReport, RecallSetup, VectorCache, Vectors, load, measure,
};
use ctx_search::{HashEmbedder, SearchSettings};
use serde_json::{Value, json};
use tempfile::TempDir;

struct Room(TempDir);

impl Room {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    fn write(&self, name: &str, value: &Value) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, value.to_string()).expect("written");
        path
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

fn locomo() -> Value {
    let turn =
        |id: &str, who: &str, text: &str| json!({"dia_id": id, "speaker": who, "text": text});
    let question = |text: &str, evidence: Value, category: Value| json!({"question": text, "evidence": evidence, "category": category});
    json!([{
        "sample_id": "one",
        "conversation": {
            "speaker_a": "Ann",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                turn("D1:1", "Ann", "Which pet did you adopt?"),
                turn("D1:2", "Bob", "A beagle"),
            ],
            "session_10_date_time": "no day",
            "session_10": [turn("D10:1", "Ann", "The garden needs rain")],
            "session_2": [turn("D2:1", "Bob", "I bought a piano")],
        },
        "qa": [
            question("What did Bob buy?", json!(["D2:1"]), json!(4)),
            question("What happened in the garden on 8 May 2023?", json!(["D10:1; D:1:02"]), json!(1)),
            question("Who sold the piano?", json!(["D2:1"]), json!(5)),
            question("Why?", json!([]), json!(3)),
        ],
    }])
}

fn measured(
    form: DatasetFormat,
    path: &Path,
    weight: f32,
    cache: &mut VectorCache,
) -> RecallReport {
    let conversations = load(form, path).expect("it is of the form");
    let setup = RecallSetup {
        settings: SearchSettings::default(),
        counter: Counter::new(CounterKind::Chars4),
    };
    let vectors = Vectors { embedder: &HashEmbedder, weight, cache };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut last = 0;
    let report = runtime
        .block_on(measure(form, &conversations, &setup, vectors, |done| last = done))
        .expect("measured");
    let steps: usize = conversations.iter().map(|c| c.turns.len() + c.questions.len()).sum();
    assert_eq!(last, steps, "progress ends at the end");
    report
}

#[test]
fn a_conversation_in_locomo_format_is_measured() {
    let room = Room::new();
    let path = room.write("own.json", &locomo());
    let report = measured(DatasetFormat::Locomo, &path, 0.0, &mut VectorCache::default());
    assert_eq!((report.conversations, report.turns, report.all.questions), (1, 4, 2));
    assert_eq!((report.skipped, report.evidence_repaired, report.evidence_dropped), (1, 2, 0));
    assert_eq!(report.all.recall.at10, 1.0);
    assert_eq!(report.all.coverage4000, 1.0);
    assert_eq!(report.by_category["adversarial"].questions, 1, "listed, and not in the sum");
    let written = serde_json::to_value(&report).expect("JSON");
    for key in ["questions", "skipped", "mrr", "ndcg10", "coverage4000", "byCategory"] {
        assert!(!written[key].is_null(), "{key}");
    }
    assert_eq!(written["recall"]["10"], 1.0);
}

#[test]
fn one_conversation_need_not_be_in_a_list() {
    let room = Room::new();
    let path = room.write("own.json", &locomo()[0]);
    assert_eq!(load(DatasetFormat::Locomo, &path).expect("of the form").len(), 1);
    let folder = path.parent().expect("a folder");
    assert_eq!(load(DatasetFormat::Locomo, folder).expect("files of the form").len(), 1);
}

#[test]
fn conversations_in_beam_format_are_measured_in_numeric_order() {
    let room = Room::new();
    for (folder, said) in [("10", "I keep a parrot"), ("2", "I keep a beagle")] {
        let message =
            |id: u32, role: &str, text: &str| json!({"id": id, "role": role, "content": text});
        let group = json!([message(0, "user", said), message(1, "assistant", "Good to know")]);
        let chat = json!([{"batch_number": 1, "time_anchor": "March-15-2024", "turns": [group]}]);
        room.write(&format!("{folder}/chat.json"), &chat);
        let question =
            |ids: Value| json!({"question": "Which animal do I keep?", "source_chat_ids": ids});
        let questions = json!({
            "abstention": [{"question": "Who are you?"}],
            "knowledge_update": [question(json!({"first": [0], "second": [0, 77]}))],
        });
        room.write(&format!("{folder}/probing_questions.json"), &questions);
    }
    let found = load(DatasetFormat::Beam, room.path()).expect("of the form");
    let names: Vec<&str> = found.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["2", "10"]);
    assert_eq!((found[0].skipped, found[0].dropped), (1, 1));
    assert_eq!(found[0].questions[0].evidence, [0]);
    let report = measured(DatasetFormat::Beam, room.path(), 0.0, &mut VectorCache::default());
    assert_eq!((report.all.questions, report.all.recall.at5), (2, 1.0));
    let one = load(DatasetFormat::Beam, &room.path().join("2")).expect("a folder of one");
    assert_eq!(one.len(), 1);
}

#[test]
fn vectors_are_computed_once_and_cached_for_the_next_run() {
    let room = Room::new();
    let path = room.write("own.json", &locomo());
    let file = room.path().join("vectors");
    let mut cache = VectorCache::open(&file);
    let first = measured(DatasetFormat::Locomo, &path, 0.5, &mut cache);
    let bytes = fs::metadata(&file).expect("a file").len();
    assert!(bytes > HashEmbedder.dimensions() as u64 * 4 * 7, "four turns, three questions");
    let mut again = VectorCache::open(&file);
    assert_eq!(measured(DatasetFormat::Locomo, &path, 0.5, &mut again), first);
}

#[test]
fn an_invalid_format_is_an_error_with_its_place() {
    let room = Room::new();
    let case = |form: DatasetFormat, name: &str, value: Value, at: &str| {
        let path = room.write(name, &value);
        let path = if form == DatasetFormat::Beam { room.path().join("b") } else { path };
        let error = load(form, &path).expect_err("not of the form");
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
        let said = error.to_string();
        assert!(said.contains(at) && said.contains(name), "{said}");
    };
    case(DatasetFormat::Locomo, "a.json", json!(7), "a conversation, or a list");
    case(DatasetFormat::Locomo, "a.json", json!([{"qa": []}]), "/0/conversation");
    let text = json!([{"conversation": {"session_1": [{"dia_id": "D1:1", "text": 5}]}, "qa": []}]);
    case(DatasetFormat::Locomo, "a.json", text, "/0/conversation/session_1/0/text");
    case(DatasetFormat::Locomo, "a.json", json!([{"conversation": {}}]), "/0/qa");
    case(
        DatasetFormat::Locomo,
        "a.json",
        json!([{"conversation": {}, "qa": [{}]}]),
        "/0/qa/0/question",
    );
    case(DatasetFormat::Locomo, "a.json", json!([]), "no question");
    let chat = json!([{"turns": [[{"content": "x", "role": "user"}]]}]);
    case(DatasetFormat::Beam, "b/chat.json", chat, "/0/turns/0/0/id");
}

#[test]
fn a_missing_file_is_an_error_with_a_hint() {
    let room = Room::new();
    let error = load(DatasetFormat::Beam, room.path()).expect_err("an empty folder");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.hint_text().is_some_and(|hint| hint.contains("chat.json")));
    let error = load(DatasetFormat::Locomo, &room.path().join("none.json")).expect_err("no file");
    assert_eq!(error.kind(), ErrorKind::Io);
    fs::write(room.path().join("torn.json"), "[{").expect("written");
    let error = load(DatasetFormat::Locomo, &room.path().join("torn.json")).expect_err("torn");
    assert_eq!(error.kind(), ErrorKind::Corrupt);
}
