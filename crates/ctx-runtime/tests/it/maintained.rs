//! Sessions in use while others of the same home are removed.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use ctx_config::Config;
use ctx_core::{NoTools, Timestamp};
use ctx_runtime::maintenance::maintain;
use ctx_runtime::{NoListener, Runtime};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{Home, SessionStore, Transcript, retired_at};
use ctx_testkit::chat::{ScriptedChat, shared};

const TURNS: usize = 70;

/// Counts each message in all transcripts, under any file name.
fn said(folder: &Path) -> HashMap<String, usize> {
    let mut said = HashMap::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_some_and(|end| end == "jsonl") || retired_at(&path).is_some() {
            let transcript = Transcript::open(&path).unwrap();
            assert_eq!(transcript.problems, [], "{}", path.display());
            for message in transcript.all_messages() {
                *said.entry(message.message().unwrap().plain_text()).or_default() += 1;
            }
        }
    }
    said
}

#[test]
fn concurrent_maintenance_loses_and_duplicates_no_message() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::at(dir.path());
    let config = "{ session: { reset: { mode: 'none' }, maintenance: { maxEntries: 2 } } }";
    let config = Config::parse(config).unwrap();
    let clock = AtomicI64::new(1_769_940_000_000);
    let is_done = AtomicBool::new(false);
    let mut archived = 0;
    std::thread::scope(|scope| {
        let (home, config, clock, is_done) = (&home, &config, &clock, &is_done);
        let turns = scope.spawn(move || {
            let (_, model) = shared(ScriptedChat::new("script/a", 100_000));
            let runtime = Runtime::builder(home.clone(), config.clone()).model(model);
            let runtime = runtime.build().unwrap();
            let reactor =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            reactor.block_on(async {
                for n in 0..TURNS {
                    clock.fetch_add(1_000, Ordering::Relaxed);
                    let key: SessionKey = format!("agent:main:s{}", n % 7).parse().unwrap();
                    let text = format!("message {n}");
                    loop {
                        match runtime.turn(&key, &*text, &NoTools, &mut NoListener).await {
                            Ok(_) => break,
                            Err(error) => assert!(error.is_retryable(), "{error}"),
                        }
                    }
                    runtime.close(&key).await.unwrap();
                }
            });
            is_done.store(true, Ordering::Relaxed);
        });
        while !is_done.load(Ordering::Relaxed) && !turns.is_finished() {
            let now = Timestamp(clock.load(Ordering::Relaxed));
            let agent = FileId::main();
            let report = maintain(home, config, &agent, now, false, &mut |_, _| {}).unwrap();
            assert_eq!(report.warnings, [""; 0]);
            archived += report.done.len();
        }
        turns.join().unwrap();
    });
    assert!(archived > 0, "nothing was archived meanwhile");
    let said = said(&home.sessions_dir(&FileId::main()));
    for n in 0..TURNS {
        assert_eq!(said.get(&format!("message {n}")), Some(&1), "message {n}");
    }
    let store = SessionStore::at(home.sessions_file(&FileId::main())).load().unwrap();
    for (key, entry) in store.iter() {
        assert!(home.transcript(&key, entry).unwrap().is_file(), "{key}");
    }
}
