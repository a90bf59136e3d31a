//! Forgotten segments stay out of a store.

use super::*;
use crate::archive::AddOutcome;

#[test]
fn forgotten_segments_stay_out_after_rebuild_and_restart_also_without_files() {
    let folder = tempfile::tempdir().unwrap();
    let segments = some(0..4);
    let ids = std::collections::HashSet::from([segments[1].id]);
    for at_disk in [true, false] {
        let memory = match at_disk {
            true => memory(folder.path()),
            false => Memory::in_memory(settings()),
        };
        memory.add(&segments).unwrap();
        memory.flush().unwrap();
        assert_eq!(memory.forget(&ids).unwrap(), 1);
        memory.rebuild().unwrap();
        let taken = memory.insert(&segments[..2]).unwrap();
        assert_eq!(taken, [AddOutcome::Duplicate, AddOutcome::Forgotten], "{at_disk}");
    }
    let again = memory(folder.path());
    assert_eq!(again.add(&segments).unwrap(), 0);
    assert_eq!(again.get(&[segments[1].id]).unwrap(), [None]);
}

#[test]
fn older_segments_do_not_fit_into_an_archive_full_of_newer_ones() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.limits.max_segments = 10;
    let memory = Memory::open(folder.path(), settings);
    let segments = some(0..20);
    let coming: Vec<_> = segments.iter().map(|of| (of.id, of.timestamp)).collect();
    let out: std::collections::HashSet<_> = coming[..10].iter().map(|(id, _)| *id).collect();
    assert_eq!(memory.would_evict(&coming).unwrap(), out);
    assert!(memory.would_evict(&coming[..10]).unwrap().is_empty());
    memory.add(&segments[10..]).unwrap();
    memory.flush().unwrap();
    assert_eq!(memory.would_evict(&coming).unwrap(), out, "those that are there count once");
}
