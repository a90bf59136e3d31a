//! Turns that are dropped at each of their await points.

use std::pin::Pin;
use std::task::{Context, Poll};

use ctx_core::Role;
use ctx_testkit::chat::{ScriptedChat, Step};

use super::*;

/// A future that is dropped after a number of polls.
struct Cut<F> {
    inner: Pin<Box<F>>,
    polls: usize,
}

impl<F: Future> Future for Cut<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        match self.inner.as_mut().poll(context) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending if self.polls == 0 => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

const CONFIG: &str = r#"{ agents: { defaults: { workspace: "$DIR/work" } } }"#;

/// Creates a session with tool results to truncate and messages to compact.
async fn prepared() -> House {
    let house = House::with(ScriptedChat::new("script/a", 32_000), CONFIG, |builder| builder);
    std::fs::create_dir_all(house.dir().join("work")).unwrap();
    for n in 0..8 {
        house.model.then(reads(n..n + 1));
        house.model.then(Step::text(format!("file {n} says what it says")));
        house.say_with(&format!("read file {n}"), &reader(1_500)).await.unwrap();
    }
    house.runtime().close(&main_key()).await.unwrap();
    house
}

fn copy(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &to),
            false => std::fs::copy(entry.path(), to).map(drop).unwrap(),
        }
    }
}

fn of_role(stored: &[(Role, String)], role: &Role, text: &str) -> usize {
    stored.iter().filter(|(found, said)| found == role && said == text).count()
}

/// Checks that calls and results are paired, and that nothing is stored twice.
fn check(stored: &[(Role, String)]) {
    let mut seen = std::collections::HashSet::new();
    for (role, text) in stored {
        if *role != Role::ToolResult && !text.is_empty() {
            assert!(seen.insert((role.name().to_owned(), text)), "{role:?} twice: {text}");
        }
    }
    let calls = stored.iter().map(|(_, text)| text.matches("<read ").count()).sum::<usize>();
    let results = stored.iter().filter(|(role, _)| *role == Role::ToolResult).count();
    assert_eq!(calls, results, "each call has one result");
}

#[tokio::test]
async fn a_turn_dropped_at_any_await_point_leaves_a_usable_session() {
    let original = prepared().await;
    let mut completed = None;
    for polls in 0..2_000 {
        let model = ScriptedChat::new("script/a", 32_000).with([
            reads(20..22),
            Step::overflow(),
            Step::overflow(),
            Step::text("NO_REPLY"),
            Step::text("here is what they say"),
        ]);
        let mut house = House::with(model.hesitant(), CONFIG, |builder| builder);
        std::fs::create_dir_all(house.dir().join("work")).unwrap();
        copy(&original.home().root.join("agents"), &house.home().root.join("agents"));
        let tools = reader(1_500).hesitant();
        let turn = house.say_with("read two of them", &tools);
        let cut = Cut { inner: Box::pin(turn), polls };
        let done = cut.await;
        while house.model.forget_next() {}
        let outcome = house.say_with("are you there?", &tools).await;
        let outcome = outcome.unwrap_or_else(|error| panic!("after {polls} polls: {error}"));
        let answer = outcome.answer.unwrap();
        let stored = house.stored();
        check(&stored);
        assert!(of_role(&stored, &Role::User, "read two of them") <= 1);
        assert_eq!(of_role(&stored, &Role::User, "are you there?"), 1);
        assert_eq!(of_role(&stored, &Role::Assistant, &answer), 1);
        let sent = house.model.requests().last().unwrap().clone();
        ctx_core::check_pairs(sent.messages.iter().map(|message| &**message)).unwrap();
        house.reopened();
        house.say("and after a restart?").await.unwrap();
        assert_eq!(house.stored().len(), stored.len() + 2);
        if let Some(done) = done {
            let outcome = done.unwrap();
            assert_eq!(outcome.answer.as_deref(), Some("here is what they say"));
            assert_eq!(of_role(&stored, &Role::Assistant, "here is what they say"), 1);
            assert_eq!(outcome.compactions, 1);
            completed = Some(polls);
            break;
        }
    }
    assert!(completed.is_some_and(|polls| polls > 12), "{completed:?}");
}

/// Reports once that the session is over, and then blocks the creation of the next session.
struct Slow {
    asked: AtomicI64,
    began: AtomicI64,
    may: Mutex<std::sync::mpsc::Receiver<()>>,
}

impl crate::lifecycle::Lifecycle for Slow {
    fn is_over(&self, _: &SessionKey, _: crate::lifecycle::SessionTimes, _: Timestamp) -> bool {
        self.asked.fetch_add(1, Ordering::SeqCst) == 0
    }

    fn begins(
        &self,
        _: &SessionKey,
        _: Option<&ctx_session::SessionEntry>,
        _: &mut ctx_session::SessionEntry,
    ) {
        self.began.fetch_add(1, Ordering::SeqCst);
        self.may.lock().unwrap().recv().unwrap();
    }
}

#[tokio::test]
async fn a_turn_waits_for_the_disk_work_of_a_dropped_turn() {
    let mut house = House::new(ScriptedChat::new("script/a", 32_000));
    house.say("hello").await.unwrap();
    let (go_on, may) = std::sync::mpsc::channel();
    let slow = Slow { asked: 0.into(), began: 0.into(), may: may.into() };
    let (slow, model) = (Arc::new(slow), house.model.clone());
    house.open("{}", model, |builder| builder.lifecycle(slow.clone()));
    let mut turn = Box::pin(house.say("good morning"));
    while slow.began.load(Ordering::SeqCst) == 0 {
        tokio::select! {
            biased;
            _ = &mut turn => panic!("it has not begun yet"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(turn);
    let mut next = Box::pin(house.say("are you there?"));
    for _ in 0..20_000 {
        tokio::select! {
            biased;
            _ = &mut next => panic!("the dropped turn still has the session"),
            () = tokio::task::yield_now() => {}
        }
    }
    assert_eq!(slow.asked.load(Ordering::SeqCst), 1, "the session is checked only once it is free");
    go_on.send(()).unwrap();
    next.await.unwrap();
    let said: Vec<_> = house.stored().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["are you there?", "answer 2"]);
}
