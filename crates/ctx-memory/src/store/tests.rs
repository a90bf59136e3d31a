use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicUsize;

use async_trait::async_trait;
use ctx_core::{
    Counter, CounterKind, Embedder, Entry, Error, ErrorKind, MemoryStore, Message, RecallRequest,
    Role, Timestamp,
};
use futures_util::FutureExt;

use super::*;
use crate::archive::{Limits, SegmentMaker};
use crate::{Metadata, SearchSettings};

fn segment(session: &str, minute: i64, content: &str) -> Segment {
    Segment {
        id: SegmentId::of(session, &Role::User, content),
        agent_id: "main".into(),
        session_id: session.into(),
        timestamp: Timestamp(minute * 60_000),
        role: Role::User,
        name: None,
        content: content.into(),
        tokens: 1,
        metadata: Metadata::default(),
        entry_id: Some(format!("e{minute}")),
    }
}

fn some(range: std::ops::Range<i64>) -> Vec<Segment> {
    let words = ["apple", "brick", "cloud", "dune", "ember"];
    let text =
        |n: i64| format!("note {n}: {} and {}", words[n as usize % 5], words[n as usize % 3]);
    range.map(|n| segment("s", n, &text(n))).collect()
}

fn settings() -> Settings {
    let limits = Limits { eviction_days: 0, ..Limits::default() };
    Settings { limits, ..Settings::default() }
}

fn memory(folder: &Path) -> Memory {
    Memory::open(folder, "main", settings())
}

fn found(memory: &Memory, text: &str) -> Vec<(SegmentId, f32, f32)> {
    let query = Query { text, session: None, limit: 50, now: Timestamp(0) };
    let hits = memory.search(&query, None).unwrap();
    hits.into_iter().map(|hit| (hit.id, hit.score, hit.parts.bm25)).collect()
}

fn waited<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().expect("it waits for nobody")
}

#[test]
fn what_was_added_is_found_at_once_and_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("memory/context");
    let memory = memory(&at);
    assert!(found(&memory, "apple").is_empty());
    assert!(!at.exists(), "looking creates nothing");
    let segments = some(0..20);
    assert_eq!(memory.add(&segments).unwrap(), 20);
    assert_eq!(memory.add(&segments).unwrap(), 0);
    let before = found(&memory, "apple 7");
    assert!(before.len() > 3 && memory.get(&[segments[7].id]).unwrap()[0].is_some());
    assert_eq!(memory.stats().unwrap().pending, 20);
    memory.flush().unwrap();
    assert_eq!(memory.stats().unwrap().pending, 0);
    let again = self::memory(&at);
    assert_eq!(found(&again, "apple 7"), before);
    assert_eq!(again.get(&[segments[7].id]).unwrap()[0].as_ref(), Some(&segments[7]));
    let next = again.neighbours(segments[7].id).unwrap();
    assert_eq!(next, [segments[6].id, segments[8].id]);
    assert!(again.take_warnings().is_empty());
}

#[test]
fn scores_are_the_same_before_while_and_after_the_index_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path());
    memory.add(&some(0..300)).unwrap();
    memory.flush().unwrap();
    let before = found(&memory, "apple cloud 17");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| memory.settle());
        while !writer.is_finished() {
            assert_eq!(found(&memory, "apple cloud 17"), before);
        }
    });
    assert_eq!(found(&memory, "apple cloud 17"), before);
    let stats = memory.stats().unwrap();
    assert_eq!((stats.stored_pieces, stats.new_pieces), (300, 0));
    // In two parts, and read anew.
    memory.add(&some(300..400)).unwrap();
    memory.flush().unwrap();
    let before = found(&memory, "apple cloud 17");
    memory.settle().unwrap();
    assert_eq!(found(&memory, "apple cloud 17"), before);
    assert_eq!(found(&self::memory(folder.path()), "apple cloud 17"), before);
}

#[test]
fn the_index_is_written_by_itself_when_much_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path());
    memory.add(&some(0..BATCH as i64)).unwrap();
    while memory.inner.is_indexing.load(Ordering::Acquire) {
        std::thread::yield_now();
    }
    assert_eq!(memory.stats().unwrap().stored_pieces, BATCH);
}

