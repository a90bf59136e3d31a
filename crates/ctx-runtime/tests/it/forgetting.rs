//! The report shows exactly the messages that are erased.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use ctx_core::{Role, Timestamp};
use ctx_memory::archive::ArchiveLimits;
use ctx_memory::{Memory, MemorySettings};
use ctx_runtime::forget::{ForgetPlan, ForgetRequest, MemoryToErase};
use ctx_search::{Metadata, Segment, SegmentId};
use ctx_session::Home;
use ctx_session::key::FileId;

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

/// Creates a memory with these messages, and another one open on the same folder.
fn memories(home: &Home, says: &[&str]) -> [Memory; 2] {
    let mut settings = MemorySettings::default();
    settings.limits = ArchiveLimits { eviction_days: 0, ..ArchiveLimits::default() };
    let open = || Memory::open(home.memory_dir(&FileId::main()), settings.clone());
    let memories = [open(), open()];
    memories[0].add(&says.iter().map(|text| segment(text)).collect::<Vec<_>>()).unwrap();
    memories[0].flush().unwrap();
    memories
}

#[test]
fn later_messages_of_a_forgotten_session_are_erased_too() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let [memory, of_another_host] = memories(&home, &["a red heron", "a blue one"]);
    let memories = [MemoryToErase { agent: FileId::main(), memory: memory.clone(), facts: None }];
    let what = ForgetRequest { session: Some("s".into()), ..ForgetRequest::default() };
    let planned = ForgetPlan::plan(&home, what, &memories).unwrap();
    assert_eq!(planned.report().unwrap().agents[0].segments, 2);
    let other = Segment { session_id: "t".into(), ..segment("of another session") };
    of_another_host.add(&[segment("another heron"), other]).unwrap();
    of_another_host.flush().unwrap();
    let gone = planned.execute(Timestamp(0)).unwrap();
    assert_eq!((gone.agents[0].segments, memory.stats().unwrap().segments), (3, 1));
}

#[test]
fn later_messages_outside_the_plan_are_kept_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let home = Home::at(folder.path());
    let [memory, _] = memories(&home, &["a red heron", "a blue one"]);
    let memories = [MemoryToErase { agent: FileId::main(), memory: memory.clone(), facts: None }];
    let what = ForgetRequest { matching: Some("heron".into()), ..ForgetRequest::default() };
    let planned = ForgetPlan::plan(&home, what, &memories).unwrap();
    assert_eq!(planned.report().unwrap().agents[0].segments, 1);
    memory.add(&[segment("another heron")]).unwrap();
    memory.flush().unwrap();
    let gone = planned.execute(Timestamp(0)).unwrap();
    assert_eq!((gone.agents[0].segments, memory.stats().unwrap().segments), (1, 2));
    assert!(!gone.complete);
    let held = |name: &str| gone.still_held.iter().any(|held| held.path.ends_with(name));
    assert!(held("segments.jsonl") && held("knowledge.jsonl"), "{:?}", gone.still_held);
}
