//! The lifecycle of the sessions of a runtime.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use ctx_config::Config;
use ctx_core::{NoTools, Timestamp};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{Home, SessionEntry, SessionStore, Transcript};
use ctx_testkit::chat::{ScriptedChat, shared};
use jiff::tz::TimeZone;

use super::Resets;
use crate::host::NoListener;
use crate::runtime::Runtime;

struct House {
    dir: tempfile::TempDir,
    config: Config,
    runtime: Option<Runtime>,
    model: Arc<ScriptedChat>,
    clock: Arc<AtomicI64>,
    seconds: Arc<AtomicU64>,
}

/// A clock that does not move until it is set.
struct Still(Arc<AtomicU64>);

#[async_trait]
impl ctx_core::Timer for Still {
    fn elapsed(&self) -> Duration {
        Duration::from_secs(self.0.load(Ordering::Relaxed))
    }

    async fn sleep(&self, _: Duration) {
        std::future::pending::<()>().await;
    }
}

impl House {
    fn new(session: &str) -> Self {
        let (model, _) = shared(ScriptedChat::new("script/a", 100_000));
        let config = Config::parse(&format!("{{ session: {{ {session} }} }}")).unwrap();
        let mut house = Self {
            dir: tempfile::tempdir().unwrap(),
            config,
            runtime: None,
            model,
            clock: Arc::default(),
            seconds: Arc::default(),
        };
        house.set("2026-01-10T12:00:00Z");
        house.reopen();
        house
    }

    /// Opens the home again, as another process would.
    fn reopen(&mut self) {
        self.runtime = None;
        let clock = self.clock.clone();
        let resets = Resets::of(&self.config).unwrap();
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let builder = Runtime::builder(Home::at(self.dir.path()), self.config.clone())
            .model(self.model.clone())
            .clock(move || Timestamp(clock.load(Ordering::Relaxed)))
            .timer(Arc::new(Still(self.seconds.clone())))
            .lifecycle(Arc::new(resets.in_zone(zone)));
        self.runtime = Some(builder.build().unwrap());
    }

    fn set(&self, time: &str) {
        let time: jiff::Timestamp = time.parse().unwrap();
        self.clock.store(time.as_millisecond(), Ordering::Relaxed);
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }

    fn key() -> SessionKey {
        SessionKey::main(FileId::main())
    }

    async fn say(&self, text: &str) {
        let key = Self::key();
        self.runtime().turn(&key, text, &NoTools, &mut NoListener).await.unwrap();
    }

    fn store(&self) -> SessionStore {
        SessionStore::at(Home::at(self.dir.path()).sessions_file(&FileId::main()))
    }

    fn entry(&self) -> SessionEntry {
        self.store().load().unwrap().get(&Self::key()).unwrap().clone()
    }

    fn id(&self) -> String {
        self.entry().session_id
    }

    fn messages(&self, id: &str) -> usize {
        let folder = Home::at(self.dir.path()).sessions_dir(&FileId::main());
        let transcript = Transcript::open(&folder.join(format!("{id}.jsonl"))).unwrap();
        transcript.main_line().unwrap().len()
    }
}

#[tokio::test]
async fn the_first_message_after_4_am_starts_a_new_session() {
    for reopen in [false, true] {
        let mut house = House::new("");
        house.say("hello").await;
        let first = house.id();
        // 3:59 in Berlin.
        house.set("2026-01-11T02:59:00Z");
        house.say("still there?").await;
        assert_eq!(house.id(), first);
        if reopen {
            house.reopen();
        }
        house.set("2026-01-11T03:00:00Z");
        house.say("good morning").await;
        let second = house.id();
        assert_ne!(second, first);
        house.set("2026-01-12T02:59:00Z");
        house.say("once a day").await;
        assert_eq!(house.id(), second);
        assert_eq!((house.messages(&first), house.messages(&second)), (4, 4));
    }
}

#[tokio::test]
async fn a_message_after_the_idle_time_starts_a_new_session() {
    let mut house = House::new("idleMinutes: 30");
    house.say("hello").await;
    let first = house.id();
    house.set("2026-01-10T12:30:00Z");
    house.say("still there?").await;
    house.set("2026-01-10T13:00:00Z");
    house.reopen();
    house.say("and now?").await;
    assert_eq!(house.id(), first);
    house.set("2026-01-10T13:30:01Z");
    house.say("hello").await;
    assert_ne!(house.id(), first);
}

#[tokio::test]
async fn a_clock_set_back_starts_no_session() {
    let mut house = House::new("reset: { idleMinutes: 5 }");
    house.say("hello").await;
    let first = house.id();
    for time in ["2026-01-09T02:00:00Z", "2020-01-01T12:00:00Z", "2026-01-10T12:01:00Z"] {
        house.set(time);
        house.say("what time is it?").await;
        house.reopen();
        house.say("and now?").await;
        assert_eq!(house.id(), first, "{time}");
    }
}

