//! Looks for texts of removed turns: in all rows of the database, and in all files of the hosts.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::check::{Fault, Operation, Outcome, Removal, Violation};
use crate::cluster::Host;
use crate::database::Database;

/// What stands before the id of a turn in each of its texts.
const MARK: &[u8] = b"mark-";

/// How long the hosts may take to erase from their files what was erased from the database. A host
/// without turns looks every ten seconds.
const BOUND: Duration = Duration::from_secs(40);

/// Returns a text of a turn, which [`left`] finds.
pub(crate) fn marked(kind: &str, id: impl Copy + Display) -> String {
    format!("{kind} {id} {}", mark(id))
}

/// Returns what only the texts of a turn have.
pub(crate) fn mark(id: impl Display) -> String {
    format!("mark-{id}-")
}

/// Returns the number of turns that were removed, and a violation for each of them whose text is
/// still somewhere.
///
/// # Panics
///
/// If the texts of the other turns are not found.
pub(crate) async fn left<'a>(
    operations: &[Operation],
    removals: &[Removal],
    database: &Database,
    hosts: impl Iterator<Item = &'a Host>,
) -> (usize, Vec<Violation>) {
    let removed: Vec<_> = operations.iter().filter(|own| own.is_removed(removals)).collect();
    let ids: BTreeSet<u64> = removed.iter().map(|own| own.id).collect();
    let stored = marks(database.dump().as_bytes());
    for own in operations.iter().filter(|own| own.outcome == Outcome::Acknowledged) {
        assert!(own.may_be_removed(removals) || stored.contains(&own.id), "not found: {own}");
    }
    let mut left = Vec::new();
    let mut report = |place: &str, found: &BTreeSet<u64>| {
        for own in removed.iter().filter(|own| found.contains(&own.id)) {
            println!("{place} has text of the removed turn {own}");
            let (session, operation) = (own.session.clone(), Some(own.id));
            left.push(Violation { fault: Fault::Left, session, operation, seq: None });
        }
    };
    report("the database", &stored);
    let until = Instant::now() + BOUND;
    for host in hosts {
        let found = loop {
            let found = files(&host.home);
            let has_removed = found.iter().any(|(_, marks)| !marks.is_disjoint(&ids));
            if !has_removed || Instant::now() >= until {
                break found;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        };
        assert!(!found.is_empty(), "{} has no text at all", host.name);
        for (file, marks) in &found {
            report(&format!("{} of {}", file, host.name), marks);
        }
    }
    (removed.len(), left)
}

/// Returns the files in a folder, and in the folders in it, that have texts of turns.
fn files(folder: &Path) -> Vec<(String, BTreeSet<u64>)> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            // A file may have been deleted meanwhile.
            let marks = marks(&std::fs::read(&path).unwrap_or_default());
            if !marks.is_empty() {
                found.push((path.display().to_string(), marks));
            }
        }
    }
    found
}

/// Returns the ids of the turns whose texts are in a text.
fn marks(text: &[u8]) -> BTreeSet<u64> {
    let starts = text.windows(MARK.len()).enumerate().filter(|(_, bytes)| *bytes == MARK);
    let id = |(at, _): (usize, _)| {
        let rest = &text[at + MARK.len()..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()
    };
    starts.filter_map(id).collect()
}
