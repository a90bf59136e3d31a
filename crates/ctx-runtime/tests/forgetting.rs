//! What was shown is what is erased.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use ctx_core::{Role, Timestamp};
use ctx_memory::archive::Limits;
use ctx_memory::{Memory, Metadata, Segment, SegmentId, Settings};
use ctx_runtime::forget::{Forget, Forgetting, Remembered};
use ctx_session::key::FileId;
use ctx_session::paths::Home;

fn segment(content: &str) -> Segment {
    Segment {
        id: SegmentId::of("s", &Role::User, content),
        agent_id: "main".into(),
        session_id: "s".into(),
        timestamp: Timestamp(0),
        archived_at: None,
        role: Role::User,
        name: None,
        content: content.into(),
        tokens: 1,
        metadata: Metadata::default(),
        entry_id: None,
    }
}

#[test]
fn what_was_said_after_the_plan_was_made_stays_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let agent = FileId::main();
    let limits = Limits { eviction_days: 0, ..Limits::default() };
    let mut settings = Settings::default();
    settings.limits = limits;
    let memory = Memory::open(home.memory_dir(&agent), "main", settings);
    memory.add(&[segment("a red heron"), segment("a blue one")]).unwrap();
    memory.flush().unwrap();
    let memories = [Remembered { agent, memory: memory.clone(), facts: None }];
    let what = Forget { matching: Some("heron".into()), ..Forget::default() };
    let planned = Forgetting::plan(&home, what, &memories).unwrap();
    assert_eq!(planned.report().unwrap().agents[0].segments, 1);
    memory.add(&[segment("another heron")]).unwrap();
    memory.flush().unwrap();
    let gone = planned.carry_out(Timestamp(0)).unwrap();
    assert_eq!((gone.agents[0].segments, memory.stats().unwrap().segments), (1, 2));
    assert!(!gone.complete);
    let held = |name: &str| gone.still_held.iter().any(|held| held.path.ends_with(name));
    assert!(held("segments.jsonl") && held("knowledge.jsonl"), "{:?}", gone.still_held);
}