#[test]
fn an_index_that_is_deleted_or_damaged_is_made_anew_and_that_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("lexical");
    let memory = memory(folder.path());
    memory.add(&some(0..100)).unwrap();
    memory.flush().unwrap();
    memory.settle().unwrap();
    let before = found(&memory, "ember 4");
    // While it is open.
    fs::remove_dir_all(&at).unwrap();
    assert_eq!(found(&memory, "ember 4"), before);
    memory.settle().unwrap();
    assert_eq!(found(&memory, "ember 4"), before);
    assert_eq!(memory.take_warnings().len(), 1);
    assert_eq!(memory.stats().unwrap().stored_pieces, 100);
    drop(memory);
    // While nobody looks: without it, of another version, cut, and not an index at all.
    let damages: [fn(&Path); 4] = [
        |at| fs::remove_dir_all(at).unwrap(),
        |at| {
            let meta = at.join("meta.json");
            let text = fs::read_to_string(&meta).unwrap();
            fs::write(&meta, text.replace("ctx-memory 1", "ctx-memory 0")).unwrap();
        },
        |at| {
            for file in fs::read_dir(at).unwrap().map(|file| file.unwrap().path()) {
                if file.extension().is_some_and(|e| e == "term") {
                    fs::write(file, "cut").unwrap();
                }
            }
        },
        |at| {
            fs::remove_dir_all(at).unwrap();
            fs::write(at, "a file").unwrap();
        },
    ];
    for (damage, warnings) in damages.into_iter().zip([0, 1, 1, 2]) {
        damage(&at);
        let memory = self::memory(folder.path());
        assert_eq!(found(&memory, "ember 4"), before);
        assert_eq!(memory.take_warnings().len(), warnings);
        if !at.is_file() {
            memory.settle().unwrap();
            assert_eq!(found(&memory, "ember 4"), before);
            assert_eq!(memory.stats().unwrap().stored_pieces, 100);
        }
    }
}

#[test]
fn two_on_one_store_lose_nothing_and_find_what_the_other_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let (one, two) = (memory(folder.path()), memory(folder.path()));
    let segments = some(0..60);
    one.add(&segments[..30]).unwrap();
    two.add(&segments[20..]).unwrap();
    for memory in [&one, &two, &one] {
        memory.flush().unwrap();
    }
    let all = found(&memory(folder.path()), "note").len();
    assert_eq!((all, one.stats().unwrap().segments, two.stats().unwrap().segments), (50, 60, 60));
    // Both write what both have.
    one.settle().unwrap();
    two.settle().unwrap();
    one.settle().unwrap();
    for memory in [&one, &two, &memory(folder.path())] {
        assert_eq!(memory.stats().unwrap().stored_pieces, 60);
        assert_eq!(found(memory, "note 25"), found(&one, "note 25"));
    }
}

#[test]
fn nothing_of_what_is_forgotten_stays_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.search.hash_weight = 0.5;
    let memory = Memory::open(folder.path(), "main", settings);
    memory.add(&some(0..50)).unwrap();
    let secret = segment("s", 99, "the xylophone is under the stairs");
    memory.add(std::slice::from_ref(&secret)).unwrap();
    memory.flush().unwrap();
    memory.settle().unwrap();
    assert!(on_disk(folder.path(), b"xylophon"));
    let ids = HashSet::from([secret.id, SegmentId::of("s", &Role::User, "nobody said this")]);
    assert_eq!(memory.forget(&ids).unwrap(), 1);
    memory.settle().unwrap();
    assert!(!on_disk(folder.path(), b"xylophon") && found(&memory, "xylophone").len() != 51);
    assert!(memory.get(&[secret.id]).unwrap()[0].is_none());
    let stats = memory.stats().unwrap();
    assert_eq!((stats.segments, stats.stored_pieces, stats.vectors), (50, 50, 50));
}

fn on_disk(folder: &Path, wanted: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return on_disk(&path, wanted);
        }
        fs::read(&path).unwrap().windows(wanted.len()).any(|window| window == wanted)
    })
}

