//! Checks an implementation against the contract.
//!
//! Each case uses sessions and logs of its own, below an agent of its own, and leaves them behind.

mod proxied;

use std::time::Duration;

use ctx_core::{Error, ErrorKind, Timer};

use crate::{
    Acquired, Lease, Line, LogHead, LogName, Record, RecordChanges, RecordKind, Renewal,
    SessionName, SharedStore,
};

/// A lease that does not expire while a case runs.
const LONG: Duration = Duration::from_secs(60);

/// A lease that expires at once.
const SHORT: Duration = Duration::from_millis(1);

/// How long a case waits for a lease to expire.
const PATIENCE: Duration = Duration::from_secs(10);

/// The names of all cases, in the order in which they run.
pub const CASES: [&str; 14] = [
    "a lease has one holder",
    "each grant has a higher epoch",
    "a renewal tells of those who wait",
    "an expired lease is granted to another host",
    "lines are appended in order, all or none",
    "a repeated append has the same answer",
    "a host that lost its lease writes nothing",
    "a log is replaced by its next generation",
    "a removed log keeps a head, whose generation grows",
    "an entry is changed by one host at a time",
    "entries are listed in the order of their keys",
    "records are followed by number, and forgotten for good",
    "conversations are extended at their end, all or none",
    "values are set, created once, read in part and listed",
];

/// Why an implementation violates the contract.
type Violation = String;

/// The result of a case.
type Checked = Result<(), Violation>;

/// What a case works with.
struct Case<'a> {
    store: &'a dyn SharedStore,
    timer: &'a dyn Timer,
    agent: String,
}

/// Runs a case, by its place in [`CASES`]. `unique` is part of the names that it uses: a word that
/// no other run uses. `timer` waits for leases to expire.
///
/// # Errors
///
/// How the store violates the contract.
pub async fn check(
    store: &dyn SharedStore,
    timer: &dyn Timer,
    unique: &str,
    case: usize,
) -> Checked {
    let it = Case { store, timer, agent: format!("check-{unique}-{case}") };
    match case {
        0 => it.one_holder().await,
        1 => it.epochs_grow().await,
        2 => it.renewals().await,
        3 => it.expiry().await,
        4 => it.order().await,
        5 => it.repeated_append().await,
        6 => it.fencing().await,
        7 => it.generations().await,
        8 => it.removed_log().await,
        9 => it.compare_and_put().await,
        10 => it.listing().await,
        11 => it.records().await,
        12 => it.conversations().await,
        _ => it.blobs().await,
    }
}

