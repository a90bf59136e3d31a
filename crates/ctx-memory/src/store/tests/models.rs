//! Vectors, and models that fail.

use std::time::Duration;

use async_trait::async_trait;
use ctx_core::Timer;
use ctx_search::VectorModel;

use super::*;

/// Gives the configured answers in turn.
struct Model(AtomicUsize, &'static [Answer]);

#[derive(Clone, Copy)]
enum Answer {
    Good,
    Nan,
    Short,
    Few,
    Down,
    Never,
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
            Answer::Never => std::future::pending().await,
        }
    }
}

/// A timer without delays.
struct Hasty;

#[async_trait]
impl Timer for Hasty {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, _: Duration) {}
}

/// Accepts short texts only, and refuses "wicked" ones. Counts its calls.
struct Picky(AtomicUsize, usize);

#[async_trait]
impl Embedder for Picky {
    fn name(&self) -> &str {
        "picky"
    }

    fn dimensions(&self) -> usize {
        2
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        if texts.iter().any(|text| text.len() > self.1) {
            return Err(Error::new(ErrorKind::Overflow, "a text is too long"));
        }
        if texts.iter().any(|text| text.contains("wicked")) {
            return Err(Error::new(ErrorKind::Upstream, "refused"));
        }
        let is_blank = |text: &String| text.contains("blank");
        Ok(texts.iter().map(|text| vec![f32::from(u8::from(!is_blank(text))), 0.0]).collect())
    }
}

#[test]
fn a_text_that_cannot_be_embedded_does_not_block_others() {
    let picky = Arc::new(Picky(AtomicUsize::new(0), 3_000));
    let model = VectorModel::new(picky.clone(), Arc::new(Hasty));
    let mut settings = MemorySettings { vectors: Vectors::Model(model), ..settings() };
    settings.search.embed_context = 0;
    let memory = Memory::in_memory(settings);
    let long = segment("s", 1, &"a long tool result ".repeat(3_000));
    memory.add(&some(2..20)).unwrap();
    memory
        .add(&[long.clone(), segment("s", 30, "wicked words"), segment("s", 31, "blank")])
        .unwrap();
    memory.add(&some(40..80)).unwrap();
    // All but the refused ones and those with an invalid vector; the long one by its beginning.
    assert_eq!(waited(memory.embed()).unwrap(), 59);
    let live = memory.inner.live();
    assert!(live.vectors.as_ref().unwrap().has(live.row(long.id).unwrap()));
    drop(live);
    let told = memory.take_warnings();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(
        told.iter()
            .all(|told| told.contains("a message has no vector and is found by its words only:")
                || told.contains("the model returns zero vectors: these messages are found"))
    );
    assert_ne!(told[0].contains("zero vectors"), told[1].contains("zero vectors"), "{told:?}");
    let asked = picky.0.load(Ordering::Relaxed);
    assert!(asked < 30, "{asked} requests");
    // They are not sent again, and a long text is sent at a length that was accepted.
    assert_eq!(waited(memory.embed()).unwrap(), 0);
    assert_eq!(picky.0.load(Ordering::Relaxed), asked);
    memory.add(&[segment("s", 99, &"another long one ".repeat(3_000))]).unwrap();
    assert_eq!(waited(memory.embed()).unwrap(), 1);
    assert_eq!(picky.0.load(Ordering::Relaxed), asked + 1);
}

#[test]
fn a_model_that_refuses_everything_is_paused_and_called_again_later() {
    let picky = Arc::new(Picky(AtomicUsize::new(0), 0));
    let model = VectorModel::new(picky.clone(), Arc::new(Hasty));
    let memory = Memory::in_memory(MemorySettings { vectors: Vectors::Model(model), ..settings() });
    memory.add(&some(0..40)).unwrap();
    assert!(waited(memory.embed()).is_err());
    assert_eq!(picky.0.load(Ordering::Relaxed), 4, "a batch, and three one by one");
    assert_eq!(waited(memory.embed()).unwrap(), 0, "it rests");
    *memory.inner.rests_until.lock().unwrap() = None;
    assert!(waited(memory.embed()).is_err());
    assert_eq!(picky.0.load(Ordering::Relaxed), 8, "others are tried next");
    use Answer::{Good, Never};
    let answers = &[Never, Never, Good, Good, Good, Good];
    let down = Memory::in_memory(with_model(answers));
    down.add(&some(0..40)).unwrap();
    assert!(waited(down.embed()).is_err());
    *down.inner.rests_until.lock().unwrap() = None;
    assert_eq!(waited(down.embed()).unwrap(), 39, "the others first");
    assert_eq!(waited(down.embed()).unwrap(), 1);
}