#[test]
fn the_oldest_go_when_there_are_too_many() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.limits.max_segments = 10;
    for memory in
        [Memory::open(folder.path(), "main", settings.clone()), Memory::in_memory("main", settings)]
    {
        let segments = some(0..25);
        memory.add(&segments).unwrap();
        memory.flush().unwrap();
        assert_eq!(memory.stats().unwrap().segments, 10);
        assert_eq!(found(&memory, "note").len(), 10);
        let [old, new] = [segments[3].id, segments[20].id].map(|id| memory.get(&[id]).unwrap());
        assert!(old[0].is_none() && new[0].is_some());
        assert!(memory.neighbours(segments[15].id).unwrap().len() == 1);
    }
}

#[test]
fn the_same_said_ten_thousand_times_is_one_segment_and_a_huge_one_is_found() {
    let memory = Memory::in_memory("main", settings());
    let same = vec![segment("s", 0, "again and again"); 10_000];
    assert_eq!(memory.add(&same).unwrap(), 1);
    let huge = segment("s", 1, &format!("{}\nneedle", "hay stack ".repeat(200_000)));
    memory.add(std::slice::from_ref(&huge)).unwrap();
    assert_eq!(found(&memory, "needle")[0].0, huge.id);
    assert_eq!(
        memory.add(&[segment("s", 2, "<recalled-context>x"), segment("s", 3, " ")]).unwrap(),
        0
    );
}

#[test]
fn what_cannot_be_written_is_kept_and_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().join("context");
    let memory = memory(&at);
    memory.add(&some(0..5)).unwrap();
    fs::write(&at, "a file in the way").unwrap();
    assert!(memory.flush().is_err());
    assert_eq!((found(&memory, "note").len(), memory.stats().unwrap().pending), (5, 5));
    fs::remove_file(&at).unwrap();
    memory.flush().unwrap();
    assert_eq!(found(&self::memory(&at), "note").len(), 5);
}

#[test]
fn what_is_found_can_be_read_while_another_holds_the_archive_and_after_it_was_written_anew() {
    let folder = tempfile::tempdir().unwrap();
    let mut limits = settings();
    limits.limits.max_segments = 300;
    let memory = Memory::open(folder.path(), "main", limits);
    let segments = some(0..700);
    memory.add(&segments[..100]).unwrap();
    memory.flush().unwrap();
    let source = memory.inner.opened().unwrap();
    assert_eq!(memory.get(&[segments[7].id]).unwrap()[0].as_ref(), Some(&segments[7]));
    assert!(!found(&memory, "apple").is_empty());
    drop(source);
    memory.add(&segments[100..]).unwrap();
    memory.flush().unwrap();
    let last = &segments[500..];
    let ids: Vec<_> = last.iter().map(|segment| segment.id).collect();
    let read: Vec<_> = memory.get(&ids).unwrap().into_iter().flatten().collect();
    assert_eq!(read, last);
}

#[test]
fn hashes_are_made_where_they_count_and_only_there() {
    let folder = tempfile::tempdir().unwrap();
    let plain = memory(&folder.path().join("a"));
    plain.add(&some(0..10)).unwrap();
    plain.flush().unwrap();
    assert_eq!((plain.stats().unwrap().vectors, plain.stats().unwrap().vector_bytes), (0, 0));
    let mut with = settings();
    with.search = SearchSettings { hash_weight: 0.7, spread: 0.0, ..SearchSettings::default() };
    let at = folder.path().join("b");
    let memory = Memory::open(&at, "main", with.clone());
    memory.add(&some(0..10)).unwrap();
    memory.flush().unwrap();
    let before = found(&memory, "ember 4");
    let again = Memory::open(&at, "main", with);
    assert_eq!(found(&again, "ember 4"), before);
    assert_eq!(again.stats().unwrap().vectors, 10);
}