/// Fails unless a condition holds.
fn ensure(holds: bool, what: &str) -> Checked {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

/// Fails unless an error has that kind.
fn refused<T: std::fmt::Debug>(got: Result<T, Error>, kind: ErrorKind, what: &str) -> Checked {
    match got {
        Err(error) if error.kind() == kind => Ok(()),
        got => Err(format!("{what}: expected {}, got {got:?}", kind.name())),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to map_err")]
fn failed(error: Error) -> Violation {
    format!("a call failed: {error}")
}

fn line(id: &str) -> Line {
    Line { id: id.to_owned(), bytes: format!(r#"{{"id":"{id}","text":"\u00e4 {id}"}}"#).into() }
}

fn lines(ids: &[&str]) -> Vec<Line> {
    ids.iter().map(|id| line(id)).collect()
}

impl Case<'_> {
    fn session(&self, name: &str) -> SessionName {
        let agent = self.agent.clone();
        SessionName { key: format!("agent:{agent}:{name}"), agent }
    }

    fn log(&self) -> LogName {
        LogName { agent: self.agent.clone(), file: "log".to_owned() }
    }

    /// Returns the name of a holder. Those of other cases differ: a store may keep all leases of a
    /// holder as long as the last of them.
    fn holder(&self, name: &str) -> String {
        format!("{name} of {}", self.agent)
    }

    async fn acquire(&self, session: &str, holder: &str, ttl: Duration) -> Result<Acquired, Error> {
        self.store.acquire(&self.session(session), &self.holder(holder), ttl).await
    }

    async fn granted(&self, holder: &str, ttl: Duration) -> Result<Lease, Violation> {
        match self.acquire("main", holder, ttl).await.map_err(failed)? {
            Acquired::Granted(lease) => Ok(lease),
            Acquired::Held { by, .. } => Err(format!("{holder} was refused because of {by}")),
        }
    }

    async fn ids(&self, from: u64, most: usize) -> Result<Vec<String>, Violation> {
        let lines = self.store.read(&self.log(), from, most).await.map_err(failed)?;
        Ok(lines.into_iter().map(|line| line.id).collect())
    }

    async fn one_holder(&self) -> Checked {
        let lease = self.granted("one", LONG).await?;
        match self.acquire("main", "two", LONG).await.map_err(failed)? {
            Acquired::Held { by, remaining } => {
                ensure(by == self.holder("one"), "the answer names another holder")?;
                ensure(!remaining.is_zero() && remaining <= LONG, "the remaining time is wrong")?;
            }
            Acquired::Granted(_) => return Err("two hosts hold one session".to_owned()),
        }
        let other = self.acquire("other", "two", LONG).await;
        ensure(
            matches!(other.map_err(failed)?, Acquired::Granted(_)),
            "another session is held, too",
        )?;
        self.store.release(&lease).await.map_err(failed)?;
        self.granted("two", LONG).await.map(drop)
    }

    async fn epochs_grow(&self) -> Checked {
        let mut last = 0;
        for holder in ["one", "one", "two", "one"] {
            let lease = self.granted(holder, LONG).await?;
            ensure(lease.epoch > last, "an epoch is not higher than the one before")?;
            ensure(
                lease.holder == self.holder(holder) && lease.ttl == LONG,
                "the lease has other values",
            )?;
            last = lease.epoch;
            let again = self.granted(holder, LONG).await?;
            ensure(again.epoch > last, "a second grant to one host has the same epoch")?;
            // The first grant does not end the second one.
            self.store.release(&lease).await.map_err(failed)?;
            let renewed = self.store.renew(std::slice::from_ref(&again)).await.map_err(failed)?;
            ensure(renewed != [Renewal::Lost], "an older grant released a newer one")?;
            last = again.epoch;
            self.store.release(&again).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn renewals(&self) -> Checked {
        let lease = self.granted("one", LONG).await?;
        let stale = Lease { epoch: lease.epoch + 1, ..lease.clone() };
        let missing = Lease { session: self.session("missing"), ..lease.clone() };
        let both = [lease.clone(), stale, missing];
        let answers = self.store.renew(&both).await.map_err(failed)?;
        let kept = Renewal::Kept { is_wanted: false };
        ensure(answers == [kept, Renewal::Lost, Renewal::Lost], "the renewals are wrong")?;
        self.acquire("main", "two", LONG).await.map_err(failed)?;
        let wanted = self.store.renew(std::slice::from_ref(&lease)).await.map_err(failed)?;
        ensure(wanted == [Renewal::Kept { is_wanted: true }], "nobody seems to wait")?;
        self.store.release(&lease).await.map_err(failed)?;
        let released = self.store.renew(&[lease]).await.map_err(failed)?;
        ensure(released == [Renewal::Lost], "a released lease is renewed")?;
        ensure(self.store.renew(&[]).await.is_ok_and(|all| all.is_empty()), "none is an error")
    }

    async fn expiry(&self) -> Checked {
        let first = self.granted("one", SHORT).await?;
        let until = self.timer.elapsed() + PATIENCE;
        let second = loop {
            match self.acquire("main", "two", LONG).await.map_err(failed)? {
                Acquired::Granted(lease) => break lease,
                Acquired::Held { .. } if self.timer.elapsed() > until => {
                    return Err("the lease does not expire".to_owned());
                }
                Acquired::Held { remaining, .. } => self.timer.sleep(remaining).await,
            }
        };
        ensure(second.epoch > first.epoch, "the epoch is not higher")?;
        let renewed = self.store.renew(std::slice::from_ref(&first)).await.map_err(failed)?;
        ensure(renewed == [Renewal::Lost], "the lost lease is renewed")?;
        let renewed = self.store.renew(&[second]).await.map_err(failed)?;
        ensure(renewed == [Renewal::Kept { is_wanted: false }], "the new lease is not renewed")?;
        self.store.release(&first).await.map_err(failed)?;
        let held = self.acquire("main", "one", LONG).await.map_err(failed)?;
        ensure(matches!(held, Acquired::Held { .. }), "a lost lease released that of another host")
    }

    async fn order(&self) -> Checked {
        let (store, log, lease) = (self.store, self.log(), self.granted("one", LONG).await?);
        ensure(store.head(&log).await.map_err(failed)?.is_none(), "a missing log has an end")?;
        let append = async |at, ids: &[&str]| store.append(&lease, &log, at, &lines(ids)).await;
        let head = append(LogHead::NEW, &["a", "b"]).await.map_err(failed)?;
        ensure(head == LogHead { generation: 1, lines: 2 }, "the new end is wrong")?;
        let next = append(head, &["c"]).await.map_err(failed)?;
        ensure(store.head(&log).await.map_err(failed)? == Some(next), "the end is another one")?;
        let conflict = ErrorKind::Conflict;
        refused(append(head, &["d"]).await, conflict, "an append in the middle")?;
        let later = LogHead { lines: 9, ..next };
        refused(append(later, &["d"]).await, conflict, "an append after a gap")?;
        let other = LogHead { generation: 2, ..next };
        refused(append(other, &["d"]).await, conflict, "an append to another generation")?;
        ensure(append(next, &["d", "a"]).await.is_err(), "an id is used twice")?;
        let empty = append(next, &[]).await.map_err(failed)?;
        ensure(empty == next, "an append of nothing changes the end")?;
        ensure(self.ids(0, 1 << 20).await? == ["a", "b", "c"], "the lines are others")?;
        ensure(self.ids(1, 1).await? == ["b"], "a page does not have one line at least")?;
        let two = 2 * line("a").bytes.len();
        ensure(self.ids(0, two).await? == ["a", "b"], "a page has too much or too little")?;
        ensure(self.ids(3, 1 << 20).await?.is_empty(), "there are lines after the end")?;
        let bytes = store.read(&log, 2, 1 << 20).await.map_err(failed)?;
        ensure(bytes == lines(&["c"]), "the bytes of a line changed")
    }

    async fn repeated_append(&self) -> Checked {
        let (store, log, lease) = (self.store, self.log(), self.granted("one", LONG).await?);
        let append = async |at, ids: &[&str]| store.append(&lease, &log, at, &lines(ids)).await;
        for at in [LogHead::NEW, LogHead { generation: 1, lines: 2 }] {
            let ids = [format!("a{}", at.lines), format!("b{}", at.lines)];
            let ids = ids.each_ref().map(|id| &**id);
            let head = append(at, &ids).await.map_err(failed)?;
            ensure(append(at, &ids).await.map_err(failed)? == head, "the answer differs")?;
            refused(append(at, &["x", "y"]).await, ErrorKind::Conflict, "other lines there")?;
            refused(append(at, &[ids[0], "y"]).await, ErrorKind::Conflict, "partly other lines")?;
        }
        ensure(self.ids(0, 1 << 20).await? == ["a0", "b0", "a2", "b2"], "lines were doubled")
    }

    async fn fencing(&self) -> Checked {
        let (store, log, old) = (self.store, self.log(), self.granted("one", LONG).await?);
        let head = store.append(&old, &log, LogHead::NEW, &lines(&["a"])).await.map_err(failed)?;
        store.release(&old).await.map_err(failed)?;
        let locked = ErrorKind::Locked;
        let b = lines(&["b"]);
        refused(store.append(&old, &log, head, &b).await, locked, "after the release")?;
        let new = self.granted("two", LONG).await?;
        refused(store.append(&old, &log, head, &b).await, locked, "an older epoch appends")?;
        refused(store.replace(&old, &log, head, &b).await, locked, "an older epoch replaces")?;
        refused(store.remove(&old, &log).await, locked, "an older epoch removes")?;
        let future = Lease { epoch: new.epoch + 1, ..new.clone() };
        refused(store.append(&future, &log, head, &b).await, locked, "a made-up epoch appends")?;
        let next = store.append(&new, &log, head, &b).await.map_err(failed)?;
        // What the older epoch has written is not written again, which is not an error.
        let again = store.append(&old, &log, LogHead::NEW, &lines(&["a"])).await;
        ensure(again.map_err(failed)? == head, "a repetition after the lease is refused")?;
        ensure(store.head(&log).await.map_err(failed)? == Some(next), "the end moved")?;
        ensure(self.ids(0, 1 << 20).await? == ["a", "b"], "a host without lease wrote")
    }

    async fn generations(&self) -> Checked {
        let (store, log, lease) = (self.store, self.log(), self.granted("one", LONG).await?);
        let first = store
            .append(&lease, &log, LogHead::NEW, &lines(&["a", "b", "c"]))
            .await
            .map_err(failed)?;
        let kept = lines(&["a", "c"]);
        let second = store.replace(&lease, &log, first, &kept).await.map_err(failed)?;
        ensure(second == LogHead { generation: 2, lines: 2 }, "the new end is wrong")?;
        let again = store.replace(&lease, &log, first, &kept).await.map_err(failed)?;
        ensure(again == second, "a repeated replacement has another answer")?;
        let conflict = ErrorKind::Conflict;
        let d = lines(&["d"]);
        refused(store.append(&lease, &log, first, &d).await, conflict, "an older generation")?;
        refused(store.replace(&lease, &log, first, &d).await, conflict, "an older generation")?;
        store.append(&lease, &log, second, &d).await.map_err(failed)?;
        ensure(self.ids(0, 1 << 20).await? == ["a", "c", "d"], "the lines are others")?;
        ensure(self.erasures().await? == [Record { id: log.file, bytes: b"2".into() }], "not told")
    }

    async fn removed_log(&self) -> Checked {
        let (store, log, lease) = (self.store, self.log(), self.granted("one", LONG).await?);
        store.remove(&lease, &log).await.map_err(failed)?;
        ensure(store.head(&log).await.map_err(failed)?.is_none(), "a missing log was made")?;
        let mut at = LogHead::NEW;
        for generation in 2..4 {
            let full = store.append(&lease, &log, at, &lines(&["a"])).await.map_err(failed)?;
            store.remove(&lease, &log).await.map_err(failed)?;
            store.remove(&lease, &log).await.map_err(failed)?;
            let head = LogHead { generation, lines: 0 };
            ensure(store.head(&log).await.map_err(failed)? == Some(head), "the head is wrong")?;
            ensure(self.ids(0, 1 << 20).await?.is_empty(), "its lines are there")?;
            for old in [LogHead::NEW, at, full] {
                let again = store.append(&lease, &log, old, &lines(&["b"])).await;
                refused(again, ErrorKind::Conflict, "an append to what was removed")?;
            }
            let told = Record { id: log.file.clone(), bytes: generation.to_string().into() };
            ensure(self.erasures().await? == [told], "a removal is not told once")?;
            let logs = store.logs(&self.agent, None, 9).await.map_err(failed)?;
            ensure(logs == [(log.clone(), head)], "the list of logs is wrong")?;
            at = head;
        }
        let after = store.logs(&self.agent, Some(&log.file), 9).await.map_err(failed)?;
        ensure(after.is_empty(), "the second page of logs is wrong")
    }

    /// Returns the logs that were replaced or removed.
    async fn erasures(&self) -> Result<Vec<Record>, Violation> {
        let changes = self.store.since(&self.agent, RecordKind::Erasure, 0, 9).await;
        changes.map(|changes| changes.records).map_err(failed)
    }

    async fn compare_and_put(&self) -> Checked {
        let (store, session) = (self.store, self.session("main"));
        ensure(store.get(&session).await.map_err(failed)?.is_none(), "there is an entry")?;
        let put = async |seen, json: &str| store.compare_and_put(&session, seen, json).await;
        let first = put(None, r#"{"sessionId":"1"}"#).await.map_err(failed)?;
        let again = put(None, r#"{"sessionId":"1"}"#).await.map_err(failed)?;
        ensure(again == first, "a repeated call has another answer")?;
        let conflict = ErrorKind::Conflict;
        refused(put(None, "{}").await, conflict, "a second creation")?;
        let second = put(Some(first), r#"{"sessionId":"2"}"#).await.map_err(failed)?;
        ensure(second != first, "the version is the same")?;
        refused(put(Some(first), "{}").await, conflict, "an older version")?;
        let entry = store.get(&session).await.map_err(failed)?;
        let entry = entry.ok_or("the entry is gone")?;
        ensure(entry.version == second, "another version is there")?;
        ensure(entry.json == r#"{"sessionId":"2"}"#, "another entry is there")?;
        refused(store.retire(&session, first).await, conflict, "an older version retires")?;
        store.retire(&session, second).await.map_err(failed)?;
        store.retire(&session, second).await.map_err(failed)?;
        ensure(store.get(&session).await.map_err(failed)?.is_none(), "the entry is there")
    }

    async fn records(&self) -> Checked {
        let (store, agent) = (self.store, &*self.agent);
        let record = |id: &str, text: &str| Record { id: id.into(), bytes: text.into() };
        for kind in RecordKind::ALL {
            let put =
                async |records: &[Record]| store.put(agent, kind, records).await.map_err(failed);
            let since =
                async |after, most| store.since(agent, kind, after, most).await.map_err(failed);
            ensure(since(0, 9).await? == RecordChanges::default(), "there are records")?;
            put(&[record("a", "1"), record("b", "2")]).await?;
            let first = since(0, 1).await?;
            ensure(first.records == [record("a", "1")], "the first page is wrong")?;
            let rest = since(first.next, 9).await?;
            ensure(rest.records == [record("b", "2")], "the second page is wrong")?;
            put(&[record("a", "1"), record("b", "2")]).await?;
            let none = since(rest.next, 9).await?;
            ensure(none.records.is_empty() && none.next == rest.next, "equal records changed")?;
            put(&[record("b", "3"), record("b", "4")]).await?;
            let changed = since(rest.next, 9).await?;
            ensure(changed.records == [record("b", "4")], "a changed record is wrong")?;
            let ids = ["a".to_owned(), "missing".to_owned(), "a".to_owned()];
            let gone = store.forget(agent, kind, &ids).await.map_err(failed)?;
            ensure(gone == 1, "the number of forgotten records is wrong")?;
            put(&[record("a", "1"), record("missing", "1")]).await?;
            ensure(store.forget(agent, kind, &ids).await.map_err(failed)? == 0, "forgotten twice")?;
            let after = since(changed.next, 9).await?;
            ensure(since(after.next, 9).await?.next == after.next, "forgotten again")?;
            ensure(after.records.is_empty(), "a forgotten record is there")?;
            ensure(after.forgotten == ["a", "missing"], "the forgotten ids are wrong")?;
        }
        Ok(())
    }

    async fn listing(&self) -> Checked {
        let store = self.store;
        for name in ["b", "c", "a"] {
            let json = format!(r#"{{"sessionId":"{name}"}}"#);
            store.compare_and_put(&self.session(name), None, &json).await.map_err(failed)?;
        }
        let keys = async |after: Option<&str>, most| -> Result<Vec<SessionName>, Violation> {
            let listed = store.list(&self.agent, after, most).await.map_err(failed)?;
            Ok(listed.into_iter().map(|(name, _)| name).collect())
        };
        let [a, b, c] = ["a", "b", "c"].map(|name| self.session(name));
        ensure(keys(None, 2).await? == [a.clone(), b.clone()], "the first page is wrong")?;
        ensure(keys(Some(&b.key), 2).await? == [c], "the second page is wrong")?;
        let agents = store.agents().await.map_err(failed)?;
        ensure(agents.contains(&self.agent), "the agent is missing")?;
        ensure(agents.is_sorted(), "the agents are not sorted")
    }
}
