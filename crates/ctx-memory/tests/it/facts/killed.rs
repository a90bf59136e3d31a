//! Kills pairs of writers at random moments while they learn, supersede and rewrite the file.
//! Everything they reported as learned must be there and intact.
//!
//! Each writer is this program again, running the same test with the variable `CTX_TEST_CHILD` set.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ctx_memory::facts::{FactStore, Scope};
use ctx_testkit::Random;

use super::config;

const CHILD: &str = "CTX_TEST_CHILD";
const SEED: &str = "CTX_TEST_SEED";
const NAME: &str = "facts::killed::learned_facts_survive_a_kill_intact";

const ROUNDS: u64 = 24;
const ROUNDS_A_FILE: u64 = 12;

/// The longest lifetime of a writer after its first output, in microseconds.
const LONGEST: u64 = 60_000;

fn open(dir: &Path) -> FactStore {
    FactStore::open(dir.join("deep/knowledge.jsonl"), Scope::Agent).unwrap()
}

/// Prints a line to the parent in one write.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("say {text}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// Runs until killed.
fn work(dir: &Path, seed: u64) -> ! {
    let mut store = open(dir);
    let mut random = Random::seeded(seed);
    say("ready");
    let mut round = 0;
    loop {
        round += 1;
        // One setting whose value changes makes outdated lines, so that the file is rewritten.
        let port = 1_000 + random.below(50_000);
        let words = format!("Service w{seed}x{round} keeps data in /srv/w{seed}x{round}");
        let same = format!("Server of w{seed} runs on port {port}");
        let time = round * 10;
        let learned = store.learn([config(&words, time), config(&same, time + 1)]).unwrap();
        for id in learned.added.iter().chain(&learned.updated) {
            say(&format!("known {id}"));
        }
        for _ in 0..random.below(8) {
            let port = 1_000 + random.below(50_000);
            let same = format!("Server of w{seed} runs on port {port}");
            let learned = store.learn([config(&same, time + 2)]).unwrap();
            learned.added.iter().for_each(|id| say(&format!("known {id}")));
        }
    }
}

fn spawn(dir: &Path, seed: u64) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([NAME, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(CHILD, dir).env(SEED, seed.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap()
}

fn said(line: std::io::Result<String>) -> Option<String> {
    line.unwrap().split_once("say ").map(|(_, said)| said.to_owned())
}

#[test]
fn learned_facts_survive_a_kill_intact() {
    if let Some(dir) = std::env::var_os(CHILD) {
        work(Path::new(&dir), std::env::var(SEED).unwrap().parse().unwrap());
    }
    let mut random = Random::seeded(7);
    let mut all = 0;
    for _ in 0..ROUNDS / ROUNDS_A_FILE {
        let dir = tempfile::tempdir().unwrap();
        let mut told = HashSet::new();
        for _ in 0..ROUNDS_A_FILE {
            let seeds = [random.next() % 100_000, random.next() % 100_000];
            let mut pair = seeds.map(|seed| spawn(dir.path(), seed));
            let mut heard: Vec<_> =
                pair.iter_mut().map(|c| BufReader::new(c.stdout.take().unwrap()).lines()).collect();
            for lines in &mut heard {
                assert!(lines.by_ref().filter_map(said).any(|said| said == "ready"));
            }
            // Does not wait for any event: the moment must be random.
            std::thread::sleep(Duration::from_micros(random.next() % LONGEST));
            for child in &mut pair {
                child.kill().unwrap();
            }
            for lines in heard {
                let known = lines.filter_map(said);
                told.extend(known.filter_map(|s| Some(s.strip_prefix("known ")?.to_owned())));
            }
            for mut child in pair {
                assert!(!child.wait().unwrap().success());
            }
            let mut store = open(dir.path());
            let there: HashSet<String> = store.facts().map(|fact| fact.id.to_string()).collect();
            let lost: Vec<_> = told.difference(&there).collect();
            assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), told.len());
            // Each killed writer leaves at most one torn line, and the next line is intact.
            let learned = store.learn([config(&format!("Mark m{all}y is set"), 1)]).unwrap();
            told.extend(learned.added.iter().map(ToString::to_string));
            let damaged = open(dir.path()).damaged();
            assert!(damaged <= 2 * ROUNDS_A_FILE as usize, "{damaged} lines are damaged");
            all += told.len();
        }
    }
    // Writers that achieve nothing would test nothing.
    assert!(all > ROUNDS as usize, "only {all} were learned");
}