/// Answers as it is told, in turn.
struct Model(AtomicUsize, &'static [Answer]);

#[derive(Clone, Copy)]
enum Answer {
    Good,
    Nan,
    Short,
    Few,
    Down,
}

#[async_trait]
impl Embedder for Model {
    fn name(&self) -> &str {
        "model"
    }

    fn dimensions(&self) -> usize {
        2
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let of = |text: &String| if text.contains("sea") { vec![1.0, 0.0] } else { vec![0.0, 1.0] };
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        match self.1[n % self.1.len()] {
            Answer::Good => Ok(texts.iter().map(of).collect()),
            Answer::Nan => Ok(texts.iter().map(|_| vec![f32::NAN, 1.0]).collect()),
            Answer::Short => Ok(texts.iter().map(|_| vec![1.0]).collect()),
            Answer::Few => Ok(Vec::new()),
            Answer::Down => Err(Error::new(ErrorKind::Upstream, "no answer")),
        }
    }
}

fn with_model(answers: &'static [Answer]) -> Settings {
    let model = Arc::new(Model(AtomicUsize::new(0), answers));
    Settings { vectors: Vectors::Model(model), ..settings() }
}

#[test]
fn a_model_finds_what_shares_no_word() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::open(folder.path(), "main", with_model(&[Answer::Good]));
    let boat = segment("s", 1, "a boat on the sea");
    memory.add(&some(2..40)).unwrap();
    memory.add(std::slice::from_ref(&boat)).unwrap();
    memory.flush().unwrap();
    let query = Query { text: "ocean", session: None, limit: 3, now: Timestamp(0) };
    assert!(memory.search(&query, Some(&[1.0, 0.0])).unwrap().is_empty());
    assert_eq!(waited(memory.embed()).unwrap(), 39);
    assert_eq!(memory.search(&query, Some(&[1.0, 0.0])).unwrap()[0].id, boat.id);
    assert_eq!(waited(memory.embed()).unwrap(), 0);
    // A restart embeds nothing again.
    let again = Memory::open(folder.path(), "main", with_model(&[Answer::Down]));
    assert_eq!(again.search(&query, Some(&[1.0, 0.0])).unwrap()[0].id, boat.id);
    assert!(again.search(&query, Some(&[1.0])).unwrap().is_empty(), "a vector of another model");
}

#[test]
fn among_many_vectors_a_graph_finds_what_comparing_with_all_finds() {
    let memory = Memory::in_memory("main", with_model(&[Answer::Good]));
    memory.add(&some(0..400)).unwrap();
    memory.add(&[segment("s", 999, "the sea in winter"), segment("s", 998, "winter")]).unwrap();
    waited(memory.embed()).unwrap();
    let query = Query { text: "winter ember 4", session: None, limit: 10, now: Timestamp(0) };
    let search = || memory.search(&query, Some(&[1.0, 0.1])).unwrap();
    let exact = search();
    assert_eq!(memory.stats().unwrap().in_graph, 0);
    memory.inner.live_mut().exact_up_to = 100;
    memory.settle().unwrap();
    assert_eq!(memory.stats().unwrap().in_graph, 402);
    assert_eq!(search(), exact);
    // What is newer than the graph is found too.
    let shore = segment("s", 1_000, "winter ember 4 at the sea");
    memory.add(std::slice::from_ref(&shore)).unwrap();
    waited(memory.embed()).unwrap();
    assert_eq!(search()[0].id, shore.id);
}

#[test]
fn searches_go_on_while_much_is_added_stored_and_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path());
    let kept = segment("other", 1, "the quince tree");
    memory.add(std::slice::from_ref(&kept)).unwrap();
    let segments = some(0..2_500);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for part in segments.chunks(500) {
                memory.add(part).unwrap();
                memory.flush().unwrap();
                memory.forget(&HashSet::from([part[3].id])).unwrap();
            }
        });
        while !writer.is_finished() {
            assert_eq!(found(&memory, "quince")[0].0, kept.id);
        }
    });
    memory.settle().unwrap();
    let stats = memory.stats().unwrap();
    assert_eq!((stats.segments, stats.pending, stats.new_pieces), (2_496, 0, 0));
    assert!(memory.get(&[segments[3].id]).unwrap()[0].is_none());
}

