//! Long-term memory of turns: vectors and facts by models, and memories provided by the host.

use std::collections::HashMap;

use async_trait::async_trait;
use ctx_core::{
    Embedder, Entry, MemoryStore, RecallRequest, Recollection, Result, Summarizer, Summary,
    SummaryModels, SummaryRequest,
};
use ctx_engine_registry::{MemoryContext, MemoryRegistration, inventory};
use ctx_testkit::ScriptedSummarizer;
use ctx_testkit::chat::{ScriptedChat, Step};

use super::*;

const ENABLED: &str = "{ agents: { defaults: { memoryContext: { enabled: true } } } }";

/// Writes summaries, and returns one fact when asked for facts.
struct Writer(ScriptedSummarizer, Mutex<usize>);

#[async_trait]
impl Summarizer for Writer {
    fn name(&self) -> &str {
        "writer/a"
    }

    fn window(&self) -> ctx_core::Tokens {
        self.0.window()
    }

    async fn summarize(&self, request: SummaryRequest) -> Result<Summary> {
        if !request.prompt.starts_with("Note each fact") {
            return self.0.summarize(request).await;
        }
        *self.1.lock().unwrap() += 1;
        let fact =
            r#"[{"op":"ADD","type":"decision","content":"The lighthouse parrot is Quillon"}]"#;
        Ok(Summary { text: fact.into(), ..Summary::default() })
    }
}

/// Computes vectors, and counts them.
#[derive(Default)]
struct Counting(Mutex<usize>);

#[async_trait]
impl Embedder for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn dimensions(&self) -> usize {
        4
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        *self.0.lock().unwrap() += texts.len();
        Ok(texts.iter().map(|text| vec![1.0, text.len() as f32, 0.5, 0.25]).collect())
    }
}

fn writer() -> (Arc<Writer>, SummaryModels) {
    let writer = Arc::new(Writer(ScriptedSummarizer::new("writer/a"), Mutex::default()));
    let timer = Arc::new(ctx_testkit::VirtualTimer::default());
    (writer.clone(), SummaryModels { chain: vec![writer], timer })
}

/// Creates a session with a message that a summary removes.
async fn with_a_past(house: &House) {
    house.say("the parrot of the lighthouse is called Quillon").await.unwrap();
    for n in 0..6 {
        house.say(&format!("message {n}\n{}", filler(2_000))).await.unwrap();
    }
}

#[tokio::test]
async fn after_a_compaction_models_extract_facts_and_compute_vectors() {
    let (writer, models) = writer();
    let embedder = Arc::new(Counting::default());
    let of_house = embedder.clone();
    let house = House::with(ScriptedChat::new("script/a", 32_000), ENABLED, |builder| {
        builder.summary_models(models).embedder(of_house)
    });
    with_a_past(&house).await;
    let answer = house.say("/compact").await.unwrap().answer.unwrap();
    assert!(answer.starts_with("**Compact Complete!**"), "{answer}");
    house.runtime().close(&main_key()).await.unwrap();
    assert!(*writer.1.lock().unwrap() > 0, "it received a request for facts");
    let folder = house.home().memory_dir(&FileId::main());
    let facts = std::fs::read_to_string(folder.join("knowledge.jsonl")).unwrap();
    assert!(facts.contains("The lighthouse parrot is Quillon"), "{facts}");
    assert!(*embedder.0.lock().unwrap() > 2, "segments have vectors");
    let vectors = std::fs::read(folder.join("vectors.bin")).unwrap();
    assert_eq!(&vectors[..4], b"VMEM");
}

#[tokio::test]
async fn a_turn_does_not_wait_for_the_extraction_of_facts() {
    struct Never(ScriptedSummarizer);
    #[async_trait]
    impl Summarizer for Never {
        fn name(&self) -> &str {
            "writer/never"
        }
        fn window(&self) -> ctx_core::Tokens {
            self.0.window()
        }
        async fn summarize(&self, request: SummaryRequest) -> Result<Summary> {
            match request.prompt.starts_with("Note each fact") {
                true => std::future::pending().await,
                false => self.0.summarize(request).await,
            }
        }
    }
    let writer = Arc::new(Never(ScriptedSummarizer::new("writer/never")));
    let timer = Arc::new(ctx_testkit::VirtualTimer::default());
    let models = SummaryModels { chain: vec![writer], timer };
    let house = House::with(ScriptedChat::new("script/a", 32_000), ENABLED, |builder| {
        builder.summary_models(models)
    });
    with_a_past(&house).await;
    house.say("/compact").await.unwrap();
    assert!(house.say("and now?").await.unwrap().answer.is_some());
}

/// A memory that knows one fact and records its calls.
#[derive(Default)]
struct Known {
    archived: Mutex<Vec<String>>,
}

