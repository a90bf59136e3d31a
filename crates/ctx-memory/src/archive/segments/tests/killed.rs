//! Kills pairs of writers at random moments while they append, evict, forget and rewrite the
//! archive. Everything they reported as stored must be there and intact.
//!
//! Each writer is this program again, running the same test with the variable `CTX_TEST_CHILD` set.

// Helpers of tests are tests.
#![allow(clippy::print_stdout)]

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ctx_core::{Role, Timestamp};
use ctx_search::vectors::{Embedding, VectorFile};
use ctx_search::{Metadata, Segment, SegmentId};
use ctx_testkit::Random;

use crate::archive::{ArchiveLimits, Segments, Source};

const CHILD: &str = "CTX_TEST_CHILD";
const SEED: &str = "CTX_TEST_SEED";
const NOW: Timestamp = Timestamp(1_770_000_000_000);

const ROUNDS: u64 = 60;
const ROUNDS_AN_ARCHIVE: u64 = 15;

/// The longest lifetime of a writer after its first output, in microseconds.
const LONGEST: u64 = 40_000;

/// What a writer does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// Adds without a limit, and sometimes forgets.
    Forgets,
    /// Adds to a full archive: each addition evicts, and sometimes the file is rewritten.
    Evicts,
}

const FULL: usize = 40;

fn limits(work: Work) -> ArchiveLimits {
    let max_segments = if work == Work::Evicts { FULL } else { 1_000_000 };
    ArchiveLimits { max_segments, eviction_days: 0 }
}

fn archive(dir: &Path) -> PathBuf {
    dir.join("context/segments.jsonl")
}

fn vectors(dir: &Path) -> VectorFile {
    VectorFile::open(dir.join("context/vectors.bin"), Embedding::new("test", 4)).unwrap()
}

fn segment(name: &str, time: i64) -> Segment {
    // The lengths vary, so that writes end anywhere in a page.
    let content = format!("{name} {}", "x".repeat((time as usize * 7_919) % 3_000));
    Segment {
        id: SegmentId::of("s", &Role::User, &content),
        agent_id: "main".into(),
        session_id: "s".into(),
        timestamp: Timestamp(NOW.0 + time),
        archived_at: None,
        role: Role::User,
        name: None,
        content,
        tokens: 1,
        metadata: Metadata::default(),
        entry_id: Some(name.into()),
    }
}

/// Prints a line to the parent in one write.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("say {text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Runs until killed.
fn work(dir: &Path, seed: u64, work: Work) -> ! {
    let mut random = Random::seeded(seed);
    let mut segments = Segments::open(archive(dir), limits(work), NOW).unwrap();
    let mut vectors = vectors(dir);
    say("ready");
    let mut round = 0;
    loop {
        round += 1;
        let names: Vec<String> =
            (0..1 + random.below(12)).map(|nth| format!("{seed}-{round}-{nth}")).collect();
        let ids: Vec<_> = names
            .iter()
            .map(|name| {
                let segment = segment(name, (random.next() % 1_000_000) as i64);
                segments.insert(&segment).unwrap();
                segment.id
            })
            .collect();
        segments.commit(NOW).unwrap();
        for id in &ids {
            say(&format!("stored {id}"));
            vectors.add(*id, &[0.5; 4]).unwrap();
        }
        vectors.commit().unwrap();
        if work == Work::Forgets && random.below(3) == 0 {
            let ids = HashSet::from([ids[0]]);
            say(&format!("forgetting {}", names[0]));
            say(&format!("forget {}", ids.iter().next().unwrap()));
            segments.forget(&ids).unwrap();
            say(&format!("forgot {}", names[0]));
        }
    }
}

fn spawn(test: &str, dir: &Path, seed: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        &*format!("archive::segments::tests::killed::{test}"),
        "--exact",
        "--nocapture",
        "--test-threads=1",
    ]);
    command.env(CHILD, dir).env(SEED, seed.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}

/// What the writers reported of an archive.
#[derive(Default)]
struct Told {
    stored: HashSet<String>,
    /// May be there or not.
    forgetting: HashSet<String>,
    forgotten: Vec<String>,
}