fn with_model(answers: &'static [Answer]) -> MemorySettings {
    let model = Arc::new(Model(AtomicUsize::new(0), answers));
    let model = VectorModel::new(model, Arc::new(Hasty));
    MemorySettings { vectors: Vectors::Model(model), ..settings() }
}

#[test]
fn a_model_finds_segments_without_a_shared_word() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Memory::open(folder.path(), with_model(&[Answer::Good]));
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
    let again = Memory::open(folder.path(), with_model(&[Answer::Down]));
    assert_eq!(again.search(&query, Some(&[1.0, 0.0])).unwrap()[0].id, boat.id);
    assert!(again.search(&query, Some(&[1.0])).unwrap().is_empty(), "a vector of another model");
}

/// Returns the segments found for a query, which are the same if it is compared with all vectors and
/// with candidates.
fn both_ways(memory: &Memory, query: &Query<'_>, vector: &[f32]) -> Vec<SegmentId> {
    let hits = |exact_up_to: usize| {
        memory.inner.live_mut().exact_up_to = exact_up_to;
        memory.search(query, Some(vector)).unwrap()
    };
    let (all, some) = (hits(usize::MAX), hits(100));
    assert_eq!(all, some);
    all.iter().map(|hit| hit.id).collect()
}

#[test]
fn candidates_find_the_same_as_a_full_comparison() {
    let memory = Memory::in_memory(with_model(&[Answer::Good]));
    memory.add(&some(0..400)).unwrap();
    memory.add(&[segment("s", 999, "the sea in winter"), segment("s", 998, "winter")]).unwrap();
    waited(memory.embed()).unwrap();
    let query = Query { text: "winter ember 4", session: None, limit: 10, now: Timestamp(0) };
    both_ways(&memory, &query, &[1.0, 0.1]);
    let shore = segment("s", 1_000, "winter ember 4 at the sea");
    memory.add(std::slice::from_ref(&shore)).unwrap();
    waited(memory.embed()).unwrap();
    assert_eq!(both_ways(&memory, &query, &[1.0, 0.1])[0], shore.id);
}

#[test]
fn all_vectors_of_a_session_are_compared_in_a_large_store() {
    let memory = Memory::in_memory(with_model(&[Answer::Good]));
    memory.add(&some(0..400)).unwrap();
    // Its row is not among those sampled from the whole store.
    let own = segment("mine", 2, "the sea of mine");
    memory.add(&[segment("mine", 1, "winter"), own.clone()]).unwrap();
    let seas: Vec<_> = (0..5_000).map(|n| segment("s", 500 + n, &format!("sea {n}"))).collect();
    memory.add(&seas).unwrap();
    waited(memory.embed()).unwrap();
    let query = Query { text: "ocean", session: Some("mine"), limit: 10, now: Timestamp(0) };
    assert_eq!(both_ways(&memory, &query, &[1.0, 0.5]), [own.id]);
}

#[test]
fn a_graph_of_an_earlier_version_is_deleted_by_forgetting() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path());
    memory.add(&some(0..4)).unwrap();
    memory.flush().unwrap();
    let path = folder.path().join("vectors.graph");
    fs::write(&path, "vectors").unwrap();
    memory.forget(&HashSet::from([some(3..4)[0].id])).unwrap();
    assert!(!path.exists());
}

#[test]
fn searches_continue_while_segments_are_added_stored_and_forgotten() {
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
fn a_failing_model_is_reported_and_search_uses_words() {
    use ErrorKind::{Timeout, Upstream};
    for (answers, kind) in [
        (&[Answer::Down], Upstream),
        (&[Answer::Nan], Upstream),
        (&[Answer::Short], Upstream),
        (&[Answer::Few], Upstream),
        (&[Answer::Never], Timeout),
    ] {
        let memory = Memory::in_memory(with_model(answers));
        memory.add(&some(0..10)).unwrap();
        assert_eq!(waited(memory.embed()).unwrap_err().kind(), kind);
        assert_eq!(waited(memory.embed()).unwrap(), 0, "it is left alone for a while");
        let memory = Memory::in_memory(with_model(answers));
        memory.add(&some(0..10)).unwrap();
        let session = SessionMemory::new(memory, "s", maker("s"));
        let found = waited(session.recall(request("note 4: ember"))).unwrap();
        assert!(!found.passages.is_empty() && found.warnings.len() == 1, "{found:?}");
        let found = waited(session.recall(request("note 5: ember"))).unwrap();
        assert!(!found.passages.is_empty() && found.warnings.is_empty(), "{found:?}");
        assert_eq!(waited(session.maintain()), [] as [&str; 0], "nor is that told twice");
    }
}
