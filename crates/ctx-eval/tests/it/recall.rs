//! Labelled conversations, from files to figures.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ctx_core::{Counter, CounterKind, Embedder, ErrorKind};
use ctx_eval::recall::{
    Conversation, DatasetFormat, RecallReport, RecallSetup, VectorCache, load, measure, session,
};
use ctx_memory::MemorySettings;
use ctx_memory::archive::SegmentMaker;
use ctx_search::HashEmbedder;
use ctx_session::Transcript;
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

fn measured(form: DatasetFormat, conversations: &[Conversation], weight: f32) -> RecallReport {
    let mut memory = MemorySettings::default();
    memory.search.hash_weight = weight;
    let counter = Counter::new(CounterKind::Chars4);
    let setup = RecallSetup { memory, embedder: "hash".into(), cache: None, counter };
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut last = 0;
    let report = runtime
        .block_on(measure(form, conversations, &setup, |done| last = done))
        .expect("measured");
    let steps: usize = conversations.iter().map(|c| c.turns.len() + c.questions.len()).sum();
    assert_eq!(last, steps, "progress ends at the end");
    report
}

fn loaded(form: DatasetFormat, path: &Path) -> Vec<Conversation> {
    load(form, path).expect("it is of the form")
}

#[test]
fn a_conversation_in_locomo_format_is_measured() {
    let room = Room::new();
    let path = room.write("own.json", &locomo());
    let report = measured(DatasetFormat::Locomo, &loaded(DatasetFormat::Locomo, &path), 0.0);
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
    let report = measured(DatasetFormat::Beam, &found, 0.0);
    assert_eq!((report.all.questions, report.all.recall.at5), (2, 1.0));
    let one = load(DatasetFormat::Beam, &room.path().join("2")).expect("a folder of one");
    assert_eq!(one.len(), 1);
}

#[test]
fn vectors_are_computed_once_and_cached_for_the_next_run() {
    let room = Room::new();
    let file = room.path().join("vectors");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let texts = ["a beagle".to_owned(), "a piano".to_owned()];
    let cache = VectorCache::new(Arc::new(HashEmbedder), Some(&file));
    let first = runtime.block_on(cache.embed(&texts)).expect("vectors");
    cache.save();
    let bytes = fs::metadata(&file).expect("a file").len();
    assert!(bytes > HashEmbedder.dimensions() as u64 * 4 * 2, "two texts");
    let again = VectorCache::new(Arc::new(FailingEmbedder), Some(&file));
    assert_eq!(runtime.block_on(again.embed(&texts)).expect("from the file"), first);
    runtime.block_on(again.embed(&["new".to_owned()])).expect_err("asks the embedder");
}

/// Has the vector space of hashes, and computes nothing.
struct FailingEmbedder;

#[async_trait::async_trait]
impl Embedder for FailingEmbedder {
    fn name(&self) -> &str {
        HashEmbedder.name()
    }

    fn dimensions(&self) -> usize {
        HashEmbedder.dimensions()
    }

    async fn embed(&self, _: &[String]) -> ctx_core::Result<Vec<Vec<f32>>> {
        Err(ctx_core::Error::new(ErrorKind::Upstream, "not reachable"))
    }
}