#[test]
fn a_model_that_fails_leaves_words_to_decide_and_is_told_of() {
    for answers in [&[Answer::Down][..], &[Answer::Nan], &[Answer::Short], &[Answer::Few]] {
        let memory = Memory::in_memory("main", with_model(answers));
        memory.add(&some(0..10)).unwrap();
        assert_eq!(waited(memory.embed()).unwrap_err().kind(), ErrorKind::Upstream);
        let session = SessionMemory::new(memory, "s", maker("s"));
        let found = waited(session.recall(request("note 4: ember"))).unwrap();
        assert!(!found.passages.is_empty() && found.warnings.len() == 1, "{found:?}");
    }
}

fn maker(session: &str) -> SegmentMaker {
    SegmentMaker::new("main", session, Counter::new(CounterKind::Chars3))
}

fn request(query: &str) -> RecallRequest {
    RecallRequest {
        query: query.into(),
        min_score: 0.7,
        passages: 5,
        facts: 5,
        ..RecallRequest::default()
    }
}

fn said(session: &SessionMemory, texts: &[&str]) {
    let entries: Vec<_> = texts
        .iter()
        .map(|text| Arc::new(Entry::held(*text, Message::text(Role::User, *text))))
        .collect();
    session.archive(&entries).unwrap();
    waited(session.flush()).unwrap();
}

const TALK: [&str; 6] = [
    "let us deploy the billing service on Friday",
    "the staging database listens on port 5433",
    "my cat is called Whiskers",
    "tests of the parser fail since the last merge",
    "the invoice template needs a new logo",
    "we should write documentation for the parser",
];

#[test]
fn what_left_the_window_comes_back_when_it_is_asked_for_and_not_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path());
    let session = SessionMemory::new(memory, "s", maker("s"));
    said(&session, &TALK);
    let recalled = |request| waited(session.recall(request)).unwrap();
    let port = recalled(request("which port does the staging database use?"));
    assert_eq!(port.passages[0].text, TALK[1]);
    assert_eq!(port.passages[0].entry.as_deref(), Some(TALK[1]));
    assert!(port.passages.iter().any(|p| p.text == TALK[2]), "what was said next comes with it");
    assert!(recalled(request("write a poem about autumn leaves")).passages.is_empty());
    assert!(recalled(request("")).passages.is_empty());
    // What the model sees is not brought back.
    let mut seen = request("which port does the staging database use?");
    seen.visible = TALK.iter().map(|text| Arc::from(*text)).collect();
    assert!(recalled(seen).passages.is_empty());
    assert_eq!(self::memory(folder.path()).stats().unwrap().segments, TALK.len());
}

#[test]
fn a_session_recalls_another_only_where_that_is_wanted() {
    let memory = Memory::in_memory("main", settings());
    said(&SessionMemory::new(memory.clone(), "a", maker("a")), &TALK);
    let other = SessionMemory::new(memory, "b", maker("b"));
    let ask = || request("what is my cat called?");
    assert!(waited(other.recall(ask())).unwrap().passages.is_empty());
    let across =
        SessionMemory::new(other.memory().clone(), "b", maker("b")).with_cross_session(true);
    assert_eq!(waited(across.recall(ask())).unwrap().passages[0].text, TALK[2]);
}

#[test]
fn more_messages_than_the_queue_holds_are_all_archived_in_their_order() {
    let memory = Memory::in_memory("main", settings());
    let session = SessionMemory::new(memory.clone(), "s", maker("s"));
    let texts: Vec<String> = (0..3_000).map(|n| format!("message {n}")).collect();
    for texts in texts.chunks(7) {
        let entry = |text: &String| {
            Arc::new(Entry::held(text.as_str(), Message::text(Role::User, text.as_str())))
        };
        session.archive(&texts.iter().map(entry).collect::<Vec<_>>()).unwrap();
    }
    waited(session.flush()).unwrap();
    assert_eq!(memory.stats().unwrap().segments, 3_000);
    let ids = memory.inner.live().index.ids().to_vec();
    let first = memory.get(&ids[..2]).unwrap();
    assert_eq!(first[1].as_ref().map(|s| s.content.as_str()), Some("message 1"));
}