#[async_trait]
impl MemoryStore for Known {
    fn archive(&self, entries: &[Arc<Entry>]) -> Result<()> {
        let mut archived = self.archived.lock().unwrap();
        for entry in entries {
            archived.push(entry.message()?.plain_text());
        }
        Ok(())
    }

    async fn recall(&self, request: RecallRequest) -> Result<Recollection> {
        let passage = ctx_core::Passage {
            text: "a memory of its own: Quillon".into(),
            score: 1.0,
            role: Role::User,
            timestamp: request.now,
            session: None,
            entry: None,
            adjacent: false,
        };
        Ok(Recollection { passages: vec![passage], ..Recollection::default() })
    }

    async fn flush(&self) -> Result<()> {
        Ok(())
    }
}

/// Memories of the linked crate, by folder.
static LINKED: Mutex<Option<HashMap<PathBuf, Arc<Known>>>> = Mutex::new(None);

fn linked(context: &MemoryContext<'_>) -> Result<Arc<dyn MemoryStore>> {
    let folder = context.folder.unwrap().to_owned();
    let mut linked = LINKED.lock().unwrap();
    Ok(linked.get_or_insert_default().entry(folder).or_default().clone())
}

inventory::submit! {
    MemoryRegistration {
        id: "memory-of-others",
        source: "tests",
        about: "knows one thing",
        build: Some(linked),
        layers: &[],
    }
}

async fn recalls_and_archives(house: &House, memory: &Known) {
    with_a_past(house).await;
    let sent = house.model.requests().last().unwrap().clone();
    let texts: Vec<_> = sent.messages.iter().map(|message| message.plain_text()).collect();
    assert!(texts.concat().contains("a memory of its own: Quillon"), "{texts:?}");
    house.say("/compact").await.unwrap();
    let archived = memory.archived.lock().unwrap().concat();
    assert!(archived.contains("the parrot of the lighthouse"), "{archived}");
    let found = house.say("/recall parrot").await.unwrap().answer.unwrap();
    assert!(found.contains("a memory of its own"), "{found}");
}

#[tokio::test]
async fn a_host_can_provide_its_own_memory() {
    let memory = Arc::new(Known::default());
    let own = memory.clone();
    let house = House::with(ScriptedChat::new("script/a", 32_000), "{}", |builder| {
        builder.memory(move |_| Ok(own.clone() as Arc<dyn MemoryStore>))
    });
    recalls_and_archives(&house, &memory).await;
}

#[tokio::test]
async fn the_memory_of_a_linked_crate_fills_the_slot() {
    let config = "{ plugins: { slots: { memory: 'memory-of-others' } } }";
    let house = House::with(ScriptedChat::new("script/a", 32_000), config, |builder| builder);
    let folder = house.home().memory_dir(&FileId::main());
    house.say("hello").await.unwrap();
    let memory = LINKED.lock().unwrap().as_ref().unwrap()[&folder].clone();
    recalls_and_archives(&house, &memory).await;
    let config = "{ plugins: { slots: { memory: 'memory-of-nobody' } } }";
    let house = House::with(ScriptedChat::new("script/a", 32_000), config, |builder| builder);
    let error = house.say("hello").await.unwrap_err();
    assert!(error.to_string().contains("unknown memory 'memory-of-nobody'"), "{error}");
    assert!(error.hint_text().unwrap().contains("'memory-context' or 'memory-of-others'"));
}

#[tokio::test]
async fn an_agent_and_its_subagents_have_their_own_windows_profiles_and_models() {
    let config = "{ agents: {
        defaults: { contextTokens: 60000 },
        list: [{ id: 'main', contextTokens: 100000, profile: 'copaw',
                 subagents: { contextTokens: 32000, profile: 'memory-context' } }],
    } }";
    let model = ScriptedChat::new("script/a", 200_000).always(|_| Step::text("done"));
    let house = House::with(model, config, |builder| builder);
    let fill = house.say("hello").await.unwrap().fill.unwrap();
    // CoPaw reserves a quarter of the window, the memory extension 4,000 tokens.
    assert_eq!((fill.window.0, fill.limit.0), (100_000, 75_000));
    let request = crate::SpawnRequest::isolated("look");
    let done =
        house.runtime().spawn(&main_key(), request, &NoTools, &mut NoListener).await.unwrap();
    let fill = done.turn.fill.unwrap();
    assert_eq!((fill.window.0, fill.limit.0), (32_000, 28_000));
    let other: SessionKey = "agent:other:main".parse().unwrap();
    let turn = house.runtime().turn(&other, "hello", &NoTools, &mut NoListener).await.unwrap();
    assert_eq!(turn.fill.unwrap().limit.0, 45_000, "60,000 less a quarter");
}
