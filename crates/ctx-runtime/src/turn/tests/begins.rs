//! Two hosts that create or reset the same session concurrently.

use std::sync::atomic::AtomicBool;

use ctx_core::{ErrorKind, Role};
use ctx_session::SessionEntry;
use ctx_testkit::chat::{ScriptedChat, shared};

use super::*;
use crate::lifecycle::{Lifecycle, SessionTimes};

/// Runs an action once, between a host's read and its write.
struct Meddler {
    at: Moment,
    is_over: bool,
    meddle: Box<dyn Fn() + Send + Sync>,
    is_done: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// After the store was read.
    Seen,
    /// Before another session is written to it.
    Begins,
}

impl Meddler {
    fn reached(&self, at: Moment) {
        if self.at == at && !self.is_done.swap(true, Ordering::SeqCst) {
            (self.meddle)();
        }
    }
}

impl Lifecycle for Meddler {
    fn is_over(&self, _: &SessionKey, _: SessionTimes, _: Timestamp) -> bool {
        let is_first = !self.is_done.load(Ordering::SeqCst);
        self.reached(Moment::Seen);
        self.is_over && is_first
    }

    fn begins(&self, _: &SessionKey, _: Option<&SessionEntry>, new: &mut SessionEntry) {
        self.reached(Moment::Begins);
        new.display_name = Some("of the first".into());
    }
}

/// Runs turns in another host on the same home, which then exits.
fn elsewhere(home: Home, says: &'static [&'static str]) -> Vec<ctx_core::Result<TurnOutcome>> {
    // On its own thread, as this one belongs to a runtime.
    std::thread::spawn(move || run_in_another_host(home, says)).join().unwrap()
}

fn run_in_another_host(home: Home, says: &[&str]) -> Vec<ctx_core::Result<TurnOutcome>> {
    let (_, model) = shared(ScriptedChat::new("script/b", 100_000));
    let builder = Runtime::builder(home, Config::parse("{}").unwrap());
    let builder = builder.model(model).lifecycle(Arc::new(crate::lifecycle::NeverReset));
    let other = builder.build().unwrap();
    let tokio = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let turns = says
        .iter()
        .map(|text| tokio.block_on(other.turn(&main_key(), *text, &NoTools, &mut NoListener)));
    turns.collect()
}

/// Creates a house. During its next turn, another host runs turns at that moment. Also returns the
/// results of these turns.
#[allow(clippy::type_complexity)]
fn met(
    at: Moment,
    is_over: bool,
    says: &'static [&'static str],
) -> (House, Arc<Mutex<Vec<ctx_core::Result<TurnOutcome>>>>) {
    let mut house = House::new(ScriptedChat::new("script/a", 100_000));
    let (home, done) = (house.home(), Arc::new(Mutex::new(Vec::new())));
    let meddle: Box<dyn Fn() + Send + Sync> = {
        let done = done.clone();
        Box::new(move || done.lock().unwrap().extend(elsewhere(home.clone(), says)))
    };
    let meddler = Meddler { at, is_over, meddle, is_done: AtomicBool::new(false) };
    let model = house.model.clone();
    house.open("{}", model, |builder| builder.lifecycle(Arc::new(meddler)));
    (house, done)
}

fn transcripts(house: &House) -> usize {
    let files = std::fs::read_dir(house.home().sessions_dir(&FileId::main())).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".jsonl")).count()
}

#[tokio::test]
async fn two_hosts_that_create_a_session_at_once_share_it() {
    let (house, other) = met(Moment::Begins, false, &["from the other"]);
    house.say("from the first").await.unwrap();
    assert!(other.lock().unwrap()[0].is_ok());
    let said: Vec<_> = house.stored().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["from the other", "answer 1", "from the first", "answer 1"]);
    assert_eq!(transcripts(&house), 1, "the file of the rejected session is removed");
}

#[tokio::test]
async fn a_session_reset_by_another_host_meanwhile_is_continued() {
    let (house, other) = met(Moment::Seen, false, &["/new hello"]);
    elsewhere(house.home(), &["long ago"]).remove(0).unwrap();
    house.say("from the first").await.unwrap();
    assert!(other.lock().unwrap()[0].is_ok());
    let said: Vec<_> = house.stored().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["hello", "answer 1", "from the first", "answer 1"]);
    assert_eq!(transcripts(&house), 2);
}

#[tokio::test]
async fn a_host_that_resets_a_session_locks_the_old_one() {
    let (house, other) = met(Moment::Begins, true, &["still here"]);
    elsewhere(house.home(), &["long ago"]).remove(0).unwrap();
    let outcome = house.say("good morning").await.unwrap();
    assert_eq!(kinds(&outcome), [NoticeKind::Session]);
    assert!(outcome.notices[0].text.contains("the old transcript is"), "{:?}", outcome.notices);
    let refused = other.lock().unwrap().remove(0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Locked);
    let said: Vec<_> = house.stored().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["good morning", "answer 1"]);
}

#[tokio::test]
async fn a_session_open_in_another_host_is_not_reset() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    house.say("hello").await.unwrap();
    let refused = elsewhere(house.home(), &["/new"]).remove(0).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Locked);
    house.say("and on").await.unwrap();
    let roles: Vec<_> = house.stored().into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
}

#[tokio::test]
async fn read_only_commands_do_not_reset_an_expired_session() {
    struct AlwaysOver;
    impl Lifecycle for AlwaysOver {
        fn is_over(&self, _: &SessionKey, _: SessionTimes, _: Timestamp) -> bool {
            true
        }
    }
    let model = ScriptedChat::new("script/a", 100_000);
    let house = House::with(model, "{}", |builder| builder.lifecycle(Arc::new(AlwaysOver)));
    house.say("hello").await.unwrap();
    let file = house.file();
    for command in ["/status", "/context", "/undo", "/compact", "/recall tea"] {
        let outcome = house.say(command).await.unwrap();
        assert_eq!(kinds(&outcome), [], "{command}");
        assert_eq!(house.file(), file, "{command}");
    }
    house.say("hello again").await.unwrap();
    assert_ne!(house.file(), file);
}