/// A session that reads a file, runs a command, fills the window, and does both again.
fn recorded() -> Transcript {
    let mut lines = vec![
        json!({"type": "session", "version": 3, "id": "s", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/w"}),
    ];
    let mut say = |message: Value| {
        let n = lines.len();
        let parent = (n > 1).then(|| format!("e{}", n - 1));
        lines.push(json!({"type": "message", "id": format!("e{n}"), "parentId": parent, "timestamp": "2026-01-01T00:00:00Z", "message": message}));
    };
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let call = |say: &mut dyn FnMut(Value),
                words: &str,
                id: &str,
                name: &str,
                arguments: Value,
                result: &str| {
        let call = json!({"type": "toolCall", "id": id, "name": name, "arguments": arguments});
        say(json!({"role": "assistant", "content": [{"type": "text", "text": words}, call]}));
        say(
            json!({"role": "toolResult", "toolCallId": id, "toolName": name, "content": text(result)}),
        );
    };
    say(json!({"role": "user", "content": text("make the parser faster")}));
    call(
        &mut say,
        "first the grammar",
        "1",
        "read",
        json!({"path": "/w/src/grammar.rs"}),
        "fn rule() {}",
    );
    call(&mut say, "and the speed", "2", "bash", json!({"command": "cargo bench"}), "12 ms");
    for n in 0..20 {
        let filler = format!("unrelated {n} {}", "wool yarn needle ".repeat(400));
        say(json!({"role": "assistant", "content": text(&filler)}));
    }
    say(json!({"role": "user", "content": text("does grammar.rs still allow rules?")}));
    call(
        &mut say,
        "I look at the grammar once more",
        "3",
        "read",
        json!({"path": "/w/src/grammar.rs"}),
        "fn rule() {}",
    );
    call(
        &mut say,
        "measure the speed of it",
        "4",
        "bash",
        json!({"command": "cargo bench"}),
        "9 ms",
    );
    let all: Vec<String> = lines.iter().map(ToString::to_string).collect();
    Transcript::from_bytes(all.join("\n").into_bytes()).expect("a transcript")
}

#[test]
fn what_a_session_reads_or_runs_again_is_a_question_about_what_left_the_window() {
    let maker = SegmentMaker::new("main", "s", Counter::new(CounterKind::Chars4));
    let made = session("s", &recorded(), &maker).expect("read");
    let asked: Vec<_> = made.questions.iter().map(|q| (&*q.category, &*q.text)).collect();
    let user = "does grammar.rs still allow rules?";
    let expected = [
        ("user", user),
        ("intention", "I look at the grammar once more"),
        ("intention", "measure the speed of it"),
        ("user", user),
    ];
    assert_eq!(asked, expected, "the user asks for the file once, and for the command");
    let of = |nth: usize| made.questions[nth].recorded.clone().expect("recorded");
    assert_eq!((&made.questions[1].evidence, of(1).unchanged), (&vec![1, 2], vec![2]));
    assert_eq!((&made.questions[2].evidence, of(2).unchanged), (&vec![3, 4], vec![]));
    assert!(of(0).archived > 4 && !of(0).is_repeated && of(1).is_repeated);
    let report = measured(DatasetFormat::Sessions, &[made], 0.3);
    assert_eq!(report.by_category["intention"].recall.at10, 1.0);
    assert_eq!(report.by_category["intention"].unchanged, Some(0.5));
    assert_eq!(report.by_category["intention"].answered, Some(0.5));
    let intention = &report.by_category["intention"];
    assert!(intention.tantivy.at10 > 0.0 && intention.fts5.at10 > 0.0);
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
    case(DatasetFormat::Locomo, "a.json", json!(7), "expected struct Sample");
    case(DatasetFormat::Locomo, "a.json", json!([{"qa": []}]), "missing field `conversation`");
    let text = json!([{"conversation": {"session_1": [{"dia_id": "D1:1", "text": 5}]}, "qa": []}]);
    case(DatasetFormat::Locomo, "a.json", text, "at: [0].text");
    case(DatasetFormat::Locomo, "a.json", json!([{"conversation": {}}]), "missing field `qa`");
    case(
        DatasetFormat::Locomo,
        "a.json",
        json!([{"conversation": {}, "qa": [{}]}]),
        "at: [0].qa[0], reason: missing field `question`",
    );
    case(DatasetFormat::Locomo, "a.json", json!([]), "no question");
    let chat = json!([{"turns": [[{"content": "x", "role": "user"}]]}]);
    case(
        DatasetFormat::Beam,
        "b/chat.json",
        chat,
        "at: [0].turns[0][0], reason: missing field `id`",
    );
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