#[tokio::test]
async fn a_reset_session_keeps_settings_and_resets_counters() {
    for word in ["/new", "/reset", "/new hello", "2026-01-11T05:00:00Z"] {
        let mut house = House::new("");
        house.say("hello").await;
        house.reopen();
        let set = |entry: &mut SessionEntry| {
            entry.thinking_level = Some("high".into());
            entry.model_override = Some("b".into());
            entry.compaction_count = Some(3);
            entry.other.insert("tomorrow".into(), 1.into());
        };
        let key = House::key();
        house.store().update(|sessions| Ok(sessions.get_mut(&key).map(set))).unwrap();
        let old = house.entry();
        match word.starts_with('/') {
            true => house.say(word).await,
            false => {
                house.set(word);
                house.say("hello").await;
            }
        }
        house.runtime().close(&key).await.unwrap();
        let new = house.entry();
        assert_ne!(new.session_id, old.session_id);
        assert_eq!(
            (new.thinking_level, new.model_override),
            (old.thinking_level, old.model_override)
        );
        assert_eq!((new.other, new.compaction_count), (old.other, None), "{word}");
        assert!(new.session_started_at >= old.session_started_at);
        assert_eq!(house.messages(&old.session_id), 2, "the old session is unchanged");
        assert_eq!(house.messages(&new.session_id), if word.len() < 8 { 0 } else { 2 }, "{word}");
    }
}

#[tokio::test]
async fn only_messages_start_a_new_session() {
    let mut house = House::new("");
    house.say("hello").await;
    let first = house.id();
    house.set("2026-03-10T12:00:00Z");
    house.runtime().compact(&House::key(), None).await.unwrap();
    house.reopen();
    house.runtime().compact(&House::key(), None).await.unwrap();
    assert_eq!(house.id(), first);
    house.say("hello").await;
    assert_ne!(house.id(), first);
}

#[tokio::test]
async fn maintenance_runs_once_an_hour_and_keeps_open_sessions() {
    let mut house = House::new("maintenance: { maxEntries: 1 }");
    let store = house.store();
    let keys = || store.load().unwrap().all().count();
    let old = |n: usize| {
        let key: SessionKey = format!("agent:main:old{n}").parse().unwrap();
        let entry = SessionEntry::new("00000000-0000-4000-8000-000000000000", Timestamp(1_000));
        store.update(|sessions| sessions.insert(&key, entry)).unwrap();
    };
    old(1);
    house.say("hello").await;
    house.runtime().inner.maintenance.finished().await;
    assert_eq!(keys(), 1, "after the first turn");
    old(2);
    house.seconds.store(3_599, Ordering::Relaxed);
    house.say("hello").await;
    house.runtime().inner.maintenance.finished().await;
    assert_eq!(keys(), 2, "not again within the hour");
    house.seconds.store(3_600, Ordering::Relaxed);
    house.say("hello").await;
    house.runtime().inner.maintenance.finished().await;
    assert_eq!(keys(), 1);
    // Idle for two months, but still open.
    house.set("2026-03-10T12:00:00Z");
    let report = house.runtime().maintain(&FileId::main(), false).await.unwrap();
    assert_eq!((report.done.len(), report.kept.len()), (0, 1), "{report:?}");
    // A turn of another session closes idle sessions; then it is removed.
    house.seconds.store(7_200, Ordering::Relaxed);
    let other: SessionKey = "agent:main:other".parse().unwrap();
    house.runtime().turn(&other, "hello", &NoTools, &mut NoListener).await.unwrap();
    house.runtime().inner.maintenance.finished().await;
    let names: Vec<_> = store.load().unwrap().iter().map(|(key, _)| key).collect();
    assert_eq!(names, [other]);
    house.set("2026-05-10T12:00:00Z");
    house.reopen();
    let report = house.runtime().maintain(&FileId::main(), true).await.unwrap();
    assert_eq!((report.done.len(), report.dry_run), (1, true));
    let report = house.runtime().maintain(&FileId::main(), false).await.unwrap();
    assert_eq!((report.done.len(), keys()), (1, 0));
}

#[tokio::test]
async fn successive_programs_share_the_hourly_maintenance() {
    let mut house = House::new("maintenance: { maxEntries: 1 }, reset: { mode: 'none' }");
    let old = |house: &House| {
        let key: SessionKey = "agent:main:old".parse().unwrap();
        let entry = SessionEntry::new("00000000-0000-4000-8000-000000000000", Timestamp(1_000));
        house.store().update(|sessions| sessions.insert(&key, entry)).unwrap();
    };
    for (time, left) in [
        ("2026-01-10T12:00:00Z", 1),
        ("2026-01-10T12:59:00Z", 2),
        ("2026-01-10T13:00:00Z", 1),
        // A last run in the future is ignored.
        ("2026-01-10T12:30:00Z", 1),
    ] {
        old(&house);
        house.set(time);
        house.reopen();
        house.say("hello").await;
        house.runtime().end_maintenance(Duration::MAX).await;
        assert_eq!(keys_of(&house), left, "{time}");
    }
}

#[tokio::test]
async fn a_program_that_ends_does_not_wait_for_maintenance() {
    let house = House::new("maintenance: { maxEntries: 1 }");
    house.runtime().inner.maintenance.stop();
    let key: SessionKey = "agent:main:old".parse().unwrap();
    let entry = SessionEntry::new("00000000-0000-4000-8000-000000000000", Timestamp(1_000));
    house.store().update(|sessions| sessions.insert(&key, entry)).unwrap();
    house.say("hello").await;
    house.runtime().inner.maintenance.finished().await;
    assert_eq!(keys_of(&house), 2);
}

fn keys_of(house: &House) -> usize {
    house.store().load().unwrap().all().count()
}

#[tokio::test]
async fn in_mode_warn_no_session_is_removed() {
    let house = House::new("maintenance: { mode: 'warn', maxEntries: 1 }");
    let key: SessionKey = "agent:main:old".parse().unwrap();
    let entry = SessionEntry::new("00000000-0000-4000-8000-000000000000", Timestamp(1_000));
    house.store().update(|sessions| sessions.insert(&key, entry)).unwrap();
    house.say("hello").await;
    house.runtime().inner.maintenance.finished().await;
    assert_eq!(keys_of(&house), 2);
}