impl Told {
    fn hear(&mut self, said: &str) {
        let (verb, what) = said.split_once(' ').unwrap();
        match verb {
            "stored" => drop(self.stored.insert(what.to_owned())),
            "forget" => drop(self.forgetting.insert(what.to_owned())),
            "forgot" => self.forgotten.push(what.to_owned()),
            _ => {}
        }
    }

    /// Checks the archive after two writers were killed.
    fn check(&self, dir: &Path, work: Work) {
        let mut segments = Segments::open(archive(dir), limits(work), NOW).unwrap();
        assert_eq!(segments.damage.unreadable, 0, "a line was damaged");
        let ids: Vec<SegmentId> = segments.rows().map(|row| row.id).collect();
        for (id, segment) in ids.iter().zip(segments.get(&ids).unwrap()) {
            let segment = segment.expect("what has a row has a text");
            assert_eq!(SegmentId::of("s", &Role::User, &segment.content), *id, "whole");
        }
        let there: HashSet<String> = ids.iter().map(ToString::to_string).collect();
        match work {
            Work::Forgets => {
                for id in self.stored.difference(&self.forgetting) {
                    assert!(there.contains(id), "{id} was stored");
                }
                let disk = std::fs::read_to_string(archive(dir)).unwrap();
                for name in &self.forgotten {
                    assert!(!disk.contains(&format!("\"{name} ")), "{name} was forgotten");
                }
            }
            Work::Evicts if self.stored.len() > FULL => assert_eq!(there.len(), FULL),
            Work::Evicts => {}
        }
        // Vectors may be missing, and are computed again; the others must be valid.
        let vectors = vectors(dir);
        assert!(vectors.iter().all(|(_, vector)| vector == [0.5; 4]));
    }
}

fn kill_writers(test: &str, kind: Work) {
    if let Some(dir) = std::env::var_os(CHILD) {
        let seed = std::env::var(SEED).unwrap().parse().unwrap();
        work(Path::new(&dir), seed, kind);
    }
    let mut random = Random::seeded(kind as u64);
    let (mut stored, mut forgotten) = (0, 0);
    for _ in 0..ROUNDS / ROUNDS_AN_ARCHIVE {
        let dir = tempfile::tempdir().unwrap();
        let mut told = Told::default();
        for _ in 0..ROUNDS_AN_ARCHIVE {
            let mut pair =
                [spawn(test, dir.path(), random.next()), spawn(test, dir.path(), random.next())];
            let mut heard: Vec<_> =
                pair.iter_mut().map(|c| BufReader::new(c.stdout.take().unwrap()).lines()).collect();
            let said = |line: std::io::Result<String>| {
                let line = line.unwrap();
                line.split_once("say ").map(|(_, said)| said.to_owned())
            };
            for lines in &mut heard {
                assert!(lines.by_ref().filter_map(said).any(|said| said == "ready"));
            }
            // Does not wait for any event: the moment must be random.
            std::thread::sleep(Duration::from_micros(random.next() % LONGEST));
            for child in &mut pair {
                child.kill().unwrap();
            }
            for lines in heard {
                lines.filter_map(said).for_each(|said| told.hear(&said));
            }
            for mut child in pair {
                assert!(!child.wait().unwrap().success());
            }
            told.check(dir.path(), kind);
        }
        stored += told.stored.len();
        forgotten += told.forgotten.len();
    }
    // Writers that achieve nothing would test nothing.
    println!("{stored} stored, {forgotten} forgotten");
    assert!(stored > ROUNDS as usize, "only {stored} were stored");
    assert!(kind == Work::Evicts || forgotten > 5, "only {forgotten} were forgotten");
}

#[test]
fn stored_segments_survive_a_kill_and_forgotten_ones_stay_out() {
    kill_writers("stored_segments_survive_a_kill_and_forgotten_ones_stay_out", Work::Forgets);
}

#[test]
fn a_full_archive_stays_full_and_intact() {
    kill_writers("a_full_archive_stays_full_and_intact", Work::Evicts);
}
